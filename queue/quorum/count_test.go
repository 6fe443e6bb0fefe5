package quorum

import (
	"fmt"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// deadLetters is a target.
var deadLetters = &queue.Target{Exchange: "dlx", Key: "dead", HasKey: true}

// headers are the headers of a message.
func headers(t testing.TB, m *message.Message) frames.Table {
	t.Helper()
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		t.Fatal(err)
	}
	table, err := p.Table()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// describe is a delivery as "body count", with the header's count if it has one.
func describe(t testing.TB, d queue.Delivery) string {
	t.Helper()
	v, ok := headers(t, d.Msg).Lookup("x-delivery-count")
	if !ok {
		v = "-"
	}
	return fmt.Sprintf("%s %d %t %v", d.Msg.Body, d.Count, d.Redelivered, v)
}

func wantDelivery(t testing.TB, d queue.Delivery, want string) {
	t.Helper()
	if got := describe(t, d); got != want {
		t.Errorf("got %q, want %q (body, count, redelivered, header)", got, want)
	}
}

func TestDeliveryCountHeader(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Send(queuetest.With("a", func(p *frames.Properties) {
		p.Flags |= frames.FlagMessageID
		p.MessageID = []byte("id")
		p.SetTable(frames.Table{{Name: "z", Value: int32(1)}, {Name: "b", Value: "x"}})
	}))
	d := h.Get()
	wantDelivery(t, d, "a 0 false -")
	for i := range 3 {
		h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
		d = h.Get()
		wantDelivery(t, d, fmt.Sprintf("a %d true %d", i+1, i+1))
	}
	table := headers(t, d.Msg)
	var names []string
	for _, f := range table {
		names = append(names, f.Name)
	}
	queuetest.Equal(t, "headers", names, []string{"b", "x-acquired-count", "x-delivery-count", "z"})
	for _, name := range []string{"x-acquired-count", "x-delivery-count"} {
		if v, _ := table.Lookup(name); v != int64(3) {
			t.Errorf("%s is %T %v, want int64 3", name, v, v)
		}
	}
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Returned)
	wantDelivery(t, h.Get(), "a 3 true 3") // it did not reach the client
}

func TestClientsDeliveryCount(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Send(queuetest.With("a", func(p *frames.Properties) {
		p.SetTable(frames.Table{{Name: "x-delivery-count", Value: "mine"}})
	}))
	d := h.Get()
	wantDelivery(t, d, "a 0 false mine")
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	wantDelivery(t, h.Get(), "a 1 true 1")
}

func TestDeliveryLimitDeadLetters(t *testing.T) {
	for _, tt := range []struct {
		name       string
		limit      int64
		policy     queue.Definition
		deliveries int
	}{
		{"default", queue.NoDeliveryLimit, nil, 21},
		{"none at all", 0, nil, 1},
		{"two", 2, nil, 3},
		{"smaller one of argument and policy", 5, queue.Definition{"delivery-limit": 1.0}, 2},
		{"policy alone", queue.NoDeliveryLimit, queue.Definition{"delivery-limit": 3.0}, 4},
		{"unlimited", -1, nil, 30},
		{"unlimited by policy loses to a limit", 3, queue.Definition{"delivery-limit": -1.0}, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := queue.NewArguments()
			a.DeliveryLimit, a.DeadLetter = tt.limit, deadLetters
			h := newHarness(t, a)
			if tt.policy != nil {
				h.Queue.SetPolicy(queue.Merge(&queue.NamedDefinition{Name: "p", Definition: tt.policy}, nil))
			}
			h.Publish("a")
			n := 0
			for h.Queue.Status().Ready > 0 && n < 30 {
				n++
				h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued)
			}
			if n != tt.deliveries {
				t.Errorf("%d deliveries, want %d", n, tt.deliveries)
			}
			want := []string{"a delivery_limit"}
			if tt.deliveries == 30 {
				want = nil
			}
			queuetest.Equal(t, "dead letters", h.Dead(), want)
		})
	}
}

func TestDeadLetterHasNoDeliveryCount(t *testing.T) {
	a := queue.NewArguments()
	a.DeadLetter = deadLetters
	h := newHarness(t, a)
	q := h.Queue.(*Queue)
	var dead []*message.Message
	q.env.DeadLetter = func(_ queue.Queue, _ queue.Target, _ queue.Reason, msgs []*message.Message, _ *message.Receipt) {
		dead = append(dead, msgs...)
	}
	h.Publish("a")
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued)
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Rejected)
	if len(dead) != 1 {
		t.Fatalf("%d dead letters, want 1", len(dead))
	}
	for _, name := range []string{"x-acquired-count", "x-delivery-count"} {
		if v, ok := headers(t, dead[0]).Lookup(name); ok {
			t.Errorf("the dead letter has %s %v", name, v)
		}
	}
}

// returnHead hands the head out and requeues it.
func returnHead(h *queuetest.Harness) {
	h.T.Helper()
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued)
}

func TestCountSurvivesRestart(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Publish("a", "b", "c", "d")
	for range 3 {
		returnHead(h)
	}
	a := h.Get() // the fourth time
	returnHead(h)
	b := h.Get() // the second time
	h.Queue.Settle(nil, []queue.Delivery{b}, queue.Requeued)
	c := h.Get() // b the third time
	h.Queue.Settle(nil, []queue.Delivery{c}, queue.Requeued)
	_ = a
	for range 2 { // a second restart changes nothing
		h.Reopen()
	}
	for _, want := range []string{"a 4 true 4", "b 3 true 3", "c 0 false -", "d 0 false -"} {
		wantDelivery(t, h.Get(), want)
	}
}

func TestHandedOutOnceSurvivesRestart(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Publish("a", "b")
	h.Get()
	h.Reopen()
	wantDelivery(t, h.Get(), "a 1 true 1")
	wantDelivery(t, h.Get(), "b 0 false -")
}

func TestUrgentReturnSurvivesRestart(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Publish("n")
	h.Send(queuetest.Priority("u", 9))
	returnHead(h) // u, while n waits: the mark of the log does not reach it
	h.Reopen()
	wantDelivery(t, h.Get(), "u 1 true 1")
	wantDelivery(t, h.Get(), "n 0 false -")
}

// The mark of the log reaches a message that comes back because what was before it
// has gone, not because it was handed out: the log has to be told.
func TestReturnAfterPurgeSurvivesRestart(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Publish("n")
	h.Send(queuetest.Priority("u", 9))
	u := h.Get()
	if n, err := h.Queue.Purge(); n != 1 || err != nil {
		t.Errorf("Purge() = %d, %v, want 1", n, err)
	}
	h.Queue.Settle(nil, []queue.Delivery{u}, queue.Requeued)
	h.Reopen()
	wantDelivery(t, h.Get(), "u 1 true 1")
}

func TestNotesAreSettled(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	for i := range 40 {
		h.Publish(fmt.Sprint(i))
	}
	for range 3 {
		c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 20 })
		h.Queue.Cancel(c.Sub)
		h.Queue.Settle(c.Sub, c.Held(), queue.Requeued)
	}
	if n := len(logOf(h).Records(noteLane)); n != 20 {
		t.Errorf("%d notes are live, want the latest one of each of 20 messages", n)
	}
	h.Reopen()
	if n, _ := h.Queue.Purge(); n != 40 {
		t.Errorf("purged %d, want 40", n)
	}
	if n := logOf(h).Len(); n != 0 {
		t.Errorf("%d records are left, want 0", n)
	}
	q := h.Queue.(*Queue)
	if q.notes.Any() {
		t.Error("notes are left")
	}
}

func TestNoNotesOnTheCommonPath(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	c := h.Consume(nil)
	h.Publish("a", "b", "c")
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	if last := logOf(h).LastID(); last != 3 {
		t.Errorf("the last record is %d, want 3: one for each message", last)
	}
}
