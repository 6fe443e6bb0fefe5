package classic

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// Subscribe adds a consumer and starts delivering to it.
func (q *Queue) Subscribe(s *queue.Subscription) error {
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return queue.ErrGone
	}
	if q.exclusive != nil || s.Exclusive && (q.spec.Arguments.SingleActive || q.consumers.Len() > 0) {
		q.mu.Unlock()
		return frames.Errorf(frames.AccessRefused, "%s in exclusive use", q.text())
	}
	q.startLocked()
	if s.Exclusive {
		q.exclusive = s
	}
	q.consumers.Add(s)
	q.proceedLocked()
	q.unlock()
	return nil
}

// Cancel removes the consumer; what it has unacknowledged stays with it.
func (q *Queue) Cancel(s *queue.Subscription) {
	q.mu.Lock()
	if q.state != running || !q.consumers.Remove(s) {
		q.mu.Unlock()
		return
	}
	if q.exclusive == s {
		q.exclusive = nil
	}
	if q.consumers.Len() == 0 {
		q.usedAt = q.nowLocked()
		if q.spec.AutoDelete {
			q.endSelfLocked("auto-delete")
		} else {
			q.leaseLocked()
		}
	}
	q.proceedLocked()
	q.unlock()
}

// Pause keeps messages from a consumer that is about to be cancelled: what it
// gives back before goes to the others in its order.
func (q *Queue) Pause(s *queue.Subscription) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.consumers.Pause(s)
}

// Resume says that the consumer has room again.
func (q *Queue) Resume(s *queue.Subscription) {
	q.mu.Lock()
	if q.state != running || !q.consumers.Resume(s) {
		q.mu.Unlock()
		return
	}
	q.proceedLocked()
	q.unlock()
}
