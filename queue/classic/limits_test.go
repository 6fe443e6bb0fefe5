package classic

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func limited(length, bytes int64, o queue.Overflow) queue.Spec {
	a := queue.NewArguments()
	a.MaxLength, a.MaxLengthBytes, a.Overflow, a.DeadLetter = length, bytes, o, deadLetter
	return queue.Spec{Arguments: &a, Durable: true}
}

func msgs(bodies string) []*message.Message {
	var list []*message.Message
	for _, b := range strings.Fields(bodies) {
		list = append(list, queuetest.Message(b))
	}
	return list
}

func TestDropHead(t *testing.T) {
	h := newHarness(t, limited(2, queue.None, queue.DropHead))
	h.Publish("0", "1", "2")
	h.Send(msgs("3 4 5")...)
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"0 maxlen", "1 maxlen", "2 maxlen", "3 maxlen"})
	if n := h.Queue.Status().Dropped; n != 4 {
		t.Errorf("%d counted as dropped, want 4", n)
	}
	h.WantDrain("4", "5")
}

func TestMaxBytes(t *testing.T) {
	h := newHarness(t, limited(queue.None, 10, queue.DropHead))
	h.Publish("12345", "67890", "a")
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"12345 maxlen"})
	c := h.SendConfirmed(queuetest.Message("more than 10"))
	if refused, failed := c.Refused(); !c.Done() || len(refused) > 0 || failed {
		t.Error("the large message was not confirmed")
	}
	h.WantDrain()
}

func TestUnackedDoNotCount(t *testing.T) {
	h := newHarness(t, limited(2, queue.None, queue.DropHead))
	h.Publish("1", "2")
	d := h.Get()
	h.Publish("3")
	h.WantCounts(2, 1)
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"1 maxlen"})
	h.WantDrain("2", "3")
}

func TestMaxLengthZero(t *testing.T) {
	h := newHarness(t, limited(0, queue.None, queue.DropHead))
	h.Publish("lost")
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	h.Send(msgs("taken dropped")...)
	queuetest.Equal(t, "delivered", c.Bodies(), []string{"taken"})
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"lost maxlen", "dropped maxlen"})
}

func TestRejectPublish(t *testing.T) {
	h := newHarness(t, limited(2, queue.None, queue.RejectPublish))
	c := h.SendConfirmed(queuetest.Persistent("1"), queuetest.Persistent("2"), queuetest.Persistent("3"), queuetest.Message("4"))
	refused, failed := c.Refused()
	if !c.Done() || failed {
		t.Error("the batch is not settled")
	}
	queuetest.Equal(t, "refused", refused, []uint64{3, 4})
	queuetest.Equal(t, "dead letters", h.Dead(), nil)
	h.Publish("5") // without confirms it is just dropped
	d := h.Get()
	h.Publish("6")
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	h.WantCounts(3, 0) // more than the limit, but nothing was published
	h.WantDrain("1", "2", "6")
	if n := h.Queue.Status().Refused; n != 3 {
		t.Errorf("%d counted as refused, want 3", n)
	}
}

func TestRejectPublishAsOneByOne(t *testing.T) {
	h := newHarness(t, limited(2, queue.None, queue.RejectPublish))
	c := h.Consume(func(s *queue.Subscription) { s.NoAck = true })
	confirm := h.SendConfirmed(queuetest.Persistent("1"), queuetest.Persistent("2"), queuetest.Persistent("3"), queuetest.Persistent("4"), queuetest.Message("5"))
	refused, _ := confirm.Refused()
	queuetest.Equal(t, "refused although a consumer takes everything", refused, nil)
	queuetest.Equal(t, "delivered", c.Bodies(), []string{"1", "2", "3", "4", "5"})
	if n := h.Store.Log(h.Queue.(*Queue).LogID()).Len(); n != 0 {
		t.Errorf("%d records are left in the log", n)
	}
}

func TestRejectPublishDLX(t *testing.T) {
	h := newHarness(t, limited(1, queue.None, queue.RejectPublishDLX))
	refused, _ := h.SendConfirmed(msgs("1 2")...).Refused()
	queuetest.Equal(t, "refused", refused, []uint64{2})
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"2 maxlen"})
	h.WantDrain("1")
}

func TestPriorityDropsTheMostUrgent(t *testing.T) {
	spec := limited(3, queue.None, queue.DropHead)
	spec.Arguments.MaxPriority = 5
	h := newHarness(t, spec)
	for _, m := range []struct {
		body string
		prio byte
	}{{"h1", 5}, {"l1", 0}, {"m1", 3}, {"l2", 0}, {"h2", 5}} {
		h.Send(queuetest.Priority(m.body, m.prio))
	}
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"h1 maxlen", "h2 maxlen"})
	h.WantDrain("m1", "l1", "l2")
}

func TestPriorityDropsInTurnWithinABatch(t *testing.T) {
	for _, durable := range []bool{false, true} {
		spec := limited(queue.None, 5, queue.DropHead)
		spec.Arguments.MaxPriority, spec.Durable = 5, durable
		h := newHarness(t, spec)
		low, high := queuetest.Priority("late", 0), queuetest.Priority("h", 5)
		low.Persistent, high.Persistent = true, true
		c := h.SendConfirmed(queuetest.Message("first"), low, high)
		if refused, failed := c.Refused(); !c.Done() || len(refused) > 0 || failed {
			t.Errorf("durable %t: the batch was not confirmed", durable)
		}
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"first maxlen"})
		h.WantDrain("h", "late")
	}
}

func TestPriorityWithALimitIsDealtBeforeItDrops(t *testing.T) {
	spec := limited(1, queue.None, queue.DropHead)
	spec.Arguments.MaxPriority = 5
	h := newHarness(t, spec)
	a := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	b := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	h.Send(queuetest.Priority("1", 0), queuetest.Priority("2", 0), queuetest.Priority("3", 0), queuetest.Priority("4", 1))
	queuetest.Equal(t, "delivered", append(a.Bodies(), b.Bodies()...), []string{"1", "2"})
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"4 maxlen"})
	h.WantDrain("3")
}

func TestPolicyLimitsAtOnce(t *testing.T) {
	h := newHarness(t, queue.Spec{Durable: true, Arguments: &queue.Arguments{DeadLetter: deadLetter}})
	h.Publish("1", "2", "3", "4")
	h.Queue.SetPolicy(queue.Merge(&queue.NamedDefinition{Name: "p", Definition: queue.Definition{"max-length": 2.0}}, nil))
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"1 maxlen", "2 maxlen"})
	h.Queue.SetPolicy(queue.Merge(nil, nil))
	h.Publish("5")
	h.WantDrain("3", "4", "5")
	if p := h.Queue.Status().Policy; p.Name != "" {
		t.Errorf("policy %q is reported, want none", p.Name)
	}
}

func TestPriorityOrder(t *testing.T) {
	a := queue.NewArguments()
	a.MaxPriority = 5
	h := newHarness(t, queue.Spec{Arguments: &a})
	h.Publish("n")
	for _, m := range []struct {
		body string
		prio byte
	}{{"p1", 1}, {"p9", 9}, {"p5", 5}, {"p1b", 1}, {"p200", 200}, {"z0", 0}} {
		h.Send(queuetest.Priority(m.body, m.prio))
	}
	p9, p5 := h.Get(), h.Get()
	h.Queue.Settle(nil, []queue.Delivery{p5, p9}, queue.Requeued)
	h.WantDrain("p9", "p5", "p200", "p1", "p1b", "n", "z0")
}

func TestDeadLettersAreSettledAfterwards(t *testing.T) {
	h := newHarness(t, limited(queue.None, queue.None, queue.DropHead))
	h.Send(queuetest.Persistent("a"), queuetest.Persistent("b"), queuetest.Persistent("c"))
	log := h.Store.Log(h.Queue.(*Queue).LogID())
	q := h.Queue.(*Queue)
	inner := q.env.DeadLetter
	q.env.DeadLetter = func(from queue.Queue, to queue.Target, why queue.Reason, dead []*message.Message, r *message.Receipt) {
		if log.Len() != 3 {
			t.Errorf("%d records in the log while the dead letters are published, want 3", log.Len())
		}
		inner(from, to, why, dead, r)
	}
	a, b, c := h.Get(), h.Get(), h.Get()
	h.Queue.Settle(nil, []queue.Delivery{b, a, c}, queue.Rejected)
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"b rejected", "a rejected", "c rejected"})
	if log.Len() != 0 {
		t.Errorf("%d records in the log, want 0", log.Len())
	}
}

// A queue whose dead letters come back to it must not nest calls.
func TestDeadLettersToItself(t *testing.T) {
	h := newHarness(t, limited(1, queue.None, queue.DropHead))
	q := h.Queue.(*Queue)
	var depth, rounds atomic.Int32
	done := make(chan struct{})
	q.env.DeadLetter = func(_ queue.Queue, _ queue.Target, _ queue.Reason, dead []*message.Message, r *message.Receipt) {
		if depth.Add(1) > 1 {
			t.Error("dead-lettering nests")
		}
		for _, m := range dead {
			if rounds.Add(1) == 1000 {
				close(done)
				continue
			}
			q.Enqueue([]queue.Entry{{Msg: m}})
		}
		depth.Add(-1)
	}
	h.Send(msgs("a b")...)
	<-done
	h.WantCounts(1, 0)
}

func TestPolicyTarget(t *testing.T) {
	h := newHarness(t, queue.Spec{})
	h.Queue.SetPolicy(queue.Merge(&queue.NamedDefinition{Name: "p", Definition: queue.Definition{
		"dead-letter-exchange": "x", "dead-letter-routing-key": "k"}}, nil))
	h.Publish("a")
	h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Rejected)
	queuetest.Equal(t, "targets", h.DeadTargets(), []queue.Target{{Exchange: "x", Key: "k", HasKey: true}})
}

func TestManyAreDroppedAtOnce(t *testing.T) {
	const n = 3*crowd + 5
	h := newHarness(t, limited(3, queue.None, queue.DropHead))
	batch := make([]*message.Message, n)
	for i := range batch {
		batch[i] = queuetest.Message("m")
	}
	h.Send(batch...)
	h.WantCounts(3, 0)
	if dead := len(h.Dead()); dead != n-3 {
		t.Errorf("%d dead letters, want %d", dead, n-3)
	}
}
