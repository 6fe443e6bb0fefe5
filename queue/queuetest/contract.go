package queuetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// Run tests what holds for every type of queue that gives messages away (a
// stream does not). Each test has a durable queue without arguments. A type that
// differs from the others on purpose names the tests that do not hold for it.
func Run(t *testing.T, factory queue.Factory, except ...string) {
	for _, tt := range []struct {
		name string
		test func(h *Harness)
	}{
		{"Order", testOrder},
		{"GetCountsAndMarks", testGet},
		{"RequeueKeepsPlace", testRequeue},
		{"RequeueInAnyOrder", testRequeueUnordered},
		{"ReturnedIsNotRedelivered", testReturned},
		{"NoAckIsSettled", testNoAck},
		{"PrefetchLimits", testPrefetch},
		{"NoAckIgnoresPrefetch", testNoAckPrefetch},
		{"RoundRobin", testRoundRobin},
		{"RoundRobinSkipsFull", testSkipFull},
		{"ConsumerPriority", testConsumerPriority},
		{"WindowIsShared", testWindow},
		{"ShortDeliveryWaitsForResume", testShort},
		{"CancelStopsDelivery", testCancel},
		{"CancelKeepsUnacked", testCancelUnacked},
		{"SubscribeDeliversBacklog", testBacklog},
		{"PurgeLeavesUnacked", testPurge},
		{"DeleteConditions", testDelete},
		{"DeletedQueueIsHarmless", testDeleted},
		{"RejectedIsForgotten", testRejected},
		{"ReceiptOnce", testReceiptOnce},
		{"PersistentWaitsForCommit", testCommit},
		{"WritesToStore", testWrites},
		{"ManyInOneReceipt", testManyRecords},
		{"SettledBeforeCommit", testSettledBeforeCommit},
		{"RestartKeepsPersistent", testRestart},
		{"RestartMarksDelivered", testRestartRedelivered},
		{"RestartKeepsMessage", testRestartMessage},
		{"DeleteDropsLog", testDeleteDropsLog},
		{"StatusCounts", testStatus},
	} {
		if slices.Contains(except, tt.name) {
			continue
		}
		t.Run(tt.name, func(t *testing.T) { tt.test(New(t, factory, queue.Spec{Durable: true})) })
	}
}

func testOrder(h *Harness) {
	h.Publish("1", "2")
	h.Send(Message("3"), Persistent("4"), Message("5"))
	h.WantDrain("1", "2", "3", "4", "5")
}

func testGet(h *Harness) {
	if _, _, ok, err := h.Queue.Get(false); ok || err != nil {
		h.T.Errorf("Get() of an empty queue = ok %t, error %v", ok, err)
	}
	h.Publish("a", "b")
	d, left, ok, err := h.Queue.Get(false)
	if string(d.Msg.Body) != "a" || left != 1 || !ok || err != nil || d.Redelivered || d.Count != 0 || d.Sub != nil {
		h.T.Errorf("Get() = %+v, %d left, ok %t, error %v", d, left, ok, err)
	}
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	d = h.Get()
	if string(d.Msg.Body) != "a" || !d.Redelivered || d.Count != 1 {
		h.T.Errorf("after the requeue: %q, redelivered %t, count %d", d.Msg.Body, d.Redelivered, d.Count)
	}
	h.WantCounts(1, 1)
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Accepted)
	h.WantCounts(1, 0)
}

func testRequeue(h *Harness) {
	h.Publish("a", "b", "c")
	h.Get()
	b := h.Get()
	h.Queue.Settle(nil, []queue.Delivery{b}, queue.Requeued)
	if d := h.Get(); string(d.Msg.Body) != "b" || !d.Redelivered {
		h.T.Errorf("got %q, redelivered %t, want b, true", d.Msg.Body, d.Redelivered)
	}
	if d := h.Get(); string(d.Msg.Body) != "c" || d.Redelivered {
		h.T.Errorf("got %q, redelivered %t, want c, false", d.Msg.Body, d.Redelivered)
	}
}

func testRequeueUnordered(h *Harness) {
	h.Publish("a", "b", "c", "d", "e")
	a, b, c, d := h.Get(), h.Get(), h.Get(), h.Get()
	h.Queue.Settle(nil, []queue.Delivery{c}, queue.Requeued)
	h.Queue.Settle(nil, []queue.Delivery{d, a}, queue.Requeued)
	h.Queue.Settle(nil, []queue.Delivery{b}, queue.Requeued)
	h.WantDrain("a", "b", "c", "d", "e")
}

func testReturned(h *Harness) {
	h.Publish("a", "b")
	d := h.Get()
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Returned)
	if d := h.Get(); string(d.Msg.Body) != "a" || d.Redelivered || d.Count != 0 {
		h.T.Errorf("got %q, redelivered %t, count %d, want a, false, 0", d.Msg.Body, d.Redelivered, d.Count)
	}
}

func testNoAck(h *Harness) {
	c := h.Consume(func(s *queue.Subscription) { s.NoAck = true })
	h.Send(Persistent("a"), Message("b"))
	h.Send(Persistent("c"))
	Equal(h.T, "delivered", c.Bodies(), []string{"a", "b", "c"})
	h.WantCounts(0, 0)
	h.Reopen()
	h.WantDrain()
}

func testPrefetch(h *Harness) {
	h.Publish("1", "2", "3")
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 2 })
	Equal(h.T, "delivered", c.Bodies(), []string{"1", "2"})
	h.Publish("4")
	Equal(h.T, "delivered beyond the prefetch", c.Bodies(), nil)
	held := c.Held()
	h.Queue.Settle(c.Sub, held[1:], queue.Accepted)
	Equal(h.T, "delivered after one ack", c.Bodies(), []string{"3"})
	h.Queue.Settle(c.Sub, held[:1], queue.Rejected)
	Equal(h.T, "delivered after one reject", c.Bodies(), []string{"4"})
	h.WantCounts(0, 2)
}

func testNoAckPrefetch(h *Harness) {
	c := h.Consume(func(s *queue.Subscription) { s.NoAck, s.Prefetch = true, 1 })
	h.Publish("1", "2", "3")
	Equal(h.T, "delivered", c.Bodies(), []string{"1", "2", "3"})
}

func testRoundRobin(h *Harness) {
	a, b, c := h.Consume(nil), h.Consume(nil), h.Consume(nil)
	h.Publish("1", "2", "3", "4")
	h.Send(Message("5"), Message("6"))
	Equal(h.T, "to the first", a.Bodies(), []string{"1", "4"})
	Equal(h.T, "to the second", b.Bodies(), []string{"2", "5"})
	Equal(h.T, "to the third", c.Bodies(), []string{"3", "6"})
	h.Send(Message("7"), Message("8"), Message("9"), Message("10"))
	Equal(h.T, "to the first", a.Bodies(), []string{"7", "10"})
	Equal(h.T, "to the second", b.Bodies(), []string{"8"})
	Equal(h.T, "to the third", c.Bodies(), []string{"9"})
}

func testSkipFull(h *Harness) {
	a, b := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 }), h.Consume(nil)
	h.Publish("1", "2", "3", "4")
	Equal(h.T, "to the one with prefetch 1", a.Bodies(), []string{"1"})
	Equal(h.T, "to the other", b.Bodies(), []string{"2", "3", "4"})
}

func testConsumerPriority(h *Harness) {
	prio := func(n int) func(s *queue.Subscription) {
		return func(s *queue.Subscription) { s.Priority, s.Prefetch = n, 2 }
	}
	low, mid, high := h.Consume(prio(-1)), h.Consume(prio(0)), h.Consume(prio(5))
	h.Send(Message("1"), Message("2"), Message("3"), Message("4"), Message("5"))
	Equal(h.T, "high", high.Bodies(), []string{"1", "2"})
	Equal(h.T, "mid", mid.Bodies(), []string{"3", "4"})
	Equal(h.T, "low", low.Bodies(), []string{"5"})
	h.Queue.Settle(high.Sub, high.Held()[:1], queue.Accepted)
	h.Publish("6")
	Equal(h.T, "high, which has room again", high.Bodies(), []string{"6"})
}

func testWindow(h *Harness) {
	w := &queue.Window{}
	w.SetLimit(3)
	share := func(s *queue.Subscription) { s.Window = w }
	h.Publish("1", "2")
	a, b := h.Consume(share), h.Consume(share)
	h.Publish("3", "4", "5")
	Equal(h.T, "first", a.Bodies(), []string{"1", "2", "3"})
	Equal(h.T, "second", b.Bodies(), nil)
	h.WantCounts(2, 3)
	h.Queue.Settle(a.Sub, a.Held()[:2], queue.Accepted)
	h.WantCounts(2, 1) // the channel has not given the places back yet
	if !w.Give(2) {
		h.T.Error("Give() does not say that the window was full")
	}
	h.Queue.Resume(b.Sub)
	h.Queue.Resume(a.Sub)
	Equal(h.T, "second", b.Bodies(), []string{"4", "5"})
	h.WantCounts(0, 3)
	if w.Room() != 0 {
		h.T.Errorf("%d places are free, want 0", w.Room())
	}
}

func testShort(h *Harness) {
	c := h.Consume(nil)
	c.SetRoom(2)
	h.Send(Message("1"), Message("2"), Message("3"), Message("4"))
	Equal(h.T, "delivered", c.Bodies(), []string{"1", "2"})
	h.WantCounts(2, 2)
	c.SetRoom(Unlimited)
	h.Publish("5")
	Equal(h.T, "delivered before Resume", c.Bodies(), nil)
	h.Queue.Resume(c.Sub)
	Equal(h.T, "delivered", c.Bodies(), []string{"3", "4", "5"})
	for _, d := range c.Held() {
		if d.Redelivered || d.Count != 0 {
			h.T.Errorf("%q: redelivered %t, count %d", d.Msg.Body, d.Redelivered, d.Count)
		}
	}
	d := c.Sub.Window
	d.SetLimit(5)
	if d.Room() != 0 {
		h.T.Errorf("%d of 5 places are free, want 0", d.Room())
	}
}

func testCancel(h *Harness) {
	c := h.Consume(nil)
	h.Queue.Cancel(c.Sub)
	h.Queue.Cancel(c.Sub) // once more is ignored
	h.Publish("a")
	Equal(h.T, "delivered", c.Bodies(), nil)
	if c.WasCancelled() {
		h.T.Error("the consumer was told that the queue cancelled it")
	}
	h.WantDrain("a")
}

func testCancelUnacked(h *Harness) {
	h.Publish("a", "b")
	c := h.Consume(nil)
	h.Queue.Cancel(c.Sub)
	h.WantCounts(0, 2)
	held := c.Held()
	h.Queue.Settle(c.Sub, held[:1], queue.Accepted)
	h.Queue.Settle(c.Sub, held[1:], queue.Requeued)
	h.WantCounts(1, 0)
	h.WantDrain("b")
}

func testBacklog(h *Harness) {
	var want []string
	for i := range 1000 {
		body := fmt.Sprint(i)
		h.Publish(body)
		want = append(want, body)
	}
	c := h.Consume(nil)
	Equal(h.T, "delivered", c.Bodies(), want)
}

func testPurge(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Message("c"), Persistent("d"))
	a := h.Get()
	b := h.Get()
	h.Queue.Settle(nil, []queue.Delivery{b}, queue.Requeued)
	if n, err := h.Queue.Purge(); n != 3 || err != nil {
		h.T.Errorf("Purge() = %d, %v, want 3", n, err)
	}
	h.WantCounts(0, 1)
	h.Publish("e")
	h.Queue.Settle(nil, []queue.Delivery{a}, queue.Requeued)
	h.WantDrain("a", "e")
}

func testDelete(h *Harness) {
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	h.Publish("a", "b", "c")
	wantText(h.T, delete1(h, queue.Condition{IfEmpty: true}), "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty")
	wantText(h.T, delete1(h, queue.Condition{IfUnused: true}), "PRECONDITION_FAILED - queue 'q' in vhost '/' in use")
	if n, err := h.Queue.Delete(queue.Condition{}); n != 2 || err != nil {
		h.T.Errorf("Delete() = %d, %v, want 2", n, err)
	}
	if !c.WasCancelled() {
		h.T.Error("the consumer was not told")
	}
	if _, err := h.Queue.Delete(queue.Condition{}); !errors.Is(err, queue.ErrGone) {
		h.T.Errorf("second Delete() = %v, want ErrGone", err)
	}
	if len(h.Ended()) > 0 {
		h.T.Error("the owner was told about its own Delete")
	}
}

func delete1(h *Harness, c queue.Condition) error {
	_, err := h.Queue.Delete(c)
	return err
}

func wantText(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || err.Error() != text {
		t.Errorf("error %v, want %q", err, text)
	}
}

func testDeleted(h *Harness) {
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 2 })
	h.Publish("a", "b", "c")
	if _, err := h.Queue.Delete(queue.Condition{}); err != nil {
		h.T.Fatal(err)
	}
	held := c.Held()
	h.Queue.Settle(c.Sub, held[:1], queue.Requeued)
	h.Queue.Settle(c.Sub, held[1:], queue.Accepted)
	h.Queue.Cancel(c.Sub)
	h.Queue.Resume(c.Sub)
	h.Queue.Touch()
	confirm := h.SendConfirmed(Message("d"), Persistent("e"))
	if !confirm.Done() {
		h.T.Error("a deleted queue keeps a receipt")
	}
	if _, _, ok, err := h.Queue.Get(true); ok || !errors.Is(err, queue.ErrGone) {
		h.T.Errorf("Get() = ok %t, error %v, want ErrGone", ok, err)
	}
	if err := h.Queue.Subscribe(NewConsumer().Sub); !errors.Is(err, queue.ErrGone) {
		h.T.Errorf("Subscribe() = %v, want ErrGone", err)
	}
	Equal(h.T, "delivered after the deletion", c.Bodies()[2:], []string{})
	h.WantCounts(0, 0)
}

func testRejected(h *Harness) {
	h.Send(Persistent("a"))
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Rejected)
	h.WantCounts(0, 0)
	Equal(h.T, "dead letters of a queue without a target", h.Dead(), nil)
	h.Reopen()
	h.WantDrain()
}

func testReceiptOnce(h *Harness) {
	var first, second Confirm
	r1, r2 := message.NewReceipt(&first, 1, 2), message.NewReceipt(&second, 3, 4)
	r1.Hold(1)
	r2.Hold(1)
	h.Queue.Enqueue([]queue.Entry{
		{Msg: Message("1"), Receipt: r1, Seq: 1}, {Msg: Persistent("2"), Receipt: r1, Seq: 2},
		{Msg: Message("x")},
		{Msg: Message("3"), Receipt: r2, Seq: 3}, {Msg: Message("4"), Receipt: r2, Seq: 4},
	})
	if !first.Done() || !second.Done() {
		h.T.Errorf("settled once: %t and %t, want both", first.Done(), second.Done())
	}
}

func testCommit(h *Harness) {
	h.Store.Hold()
	mixed := h.SendConfirmed(Message("a"), Persistent("b"), Message("c"))
	transient := h.SendConfirmed(Message("d"))
	if mixed.Done() || !transient.Done() {
		h.T.Errorf("before the commit: mixed %t, transient %t, want false, true", mixed.Done(), transient.Done())
	}
	h.Store.Commit()
	if !mixed.Done() {
		h.T.Error("not confirmed after the commit")
	}
}

func testWrites(h *Harness) {
	if w := h.Send(Persistent("a")); w != queue.ToStore {
		h.T.Errorf("a durable queue gives something to write: %b, want %b", w, queue.ToStore)
	}
	if _, err := h.Queue.Delete(queue.Condition{}); err != nil {
		h.T.Fatal(err)
	}
	if w := h.Send(Persistent("b")); w != 0 {
		h.T.Errorf("a deleted queue gives something to write: %b", w)
	}
}

func testManyRecords(h *Harness) {
	h.Store.Hold()
	msgs := make([]*message.Message, 1000)
	for i := range msgs {
		msgs[i] = Persistent(fmt.Sprint(i))
	}
	c := h.SendConfirmed(msgs...)
	if c.Done() {
		h.T.Error("confirmed before the commit")
	}
	h.Store.Commit()
	if !c.Done() {
		h.T.Error("not confirmed once after the commit")
	}
	h.Reopen()
	if got := h.Drain(); len(got) != 1000 || got[0] != "0" || got[999] != "999" {
		h.T.Errorf("%d messages after the restart", len(got))
	}
}

func testSettledBeforeCommit(h *Harness) {
	h.Store.Hold()
	h.Send(Persistent("a"))
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Accepted)
	h.Store.Commit()
	h.Reopen()
	h.WantDrain()
}

func testRestart(h *Harness) {
	h.Send(Persistent("a"), Message("b"), Persistent("c"), Persistent("d"))
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Accepted)
	h.Reopen()
	h.Queue.SetPolicy(queue.Merge(nil, nil))
	h.WantCounts(2, 0)
	h.Send(Persistent("e"))
	h.WantDrain("c", "d", "e")
	h.Reopen()
	h.WantDrain()
}

func testRestartRedelivered(h *Harness) {
	h.Send(Persistent("a"), Persistent("b"), Persistent("c"))
	h.Get()
	h.Get()
	h.Reopen()
	var got []bool
	for range 3 {
		got = append(got, h.Get().Redelivered)
	}
	Equal(h.T, "redelivered", got, []bool{true, true, false})
}

func testRestartMessage(h *Harness) {
	m := With("body", func(p *frames.Properties) {
		p.Flags |= frames.FlagPriority | frames.FlagExpiration | frames.FlagMessageID
		p.Priority, p.Expiration, p.MessageID = 7, []byte("600000"), []byte("id")
	})
	m.Exchange, m.RoutingKey = "x", "key"
	m.More = &message.More{CC: []string{"c1", "c2"}, BCC: []string{"b"},
		Deaths:     []message.Death{{Queue: "p", Reason: "expired", Exchange: "e", Keys: []string{"k"}, Expiration: "5", Count: 3, Time: 77}},
		FirstDeath: message.Death{Queue: "f", Reason: "rejected", Count: 1, Time: 70}}
	h.Send(m)
	before := h.Get()
	h.Reopen()
	after := h.Get()
	if got, want := show(after.Msg, after.Expires), show(m, before.Expires); got != want {
		h.T.Errorf("after the restart:\n%s, want\n%s", got, want)
	}
}

func show(m *message.Message, expires int64) string {
	return fmt.Sprintf("%+v %+v %q %d %d", *m.Envelope, *m.More, m.Body, m.Time, expires)
}

func testDeleteDropsLog(h *Harness) {
	h.Send(Persistent("a"))
	log := h.Store.Log(h.Queue.(queue.Logged).LogID())
	if log == nil {
		h.T.Fatal("the durable queue has no log")
	}
	if _, err := h.Queue.Delete(queue.Condition{}); err != nil {
		h.T.Fatal(err)
	}
	if !log.Dropped() {
		h.T.Error("the log of the deleted queue was not dropped")
	}
}

func testStatus(h *Harness) {
	h.Send(Persistent("aa"), Message("bbb"), Message("c"))
	d := h.Get()
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	s := h.Queue.Status()
	got := []int{s.Ready, s.Unacked, int(s.ReadyBytes), int(s.UnackedBytes), s.Consumers, s.Persistent,
		int(s.Published), int(s.Got), int(s.Delivered), int(s.Redelivered), int(s.Acked)}
	Equal(h.T, "ready, unacked, their bytes, consumers, persistent; published, got, delivered, redelivered, acked",
		got, []int{2, 1, 3, 3, 1, 1, 3, 1, 1, 0, 0})
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	s = h.Queue.Status()
	got = []int{s.Ready, s.Unacked, int(s.Delivered), int(s.Redelivered), int(s.Acked)}
	Equal(h.T, "ready, unacked, delivered, redelivered, acked", got, []int{1, 1, 2, 1, 1})
}
