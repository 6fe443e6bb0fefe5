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

// pushLocked adds a new message to its lane.
func (q *Queue) pushLocked(it item) {
	i := 0
	if q.multi {
		i = q.laneOf(it.msg.Priority)
		q.nonEmpty.add(i)
	}
	size := int64(it.msg.Size())
	q.lanes[i].push(it, size)
	q.countLocked(&it, size)
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

// popLocked takes off the message that l.next has shown, of the top lane.
func (q *Queue) popLocked(l *lane) item {
	it := l.pop()
	q.ready--
	q.readyBytes -= int64(len(it.msg.Body))
	q.memory -= int64(it.msg.Size())
	if it.stored {
		q.readyStored--
	}
	if q.multi && l.len() == 0 {
		q.nonEmpty.remove(q.laneOf(it.msg.Priority))
	}
	return it
}

// takeLocked takes the next message that has not expired; those that have are
// buried. It is false if there is none, or none in memory.
func (q *Queue) takeLocked() (item, bool) {
	for {
		l := q.topLocked()
		if l == nil {
			return item{}, false
		}
		next := l.next()
		if next == nil {
			q.after.wantLoad = true
			return item{}, false
		}
		if next.expires == 0 || !q.expiredLocked(next) {
			return q.popLocked(l), true
		}
		q.buryLocked(q.popLocked(l), queue.ReasonExpired)
	}
}
