package queuetest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// RunRetry tests what holds for types of queue that count deliveries and make
// messages wait that come back. The clock is a fake one.
func RunRetry(t *testing.T, factory queue.Factory) {
	for _, tt := range []struct {
		name string
		args func(a *queue.Arguments)
		test func(h *Harness)
	}{
		{"WaitingAlone", exponential, testWaitingAlone},
		{"WaitGrows", exponential, testWaitGrows},
		{"WaitingBlocksNobody", exponential, testWaitingBlocksNobody},
		{"DueInOrderOfTime", exponential, testDueInOrder},
		{"ReturnedDoesNotWait", exponential, testReturnedDoesNotWait},
		{"Jitter", func(a *queue.Arguments) { a.RedeliveryDelay, a.RedeliveryJitter = 1000, 0.5 }, testJitter},
		{"LimitDeadLetters", limited, testLimitDeadLetters},
		{"LimitWithoutTargetDrops", func(a *queue.Arguments) { a.DeliveryLimit = 2 }, testLimitDrops},
		{"CountHeader", limited, testCountHeader},
		{"WaitingExpires", exponential, testWaitingExpires},
		{"WaitingIsPurged", exponential, testWaitingIsPurged},
		{"WaitingIsNotEmpty", exponential, testWaitingIsNotEmpty},
		{"WaitingCountsForMaxLength", func(a *queue.Arguments) { exponential(a); a.MaxLength = 3 }, testWaitingMaxLength},
		{"RestartKeepsTime", exponential, testRestartKeepsTime},
		{"RestartKeepsCount", func(a *queue.Arguments) { limited(a); a.RedeliveryDelay = 100 }, testRestartKeepsCount},
		{"RestartEnforcesLimit", limited, testRestartEnforcesLimit},
		{"RestartsEnforceLimitZero", func(a *queue.Arguments) { a.DeliveryLimit = 0 }, testRestartsEnforceLimitZero},
		{"RestartLeavesTheOthers", exponential, testRestartLeavesTheOthers},
		{"RestartWaitingIsPurged", exponential, testRestartWaitingIsPurged},
		{"RestartForgetsOrphans", exponential, testRestartForgetsOrphans},
		{"PolicyOnAndOff", func(*queue.Arguments) {}, testRetryPolicy},
		{"NothingIsLeftInTheLog", exponential, testRetryLog},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := queue.NewArguments()
				a.DeadLetter = &queue.Target{Exchange: "dlx"}
				tt.args(&a)
				if tt.name == "LimitWithoutTargetDrops" {
					a.DeadLetter = nil
				}
				tt.test(New(t, factory, queue.Spec{Durable: true, Arguments: &a}))
			})
		})
	}
}

// exponential waits 100, 200, 400 and then 500 ms.
func exponential(a *queue.Arguments) {
	a.RedeliveryDelay, a.RedeliveryMultiplier, a.RedeliveryDelayMax, a.DeliveryLimit = 100, 2, 500, -1
}

func limited(a *queue.Arguments) { a.DeliveryLimit = 2 }

// sleep lets time pass, and the queue do what it does then.
func sleep(ms int) {
	time.Sleep(time.Duration(ms) * time.Millisecond)
	synctest.Wait()
}

// nack takes the next message, which must be this, and returns it.
func (h *Harness) nack(body string) {
	h.T.Helper()
	d := h.Get()
	if string(d.Msg.Body) != body {
		h.T.Errorf("got %q, want %q", d.Msg.Body, body)
	}
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
}

// wantWaiting checks how many messages are ready and wait.
func (h *Harness) wantWaiting(ready, delayed int) {
	h.T.Helper()
	s := h.Queue.Status()
	if s.Ready != ready || s.Delayed != delayed || s.DelayedBytes != int64(delayed) {
		h.T.Errorf("%d ready, %d delayed of %d bytes, want %d and %d", s.Ready, s.Delayed, s.DelayedBytes, ready, delayed)
	}
}

// A message that waits may be one of many that came in one piece of memory.
func testWaitingAlone(h *Harness) {
	m := Persistent("a")
	h.Send(m)
	h.nack("a")
	sleep(100)
	if d := h.Get(); &d.Msg.Body[0] == &m.Body[0] {
		h.T.Error("the message that waited keeps the memory that it came with")
	}
}

func testWaitGrows(h *Harness) {
	h.Send(Persistent("a"))
	for _, ms := range []int{100, 200, 400, 500, 500} {
		h.nack("a")
		h.wantWaiting(0, 1)
		sleep(ms - 1)
		h.wantWaiting(0, 1)
		sleep(1)
		h.wantWaiting(1, 0)
	}
	if d := h.Get(); d.Count != 5 || !d.Redelivered {
		h.T.Errorf("count %d, redelivered %t, want 5, true", d.Count, d.Redelivered)
	}
}

func testWaitingBlocksNobody(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Message("c"))
	h.nack("a")
	h.WantDrain("b", "c")
	c := h.Consume(nil)
	h.Send(Message("d"))
	sleep(100)
	Equal(h.T, "delivered", c.Bodies(), []string{"d", "a"})
}

func testDueInOrder(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Persistent("c"))
	h.nack("a")
	sleep(100)
	h.nack("a") // due at 300
	sleep(10)
	h.nack("b") // due at 210
	sleep(20)
	h.nack("c") // due at 230
	h.wantWaiting(0, 3)
	c := h.Consume(nil)
	sleep(80)
	Equal(h.T, "delivered at 210", c.Bodies(), []string{"b"})
	sleep(20)
	Equal(h.T, "delivered at 230", c.Bodies(), []string{"c"})
	sleep(70)
	Equal(h.T, "delivered at 300", c.Bodies(), []string{"a"})
}

func testReturnedDoesNotWait(h *Harness) {
	h.Send(Persistent("a"))
	h.nack("a")
	sleep(100)
	d := h.Get()
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Returned)
	h.wantWaiting(1, 0)
	if d := h.Get(); d.Count != 1 {
		h.T.Errorf("count %d, want 1", d.Count)
	}
}

// Waits are spread over the upper half, as that is the jitter.
func testJitter(h *Harness) {
	const n = 64
	for range n {
		h.Send(Persistent("a"))
	}
	for range n {
		h.nack("a")
	}
	sleep(499)
	h.wantWaiting(0, n)
	sleep(250)
	if s := h.Queue.Status(); s.Ready == 0 || s.Ready == n {
		h.T.Errorf("after half of the jitter %d of %d are ready", s.Ready, n)
	}
	sleep(252)
	h.wantWaiting(n, 0)
}

func testLimitDeadLetters(h *Harness) {
	if w := h.Send(Persistent("a"), Message("b")); w != queue.Anywhere {
		h.T.Errorf("a queue with a target for dead letters gives something to write: %b, want %b", w, queue.Anywhere)
	}
	for range 3 {
		h.nack("a")
	}
	Equal(h.T, "dead", h.Dead(), []string{"a delivery_limit"})
	h.WantDrain("b")
}

func testLimitDrops(h *Harness) {
	h.Send(Persistent("a"))
	for range 3 {
		h.nack("a")
	}
	Equal(h.T, "dead", h.Dead(), nil)
	h.WantCounts(0, 0)
	h.wantNoRecords()
}

// wantNoRecords checks that nothing is left in the log.
func (h *Harness) wantNoRecords() {
	h.T.Helper()
	h.wantRecords(0)
}

// deliveryCount is the header x-delivery-count, -1 without.
func deliveryCount(m *message.Message) int64 {
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		return -2
	}
	t, err := p.Table()
	if err != nil {
		return -2
	}
	v, ok := t.Lookup("x-delivery-count")
	if !ok {
		return -1
	}
	n, _ := v.(int64)
	return n
}

func testCountHeader(h *Harness) {
	h.Send(With("a", func(p *frames.Properties) { p.SetTable(frames.Table{{Name: "own", Value: "header"}}) }))
	for n, want := range []int64{-1, 1, 2} {
		d := h.Get()
		if got := deliveryCount(d.Msg); got != want || d.Redelivered != (n > 0) {
			h.T.Errorf("delivery %d: x-delivery-count %d, redelivered %t, want %d", n, got, d.Redelivered, want)
		}
		h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	}
	for _, m := range h.DeadMessages() {
		if got := deliveryCount(m); got != -1 {
			h.T.Errorf("the dead letter has x-delivery-count %d", got)
		}
	}
}

func testWaitingExpires(h *Harness) {
	h.Send(With("a", func(p *frames.Properties) {
		p.Flags |= frames.FlagExpiration
		p.Expiration = []byte("50")
	}))
	h.nack("a")
	sleep(49)
	h.wantWaiting(0, 1)
	sleep(1)
	h.wantWaiting(0, 0)
	Equal(h.T, "dead", h.Dead(), []string{"a expired"})
}

func testWaitingIsPurged(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Message("c"), Persistent("d"))
	held := h.Get()
	h.nack("b")
	h.nack("c")
	if n, err := h.Queue.Purge(); n != 3 || err != nil {
		h.T.Errorf("Purge() = %d, %v, want 3", n, err)
	}
	h.WantCounts(0, 1)
	h.Queue.Settle(nil, []queue.Delivery{held}, queue.Accepted)
	sleep(1000)
	h.WantCounts(0, 0)
	h.wantNoRecords()
}

func testWaitingIsNotEmpty(h *Harness) {
	if h.Queue.Type() != queue.Classic {
		return // no other has the condition
	}
	h.Send(Persistent("a"))
	h.nack("a")
	wantText(h.T, delete1(h, queue.Condition{IfEmpty: true}), "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty")
	if n, err := h.Queue.Delete(queue.Condition{}); n != 1 || err != nil {
		h.T.Errorf("Delete() = %d, %v, want 1", n, err)
	}
}

func testWaitingMaxLength(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Persistent("c"))
	h.nack("a")
	sleep(1)
	h.nack("b")
	h.Send(Persistent("d"))
	h.wantWaiting(2, 1)
	Equal(h.T, "dead", h.Dead(), []string{"a maxlen"})
	h.Send(Persistent("e"), Persistent("f"))
	Equal(h.T, "dead", h.Dead(), []string{"b maxlen", "c maxlen"})
	h.WantDrain("d", "e", "f")
}

func testRestartKeepsTime(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"))
	h.nack("a")
	sleep(100)
	h.nack("a") // waits for 200
	sleep(50)
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	h.wantWaiting(1, 1)
	c := h.Consume(nil)
	sleep(149)
	Equal(h.T, "delivered before", c.Bodies(), []string{"b"})
	sleep(1)
	Equal(h.T, "delivered", c.Bodies(), []string{"a"})
	if d := c.Held()[1]; d.Count != 2 || !d.Redelivered || !d.Stored {
		h.T.Errorf("count %d, redelivered %t, stored %t, want 2, true, true", d.Count, d.Redelivered, d.Stored)
	}
}

// A crash may come when the log has forgotten a message and not yet what was noted
// of it.
func testRestartForgetsOrphans(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"))
	d := h.Get()
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	h.Store.Log(h.Queue.(queue.Logged).LogID()).Settle([]uint64{uint64(d.ID)})
	h.wantRecords(2) // b, and the note of a
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	h.wantWaiting(1, 0)
	h.wantRecords(1)
	h.WantDrain("b")
}

// Deliveries count that were under way when the broker ended.
func testRestartKeepsCount(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"))
	h.nack("a")
	sleep(100)
	h.Get() // a once more; the broker crashes meanwhile
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	d := h.Get()
	if string(d.Msg.Body) != "a" || d.Count != 2 || deliveryCount(d.Msg) != 2 {
		h.T.Errorf("got %q, count %d, header %d, want a, 2", d.Msg.Body, d.Count, deliveryCount(d.Msg))
	}
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	Equal(h.T, "dead", h.Dead(), []string{"a delivery_limit"})
	h.WantDrain("b")
}

// A delivery that the broker did not survive is not repeated without end.
func testRestartEnforcesLimit(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"))
	for range 2 {
		h.nack("a")
	}
	h.wantDiesOfRestart()
}

// wantDiesOfRestart checks that the head, whose next delivery is one too many, dies
// if the broker does not survive that.
func (h *Harness) wantDiesOfRestart() {
	h.T.Helper()
	h.Get()
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	h.WantDrain("b")
	Equal(h.T, "dead", h.Dead(), []string{"a delivery_limit"})
	h.WantCounts(0, 0)
	h.wantNoRecords()
	if n := h.Queue.Status().OverLimit; n != 1 {
		h.T.Errorf("%d were over the limit, want 1", n)
	}
}

// The first delivery alone is no death: it is not known whether it left the broker.
func testRestartsEnforceLimitZero(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"))
	h.Get()
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	h.wantDiesOfRestart()
}

func testRestartLeavesTheOthers(h *Harness) {
	for i := range 9 {
		h.Send(Persistent(fmt.Sprint(i)))
	}
	var odd, all []queue.Delivery
	for i := range 9 {
		d := h.Get()
		if all = append(all, d); i%2 == 1 {
			odd = append(odd, d)
		}
	}
	h.Queue.Settle(nil, odd, queue.Requeued)
	h.Queue.Settle(nil, all[:1], queue.Accepted)
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	h.wantWaiting(4, 4)
	c := h.Consume(nil)
	sleep(99)
	Equal(h.T, "delivered at once", c.Bodies(), []string{"2", "4", "6", "8"})
	sleep(1)
	Equal(h.T, "delivered", c.Bodies(), []string{"1", "3", "5", "7"})
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	h.WantCounts(0, 0)
	h.wantNoRecords()
}

func testRestartWaitingIsPurged(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Persistent("c"))
	h.nack("a")
	h.nack("b")
	h.Reopen()
	h.Queue.SetPolicy(queue.Policy{})
	h.wantWaiting(1, 2)
	if n, err := h.Queue.Purge(); n != 3 || err != nil {
		h.T.Errorf("Purge() = %d, %v, want 3", n, err)
	}
	sleep(1000)
	h.WantCounts(0, 0)
	h.wantNoRecords()
}

func testRetryPolicy(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"))
	h.nack("a")
	h.wantWaiting(2, 0)
	h.Queue.SetPolicy(queue.Merge(&queue.NamedDefinition{Name: "p", Definition: queue.Definition{"redelivery-delay": 100.0}}, nil))
	h.nack("a")
	h.wantWaiting(1, 1)
	h.Queue.SetPolicy(queue.Policy{})
	h.nack("b")
	h.wantWaiting(1, 1) // what waits goes on to
	sleep(100)
	h.WantDrain("a", "b")
}

func testRetryLog(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Persistent("c"), Persistent("d"), Message("e"))
	for _, body := range []string{"a", "b", "c", "d", "e"} {
		h.nack(body)
	}
	sleep(100)
	d := h.Get()
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Accepted)
	d = h.Get()
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Rejected)
	h.WantDrain("c", "d", "e")
	Equal(h.T, "dead", h.Dead(), []string{"b rejected"})
	h.wantNoRecords()
}
