package quorum

import (
	"math"
	"time"

	"github.com/leveretmq/leveret/queue"
)

// An alarm calls ring once, at the earliest time that it was set to. It is
// guarded by the lock of its queue; ring takes that.
type alarm struct {
	ring  func() // immutable
	timer *time.Timer
	at    int64 // when it is due, Unix milliseconds; 0 if it is not set
}

// set makes the alarm ring at that time or before.
func (a *alarm) set(at, now int64) {
	if a.at != 0 && a.at <= at {
		return
	}
	a.at = at
	in := max(0, time.Duration(at-now)*time.Millisecond)
	if a.timer == nil {
		a.timer = time.AfterFunc(in, a.ring)
		return
	}
	a.timer.Reset(in)
}

// rang says that ring was called and has the lock.
func (a *alarm) rang() { a.at = 0 }

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.at = 0
}

// expireLocked drops what has expired at the head and returns how many those
// were.
func (q *Queue) expireLocked() int {
	if !q.timed {
		return 0
	}
	q.cmd = command{op: opExpire, time: q.nowLocked(), count: math.MaxInt, fresh: q.fresh}
	q.doLocked()
	q.count.expired += uint64(q.cmd.count)
	return q.cmd.count
}

// watchLocked sets the alarm for a head that will expire. One that is away is
// read when some message of those that are may have expired.
func (q *Queue) watchLocked() {
	id, s, where := q.m.head()
	at := int64(0)
	switch {
	case id == 0:
		q.timed = false
		return
	case s == nil:
		at = q.m.lanes[where].away.earliest
		q.after.wantLoad = at != 0 && at <= q.nowLocked()
	default:
		at = s.expires
	}
	if at > q.nowLocked() {
		q.wakes.set(at, q.nowLocked())
	}
}

// wake is the alarm: something at the head may have expired, or has to be tried
// again.
func (q *Queue) wake() {
	q.mu.Lock()
	q.wakes.rang()
	if q.state == running {
		q.after.broken = false // read again what could not be read before
		q.repostLocked()
		q.dueLocked()
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
	q.lease.stop()
	q.lease.set(q.usedAt+q.settings.Expires, time.Now().UnixMilli())
}

// leaseOver ends the queue, or waits on if it was used meanwhile.
func (q *Queue) leaseOver() {
	q.mu.Lock()
	q.lease.rang()
	if q.state == running && q.settings.Expires != queue.None && q.consumers.Len() == 0 {
		if q.usedAt+q.settings.Expires <= q.nowLocked() {
			q.endSelfLocked("expired")
		} else {
			q.leaseLocked()
		}
	}
	q.unlock()
}
