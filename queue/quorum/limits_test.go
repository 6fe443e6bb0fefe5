package quorum

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func limited(length, bytes int64, o queue.Overflow) queue.Arguments {
	a := queue.NewArguments()
	a.MaxLength, a.MaxLengthBytes, a.Overflow, a.DeadLetter = length, bytes, o, deadLetters
	return a
}

func policy(d queue.Definition) queue.Policy {
	return queue.Merge(&queue.NamedDefinition{Name: "p", Definition: d}, nil)
}

func TestDropHead(t *testing.T) {
	for _, overflow := range []queue.Overflow{queue.OverflowUnset, queue.DropHead, queue.RejectPublishDLX} {
		h := newHarness(t, limited(2, queue.None, overflow))
		h.Publish("1", "2", "3", "4")
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"1 maxlen", "2 maxlen"})
		if s := h.Queue.Status(); s.Dropped != 2 || s.DeadLettered != 2 {
			t.Errorf("%d dropped and %d dead-lettered, want 2 and 2", s.Dropped, s.DeadLettered)
		}
		h.WantDrain("3", "4")
	}
}

func TestMaxBytes(t *testing.T) {
	h := newHarness(t, limited(queue.None, 10, queue.DropHead))
	h.Publish("12345", "67890", "a")
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"12345 maxlen"})
	h.Publish("more than 10")
	h.WantDrain()
}

func TestMaxLengthZero(t *testing.T) {
	h := newHarness(t, limited(0, queue.None, queue.DropHead))
	h.Publish("lost")
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
	h.Publish("taken", "dropped")
	queuetest.Equal(t, "delivered", c.Bodies(), []string{"taken"})
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"lost maxlen", "dropped maxlen"})
}

// refusedOf publishes one by one and returns what was refused.
func refusedOf(h *queuetest.Harness, bodies string) string {
	h.T.Helper()
	var list []string
	for _, b := range strings.Fields(bodies) {
		c := h.SendConfirmed(queuetest.Message(b))
		refused, failed := c.Refused()
		if !c.Done() || failed {
			h.T.Errorf("%s is not settled", b)
		}
		if len(refused) > 0 {
			list = append(list, b)
		}
	}
	return strings.Join(list, " ")
}

func TestRejectPublishIsSoft(t *testing.T) {
	h := newHarness(t, limited(2, queue.None, queue.RejectPublish))
	if got := refusedOf(h, "1 2 3 4 5"); got != "4 5" {
		t.Errorf("refused one by one: %s, want 4 5", got)
	}
	if _, err := h.Queue.Purge(); err != nil {
		t.Fatal(err)
	}
	c := h.SendConfirmed(queuetest.Message("1"), queuetest.Message("2"), queuetest.Message("3"), queuetest.Message("4"))
	if refused, _ := c.Refused(); !c.Done() || len(refused) > 0 {
		t.Errorf("refused of one batch: %v, want none", refused)
	}
	c = h.SendConfirmed(queuetest.Message("5"), queuetest.Message("6"))
	refused, _ := c.Refused()
	queuetest.Equal(t, "refused of the next batch", refused, []uint64{1, 2})
	queuetest.Equal(t, "dead letters", h.Dead(), nil)
	h.WantDrain("1", "2", "3", "4")
}

// The overflow of a policy wins, the smaller limit of both holds.
func TestPolicyOverflowWins(t *testing.T) {
	h := newHarness(t, limited(9, queue.None, queue.DropHead))
	h.Queue.SetPolicy(policy(queue.Definition{"max-length": 5.0, "overflow": "reject-publish"}))
	if got := refusedOf(h, "1 2 3 4 5 6 7 8"); got != "7 8" {
		t.Errorf("refused %s, want 7 8", got)
	}
	h.Queue.SetPolicy(policy(queue.Definition{"max-length": 3.0}))
	queuetest.Equal(t, "dead letters", h.Dead(), []string{"1 maxlen", "2 maxlen", "3 maxlen"})
	h.WantDrain("4", "5", "6")
}

func TestDeadLetterOrder(t *testing.T) {
	h := newHarness(t, limited(queue.None, queue.None, queue.DropHead))
	h.Publish("0", "1", "2", "3", "4", "5")
	var d []queue.Delivery
	for range 6 {
		d = append(d, h.Get())
	}
	for _, i := range []int{3, 1, 5} {
		h.Queue.Settle(nil, d[i:i+1], queue.Rejected)
	}
	h.Queue.Settle(nil, []queue.Delivery{d[0], d[2], d[4]}, queue.Rejected)
	queuetest.Equal(t, "dead letters", h.Dead(), strings.Split("3 rejected,1 rejected,5 rejected,0 rejected,2 rejected,4 rejected", ","))
}

func TestDeadLettersAreSettledAfterwards(t *testing.T) {
	h := newHarness(t, limited(queue.None, queue.None, queue.DropHead))
	h.Publish("a", "b", "c")
	q := h.Queue.(*Queue)
	inner := q.env.DeadLetter
	q.env.DeadLetter = func(from queue.Queue, to queue.Target, why queue.Reason, dead []*message.Message, r *message.Receipt) {
		if n := logOf(h).Len(); n != 3 {
			t.Errorf("%d records in the log while the dead letters are published, want 3", n)
		}
		inner(from, to, why, dead, r)
	}
	h.Queue.Settle(nil, []queue.Delivery{h.Get(), h.Get(), h.Get()}, queue.Rejected)
	if n := logOf(h).Len(); n != 0 {
		t.Errorf("%d records in the log, want 0", n)
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
			if rounds.Add(1) == 100 {
				close(done)
				continue
			}
			q.Enqueue([]queue.Entry{{Msg: m}})
		}
		depth.Add(-1)
	}
	h.Publish("a", "b")
	<-done
	h.WantCounts(1, 0)
}

func TestExclusiveConsumerIsOneOfMany(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	exclusive := func(s *queue.Subscription) { s.Exclusive = true }
	a, b, c := h.Consume(exclusive), h.Consume(nil), h.Consume(exclusive)
	h.Publish("1", "2", "3")
	queuetest.Equal(t, "each", []string{a.Bodies()[0], b.Bodies()[0], c.Bodies()[0]}, []string{"1", "2", "3"})
	if tag := h.Queue.Status().ExclusiveTag; tag != "" {
		t.Errorf("exclusive tag %q, want none", tag)
	}
}

func single() queue.Arguments {
	a := queue.NewArguments()
	a.SingleActive = true
	return a
}

func tagged(tag string, priority int) func(*queue.Subscription) {
	return func(s *queue.Subscription) { s.Tag, s.Priority, s.Prefetch = tag, priority, 2 }
}

func TestSingleActiveGet(t *testing.T) {
	h := newHarness(t, single())
	_, _, _, err := h.Queue.Get(true)
	wantText(t, err, "RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get operations are not supported by quorum queues with single active consumer")
}

func TestSingleActiveTakeOver(t *testing.T) {
	h := newHarness(t, single())
	low := h.Consume(tagged("low", 0))
	h.Publish("0", "1", "2", "3", "4")
	queuetest.Equal(t, "low", low.Bodies(), []string{"0", "1"})
	high, higher := h.Consume(tagged("high", 5)), h.Consume(tagged("higher", 9))
	if n := h.Queue.(*Queue).DeclaredConsumers(); n != 1 || h.Queue.Status().Consumers != 3 {
		t.Errorf("%d consumers declared of %d, want the active one of 3", n, h.Queue.Status().Consumers)
	}
	held := low.Held()
	h.Queue.Settle(low.Sub, held[:1], queue.Accepted)
	if !low.Active() || h.Queue.Status().ActiveTag != "low" {
		t.Error("low gave way before it had settled everything")
	}
	queuetest.Equal(t, "low, which gives way", low.Bodies(), nil)
	h.Queue.Settle(low.Sub, held[1:], queue.Requeued)
	queuetest.Equal(t, "higher", higher.Bodies(), []string{"1", "2"})
	if low.Active() || !higher.Active() {
		t.Errorf("active: low %t, higher %t", low.Active(), higher.Active())
	}
	h.Queue.Cancel(higher.Sub)
	queuetest.Equal(t, "high", high.Bodies(), []string{"3", "4"})
	h.Queue.Cancel(high.Sub)
	if tag := h.Queue.Status().ActiveTag; tag != "low" {
		t.Errorf("active tag %q, want low", tag)
	}
}

func TestSingleActiveStaysIfTheBetterOneLeaves(t *testing.T) {
	h := newHarness(t, single())
	low := h.Consume(tagged("low", 0))
	h.Publish("0", "1", "2")
	high := h.Consume(tagged("high", 5))
	h.Queue.Cancel(high.Sub)
	h.Queue.Settle(low.Sub, low.Held()[:1], queue.Accepted)
	queuetest.Equal(t, "low", low.Bodies(), []string{"0", "1", "2"})
}

func TestSingleActiveIdleGivesWayAtOnce(t *testing.T) {
	h := newHarness(t, single())
	low, high := h.Consume(tagged("low", 0)), h.Consume(tagged("high", 5))
	h.Publish("0")
	queuetest.Equal(t, "high", high.Bodies(), []string{"0"})
	if low.Active() {
		t.Error("low is still active")
	}
}

func TestPagesOut(t *testing.T) {
	h := queuetest.NewWith(t, New, queue.Spec{Durable: true}, queue.Env{Memory: queue.NewBudget(1 << 20)})
	body := strings.Repeat("x", 20_000)
	for i := range 400 { // 8 MB
		m := queuetest.Message(fmt.Sprintf("%d %s", i, body))
		if i%3 == 0 {
			m = queuetest.Priority(fmt.Sprintf("%d %s", i, body), 9)
		}
		h.Send(m)
	}
	h.Queue.(*Queue).PageOut()
	s := h.Queue.Status()
	if s.Ready != 400 || s.InMemory > 100 {
		t.Errorf("%d ready and %d in memory, want 400 and a few", s.Ready, s.InMemory)
	}
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 10 })
	var got []string
	for len(got) < 400 {
		bodies := c.Bodies()
		if len(bodies) == 0 {
			t.Fatalf("stopped after %d messages", len(got))
		}
		for _, b := range bodies {
			got = append(got, strings.Fields(b)[0])
		}
		h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	}
	if len(got) != 400 {
		t.Errorf("%d messages", len(got))
	}
	seen := map[string]bool{}
	lastNormal, lastUrgent := -1, -1
	for _, g := range got {
		var n int
		if _, err := fmt.Sscan(g, &n); err != nil || seen[g] {
			t.Fatalf("message %q twice, or %v", g, err)
		}
		seen[g] = true
		last := &lastNormal
		if n%3 == 0 {
			last = &lastUrgent
		}
		if n <= *last {
			t.Fatalf("%d after %d", n, *last)
		}
		*last = n
	}
	if n := logOf(h).Len(); n != 0 {
		t.Errorf("%d records are left", n)
	}
	if used := h.Env.Memory.Used(); used != 0 {
		t.Errorf("%d bytes of the budget are used, want 0", used)
	}
}

func TestLoadFails(t *testing.T) {
	h := newHarness(t, queue.NewArguments())
	h.Publish("a")
	h.Reopen()
	h.Store.FailLoads(persistence.ErrClosed)
	if _, _, ok, err := h.Queue.Get(true); ok || err == nil {
		t.Errorf("Get() = ok %t, error %v, want an error", ok, err)
	}
	h.Store.FailLoads(nil)
	h.WantDrain("a")
}
