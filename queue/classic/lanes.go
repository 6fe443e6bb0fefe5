package classic

import (
	"math/bits"

	"github.com/leveretmq/leveret/queue"
)

// A laneSet is a set of priorities.
type laneSet [4]uint64

func (s *laneSet) add(i int)    { s[i>>6] |= 1 << (i & 63) }
func (s *laneSet) remove(i int) { s[i>>6] &^= 1 << (i & 63) }

// highest is the highest member, or -1.
func (s *laneSet) highest() int {
	for w := len(s) - 1; w >= 0; w-- {
		if s[w] != 0 {
			return w<<6 + bits.Len64(s[w]) - 1
		}
	}
	return -1
}

// laneOf is the priority that a message has in this queue: its own, but at most
// the queue's highest (RabbitMQ 4.0).
func (q *Queue) laneOf(priority uint8) int {
	return min(int(priority), len(q.lanes)-1)
}

// topLocked is the lane with the highest priority that is not empty, or nil.
func (q *Queue) topLocked() *lane {
	if q.ready == 0 {
		return nil
	}
	if !q.multi {
		return &q.lanes[0]
	}
	return &q.lanes[q.nonEmpty.highest()]
}

// pushLocked adds a new message to its lane and returns its place there.
func (q *Queue) pushLocked(e *queue.Entry, stored bool) *item {
	m := e.Msg
	l := &q.lanes[0]
	if q.multi {
		i := q.laneOf(m.Priority)
		q.nonEmpty.add(i)
		l = &q.lanes[i]
	}
	size := int64(m.Size())
	it := l.slot(size)
	q.lastID++
	it.msg, it.id, it.stored, it.sole = m, q.lastID, stored, q.solely(e, stored)
	if q.ttl >= 0 || m.TTL >= 0 {
		it.expires = expiry(m, q.ttl)
		q.timed = true
	}
	q.countLocked(it, size)
	return it
}

// solely says that the queue alone has the message: the log has no part in it, nor has
// the set of those whose duplicates are dropped.
func (q *Queue) solely(e *queue.Entry, stored bool) bool {
	return e.Sole && !stored && q.unique == nil
}

// putBackLocked returns a message to its place.
func (q *Queue) putBackLocked(it item) {
	i := 0
	if q.multi {
		i = q.laneOf(it.msg.Priority)
		q.nonEmpty.add(i)
	}
	q.lanes[i].back.push(it)
	q.countLocked(&it, int64(it.msg.Size()))
	if it.expires != 0 {
		q.timed = true
	}
}

// countLocked counts a message that is ready now.
func (q *Queue) countLocked(it *item, size int64) {
	q.ready++
	q.readyBytes += int64(len(it.msg.Body))
	q.memory += size
	if it.stored {
		q.readyStored++
	}
}

// liveLocked is the next message that has not expired, in its place, and the
// lane it is in; those that have expired before it are buried, and those that were
// handed out too often before a restart. It is nil if there is none, or none in
// memory.
func (q *Queue) liveLocked() (*lane, *item) {
	for {
		l := q.topLocked()
		if l == nil {
			return nil, nil
		}
		next := l.next()
		if next == nil {
			q.after.wantLoad = true
			return nil, nil
		}
		switch {
		case next.expires != 0 && q.expiredLocked(next):
			q.buryLocked(q.popLocked(l, next), queue.ReasonExpired)
		case q.notes != nil && q.outlivedLocked(next):
			q.buryLocked(q.popLocked(l, next), queue.ReasonDeliveryLimit)
		default:
			return l, next
		}
	}
}

// popLocked takes the next message of the top lane, which was looked at in its
// place, off that.
func (q *Queue) popLocked(l *lane, next *item) item {
	it := *next
	q.dropLocked(l, next)
	return it
}

// dropLocked is popLocked without a copy.
func (q *Queue) dropLocked(l *lane, next *item) {
	m := next.msg
	size := int64(m.Size())
	q.ready--
	q.readyBytes -= int64(len(m.Body))
	q.memory -= size
	if next.stored {
		q.readyStored--
	}
	if len(l.back) > 0 {
		l.back.pop()
	} else {
		l.head.drop(1)
		l.headSize -= size
	}
	if q.multi && l.len() == 0 {
		q.nonEmpty.remove(q.laneOf(m.Priority))
	}
}
