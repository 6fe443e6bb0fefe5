package amqp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/leveretmq/leveret/frames"
)

// alarms are what stops publishers: too little memory or disk.
type alarms struct {
	mu      sync.Mutex    // guards the fields below; held for one change
	on      []string      // "disk", "memory"
	cleared chan struct{} // closed when the last one clears; nil while none is on

	raised atomic.Bool // cleared is not nil; changed with mu held
}

// SetAlarm raises or clears the alarm of a resource, "memory" or "disk".
// Connections that publish while one is up are not read any more until the last
// one clears.
func (s *Server) SetAlarm(resource string, on bool) {
	a := &s.alarms
	a.mu.Lock()
	defer a.mu.Unlock()
	var rest []string
	for _, r := range a.on {
		if r != resource {
			rest = append(rest, r)
		}
	}
	if on {
		rest = append(rest, resource)
	}
	a.on = rest
	switch {
	case len(rest) > 0 && a.cleared == nil:
		a.cleared = make(chan struct{})
		a.raised.Store(true)
	case len(rest) == 0 && a.cleared != nil:
		a.raised.Store(false)
		close(a.cleared)
		a.cleared = nil
	}
}

// up returns a channel that is closed when no alarm is on any more, and the
// reason for connection.blocked; nil if there is none now.
func (a *alarms) up() (cleared <-chan struct{}, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cleared == nil {
		return nil, ""
	}
	return a.cleared, "low on " + strings.Join(a.on, " & ")
}

// largest is how large a body may be for its publisher not to wait: none but empty
// ones while an alarm is up, else as large as it may be at all.
func (s *Server) largest() uint64 {
	if s.alarms.raised.Load() {
		return 0
	}
	return uint64(s.cfg.MaxMessageSize)
}

// hold ends the turn after a content header that came while an alarm is up. What
// follows it is handled when the alarm is over (RabbitMQ 4.0).
func (c *conn) hold() {
	c.held = true
	c.glutted = true
}

// waitAlarm stops a connection that publishes while an alarm is up. Clients that
// asked for it are told when that begins and ends (RabbitMQ 4.0).
func (c *conn) waitAlarm(ctx context.Context) {
	cleared, reason := c.srv.alarms.up()
	if cleared == nil || ctx.Err() != nil {
		return
	}
	if c.caps.blocked {
		c.out.method(0, &frames.ConnectionBlocked{Reason: reason})
	}
	c.blocked.Store(true)
	defer c.blocked.Store(false)
	c.beats.pause()
	defer c.beats.resume()
	for cleared != nil {
		select {
		case <-cleared:
		case <-ctx.Done():
			return
		}
		cleared, _ = c.srv.alarms.up()
	}
	if c.caps.blocked {
		c.out.method(0, &frames.ConnectionUnblocked{})
	}
}

// waitStores stops a connection while a store is behind that it has given
// something to write.
func (c *conn) waitStores(ctx context.Context) error {
	writes := c.toWrite
	if writes == 0 {
		return nil
	}
	c.toWrite = 0
	c.beats.pause()
	err := c.srv.cfg.Wait(ctx, writes)
	c.beats.resume()
	if ctx.Err() != nil {
		return nil // the next read says why
	}
	return err
}

// Alarms are the resources whose alarm is up, "memory" and "disk".
func (s *Server) Alarms() []string {
	s.alarms.mu.Lock()
	defer s.alarms.mu.Unlock()
	return slices.Clone(s.alarms.on)
}

// Alarm is why publishers are blocked now, as in "low on memory"; "" if they are
// not.
func (s *Server) Alarm() string {
	_, reason := s.alarms.up()
	return reason
}
