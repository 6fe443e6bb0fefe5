package classic

import (
	"testing"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/dispatch"
	"github.com/leveretmq/leveret/queue/queuetest"
)

const inUse = "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"

func wantRefusal(t *testing.T, err error) {
	t.Helper()
	if err == nil || err.Error() != inUse {
		t.Errorf("error %v, want %q", err, inUse)
	}
}

func exclusiveSub() *queue.Subscription {
	s := queuetest.NewConsumer().Sub
	s.Exclusive = true
	return s
}

func TestExclusiveConsumer(t *testing.T) {
	h := newHarness(t, queue.Spec{})
	c := h.Consume(nil)
	wantRefusal(t, h.Queue.Subscribe(exclusiveSub()))
	h.Queue.Cancel(c.Sub)
	e := exclusiveSub()
	e.Prefetch, e.Tag = 1, "mine"
	if err := h.Queue.Subscribe(e); err != nil {
		t.Fatal(err)
	}
	wantRefusal(t, h.Queue.Subscribe(queuetest.NewConsumer().Sub))
	wantRefusal(t, h.Queue.Subscribe(exclusiveSub()))
	if tag := h.Queue.Status().ExclusiveTag; tag != "mine" {
		t.Errorf("exclusive tag %q, want mine", tag)
	}
	h.Publish("a", "b")
	h.WantDrain("b") // basic.get is allowed
	h.Queue.Cancel(e)
	h.Consume(nil)
}

func single() queue.Spec {
	a := queue.NewArguments()
	a.SingleActive = true
	return queue.Spec{Arguments: &a}
}

func tagged(tag string, priority int) func(*queue.Subscription) {
	return func(s *queue.Subscription) { s.Tag, s.Priority, s.Prefetch = tag, priority, 2 }
}

func TestSingleActiveConsumer(t *testing.T) {
	h := newHarness(t, single())
	a, b, c := h.Consume(tagged("a", 0)), h.Consume(tagged("b", 0)), h.Consume(tagged("c", 9))
	wantRefusal(t, h.Queue.Subscribe(exclusiveSub()))
	h.Publish("0", "1", "2", "3", "4")
	queuetest.Equal(t, "active", a.Bodies(), []string{"0", "1"})
	if tag := h.Queue.Status().ActiveTag; tag != "a" || !a.Active() || b.Active() {
		t.Errorf("active tag %q, a %t, b %t, want a", tag, a.Active(), b.Active())
	}
	h.Queue.Cancel(a.Sub) // the next in order of registration, whatever the priority
	queuetest.Equal(t, "second", b.Bodies(), []string{"2", "3"})
	queuetest.Equal(t, "third", c.Bodies(), nil)
	if !b.Active() {
		t.Error("the second was not told that it is active")
	}
	h.Queue.Settle(a.Sub, a.Held(), queue.Requeued)
	h.Queue.Settle(b.Sub, b.Held(), queue.Accepted)
	queuetest.Equal(t, "second", b.Bodies(), []string{"0", "1"})
	h.Queue.Cancel(c.Sub)
	h.Queue.Cancel(b.Sub)
	h.WantDrain("4")
	if tag := h.Queue.Status().ActiveTag; tag != "" {
		t.Errorf("active tag %q without consumers", tag)
	}
}

func TestSingleActiveGet(t *testing.T) {
	h := newHarness(t, single())
	h.Consume(tagged("a", 0))
	h.Publish("1", "2", "3")
	h.WantDrain("3")
}

func TestAutoDelete(t *testing.T) {
	h := newHarness(t, queue.Spec{AutoDelete: true, Durable: true, Arguments: &queue.Arguments{DeadLetter: deadLetter}})
	h.Publish("a")
	h.WantDrain("a")
	a, b := h.Consume(nil), h.Consume(nil)
	h.Publish("b", "c")
	h.Queue.Cancel(a.Sub)
	queuetest.Equal(t, "ended", h.Ended(), nil)
	log := h.Store.Log(h.Queue.(*Queue).LogID())
	h.Queue.Cancel(b.Sub)
	queuetest.Equal(t, "ended", h.Ended(), []string{"auto-delete"})
	queuetest.Equal(t, "dead letters", h.Dead(), nil)
	if !log.Dropped() {
		t.Error("the log was not dropped")
	}
	if b.WasCancelled() {
		t.Error("a consumer that cancelled itself was told of the end")
	}
	h.Queue.Settle(a.Sub, a.Held(), queue.Requeued)
	h.WantCounts(0, 0)
}

func TestUnblockedGoesToTheEnd(t *testing.T) {
	h := newHarness(t, queue.Spec{})
	one := func(s *queue.Subscription) { s.Prefetch = 1 }
	a, b := h.Consume(one), h.Consume(one)
	h.Publish("1", "2")
	h.Queue.Settle(b.Sub, b.Held(), queue.Accepted)
	h.Queue.Settle(a.Sub, a.Held(), queue.Accepted)
	a.Bodies()
	b.Bodies()
	h.Publish("3")
	queuetest.Equal(t, "the one that was free first", b.Bodies(), []string{"3"})
	h.Publish("4")
	queuetest.Equal(t, "the other", a.Bodies(), []string{"4"})
}

func TestOnlyConsumerGetsWholeBatches(t *testing.T) {
	h := newHarness(t, queue.Spec{})
	for range 4 * dispatch.Turn {
		h.Publish("m")
	}
	c := h.Consume(nil)
	if c.Calls() != 4 {
		t.Errorf("Deliver was called %d times for %d messages, want 4", c.Calls(), 4*dispatch.Turn)
	}
	h.Send(msgs("1 2 3 4 5")...)
	if c.Calls() != 5 {
		t.Errorf("Deliver was called %d times for a batch of 5, want once", c.Calls()-4)
	}
}

// What a consumer does not take must not get lost in the turn of several.
func TestShortDeliveryInTurn(t *testing.T) {
	h := newHarness(t, queue.Spec{})
	w := &queue.Window{}
	w.SetLimit(10)
	a := h.Consume(func(s *queue.Subscription) { s.Window = w })
	b := h.Consume(func(s *queue.Subscription) { s.Window = w })
	a.SetRoom(1)
	h.Send(msgs("1 2 3 4 5")...)
	queuetest.Equal(t, "first", a.Bodies(), []string{"1"})
	queuetest.Equal(t, "second", b.Bodies(), []string{"2", "4", "3", "5"})
	if w.Room() != 5 {
		t.Errorf("%d places are free, want 5", w.Room())
	}
}

func TestWindowPlacesAreNotLost(t *testing.T) {
	h := newHarness(t, queue.Spec{})
	w := &queue.Window{}
	w.SetLimit(3)
	share := func(s *queue.Subscription) { s.Window = w }
	h.Consume(share)
	h.Consume(share)
	h.Publish("1")
	h.Send(msgs("2")...)
	if w.Room() != 1 {
		t.Errorf("%d places are free, want 1", w.Room())
	}
	h.Send(msgs("3 4")...)
	h.WantCounts(1, 3)
	if w.Room() != 0 {
		t.Errorf("%d places are free, want 0", w.Room())
	}
}
