package quorum

import (
	"math"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// after is what a turn leaves to be done without the lock. The goroutine that
// leaves the queue does it, unless another one is at it: then that one does.
type after struct {
	dead      []grave
	burying   bool          // a goroutine publishes dead letters, and those that come
	late      []grave       // dead letters to be sent again
	lateAt    int64         // when, Unix milliseconds
	wantLoad  bool          // messages that are away are needed in memory
	wantDue   bool          // the same of messages that have waited and are due
	recalling bool          // those are being read
	loading   chan struct{} // closed when the present load is over; nil if there is none
	broken    bool          // the last load failed: wait for the alarm
	epoch     int           // rises when messages that are away are dropped unread
	ended     string        // why the queue has ended itself, until its owner was told
}

// A grave is messages that died for the same reason, in order.
type grave struct {
	reason  reason
	target  *queue.Target
	dead    []*message.Message
	held    bool       // the queue still has them, dead, until the targets answer
	confirm bool       // and longer if no target wants them
	ids     []queue.ID // of those that are held
	records []uint64   // what the log has of others
}

// mournLocked makes dead letters of messages that have just died.
func (q *Queue) mournLocked() {
	kept := q.m.rules.graves == kept
	for i := range q.fx.dead {
		c := &q.fx.dead[i]
		if q.unique != nil {
			q.unique.Forget(c.msg)
		}
		g := q.graveLocked(c.reason, kept, kept)
		if !kept {
			q.layLocked(g, c)
			continue
		}
		g.add(c.id, c.msg)
		if c.reason != expired { // that it has expired it would find out again
			q.noteLocked(c.id, q.m.table.get(c.id).count, c.reason)
		}
	}
	q.count.deadLettered += uint64(len(q.fx.dead))
	clear(q.fx.dead)
	q.fx.dead = q.fx.dead[:0]
}

// layLocked puts a message into a grave that the queue does not hold.
func (q *Queue) layLocked(g *grave, c *corpse) {
	g.dead = append(g.dead, c.msg)
	g.records = append(g.records, uint64(c.id))
	if q.notes.Any() {
		q.notes.Forget(c.id)
		g.records = q.notes.TakeStale(g.records)
	}
}

// graveLocked is the grave for the next message that died like this.
func (q *Queue) graveLocked(why reason, held, confirm bool) *grave {
	a := &q.after
	target := q.settings.DeadLetter
	if n := len(a.dead); n > 0 {
		if g := &a.dead[n-1]; g.reason == why && g.target == target && g.held == held && g.confirm == confirm {
			return g
		}
	}
	a.dead = append(a.dead, grave{reason: why, target: target, held: held, confirm: confirm})
	return &a.dead[len(a.dead)-1]
}

func (g *grave) add(id queue.ID, m *message.Message) {
	g.dead = append(g.dead, m)
	g.ids = append(g.ids, id)
}

// proceedLocked does what has become possible: deliveries, expiry, limits.
func (q *Queue) proceedLocked() {
	if q.m.ready > 0 && q.consumers.Eligible() > 0 {
		q.consumers.Deal(q)
	}
	q.fresh = noneFresh
	if q.m.ready == 0 && q.m.delay.n == 0 {
		q.timed = false
		return
	}
	if q.timed && !q.quiet {
		q.expireLocked()
		q.watchLocked()
	}
	q.trimLocked()
	if q.env.Memory.Exceeded() {
		q.pageOutLocked()
	}
}

// trimLocked drops messages at the head, where the next delivery would come
// from, until the queue is within its limits.
func (q *Queue) trimLocked() {
	if q.m.rules.refuses || !q.m.over() {
		return
	}
	q.cmd = command{op: opTrim, time: q.timeLocked(), count: math.MaxInt}
	q.doLocked()
	q.count.dropped += uint64(q.cmd.count)
	switch {
	case !q.m.over():
	case q.m.delay.n > 0:
		q.after.wantDue = true
	case q.m.ready > 0:
		q.after.wantLoad = true
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
	q.now, q.again = 0, false
	if q.state == running {
		q.flushNotesLocked()
		q.flushGoneLocked()
		if q.handed {
			q.handed = false
			if up := q.m.handedUpTo(); up > q.marked {
				q.marked = up
				q.log.Delivered(uint64(up))
			}
		}
		if d := q.m.memory - q.budget; d > memoryStep || d < -memoryStep || d != 0 && q.m.memory == 0 {
			q.env.Memory.Add(d)
			q.budget = q.m.memory
		}
	}
	a := &q.after
	return len(a.dead) > 0 && !a.burying || a.ended != "" || a.recallDue() || q.dueLaneLocked() >= 0
}

// memoryStep is how far the budget may be behind, in bytes and per queue.
const memoryStep = 16 << 10

// flushGoneLocked settles in the log what has left the queue.
func (q *Queue) flushGoneLocked() {
	if q.notes.Any() {
		for _, id := range q.fx.gone {
			q.notes.Forget(queue.ID(id))
		}
		q.fx.gone = q.notes.TakeStale(q.fx.gone)
	}
	if len(q.fx.gone) == 0 {
		return
	}
	q.log.Settle(q.fx.gone)
	q.fx.gone = q.fx.gone[:0]
}

// work does what turns have left to be done until nothing is left.
func (q *Queue) work() {
	for q.step(true) {
	}
}

// workBriefly is work for a publisher, who must not be kept from the next batch: it
// does one thing. Reading, and what else is left, goes to a goroutine of its own,
// which ends when nothing is left.
func (q *Queue) workBriefly() {
	if q.step(false) {
		go q.work()
	}
}

// step does one thing that is left to be done, and says whether there may be more.
// If it may not read, reading is left.
func (q *Queue) step(mayRead bool) (more bool) {
	q.mu.Lock()
	a := &q.after
	switch {
	case len(a.dead) > 0 && !a.burying:
		return q.buryDeadLocked()
	case a.ended != "":
		return q.tellEndLocked()
	case !a.recallDue() && q.dueLaneLocked() < 0:
		q.mu.Unlock()
		return false
	case !mayRead:
		q.mu.Unlock()
		return true
	case a.recallDue():
		return q.recallLocked()
	}
	return q.loadLocked()
}

// tellEndLocked tells the owner that the queue has ended itself, and unlocks.
func (q *Queue) tellEndLocked() (more bool) {
	why := q.after.ended
	q.after.ended = ""
	q.mu.Unlock()
	q.log.Drop()
	if q.env.Ended != nil {
		q.env.Ended(q, why)
	}
	return true
}

// buryDeadLocked publishes the dead letters and unlocks. Only one goroutine does
// at a time, so they keep their order; and a queue that is its own target does
// not nest. Each leaves the log once its targets have it on disk.
func (q *Queue) buryDeadLocked() (more bool) {
	a := &q.after
	dead := a.dead
	a.dead = nil
	a.burying = true
	q.mu.Unlock()
	for i := range dead {
		g := &dead[i]
		if g.held {
			q.post(*g)
		} else {
			q.env.Bury(q, *g.target, g.reason.name(), g.dead, q.log, g.records)
		}
	}
	q.mu.Lock()
	a.burying = false
	more = q.finishLocked()
	q.mu.Unlock()
	return more
}

// endSelfLocked ends the queue as if it had been deleted.
func (q *Queue) endSelfLocked(why string) {
	q.endLocked()
	q.after.ended = why
}
