package management

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

const (
	// eventExchange has the broker's events; it is in the vhost "/".
	eventExchange = "amq.rabbitmq.event"
	// maxEvents bounds the events that wait for a slow reader; further ones
	// wait in the queue, and eventQueueLength there.
	maxEvents        = 256
	eventQueueLength = 10_000
	// maxStreams bounds the clients that listen at one time, and so what slow ones
	// can hold: eventQueueLength events each.
	maxStreams = 100
	// eventPause is how long a stream is silent at most: proxies cut idle ones.
	eventPause = 15 * time.Second
)

// events handles GET /events, which RabbitMQ does not have: the broker's events
// as server-sent events. The type is the event's name, queue.created for
// instance, the data its fields.
func events(r *request) (reply, error) {
	v, exists := r.s.cfg.VHosts.Get("/")
	if !exists {
		return reply{}, &failure{http.StatusNotFound, "not_found", "events are published in the virtual host '/', which there is not; create it"}
	}
	return reply{status: http.StatusOK, stream: func() error {
		select {
		case r.s.streams <- struct{}{}:
			defer func() { <-r.s.streams }()
			return r.streamEvents(v)
		default:
			return &failure{http.StatusServiceUnavailable, "too_many_streams",
				fmt.Sprintf("%d clients listen to events already; close one of them", maxStreams)}
		}
	}}, nil
}

// streamEvents listens with an exclusive queue of its own, until the client
// leaves or the server stops.
func (r *request) streamEvents(v *vhost.VHost) error {
	owner := &listenerActor{Actor: vhost.System}
	defer v.ReleaseOwner(owner)
	q, err := v.DeclareQueue(owner, vhost.QueueDeclare{Exclusive: true,
		Arguments: frames.Table{{Name: "x-max-length", Value: int64(eventQueueLength)}}})
	if err != nil {
		return err
	}
	if err := v.BindQueue(owner, q.Name(), eventExchange, "#", nil); err != nil {
		return err
	}
	inbox := &inbox{wake: make(chan struct{}, 1)}
	sub := &queue.Subscription{Consumer: inbox, Tag: "events", NoAck: true, Exclusive: true, Window: &queue.Window{}}
	if err := q.Subscribe(sub); err != nil {
		return err
	}
	defer q.Cancel(sub)
	r.w.Header().Set("Content-Type", "text/event-stream")
	r.w.Header().Set("Cache-Control", "no-cache")
	r.w.WriteHeader(http.StatusOK)
	return r.forward(r.http.Context(), q, sub, inbox)
}

// forward writes events as they come. A client that does not read loses the oldest and
// is told how many; one that does not read for slowClient is cut off.
func (r *request) forward(ctx context.Context, q queue.Queue, sub *queue.Subscription, in *inbox) error {
	control, lost := http.NewResponseController(r.w), uint64(0)
	defer control.SetWriteDeadline(time.Time{}) // of the connection, for the next request
	tick := time.NewTicker(eventPause)
	defer tick.Stop()
	b := []byte("retry: 2000\n: events\n\n")
	for {
		control.SetWriteDeadline(time.Now().Add(slowClient)) // a test's writer has none
		if _, err := r.w.Write(b); err != nil {
			return nil // the client has left
		}
		if err := control.Flush(); err != nil {
			return nil // likewise
		}
		b = b[:0]
		select {
		case <-ctx.Done():
			return nil
		case <-r.s.closing:
			return nil
		case <-tick.C:
			b = append(b, ": still here\n\n"...)
		case <-in.wake:
			for _, m := range in.take() {
				b = r.appendEvent(b, m, q.Name())
			}
			q.Resume(sub)
			if st := q.Status(); st.Dropped > lost {
				b = fmt.Appendf(b, "event: events.lost\ndata: {\"count\":%d}\n\n", st.Dropped-lost)
				lost = st.Dropped
			}
		}
	}
}

// appendEvent appends one event in the form of server-sent events, unless it is
// about the stream's own queue, or nothing for the user. Who binds to the exchange for
// events may choose any routing key: one of several lines would be several events.
func (r *request) appendEvent(dst []byte, m *message.Message, own string) []byte {
	var p frames.Properties
	var fields frames.Table
	if p.Parse(m.Header) == nil {
		fields, _ = p.Table() // the broker has made it
	}
	if strings.ContainsAny(m.RoutingKey, "\r\n") {
		return dst
	}
	if to, _ := fields.Lookup("destination_name"); to == own || !r.mayHear(m.RoutingKey, fields) {
		return dst
	}
	dst = append(append(dst, "event: "...), m.RoutingKey...)
	dst = appendJSON(append(dst, "\ndata: "...), fields)
	return append(dst, "\n\n"...)
}

// mayHear says whether the user may know of an event, as of the lists of the API: of
// clients and vhosts monitors know all, of users and permissions administrators only,
// of what is in a vhost who has a permission there.
func (r *request) mayHear(key string, fields frames.Table) bool {
	if r.user.Has(auth.Administrator) {
		return true
	}
	switch what, _, _ := strings.Cut(key, "."); what {
	case "connection", "channel", "consumer", "vhost":
		return true
	case "user", "permission", "topic":
		return false
	}
	v, _ := fields.Lookup("vhost")
	name, inVHost := v.(string)
	return !inVHost || r.sees(name)
}

// An inbox is the consumer of a stream.
type inbox struct {
	wake chan struct{} // capacity 1

	mu     sync.Mutex // guards events; held to append or to swap. A leaf
	events []*message.Message
}

var _ queue.Consumer = (*inbox)(nil)

// Deliver implements queue.Consumer.
func (in *inbox) Deliver(batch []queue.Delivery) int {
	in.mu.Lock()
	n := min(len(batch), maxEvents-len(in.events))
	for _, d := range batch[:n] {
		in.events = append(in.events, d.Msg)
	}
	in.mu.Unlock()
	select {
	case in.wake <- struct{}{}:
	default:
	}
	return n
}

// Cancelled implements queue.Consumer.
func (in *inbox) Cancelled(*queue.Subscription) {}

// Activated implements queue.Consumer.
func (in *inbox) Activated(*queue.Subscription, bool) {}

func (in *inbox) take() []*message.Message {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := in.events
	in.events = nil
	return all
}

// A listenerActor owns the queue of a stream. Nobody else can use it.
type listenerActor struct{ vhost.Actor }

// Owner implements vhost.Actor.
func (a *listenerActor) Owner() any { return a }
