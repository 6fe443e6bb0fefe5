package classic

import (
	"fmt"
	"testing"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// Of each priority, what was handed out before a restart is redelivered after it,
// and nothing else.
func TestPrioritiesMarkDelivered(t *testing.T) {
	for _, max := range []int{9, 254} {
		a := queue.NewArguments()
		a.MaxPriority = max
		h := newHarness(t, queue.Spec{Durable: true, Arguments: &a})
		for i := range 3 {
			for _, p := range []byte{1, 5, 9} {
				h.Send(queuetest.Priority(fmt.Sprint(p, ".", i), p))
			}
		}
		for range 3 {
			h.Get() // all of 9
		}
		h.Consume(func(s *queue.Subscription) { s.Prefetch = 2 }) // two of 5
		h.Reopen()
		h.Queue.SetPolicy(queue.Policy{})
		for _, want := range []string{"9.0 true", "9.1 true", "9.2 true", "5.0 true", "5.1 true", "5.2 false", "1.0 false", "1.1 false", "1.2 false"} {
			d := h.Get()
			if got := fmt.Sprint(string(d.Msg.Body), " ", d.Redelivered); got != want {
				t.Errorf("highest priority %d: got %s, want %s", max, got, want)
			}
			h.Queue.Settle(nil, []queue.Delivery{d}, queue.Accepted)
		}
		if n := h.Store.Log(h.Queue.(*Queue).LogID()).Len(); n != 3 {
			t.Errorf("highest priority %d: %d records are left, want the marks of three priorities", max, n)
		}
	}
}
