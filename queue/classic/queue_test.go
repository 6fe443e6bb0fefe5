package classic

import (
	"testing"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func TestSmoke(t *testing.T) {
	h := queuetest.New(t, New, queue.Spec{Durable: true})
	h.Publish("a", "b")
	h.Send(queuetest.Persistent("c"), queuetest.Persistent("d"))
	d := h.Get()
	h.WantCounts(3, 1)
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	c := h.Consume(func(s *queue.Subscription) { s.Prefetch = 2 })
	queuetest.Equal(t, "delivered", c.Bodies(), []string{"a", "b"})
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	queuetest.Equal(t, "delivered", c.Bodies(), []string{"c", "d"})
	h.Reopen()
	h.WantDrain("c", "d")
}
