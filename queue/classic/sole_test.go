package classic

import (
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// sole publishes messages of which nobody else has one.
func sole(q queue.Queue, msgs ...*message.Message) {
	batch := make([]queue.Entry, len(msgs))
	for i, m := range msgs {
		batch[i] = queue.Entry{Msg: m, Sole: true}
	}
	q.Enqueue(batch)
}

// A witness is a consumer that remembers which deliveries were sole.
type witness struct {
	*queuetest.Consumer
	sole []bool
}

func (w *witness) Deliver(batch []queue.Delivery) int {
	n := w.Consumer.Deliver(batch)
	for _, d := range batch[:n] {
		w.sole = append(w.sole, d.Sole)
	}
	return n
}

func watch(h *queuetest.Harness, set func(s *queue.Subscription)) *witness {
	w := &witness{Consumer: queuetest.NewConsumer()}
	w.Sub.Consumer = w
	if set != nil {
		set(w.Sub)
	}
	if err := h.Queue.Subscribe(w.Sub); err != nil {
		h.T.Fatal(err)
	}
	return w
}

func noAck(s *queue.Subscription) { s.NoAck = true }

// TestSoleDeliveries: a delivery is sole only if the queue got the message so, and
// has neither stored it nor given it to anybody before.
func TestSoleDeliveries(t *testing.T) {
	m, persistent := queuetest.Message, queuetest.Persistent
	durable := queue.Spec{Durable: true}
	spec := func(set func(a *queue.Arguments)) queue.Spec {
		a := queue.NewArguments()
		set(&a)
		return queue.Spec{Arguments: &a}
	}
	unique := spec(func(a *queue.Arguments) { a.Deduplication = "id" })
	marked := func(id string) *message.Message {
		return queuetest.With(id, func(p *frames.Properties) {
			p.DeliveryMode = 0
			p.SetTable(frames.Table{{Name: "id", Value: id}})
		})
	}
	for _, tt := range []struct {
		name string
		spec queue.Spec
		do   func(h *queuetest.Harness) *witness
		want []bool
	}{
		{"handed on", queue.Spec{}, func(h *queuetest.Harness) *witness {
			w := watch(h, noAck)
			sole(h.Queue, m("a"), m("b"))
			return w
		}, []bool{true, true}},
		{"waited", queue.Spec{}, func(h *queuetest.Harness) *witness {
			sole(h.Queue, m("a"))
			h.Publish("b") // of which others know
			return watch(h, noAck)
		}, []bool{true, false}},
		{"consumer had no room", queue.Spec{}, func(h *queuetest.Harness) *witness {
			w := watch(h, noAck)
			w.SetRoom(1)
			sole(h.Queue, m("a"))
			sole(h.Queue, m("b"), m("c"))
			w.SetRoom(queuetest.Unlimited)
			h.Queue.Resume(w.Sub)
			return w
		}, []bool{true, true, true}},
		{"put back", queue.Spec{}, func(h *queuetest.Harness) *witness {
			sole(h.Queue, m("a"), m("b"))
			h.Publish("c")
			w := watch(h, func(s *queue.Subscription) {
				noAck(s)
				s.Consumer.(*witness).SetRoom(1)
			})
			w.SetRoom(queuetest.Unlimited)
			h.Queue.Resume(w.Sub)
			return w
		}, []bool{true, true, false}},
		{"among several consumers", queue.Spec{}, func(h *queuetest.Harness) *witness {
			w := watch(h, noAck)
			h.Consume(noAck)
			sole(h.Queue, m("a"), m("b"), m("c"))
			return w
		}, []bool{true, true}},
		{"transient in a durable queue", durable, func(h *queuetest.Harness) *witness {
			sole(h.Queue, m("a"))
			return watch(h, noAck)
		}, []bool{true}},
		{"stored", durable, func(h *queuetest.Harness) *witness {
			sole(h.Queue, persistent("a"))
			return watch(h, noAck)
		}, []bool{false}},
		{"handed on instead of stored", durable, func(h *queuetest.Harness) *witness {
			w := watch(h, noAck)
			sole(h.Queue, persistent("a"))
			return w
		}, []bool{true}},
		{"stored while it is handed on", durable, func(h *queuetest.Harness) *witness {
			w := watch(h, nil)
			sole(h.Queue, persistent("a"))
			return w
		}, []bool{false}},
		{"got and requeued", queue.Spec{}, func(h *queuetest.Harness) *witness {
			sole(h.Queue, m("a"))
			d := h.Get()
			if d.Sole {
				h.T.Error("a message that was got is sole")
			}
			h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
			return watch(h, noAck)
		}, []bool{false}},
		{"delivered and returned", queue.Spec{}, func(h *queuetest.Harness) *witness {
			c := h.Consume(nil)
			sole(h.Queue, m("a"), m("b"))
			h.Queue.Cancel(c.Sub)
			h.Queue.Settle(c.Sub, c.Held(), queue.Returned)
			return watch(h, noAck)
		}, []bool{false, false}},
		{"known to be there by its id", unique, func(h *queuetest.Harness) *witness {
			w := watch(h, noAck)
			sole(h.Queue, marked("a"))
			h.Queue.Cancel(w.Sub)
			sole(h.Queue, marked("b"))
			other := watch(h, noAck)
			w.sole = append(w.sole, other.sole...)
			return w
		}, []bool{false, false}},
		{"with priorities", spec(func(a *queue.Arguments) { a.MaxPriority = 5 }), func(h *queuetest.Harness) *witness {
			sole(h.Queue, m("a"))
			return watch(h, noAck)
		}, []bool{true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := queuetest.New(t, New, tt.spec)
			queuetest.Equal(t, "deliveries that are sole", tt.do(h).sole, tt.want)
		})
	}
}

// TestPagedMessageIsNotSole: what was written to a spill log is read from there,
// while the log may still have what it was written from.
func TestPagedMessageIsNotSole(t *testing.T) {
	p := newPaged(t, queue.Spec{}, true)
	const n = 1000
	for i := range n {
		sole(p.Queue, queuetest.Message(big(i)))
	}
	if s := p.Queue.Status(); s.InMemory >= n {
		t.Fatalf("%d of %d messages are in memory: nothing was paged out", s.InMemory, n)
	}
	w := watch(p.Harness, noAck)
	if len(w.sole) != n {
		t.Fatalf("%d messages were delivered, want %d", len(w.sole), n)
	}
	again := 0
	for _, sole := range w.sole {
		if sole {
			again++
		}
	}
	if again == 0 || again == n {
		t.Errorf("%d of %d deliveries are sole, want those that stayed in memory", again, n)
	}
}
