package classic

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/retry"
)

// after is what a turn leaves to be done without the lock. The goroutine that
// leaves the queue does it, unless another one is at it: then that one does.
type after struct {
	dead      []grave
	buried    int           // messages in dead, and those being published
	burying   bool          // a goroutine publishes dead letters, and those that come
	wantLoad  bool          // messages that are paged out are needed in memory
	wantDue   bool          // the same of messages that have waited and are due
	recalling bool          // those are being read
	broken    bool          // the last load failed: wait for the alarm
	wantSpill bool          // a log for transient messages is needed
	spilling  bool          // it is being opened
	loading   chan struct{} // closed when the present load is over; nil if there is none
	epoch     int           // rises when messages that are paged out are dropped unread
	spillLane int           // whose spill log is wanted
	spillAt   int64         // the last attempt to spill failed: when to try again, Unix milliseconds; else 0
	ended     string        // why the queue has ended itself, until its owner was told
}

// A grave is messages that died for the same reason, in order.
type grave struct {
	reason queue.Reason
	target *queue.Target
	dead   []*message.Message
	ids    []uint64 // of those that are stored
}

// buryLocked makes an end of a message that is not ready any more: it becomes a
// dead letter if the queue has a target for those, else it is forgotten.
func (q *Queue) buryLocked(it item, why queue.Reason) {
	switch why {
	case queue.ReasonExpired:
		q.count.expired++
	case queue.ReasonMaxlen:
		if it.id != 0 { // else it was refused
			q.count.dropped++
		}
	case queue.ReasonRejected:
		q.count.rejected++
	case queue.ReasonDeliveryLimit:
		q.count.overLimit++
	}
	if q.unique != nil && it.msg != nil {
		q.unique.Forget(it.msg)
	}
	target := q.settings.DeadLetter
	if target == nil || q.env.DeadLetter == nil {
		if it.stored {
			q.forgetLocked(it.id)
		}
		return
	}
	q.count.deadLettered++
	n := len(q.after.dead)
	if n == 0 || q.after.dead[n-1].reason != why || q.after.dead[n-1].target != target {
		q.after.dead = append(q.after.dead, grave{reason: why, target: target})
		n++
	}
	q.after.buried++
	g := &q.after.dead[n-1]
	if it.count > 0 && q.limited() {
		it.msg = retry.Uncounted(it.msg)
	}
	g.dead = append(g.dead, it.msg)
	if it.stored {
		g.ids = append(g.ids, uint64(it.id))
		if q.notes != nil {
			q.flushNotesLocked()
			q.notes.Forget(it.id)
			g.ids = q.notes.TakeStale(g.ids)
		}
	}
}

// crowd is how many messages expire in one turn, and how many dead letters may be
// on their way, before a queue waits with letting more expire and with reading
// more that may have to be dropped.
const crowd = 8 << 10

// proceedLocked does what has become possible: deliveries, limits, expiry.
func (q *Queue) proceedLocked() {
	if q.ready == 0 && q.delayed.n == 0 {
		q.fresh = noneFresh
		return
	}
	if q.consumers.Eligible() > 0 {
		q.consumers.Deal(q)
	}
	q.fresh = noneFresh
	if q.trims {
		q.trimLocked() // before what is at the head then expires (RabbitMQ 4.0)
	}
	if q.timed && !q.quiet {
		q.expireLocked()
	}
	if q.paged > 0 {
		q.pageTailLocked()
	}
	if q.env.Memory.Exceeded() {
		q.pageOutLocked()
	}
}

// unlock ends a turn and does what it has left to be done.
func (q *Queue) unlock() {
	todo := q.finishLocked()
	q.mu.Unlock()
	if todo {
		q.work()
	}
}

// finishLocked ends a turn: it tells the log and the memory budget, and says
// whether there is work to do without the lock.
func (q *Queue) finishLocked() bool {
	q.now = 0
	if q.log != nil && q.state == running {
		q.flushSettledLocked()
		if q.deliveredTo != 0 {
			if !q.multi {
				q.log.Delivered(uint64(q.deliveredTo))
			}
			q.deliveredTo = 0
		}
	}
	if d := q.memory - q.counted; d > memoryStep || d < -memoryStep || d != 0 && q.memory == 0 {
		q.env.Memory.Add(d)
		q.counted = q.memory
	}
	a := &q.after
	return len(a.dead) > 0 && !a.burying || a.ended != "" || a.wantSpill && !a.spilling || a.recallDue() || q.loadDueLocked()
}

// memoryStep is how far the budget may be behind, in bytes and per queue.
const memoryStep = 16 << 10

// work does what turns have left to be done until nothing is left.
func (q *Queue) work() {
	for q.step(true) {
	}
}

// workBriefly is work for who must not be kept from the next batch, a publisher or
// a client that settles and has more to come: it does one thing. Reading, and what
// else is left, goes to a goroutine of its own, which ends when nothing is left.
func (q *Queue) workBriefly() {
	if q.step(false) {
		go q.work()
	}
}

// step does one thing that is left to be done, and says whether there is more.
// If it may not read, reading is left.
func (q *Queue) step(mayRead bool) (more bool) {
	q.mu.Lock()
	a := &q.after
	switch {
	case len(a.dead) > 0 && !a.burying:
		return q.buryDeadLocked()
	case a.ended != "":
		return q.tellEndLocked()
	case a.wantSpill && !a.spilling:
		return q.openSpillLocked()
	case !a.recallDue() && !q.loadDueLocked():
		q.mu.Unlock()
		return false
	case !mayRead:
		q.mu.Unlock()
		return true
	case a.recallDue():
		return q.recallDueLocked()
	}
	return q.loadLocked()
}

// tellEndLocked tells the owner that the queue has ended itself, and unlocks.
func (q *Queue) tellEndLocked() (more bool) {
	why := q.after.ended
	q.after.ended = ""
	q.mu.Unlock()
	if q.log != nil {
		q.log.Drop()
	}
	if q.env.Ended != nil {
		q.env.Ended(q, why)
	}
	return true
}

// buryDeadLocked publishes the dead letters and unlocks. Only one goroutine
// does at a time, so they keep their order; and a queue that is its own target
// does not nest.
func (q *Queue) buryDeadLocked() (more bool) {
	a := &q.after
	dead := a.dead
	a.dead = nil
	a.burying = true
	q.mu.Unlock()
	for i := range dead {
		q.publishDead(&dead[i])
	}
	q.mu.Lock()
	a.burying = false
	for i := range dead {
		a.buried -= len(dead[i].dead)
	}
	if q.state == running {
		q.proceedLocked() // more may have had to wait
	}
	more = q.finishLocked()
	q.mu.Unlock()
	return more
}

// publishDead publishes dead letters. Those that are in the log stay there until
// their targets have them.
func (q *Queue) publishDead(g *grave) {
	if len(g.ids) == 0 {
		q.env.DeadLetter(q, *g.target, g.reason, g.dead, nil)
		return
	}
	q.env.Bury(q, *g.target, g.reason, g.dead, q.log, g.ids)
}

// endSelfLocked ends the queue as if it had been deleted.
func (q *Queue) endSelfLocked(why string) {
	q.endLocked()
	q.after.ended = why
}
