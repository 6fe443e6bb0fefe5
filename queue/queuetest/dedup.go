package queuetest

import (
	"testing"
	"testing/synctest"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// RunDedup tests what holds for types of queue that drop duplicates of what they
// hold. Messages are their own ids. The clock is a fake one.
func RunDedup(t *testing.T, factory queue.Factory) {
	for _, tt := range []struct {
		name string
		args func(a *queue.Arguments)
		test func(h *Harness)
	}{
		{"HeldOnce", plain, testHeldOnce},
		{"GoneWithAck", plain, testGoneWithAck},
		{"GoneWithNoAck", plain, testGoneWithNoAck},
		{"GoneWithReject", plain, testGoneWithReject},
		{"GoneWithoutTarget", func(a *queue.Arguments) { a.DeadLetter, a.DeliveryLimit = nil, 0 }, testGoneWithoutTarget},
		{"GoneWithExpiry", func(a *queue.Arguments) { a.MessageTTL = 100 }, testGoneWithExpiry},
		{"GoneWithMaxLength", func(a *queue.Arguments) { a.MaxLength = 1 }, testGoneWithMaxLength},
		{"GoneWithPurge", plain, testGoneWithPurge},
		{"KeptWhileItWaits", func(a *queue.Arguments) { a.RedeliveryDelay = 100 }, testKeptWhileItWaits},
		{"KeptThroughRestart", plain, testKeptThroughRestart},
		{"DuplicatesAreConfirmed", plain, testDuplicatesAreConfirmed},
		{"DuplicatesOfRefusedAreRefused", refusing, testDuplicatesOfRefused},
		{"DuplicatesAreConfirmedByAFullQueue", refusing, testDuplicateOfTheLast},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := queue.NewArguments()
				a.DeadLetter, a.Deduplication = &queue.Target{Exchange: "dlx"}, "id"
				tt.args(&a)
				tt.test(New(t, factory, queue.Spec{Durable: true, Arguments: &a}))
			})
		})
	}
}

func plain(*queue.Arguments) {}

// identified makes a persistent message whose id is its body.
func identified(body string) *message.Message {
	return With(body, func(p *frames.Properties) { p.SetTable(frames.Table{{Name: "id", Value: body}}) })
}

// wantTaken publishes a message with an id and checks whether the queue took it.
func (h *Harness) wantTaken(body string, want bool) {
	h.T.Helper()
	before := h.Queue.Status()
	h.Send(identified(body))
	after := h.Queue.Status()
	if taken := after.Duplicates == before.Duplicates; taken != want {
		h.T.Errorf("%s was taken: %t, want %t", body, taken, want)
	}
}

func testHeldOnce(h *Harness) {
	h.Send(identified("a"), identified("b"), identified("a"), Persistent("without"), Persistent("without"))
	h.wantTaken("b", false)
	h.wantTaken("c", true)
	if n := h.Queue.Status().Duplicates; n != 2 {
		h.T.Errorf("%d duplicates, want 2", n)
	}
	h.WantDrain("a", "b", "without", "without", "c")
}

func testGoneWithAck(h *Harness) {
	h.wantTaken("a", true)
	d := h.Get()
	h.wantTaken("a", false) // out, and not gone
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	h.wantTaken("a", false)
	c := h.Consume(nil)
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	h.wantTaken("a", true)
}

func testGoneWithNoAck(h *Harness) {
	h.wantTaken("a", true)
	h.WantDrain("a")
	c := h.Consume(func(s *queue.Subscription) { s.NoAck = true })
	h.wantTaken("a", true)
	h.wantTaken("a", true)
	Equal(h.T, "delivered", c.Bodies(), []string{"a", "a"})
}

func testGoneWithReject(h *Harness) {
	h.wantTaken("a", true)
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Rejected)
	Equal(h.T, "dead", h.Dead(), []string{"a rejected"})
	h.wantTaken("a", true)
}

func testGoneWithoutTarget(h *Harness) {
	h.wantTaken("a", true)
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued) // over the limit
	h.wantTaken("a", true)
}

func testGoneWithExpiry(h *Harness) {
	h.wantTaken("a", true)
	sleep(99)
	h.wantTaken("a", false)
	sleep(1)
	Equal(h.T, "dead", h.Dead(), []string{"a expired"})
	h.wantTaken("a", true)
}

func testGoneWithMaxLength(h *Harness) {
	h.wantTaken("a", true)
	h.wantTaken("b", true)
	Equal(h.T, "dead", h.Dead(), []string{"a maxlen"})
	h.wantTaken("a", true)
}

func testGoneWithPurge(h *Harness) {
	h.wantTaken("a", true)
	h.wantTaken("b", true)
	h.Get()
	if n, err := h.Queue.Purge(); n != 1 || err != nil {
		h.T.Errorf("Purge() = %d, %v, want 1", n, err)
	}
	h.wantTaken("a", false) // out
	h.wantTaken("b", true)
}

func testKeptWhileItWaits(h *Harness) {
	h.wantTaken("a", true)
	h.nack("a")
	h.wantTaken("a", false)
	sleep(100)
	h.wantTaken("a", false)
	h.WantDrain("a")
	h.wantTaken("a", true)
}

func testKeptThroughRestart(h *Harness) {
	h.wantTaken("a", true)
	h.wantTaken("b", true)
	h.wantTaken("c", true)
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Accepted)
	h.Get() // b is out
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	h.wantTaken("b", false)
	h.wantTaken("c", false)
	h.wantTaken("a", true)
	h.WantDrain("b", "c", "a")
	h.wantTaken("c", true)
}

func testDuplicatesAreConfirmed(h *Harness) {
	all := h.SendConfirmed(identified("a"), identified("a"), identified("b"))
	none := h.SendConfirmed(identified("a"), identified("b"))
	for i, c := range []*Confirm{all, none} {
		if refused, failed := c.Refused(); !c.Done() || len(refused) > 0 || failed {
			h.T.Errorf("batch %d: settled %t, refused %v, failed %t", i, c.Done(), refused, failed)
		}
	}
}

func refusing(a *queue.Arguments) { a.MaxLength, a.Overflow = 1, queue.RejectPublish }

func testDuplicatesOfRefused(h *Harness) {
	h.Send(identified("x"))
	h.Send(identified("y")) // the one that is too many is taken by some types of queue
	before := h.Queue.Status()
	c := h.SendConfirmed(identified("a"), identified("a"), identified("b"), identified("a"))
	refused, _ := c.Refused()
	Equal(h.T, "refused", refused, []uint64{1, 2, 3, 4})
	s := h.Queue.Status()
	if n := s.Refused - before.Refused; !c.Done() || s.Duplicates != 0 || n != 4 || s.Ready != before.Ready {
		h.T.Errorf("settled once %t, %d duplicates, %d refused, %d ready, want true, 0, 4, %d", c.Done(), s.Duplicates, n, s.Ready, before.Ready)
	}
	h.Drain()
	h.wantTaken("a", true)
}

func testDuplicateOfTheLast(h *Harness) {
	c := h.SendConfirmed(identified("a"), identified("a"))
	if refused, failed := c.Refused(); !c.Done() || len(refused) > 0 || failed {
		h.T.Errorf("settled once %t, refused %v, failed %t, want the message and its duplicate to be confirmed", c.Done(), refused, failed)
	}
	if s := h.Queue.Status(); s.Published != 1 || s.Duplicates != 1 || s.Refused != 0 {
		h.T.Errorf("%d published, %d duplicates, %d refused, want 1, 1, 0", s.Published, s.Duplicates, s.Refused)
	}
	h.WantDrain("a")
}
