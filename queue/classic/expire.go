package classic

import (
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// expiry is when a message expires in a queue with this TTL, in Unix
// milliseconds: the smaller one of the queue's TTL and its own counts, from when
// the broker took the message (RabbitMQ 4.0).
func expiry(m *message.Message, ttl int64) int64 {
	if ttl < 0 || m.TTL >= 0 && m.TTL < ttl {
		ttl = m.TTL
	}
	return max(1, m.Time+ttl)
}

// expiredLocked says whether the message is to be dropped. One that has just
// been published may go to a consumer even if its TTL is 0.
func (q *Queue) expiredLocked(it *item) bool {
	return it.expires != 0 && it.id < q.fresh && it.expires <= q.nowLocked()
}

// expireLocked drops what has expired at the head and sets the alarm for what
// will. A message behind one that stays is not looked at; nor are those below
// the highest priority (RabbitMQ 4.0).
func (q *Queue) expireLocked() {
	for n := 0; q.after.buried < crowd; n++ {
		if n == crowd {
			q.wakeAtLocked(q.nowLocked()) // let others have the lock
			return
		}
		l := q.topLocked()
		if l == nil {
			q.timed = false
			return
		}
		next := l.next()
		if next == nil {
			q.expirePagedLocked(l.paged.earliest)
			return
		}
		if next.expires == 0 {
			return
		}
		if !q.expiredLocked(next) {
			q.wakeAtLocked(next.expires)
			return
		}
		q.buryLocked(q.popLocked(l, next), queue.ReasonExpired)
	}
}

// expirePagedLocked sees to a head that is not in memory: it is read when some
// message of those paged out may have expired.
func (q *Queue) expirePagedLocked(earliest int64) {
	switch {
	case earliest == 0:
	case earliest <= q.nowLocked():
		q.after.wantLoad = true
	default:
		q.wakeAtLocked(earliest)
	}
}

// wakeAtLocked makes the queue look again at that time, in Unix milliseconds.
func (q *Queue) wakeAtLocked(at int64) {
	if q.wakeAt != 0 && q.wakeAt <= at {
		return
	}
	q.wakeAt = at
	in := max(0, time.Duration(at-q.nowLocked())*time.Millisecond)
	if q.wakeTimer == nil {
		q.wakeTimer = time.AfterFunc(in, q.wake)
		return
	}
	q.wakeTimer.Reset(in)
}

// wake is the alarm: something at the head may have expired.
func (q *Queue) wake() {
	q.mu.Lock()
	q.wakeAt = 0
	if q.state == running {
		q.after.broken = false // read again what could not be read before
		if q.delayed.n > 0 {
			q.dueLocked()
		}
		q.proceedLocked()
	}
	q.unlock()
}

// Touch restarts the expiry lease: a declare has named the queue.
func (q *Queue) Touch() {
	q.mu.Lock()
	if q.state == running {
		q.startLocked()
		q.usedAt = q.nowLocked()
		q.proceedLocked()
	}
	q.unlock()
}

// leaseLocked sees to it that a queue with x-expires ends when it was not used
// for so long. The timer is not moved with each use: it looks at usedAt when it
// is due.
func (q *Queue) leaseLocked() {
	if q.settings.Expires == queue.None || q.consumers.Len() > 0 || q.quiet {
		return
	}
	in := max(0, time.Duration(q.usedAt+q.settings.Expires-time.Now().UnixMilli())*time.Millisecond)
	if q.leaseTimer == nil {
		q.leaseTimer = time.AfterFunc(in, q.leaseOver)
		return
	}
	q.leaseTimer.Reset(in)
}

// leaseOver ends the queue, or waits on if it was used meanwhile.
func (q *Queue) leaseOver() {
	q.mu.Lock()
	if q.state == running && q.settings.Expires != queue.None && q.consumers.Len() == 0 {
		if q.usedAt+q.settings.Expires <= q.nowLocked() {
			q.endSelfLocked("expired")
		} else {
			q.leaseLocked()
		}
	}
	q.unlock()
}
