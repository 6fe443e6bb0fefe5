package quorum

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// bubble runs a test on the fake clock.
func bubble(t *testing.T, a queue.Arguments, test func(h *queuetest.Harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a.DeadLetter = deadLetters
		test(newHarness(t, a))
	})
}

func pass(ms int) {
	time.Sleep(time.Duration(ms) * time.Millisecond) // the bubble's clock: returns at once
	synctest.Wait()
}

func withTTL(ms int64) queue.Arguments {
	a := queue.NewArguments()
	a.MessageTTL = ms
	return a
}

func TestExpiresAtTheHead(t *testing.T) {
	bubble(t, withTTL(100), func(h *queuetest.Harness) {
		h.Publish("a")
		pass(50)
		h.Send(queuetest.TTL("b", 10))
		pass(49)
		h.WantCounts(2, 0) // b is behind a, which stays
		pass(1)
		queuetest.Equal(h.T, "dead letters", h.Dead(), []string{"a expired", "b expired"})
		if s := h.Queue.Status(); s.Expired != 2 || s.Ready != 0 {
			h.T.Errorf("%d expired and %d ready, want 2 and 0", s.Expired, s.Ready)
		}
	})
}

func TestEndlessTimes(t *testing.T) {
	bubble(t, queue.NewArguments(), func(h *queuetest.Harness) { h.WantEndlessTimes() })
}

func TestExpiryGoesOnBehindAHeadWithout(t *testing.T) {
	bubble(t, queue.NewArguments(), func(h *queuetest.Harness) {
		h.Publish("keep")
		h.Send(queuetest.TTL("b", 30), queuetest.TTL("c", 60))
		h.Get()
		pass(30)
		queuetest.Equal(h.T, "dead letters", h.Dead(), []string{"b expired"})
		pass(30)
		queuetest.Equal(h.T, "dead letters", h.Dead(), []string{"c expired"})
	})
}

func TestOverdueExpiresWhenItComesBack(t *testing.T) {
	bubble(t, queue.NewArguments(), func(h *queuetest.Harness) {
		h.Send(queuetest.TTL("a", 10))
		d := h.Get()
		pass(20)
		h.WantCounts(0, 1)
		h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
		queuetest.Equal(h.T, "dead letters", h.Dead(), []string{"a expired"})
	})
}

func TestTTLZero(t *testing.T) {
	bubble(t, withTTL(0), func(h *queuetest.Harness) {
		h.Publish("lost")
		c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
		h.Publish("taken", "late")
		queuetest.Equal(h.T, "delivered", c.Bodies(), []string{"taken"})
		queuetest.Equal(h.T, "dead letters", h.Dead(), []string{"lost expired", "late expired"})
	})
}

func TestExpiredAreNotDelivered(t *testing.T) {
	bubble(t, queue.NewArguments(), func(h *queuetest.Harness) {
		h.Send(queuetest.Message("a"), queuetest.TTL("b", 5), queuetest.Message("c"))
		pass(10)
		c := h.Consume(nil)
		queuetest.Equal(h.T, "delivered", c.Bodies(), []string{"a", "c"})
		queuetest.Equal(h.T, "dead letters", h.Dead(), []string{"b expired"})
	})
}

func TestExpiresAfterRestart(t *testing.T) {
	bubble(t, withTTL(100), func(h *queuetest.Harness) {
		h.Publish("a")
		h.Reopen()
		pass(200)
		queuetest.Equal(h.T, "dead letters before the queue is used", h.Dead(), nil)
		h.Queue.SetPolicy(queue.Merge(nil, nil))
		queuetest.Equal(h.T, "dead letters", h.Dead(), []string{"a expired"})
		if n := logOf(h).Len(); n != 0 {
			h.T.Errorf("%d records are left", n)
		}
	})
}

func TestLease(t *testing.T) {
	a := queue.NewArguments()
	a.Expires = 100
	bubble(t, a, func(h *queuetest.Harness) {
		h.Publish("x")
		pass(60)
		h.Queue.Touch()
		pass(60)
		c := h.Consume(nil)
		pass(500)
		h.Queue.Cancel(c.Sub)
		pass(60)
		if _, _, ok, err := h.Queue.Get(true); ok || err != nil { // an empty answer is a use, too
			h.T.Errorf("Get() = ok %t, error %v", ok, err)
		}
		pass(99)
		queuetest.Equal(h.T, "ended", h.Ended(), nil)
		pass(1)
		queuetest.Equal(h.T, "ended", h.Ended(), []string{"expired"})
		queuetest.Equal(h.T, "dead letters", h.Dead(), nil)
	})
}

func TestLeaseByPolicy(t *testing.T) {
	bubble(t, queue.NewArguments(), func(h *queuetest.Harness) {
		pass(500)
		h.Queue.SetPolicy(policy(queue.Definition{"expires": 100.0}))
		pass(50)
		h.Queue.SetPolicy(policy(queue.Definition{"expires": 70.0}))
		pass(69)
		queuetest.Equal(h.T, "ended", h.Ended(), nil)
		pass(1)
		queuetest.Equal(h.T, "ended", h.Ended(), []string{"expired"})
	})
}
