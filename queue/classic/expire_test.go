package classic

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// bubble runs a test with a fake clock.
func bubble(t *testing.T, spec queue.Spec, test func(t *testing.T, h *queuetest.Harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newHarness(t, spec)) })
}

// pass lets time go by until just after the timers that are due then.
func pass(d time.Duration) {
	time.Sleep(d) // the bubble's clock: returns at once
	synctest.Wait()
}

var deadLetter = &queue.Target{Exchange: "dlx"}

func ttl(ms int64) queue.Spec {
	return queue.Spec{Arguments: &queue.Arguments{MessageTTL: ms, DeadLetter: deadLetter}}
}

func TestQueueTTL(t *testing.T) {
	bubble(t, ttl(5000), func(t *testing.T, h *queuetest.Harness) {
		h.Publish("a", "b")
		pass(time.Second)
		h.Publish("c")
		pass(4*time.Second - 1)
		h.WantCounts(3, 0)
		pass(1)
		h.WantCounts(1, 0)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"a expired", "b expired"})
		pass(time.Second)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"c expired"})
	})
}

func TestEndlessTimes(t *testing.T) {
	bubble(t, queue.Spec{}, func(t *testing.T, h *queuetest.Harness) { h.WantEndlessTimes() })
}

func TestMessageTTLIsTheSmallerOne(t *testing.T) {
	bubble(t, ttl(1000), func(t *testing.T, h *queuetest.Harness) {
		h.Send(queuetest.TTL("own", 500))
		pass(500 * time.Millisecond)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"own expired"})
		h.Send(queuetest.TTL("queue's", 5000))
		pass(time.Second)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"queue's expired"})
	})
}

func TestTTLOnlyAtTheHead(t *testing.T) {
	bubble(t, queue.Spec{Arguments: &queue.Arguments{DeadLetter: deadLetter}}, func(t *testing.T, h *queuetest.Harness) {
		h.Send(queuetest.TTL("long", 3000), queuetest.TTL("short", 300))
		pass(1200 * time.Millisecond)
		h.WantCounts(2, 0)
		queuetest.Equal(t, "dead letters", h.Dead(), nil)
		h.Get()
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"short expired"})
		h.WantCounts(0, 1)
	})
}

func TestExpiryGoesOnAfterTheHeadLeft(t *testing.T) {
	bubble(t, queue.Spec{}, func(t *testing.T, h *queuetest.Harness) {
		h.Publish("keep")
		h.Send(queuetest.TTL("one", 300), queuetest.TTL("two", 600))
		h.Get()
		pass(300 * time.Millisecond)
		h.WantCounts(1, 1)
		pass(300 * time.Millisecond)
		h.WantCounts(0, 1)
	})
}

func TestExpiredIsNeverDelivered(t *testing.T) {
	bubble(t, queue.Spec{}, func(t *testing.T, h *queuetest.Harness) {
		h.Publish("keep")
		h.Send(queuetest.TTL("one", 300))
		h.Publish("last")
		time.Sleep(time.Second)
		c := h.Consume(nil)
		queuetest.Equal(t, "delivered", c.Bodies(), []string{"keep", "last"})
	})
}

func TestTTLZero(t *testing.T) {
	bubble(t, ttl(60_000), func(t *testing.T, h *queuetest.Harness) {
		h.Send(queuetest.TTL("nobody waits", 0))
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"nobody waits expired"})
		c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 2 })
		h.Send(queuetest.TTL("one", 0), queuetest.TTL("two", 0), queuetest.TTL("three", 0))
		queuetest.Equal(t, "delivered", c.Bodies(), []string{"one", "two"})
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"three expired"})
		h.Queue.Cancel(c.Sub)
		h.Queue.Settle(c.Sub, c.Held(), queue.Requeued)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"one expired", "two expired"})
	})
}

func TestTTLZeroIsDeliveredInTurn(t *testing.T) {
	bubble(t, queue.Spec{}, func(t *testing.T, h *queuetest.Harness) {
		a, b := h.Consume(nil), h.Consume(nil)
		h.Send(queuetest.TTL("1", 0), queuetest.TTL("2", 0), queuetest.TTL("3", 0))
		queuetest.Equal(t, "first", a.Bodies(), []string{"1", "3"})
		queuetest.Equal(t, "second", b.Bodies(), []string{"2"})
	})
}

func TestLimitDropsBeforeTheHeadExpires(t *testing.T) {
	bubble(t, limited(1, queue.None, queue.DropHead), func(t *testing.T, h *queuetest.Harness) {
		h.Publish("stays")
		h.Send(queuetest.TTL("expired", 0))
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"stays maxlen", "expired expired"})
	})
	bubble(t, limited(0, queue.None, queue.DropHead), func(t *testing.T, h *queuetest.Harness) {
		h.Send(queuetest.TTL("both", 0))
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"both maxlen"})
	})
}

func TestRequeuedTooLate(t *testing.T) {
	bubble(t, ttl(200), func(t *testing.T, h *queuetest.Harness) {
		h.Publish("a", "b")
		d := h.Get()
		pass(400 * time.Millisecond)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"b expired"})
		h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"a expired"})
		h.WantCounts(0, 0)
	})
}

func TestRequeuedInTimeExpiresLater(t *testing.T) {
	bubble(t, ttl(200), func(t *testing.T, h *queuetest.Harness) {
		h.Publish("a")
		d := h.Get()
		pass(100 * time.Millisecond)
		h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
		pass(100*time.Millisecond - 1)
		h.WantCounts(1, 0)
		pass(1)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"a expired"})
	})
}

func TestTTLOfPriorities(t *testing.T) {
	spec := ttl(0)
	spec.Arguments.MaxPriority = 5
	bubble(t, spec, func(t *testing.T, h *queuetest.Harness) {
		high := queuetest.Priority("high", 5)
		low := queuetest.Priority("low", 1)
		high.TTL, low.TTL = 500, 100
		h.Send(low)
		h.Send(high)
		pass(400 * time.Millisecond)
		h.WantCounts(2, 0)
		pass(100 * time.Millisecond)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"high expired", "low expired"})
	})
}

func TestExpiredWhileDown(t *testing.T) {
	spec := ttl(1000)
	spec.Durable = true
	bubble(t, spec, func(t *testing.T, h *queuetest.Harness) {
		h.Send(queuetest.Persistent("a"), queuetest.Persistent("b"))
		pass(500 * time.Millisecond)
		h.Send(queuetest.Persistent("c"))
		if err := h.Queue.Stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Millisecond)
		h.Reopen()
		synctest.Wait()
		h.WantCounts(3, 0) // it is quiet until its owner calls
		h.Queue.SetPolicy(queue.Merge(nil, nil))
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"a expired", "b expired"})
		h.WantCounts(1, 0)
		pass(300 * time.Millisecond)
		queuetest.Equal(t, "dead letters", h.Dead(), []string{"c expired"})
		h.Reopen()
		h.WantDrain()
	})
}

func TestExpiresLater(t *testing.T) {
	spec := ttl(10_000)
	spec.Durable = true
	bubble(t, spec, func(t *testing.T, h *queuetest.Harness) {
		h.Send(queuetest.Persistent("a"))
		h.Reopen()
		h.Queue.SetPolicy(queue.Merge(nil, nil))
		pass(10*time.Second - 1)
		h.WantCounts(1, 0)
		pass(1)
		h.WantCounts(0, 0)
	})
}

func TestPolicyTTLIsForLaterMessages(t *testing.T) {
	bubble(t, queue.Spec{}, func(t *testing.T, h *queuetest.Harness) {
		h.Publish("before")
		h.Queue.SetPolicy(queue.Merge(&queue.NamedDefinition{Name: "p", Definition: queue.Definition{"message-ttl": 100.0}}, nil))
		h.Publish("after")
		pass(time.Second)
		h.WantDrain("before")
	})
}

func expires(ms int64) queue.Spec {
	return queue.Spec{Arguments: &queue.Arguments{Expires: ms, MessageTTL: queue.None, MaxLength: queue.None, MaxLengthBytes: queue.None,
		DeadLetter: deadLetter}}
}

func TestQueueExpires(t *testing.T) {
	bubble(t, expires(1000), func(t *testing.T, h *queuetest.Harness) {
		h.Publish("a")
		pass(time.Second - 1)
		queuetest.Equal(t, "ended", h.Ended(), nil)
		pass(1)
		queuetest.Equal(t, "ended", h.Ended(), []string{"expired"})
		queuetest.Equal(t, "dead letters", h.Dead(), nil)
		h.WantCounts(0, 0)
	})
}

func TestLeaseIsRenewed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		use   func(t *testing.T, h *queuetest.Harness)
		renew bool
	}{
		{"Touch", func(_ *testing.T, h *queuetest.Harness) { h.Queue.Touch() }, true},
		{"Get", func(_ *testing.T, h *queuetest.Harness) { h.Drain() }, true},
		{"Consumer", func(_ *testing.T, h *queuetest.Harness) { h.Queue.Cancel(h.Consume(nil).Sub) }, true},
		{"Publish", func(_ *testing.T, h *queuetest.Harness) { h.Publish("a") }, false},
		{"Purge", func(t *testing.T, h *queuetest.Harness) { purge(t, h.Queue) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, expires(1000), func(t *testing.T, h *queuetest.Harness) {
				pass(900 * time.Millisecond)
				tt.use(t, h)
				pass(900 * time.Millisecond)
				if lives := len(h.Ended()) == 0; lives != tt.renew {
					t.Errorf("the queue lives: %t, want %t", lives, tt.renew)
				}
				pass(100 * time.Millisecond)
				queuetest.Equal(t, "ended", h.Ended(), []string{"expired"})
			})
		})
	}
}

func TestConsumerKeepsQueue(t *testing.T) {
	bubble(t, expires(1000), func(t *testing.T, h *queuetest.Harness) {
		c := h.Consume(nil)
		pass(5 * time.Second)
		queuetest.Equal(t, "ended", h.Ended(), nil)
		h.Queue.Cancel(c.Sub)
		pass(time.Second - 1)
		queuetest.Equal(t, "ended", h.Ended(), nil)
		pass(1)
		queuetest.Equal(t, "ended", h.Ended(), []string{"expired"})
	})
}

func TestPolicyExpires(t *testing.T) {
	bubble(t, queue.Spec{}, func(t *testing.T, h *queuetest.Harness) {
		pass(time.Hour)
		h.Queue.SetPolicy(queue.Merge(nil, &queue.NamedDefinition{Name: "o", Definition: queue.Definition{"expires": 1000.0}}))
		pass(time.Second - 1)
		queuetest.Equal(t, "ended", h.Ended(), nil)
		pass(1)
		queuetest.Equal(t, "ended", h.Ended(), []string{"expired"})
	})
}

func TestNoTimerWhileIdle(t *testing.T) {
	bubble(t, queue.Spec{}, func(t *testing.T, h *queuetest.Harness) {
		h.Publish("a")
		h.Drain()
		if q := h.Queue.(*Queue); q.wakeTimer != nil || q.leaseTimer != nil {
			t.Error("a queue without TTL has a timer")
		}
	})
}

func TestManyExpireAtOnce(t *testing.T) {
	const n = 3*crowd + 5
	for _, spec := range []queue.Spec{ttl(1000), {Arguments: &queue.Arguments{MessageTTL: 1000}}} {
		bubble(t, spec, func(t *testing.T, h *queuetest.Harness) {
			batch := make([]*message.Message, n)
			for i := range batch {
				batch[i] = queuetest.Message("m")
			}
			h.Send(batch...)
			pass(time.Second)
			h.WantCounts(0, 0)
			if dead := len(h.Dead()); spec.Arguments.DeadLetter != nil && dead != n {
				t.Errorf("%d dead letters, want %d", dead, n)
			}
		})
	}
}
