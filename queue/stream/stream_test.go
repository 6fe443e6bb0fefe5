package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// spec is a stream with arguments, which must be valid.
func spec(t testing.TB, table ...frames.Field) queue.Spec {
	t.Helper()
	a, err := queue.ParseArguments(append(frames.Table{{Name: "x-queue-type", Value: "stream"}}, table...), "/", "s", true, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return queue.Spec{VHost: "/", Name: "s", Durable: true, Arguments: &a}
}

func newStream(t testing.TB, table ...frames.Field) *queuetest.Harness {
	t.Helper()
	return queuetest.New(t, New, spec(t, table...))
}

// from makes a reader that begins at an offset, or without saying where if that
// is nil.
func from(h *queuetest.Harness, offset any, more ...frames.Field) *queuetest.Consumer {
	h.T.Helper()
	return h.Consume(func(s *queue.Subscription) {
		s.Prefetch = 1000
		if offset != nil {
			s.Arguments = frames.Table{{Name: "x-stream-offset", Value: offset}}
		}
		s.Arguments = append(s.Arguments, more...)
	})
}

func TestPublishesWriteToTheStore(t *testing.T) {
	h := newStream(t)
	if w := h.Send(queuetest.Message("transient")); w != queue.ToStore {
		t.Errorf("a stream gives something to write: %b, want %b", w, queue.ToStore)
	}
	if _, err := h.Queue.Delete(queue.Condition{}); err != nil {
		t.Fatal(err)
	}
	if w := h.Send(queuetest.Message("late")); w != 0 {
		t.Errorf("a deleted stream gives something to write: %b", w)
	}
}

// numbers are the bodies n, n+1, ... before m.
func numbers(n, m int) (list []string) {
	for ; n < m; n++ {
		list = append(list, fmt.Sprint(n))
	}
	return list
}

// publish publishes each body in a batch of its own.
func publish(h *queuetest.Harness, bodies ...string) {
	for _, b := range bodies {
		h.Send(queuetest.Message(b))
	}
}

// offsetOf is the offset that a delivery shows.
func offsetOf(t testing.TB, m *message.Message) int64 {
	t.Helper()
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		t.Fatalf("header of %q: %v", m.Body, err)
	}
	table, err := p.Table()
	if err != nil {
		t.Fatal(err)
	}
	v, _ := table.Lookup(offsetName)
	n, ok := v.(int64)
	if !ok {
		t.Fatalf("offset of %q is %v", m.Body, v)
	}
	return n
}

func TestRefusals(t *testing.T) {
	h := newStream(t)
	consume := func(set func(s *queue.Subscription)) error {
		c := queuetest.NewConsumer()
		c.Sub.Prefetch = 10
		set(c.Sub)
		return h.Queue.Subscribe(c.Sub)
	}
	at := func(v any) func(s *queue.Subscription) {
		return func(s *queue.Subscription) { s.Arguments = frames.Table{{Name: "x-stream-offset", Value: v}} }
	}
	_, _, _, getErr := h.Queue.Get(true)
	_, purgeErr := h.Queue.Purge()
	const badOffset = "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 's' in vhost '/': {invalid_stream_offset_arg,{"
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"get":                 {getErr, "NOT_IMPLEMENTED - basic.get not supported by stream queues queue 's' in vhost '/'"},
		"purge":               {purgeErr, "NOT_IMPLEMENTED - queue.purge not supported by stream queues queue 's' in vhost '/'"},
		"prefetch":            {consume(func(s *queue.Subscription) { s.Prefetch = 0 }), "PRECONDITION_FAILED - consumer prefetch count is not set for stream queue 's' in vhost '/'"},
		"no-ack":              {consume(func(s *queue.Subscription) { s.NoAck = true }), "NOT_IMPLEMENTED - automatic acknowledgement not supported by stream queue 's' in vhost '/'"},
		"no-ack and prefetch": {consume(func(s *queue.Subscription) { s.Prefetch, s.NoAck = 0, true }), "PRECONDITION_FAILED - consumer prefetch count is not set for stream queue 's' in vhost '/'"},
		"window":              {consume(func(s *queue.Subscription) { s.Window.SetLimit(5) }), "NOT_IMPLEMENTED - queue 's' in vhost '/' does not support global qos"},
		"word":                {consume(at("someday")), badOffset + `longstr,<<"someday">>}}`},
		"unit":                {consume(at("5 parsecs")), badOffset + `longstr,<<"5 parsecs">>}}`},
		"empty":               {consume(at("")), badOffset + `longstr,<<>>}}`},
		"zero age":            {consume(at("0h")), badOffset + `longstr,<<"0h">>}}`},
		"double":              {consume(at(1.5)), badOffset + "double,1.5}}"},
		"round":               {consume(at(float32(2))), badOffset + "float,2.0}}"},
		"bool":                {consume(at(true)), badOffset + "bool,true}}"},
		"array":               {consume(at([]any{})), badOffset + "array,[]}}"},
	} {
		if tt.err == nil || tt.err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", name, tt.err, tt.want)
		}
	}
	if n := h.Queue.Status().Consumers; n != 0 {
		t.Errorf("%d consumers after refusals", n)
	}
}

func TestOffsets(t *testing.T) {
	h := newStream(t)
	publish(h, numbers(0, 5)...)
	hourAgo := frames.Timestamp(time.Now().Add(-time.Hour).Unix())
	inAnHour := frames.Timestamp(time.Now().Add(time.Hour).Unix())
	for _, tt := range []struct {
		at   any
		want []string
	}{
		{nil, nil},
		{"first", numbers(0, 5)},
		{"last", []string{"4"}},
		{"next", nil},
		{int64(3), []string{"3", "4"}},
		{int32(0), numbers(0, 5)},
		{uint8(2), numbers(2, 5)},
		{int64(-7), numbers(0, 5)},
		{int64(99), nil},
		{"1h", numbers(0, 5)},
		{"99999999999999999Y", numbers(0, 5)},
		{hourAgo, numbers(0, 5)},
		{inAnHour, nil},
		{frames.Timestamp(1 << 63), nil},
	} {
		c := from(h, tt.at)
		queuetest.Equal(t, fmt.Sprintf("from %v", tt.at), c.Bodies(), tt.want)
		h.Queue.Cancel(c.Sub)
	}
	beyond := from(h, int64(7))
	publish(h, "5", "6")
	queuetest.Equal(t, "from beyond the end, before it is there", beyond.Bodies(), nil)
	publish(h, "7", "8")
	queuetest.Equal(t, "from beyond the end", beyond.Bodies(), []string{"7", "8"})
}

func TestLastIsTheLastBatch(t *testing.T) {
	h := newStream(t)
	publish(h, "a")
	h.Send(queuetest.Message("b"), queuetest.Message("c"))
	queuetest.Equal(t, "from last", from(h, "last").Bodies(), []string{"b", "c"})
	queuetest.Equal(t, "from the middle of the last", from(h, int64(2)).Bodies(), []string{"c"})
}

func TestDeliveriesAreNumberedAndStay(t *testing.T) {
	h := newStream(t)
	early := from(h, nil)
	publish(h, numbers(0, 3)...)
	late := from(h, "first")
	for _, c := range []*queuetest.Consumer{early, late} {
		queuetest.Equal(t, "bodies", c.Bodies(), numbers(0, 3))
		for i, d := range c.Held() {
			if got := offsetOf(t, d.Msg); got != int64(i) || d.Redelivered || d.Count != 0 {
				t.Errorf("%q: offset %d, redelivered %t, count %d", d.Msg.Body, got, d.Redelivered, d.Count)
			}
		}
	}
	h.WantCounts(3, 0)
}

func TestPrefetchIsCredit(t *testing.T) {
	for _, how := range []queue.Outcome{queue.Accepted, queue.Requeued, queue.Rejected, queue.Returned} {
		h := newStream(t)
		publish(h, numbers(0, 6)...)
		c := h.Consume(func(s *queue.Subscription) {
			s.Prefetch = 2
			s.Arguments = frames.Table{{Name: "x-stream-offset", Value: "first"}}
		})
		queuetest.Equal(t, "at first", c.Bodies(), numbers(0, 2))
		h.Queue.Settle(c.Sub, c.Held()[:1], how)
		queuetest.Equal(t, "after one", c.Bodies(), numbers(2, 3))
		h.Queue.Settle(c.Sub, c.Held(), how)
		queuetest.Equal(t, "after another", c.Bodies(), numbers(3, 4))
		h.WantCounts(6, 0)
	}
}

func TestShortDeliveryWaitsForResume(t *testing.T) {
	h := newStream(t)
	c := from(h, nil)
	c.SetRoom(2)
	publish(h, "0")
	h.Send(queuetest.Message("1"), queuetest.Message("2"))
	h.Send(queuetest.Message("3"))
	queuetest.Equal(t, "delivered", c.Bodies(), numbers(0, 2))
	c.SetRoom(queuetest.Unlimited)
	publish(h, "4")
	queuetest.Equal(t, "before Resume", c.Bodies(), nil)
	h.Queue.Resume(c.Sub)
	queuetest.Equal(t, "after Resume", c.Bodies(), numbers(2, 5))
	c.Sub.Window.SetLimit(5)
	if n := c.Sub.Window.Room(); n != 0 {
		t.Errorf("%d of 5 places are free, want 0", n)
	}
}

func TestWindowLimitedLater(t *testing.T) {
	h := newStream(t)
	c := from(h, nil)
	c.Sub.Window.SetLimit(2)
	h.Send(queuetest.Message("0"), queuetest.Message("1"), queuetest.Message("2"))
	queuetest.Equal(t, "delivered", c.Bodies(), numbers(0, 2))
	h.Queue.Settle(c.Sub, c.Held()[:1], queue.Accepted)
	if c.Sub.Window.Give(1) {
		h.Queue.Resume(c.Sub)
	}
	queuetest.Equal(t, "after one ack", c.Bodies(), numbers(2, 3))
}

func TestCancelEndsDelivery(t *testing.T) {
	h := newStream(t)
	a, b, c := from(h, nil), from(h, nil), from(h, "first")
	h.Queue.Cancel(a.Sub)
	h.Queue.Cancel(a.Sub)
	publish(h, "0")
	queuetest.Equal(t, "to the cancelled one", a.Bodies(), nil)
	queuetest.Equal(t, "to another", b.Bodies(), numbers(0, 1))
	queuetest.Equal(t, "to the third", c.Bodies(), numbers(0, 1))
	h.Queue.Cancel(b.Sub)
	h.Queue.Settle(b.Sub, b.Held(), queue.Accepted)
	h.Queue.Resume(b.Sub)
	publish(h, "1")
	queuetest.Equal(t, "to the one cancelled later", b.Bodies(), nil)
	queuetest.Equal(t, "to the third", c.Bodies(), numbers(1, 2))
	if s := h.Queue.Status(); s.Consumers != 1 {
		t.Errorf("%d consumers, want 1", s.Consumers)
	}
}

func TestExclusiveIsNotEnforced(t *testing.T) {
	h := newStream(t)
	h.Consume(func(s *queue.Subscription) { s.Prefetch, s.Exclusive = 1, true })
	h.Consume(func(s *queue.Subscription) { s.Prefetch, s.Exclusive = 1, true })
	s := h.Queue.Status()
	if n := h.Queue.(*Queue).DeclaredConsumers(); s.Consumers != 2 || n != 0 {
		t.Errorf("%d consumers, declare-ok shows %d, want 2 and 0", s.Consumers, n)
	}
}

func TestDelete(t *testing.T) {
	h := newStream(t)
	c := from(h, nil)
	publish(h, "0", "1")
	log := h.Store.Log(h.Queue.(*Queue).LogID())
	if n, err := h.Queue.Delete(queue.Condition{IfUnused: true, IfEmpty: true}); n != 0 || err != nil {
		t.Errorf("Delete() = %d, %v, want 0", n, err)
	}
	if !c.WasCancelled() || !log.Dropped() {
		t.Errorf("consumer told: %t, log dropped: %t", c.WasCancelled(), log.Dropped())
	}
	confirm := h.SendConfirmed(queuetest.Message("2"))
	if !confirm.Done() {
		t.Error("a deleted stream keeps a receipt")
	}
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	h.Queue.Resume(c.Sub)
	h.Queue.Cancel(c.Sub)
	if _, err := h.Queue.Delete(queue.Condition{}); err != queue.ErrGone {
		t.Errorf("second Delete() = %v", err)
	}
	if err := h.Queue.Subscribe(&queue.Subscription{Prefetch: 1, Window: &queue.Window{}}); err != queue.ErrGone {
		t.Errorf("Subscribe() = %v", err)
	}
	h.WantCounts(0, 0)
}

func TestReceiptsWaitForTheCommit(t *testing.T) {
	h := newStream(t)
	h.Store.Hold()
	c := h.SendConfirmed(queuetest.Message("transient"), queuetest.Persistent("persistent"))
	if c.Done() {
		t.Error("confirmed before the commit")
	}
	h.Store.Commit()
	if !c.Done() {
		t.Error("not confirmed once after the commit")
	}
	var first, second queuetest.Confirm
	r1, r2 := message.NewReceipt(&first, 1, 2), message.NewReceipt(&second, 3, 3)
	r1.Hold(1)
	r2.Hold(1)
	h.Queue.Enqueue([]queue.Entry{
		{Msg: queuetest.Message("1"), Receipt: r1, Seq: 1}, {Msg: queuetest.Message("2"), Receipt: r1, Seq: 2},
		{Msg: queuetest.Message("x")}, {Msg: queuetest.Message("3"), Receipt: r2, Seq: 3},
	})
	h.Store.Commit()
	if !first.Done() || !second.Done() {
		t.Errorf("settled once: %t and %t", first.Done(), second.Done())
	}
}

func TestStatus(t *testing.T) {
	h := newStream(t)
	c := from(h, nil)
	publish(h, "a", "bb")
	h.Queue.Settle(c.Sub, c.Held()[:1], queue.Accepted)
	s := h.Queue.Status()
	got := []int{s.Ready, s.Unacked, s.Persistent, s.InMemory, s.Consumers, int(s.Published), int(s.Delivered), int(s.Acked)}
	queuetest.Equal(t, "ready, unacked, persistent, in memory, consumers, published, delivered, acked", got, []int{2, 0, 2, 2, 1, 2, 2, 1})
	if s.HeadTime == 0 || s.ReadyBytes < 3 {
		t.Errorf("head time %d, bytes %d", s.HeadTime, s.ReadyBytes)
	}
	f := h.Queue.(*Queue).Figures()
	if f.First != 0 || f.Next != 2 || f.Segments != 1 || f.Bytes != s.ReadyBytes || f.LastTime == 0 {
		t.Errorf("figures %+v", f)
	}
}

func TestAReadThatFailsIsTriedAgain(t *testing.T) {
	h := newStream(t)
	publish(h, "0")
	h.Store.FailLoads(fmt.Errorf("broken"))
	c := from(h, "first")
	queuetest.Equal(t, "while the store is broken", c.Bodies(), nil)
	h.Store.FailLoads(nil)
	h.Queue.(*Queue).readAgain()
	queuetest.Equal(t, "afterwards", c.Bodies(), numbers(0, 1))
	publish(h, "1")
	queuetest.Equal(t, "and then", c.Bodies(), numbers(1, 2))
}

// What was published one by one is small chunks, of which one read brings more than the
// cache holds: it must keep the first, which the reader needs next.
func TestManySmallChunksAreReadOnce(t *testing.T) {
	a := queue.NewArguments()
	a.Type = queue.Stream
	h := queuetest.New(t, New, queue.Spec{Durable: true, Arguments: &a})
	for range 20_000 {
		h.Send(queuetest.Persistent("x"))
	}
	c := h.Consume(func(s *queue.Subscription) {
		s.Prefetch, s.Arguments = 100, frames.Table{{Name: "x-stream-offset", Value: "first"}}
	})
	if n, loads := len(c.Bodies()), h.Store.Loads(); n != 100 || loads != 1 {
		t.Errorf("%d messages with %d reads, want 100 with 1", n, loads)
	}
}
