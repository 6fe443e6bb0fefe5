package classic

import (
	"fmt"

	"github.com/leveretmq/leveret/queue"
)

// siftsAtOnceLocked says whether the duplicates of a batch are dropped before it is
// looked at. Of a queue that refuses publishes each message is sifted in its turn,
// see roomLocked: what is like a refused one must not be confirmed.
func (q *Queue) siftsAtOnceLocked() bool { return !q.refuses || q.state != running }

// siftLocked drops the duplicates of a batch. They count as enqueued for their
// publishers. If nothing is left it unlocks.
func (q *Queue) siftLocked(batch []queue.Entry) []queue.Entry {
	if q.state == gone {
		return batch
	}
	rest, lost := q.unique.Sift(batch)
	q.count.duplicates += uint64(len(batch) - len(rest))
	for _, r := range lost {
		r.Release() // a receipt's owner may be told: it takes no lock of a queue
	}
	if len(rest) == 0 {
		q.mu.Unlock()
	}
	return rest
}

// readUnique takes note of the ids of a reopened queue's messages.
func (q *Queue) readUnique() error {
	if q.unique == nil {
		return nil
	}
	if err := q.unique.Restore(q.log, len(q.lanes), nil); err != nil {
		return fmt.Errorf("read the ids of its messages: %w", err)
	}
	return nil
}
