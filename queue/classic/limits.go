package classic

import "github.com/leveretmq/leveret/queue"

// fitsLocked says whether so many messages and bytes of bodies more are within
// the length limits, which count messages that no consumer has.
func (q *Queue) fitsLocked(messages int, bytes int64) bool {
	s := q.settings
	if s.MaxLength != queue.None && int64(q.ready+q.delayed.n+messages) > s.MaxLength {
		return false
	}
	return s.MaxLengthBytes == queue.None || q.readyBytes+q.delayed.bytes+bytes <= s.MaxLengthBytes
}

// trimLocked drops messages at the head, where the next delivery would come
// from, until the queue is within its limits: for a queue with priorities these
// are the oldest of the highest priority (RabbitMQ 4.0). What came back and
// waits goes before: it would be at the head.
func (q *Queue) trimLocked() {
	for q.ready+q.delayed.n > 0 && !q.fitsLocked(0, 0) {
		if q.delayed.n > 0 {
			if !q.trimDelayedLocked() {
				return
			}
			continue
		}
		l := q.topLocked()
		next := l.next()
		if next == nil {
			q.after.wantLoad = true
			return
		}
		q.buryLocked(q.popLocked(l, next), queue.ReasonMaxlen)
	}
}
