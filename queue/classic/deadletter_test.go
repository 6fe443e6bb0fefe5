package classic

import (
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// stored is how many records the queue's log holds.
func stored(q *Queue) int {
	n := 0
	for _, l := range q.log.Lanes() {
		n += l.Count
	}
	return n
}

func TestDeadLetterStaysInTheLogUntilItsTargetHasIt(t *testing.T) {
	for name, fail := range map[string]bool{"stored": false, "target's store failed": true} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, queue.Spec{Durable: true, Arguments: &queue.Arguments{DeadLetter: deadLetter}})
			q := h.Queue.(*Queue)
			var target *message.Receipt
			q.env.DeadLetter = func(_ queue.Queue, _ queue.Target, _ queue.Reason, _ []*message.Message, r *message.Receipt) {
				r.Hold(1)
				target = r
			}
			h.Send(queuetest.Persistent("m"))
			d, _, ok, err := q.Get(false)
			if !ok || err != nil {
				t.Fatalf("Get() = ok %t, error %v", ok, err)
			}
			q.Settle(nil, []queue.Delivery{d}, queue.Rejected)
			if n := stored(q); n != 1 {
				t.Errorf("%d records in the log while the target is not done, want 1", n)
			}
			want := 0
			if fail {
				target.Fail()
				want = 1
			}
			target.Release()
			if n := stored(q); n != want {
				t.Errorf("%d records in the log after the target's answer, want %d", n, want)
			}
		})
	}
}
