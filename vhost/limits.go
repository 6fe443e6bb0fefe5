package vhost

import (
	"encoding/json"
	"math"

	"github.com/leveretmq/leveret/frames"
)

// Limits bound a vhost. A negative value is no limit, 0 allows none.
type Limits struct {
	MaxConnections int64
	MaxQueues      int64
}

// unset is the value of a limit that a vhost was not given. Other negative numbers
// are no limit either, but shown as they were given (RabbitMQ 4.0).
const unset = math.MinInt64

// noLimits are the limits of a vhost that was never given any.
var noLimits = Limits{MaxConnections: unset, MaxQueues: unset}

// The parameter that holds a vhost's limits (RabbitMQ 4.0).
const (
	limitsComponent = "vhost-limits"
	limitsName      = "limits"

	maxConnectionsLimit = "max-connections"
	maxQueuesLimit      = "max-queues"
)

// Limits are the limits in force.
func (v *VHost) Limits() Limits {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.limits
}

// SetLimit sets the limit max-connections or max-queues; what is beyond it
// already stays.
func (v *VHost) SetLimit(by Actor, name string, value int64) error {
	return v.changeLimits(by, "vhost.limits.set", func(l *Limits) error { return l.set(name, value) })
}

// ClearLimit removes one limit, or with the name "" all.
func (v *VHost) ClearLimit(by Actor, name string) error {
	return v.changeLimits(by, "vhost.limits.cleared", func(l *Limits) error {
		if name == "" {
			*l = noLimits
			return nil
		}
		return l.set(name, unset)
	})
}

func (l *Limits) set(name string, value int64) error {
	switch name {
	case maxConnectionsLimit:
		l.MaxConnections = value
	case maxQueuesLimit:
		l.MaxQueues = value
	default:
		return invalidf("'%s' is not a limit of a vhost; the limits are '%s' and '%s'", name, maxConnectionsLimit, maxQueuesLimit)
	}
	return nil
}

func (v *VHost) changeLimits(by Actor, eventKey string, apply func(*Limits) error) error {
	c, err := v.changeLive()
	if err != nil {
		return err
	}
	limits := v.limits
	if err := apply(&limits); err != nil {
		c.unlock()
		return err
	}
	v.limits = limits
	if limits == noLimits {
		c.deleteParameter(limitsComponent, limitsName)
	} else {
		c.putParameter(limitsComponent, limitsName, limits.encode())
	}
	c.limitsEvent(eventKey, limits, by.User())
	c.unlock()
	return c.finish(by)
}

// Map is the limits that are set, by name.
func (l Limits) Map() map[string]int64 {
	m := make(map[string]int64, 2)
	if l.MaxConnections != unset {
		m[maxConnectionsLimit] = l.MaxConnections
	}
	if l.MaxQueues != unset {
		m[maxQueuesLimit] = l.MaxQueues
	}
	return m
}

func (l Limits) encode() []byte { return encode(l.Map()) }

func decodeLimits(b []byte) (Limits, error) {
	var m map[string]int64
	if err := json.Unmarshal(b, &m); err != nil {
		return Limits{}, err
	}
	l := noLimits
	for name, n := range m {
		if err := l.set(name, n); err != nil {
			return Limits{}, err
		}
	}
	return l, nil
}

// ConnectionOpened counts a connection, or refuses it with 530 because the
// vhost has as many as it may. A counted one must be given to ConnectionClosed.
func (v *VHost) ConnectionOpened(user string) error {
	limit := v.Limits().MaxConnections
	n := v.connections.Add(1)
	if limit < 0 || n <= limit {
		return nil
	}
	v.connections.Add(-1)
	return frames.Errorf(frames.NotAllowed, "access to vhost '%s' refused for user '%s': connection limit (%d) is reached", v.name, user, limit)
}

// ConnectionClosed counts a connection less.
func (v *VHost) ConnectionClosed() { v.connections.Add(-1) }

// queueLimit refuses a new queue when the vhost has as many as it may.
func (v *VHost) queueLimit(name string) error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.queueLimitLocked(name)
}

func (v *VHost) queueLimitLocked(name string) error {
	if limit := v.limits.MaxQueues; limit >= 0 && int64(len(v.queues)) >= limit {
		return frames.Errorf(frames.PreconditionFailed, "cannot declare queue '%s': queue limit in vhost '%s' (%d) is reached", name, v.name, limit)
	}
	return nil
}
