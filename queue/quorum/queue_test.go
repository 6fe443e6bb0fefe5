package quorum

import (
	"bytes"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// The contract holds but for what it says of queues that have transient
// messages, conditional deletes and unchanged headers; TestStoresEverything,
// TestDeleteTakesNoConditions, TestRestartKeepsMessage and TestStatus say what a
// quorum queue does there.
func TestContract(t *testing.T) {
	queuetest.Run(t, func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
		q, err := open(env, spec)
		if err == nil && env.LogID == 0 {
			shadow(t, q)
		}
		return q, err
	}, "DeleteConditions", "PersistentWaitsForCommit", "RestartKeepsMessage", "RestartKeepsPersistent", "StatusCounts")
}

func TestAppender(t *testing.T) { queuetest.RunAppender(t, New) }

func TestRedeliveredOnDisk(t *testing.T) { queuetest.RunRedeliveredOnDisk(t, New) }

func TestBurial(t *testing.T) { queuetest.RunBurial(t, New) }

// shadow replays every command of the queue on a second machine, by way of its
// bytes, and compares the two.
func shadow(t testing.TB, q *Queue) {
	second, err := restore(q.m.snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	q.trace = func(c *command) {
		again, err := parseCommand(c.appendTo(nil))
		if err != nil {
			t.Fatalf("command of op %d: %v", c.op, err)
		}
		var fx effects
		second.apply(again, &fx)
		if got, want := second.sums(), q.m.sums(); got != want {
			t.Fatalf("after op %d the second machine has %s, want %s", c.op, got, want)
		}
		if n++; n%100 == 0 && !bytes.Equal(second.snapshot(nil), q.m.snapshot(nil)) {
			t.Fatalf("after op %d the second machine is in another state", c.op)
		}
	}
}

// newHarness makes a queue that is shadowed.
func newHarness(t testing.TB, a queue.Arguments) *queuetest.Harness {
	t.Helper()
	return newSpecHarness(t, a, nil)
}

// newSpecHarness is newHarness with a place for dead letters, if take is not nil.
func newSpecHarness(t testing.TB, a queue.Arguments, take func(queue.Queue, queue.Target, queue.Reason, []*message.Message, *message.Receipt)) *queuetest.Harness {
	t.Helper()
	return queuetest.New(t, func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
		if take != nil {
			env.DeadLetter = take
		}
		q, err := open(env, spec)
		if err == nil && env.LogID == 0 {
			shadow(t, q)
		}
		return q, err
	}, queue.Spec{Durable: true, Arguments: &a})
}

func wantText(t testing.TB, err error, text string) {
	t.Helper()
	if err == nil || err.Error() != text {
		t.Errorf("error %v, want %q", err, text)
	}
}

func logOf(h *queuetest.Harness) *queuetest.Log { return h.Store.Log(h.Queue.(*Queue).LogID()) }

func TestStoresEverything(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Store.Hold()
	c := h.SendConfirmed(queuetest.Message("transient"), queuetest.Persistent("persistent"))
	if c.Done() {
		t.Error("confirmed before the commit")
	}
	h.Store.Commit()
	if !c.Done() {
		t.Error("not confirmed after the commit")
	}
	h.Reopen()
	h.WantCounts(2, 0)
	h.WantDrain("transient", "persistent")
	h.Store.Commit()
	h.Reopen()
	h.WantDrain()
}

func TestDeleteTakesNoConditions(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	wantText(t, deleteIf(h, queue.Condition{IfUnused: true}), "NOT_IMPLEMENTED - cannot delete queue 'q' in vhost '/'. queue.delete operations with if-unused flag set are not supported by quorum queues")
	wantText(t, deleteIf(h, queue.Condition{IfEmpty: true}), "NOT_IMPLEMENTED - cannot delete queue 'q' in vhost '/'. queue.delete operations with if-empty flag set are not supported by quorum queues")
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	h.Publish("a", "b", "c")
	if n, err := h.Queue.Delete(queue.Condition{}); n != 2 || err != nil {
		t.Errorf("Delete() = %d, %v, want 2", n, err)
	}
	if !c.WasCancelled() {
		t.Error("the consumer was not told")
	}
	if _, err := h.Queue.Delete(queue.Condition{}); err != queue.ErrGone {
		t.Errorf("second Delete() = %v, want ErrGone", err)
	}
}

func deleteIf(h *queuetest.Harness, c queue.Condition) error {
	_, err := h.Queue.Delete(c)
	return err
}

func TestRestartKeepsMessage(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	m := queuetest.With("body", func(p *frames.Properties) {
		p.Flags |= frames.FlagPriority | frames.FlagExpiration
		p.Priority, p.Expiration = 7, []byte("600000")
	})
	m.Exchange, m.RoutingKey, m.More = "x", "key", &message.More{CC: []string{"c"}}
	h.Send(m)
	h.Reopen()
	d := h.Get()
	if got := d.Msg; !bytes.Equal(got.Header, m.Header) || got.Exchange != "x" || got.RoutingKey != "key" || got.Time != m.Time ||
		got.TTL != 600000 || got.Priority != 7 || !got.Persistent || got.More == nil || got.More.CC[0] != "c" {
		t.Errorf("after the restart %+v, want %+v", got, m)
	}
	if d.Expires != m.Time+600000 || d.Redelivered || d.Count != 0 {
		t.Errorf("expires %d, redelivered %t, count %d", d.Expires, d.Redelivered, d.Count)
	}
}

func TestStatus(t *testing.T) {
	a := queue.NewArguments()
	a.ConsumerTimeout = 5000
	h := newHarness(t, a)
	h.Send(queuetest.Persistent("aa"), queuetest.Message("bbb"), queuetest.Message("c"))
	d := h.Get()
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	s := h.Queue.Status()
	queuetest.Equal(t, "ready, unacked, their bytes, consumers, persistent, in memory; published, got, delivered, redelivered, acked; timeout",
		[]int{s.Ready, s.Unacked, int(s.ReadyBytes), int(s.UnackedBytes), s.Consumers, s.Persistent, s.InMemory,
			int(s.Published), int(s.Got), int(s.Delivered), int(s.Redelivered), int(s.Acked), int(s.ConsumerTimeout)},
		[]int{2, 1, 3, 3, 1, 3, 2, 3, 1, 1, 0, 0, 5000})
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	s = h.Queue.Status()
	queuetest.Equal(t, "ready, unacked, delivered, redelivered, acked",
		[]int{s.Ready, s.Unacked, int(s.Delivered), int(s.Redelivered), int(s.Acked)}, []int{1, 1, 2, 1, 1})
	if h.Queue.Type() != "quorum" || h.Queue.Name() != "q" {
		t.Errorf("queue %q of type %q", h.Queue.Name(), h.Queue.Type())
	}
	if r, ok := h.Queue.(interface{ RefusesGlobalQos() bool }); !ok || !r.RefusesGlobalQos() {
		t.Error("does not refuse a channel's common limit")
	}
}

// Others may send their dead letters to a queue that was stopped before them.
func TestStoppedStillStores(t *testing.T) {
	h := newHarness(t, withTTL(600_000))
	h.Publish("a")
	if err := h.Queue.Stop(); err != nil {
		t.Fatal(err)
	}
	if c := h.SendConfirmed(queuetest.Message("b")); !c.Done() {
		t.Error("not confirmed")
	}
	h.Reopen()
	h.WantCounts(2, 0)
	h.Get()
	if d := h.Get(); string(d.Msg.Body) != "b" || d.Expires == 0 {
		t.Errorf("got %q, which expires at %d", d.Msg.Body, d.Expires)
	}
}
