package quorum

import (
	"sync"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
)

// letters are dead letters whose targets have answered. The lock is a leaf:
// targets answer with any lock held.
type letters struct {
	mu       sync.Mutex
	answered []*letter
	running  chan struct{} // closed when the goroutine that looks at them ends; nil if there is none
}

// A letter is messages that were sent together to where dead messages go.
type letter struct {
	q *Queue
	grave
	refused []uint64
	failed  bool
}

// post sends dead letters that the queue holds until the targets have answered.
func (q *Queue) post(g grave) {
	l := &letter{q: q, grave: g}
	r := message.NewReceipt(l, 1, uint64(len(g.dead)))
	r.Hold(1)
	q.env.DeadLetter(q, *g.target, g.reason.name(), g.dead, r)
	r.Release()
}

// Settled implements message.Owner: all targets have answered. They may hold the
// lock of their queue, or of this one, so the rest is for another goroutine.
func (l *letter) Settled(r *message.Receipt) {
	l.refused, l.failed = r.Outcome()
	ls := &l.q.letters
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.answered = append(ls.answered, l)
	if ls.running == nil {
		ls.running = make(chan struct{})
		go l.q.read(ls.running)
	}
}

// read looks at answers until there are none. Stop waits for it; after Delete it
// finds nothing to do.
func (q *Queue) read(end chan struct{}) {
	defer close(end)
	for {
		q.letters.mu.Lock()
		answered := q.letters.answered
		q.letters.answered = nil
		if len(answered) == 0 {
			q.letters.running = nil
			q.letters.mu.Unlock()
			return
		}
		q.letters.mu.Unlock()
		q.mu.Lock()
		if q.state == running {
			for _, l := range answered {
				q.answerLocked(l)
			}
			q.proceedLocked()
		}
		q.unlock()
	}
}

// wait waits for the goroutine that looks at answers, if there is one.
func (ls *letters) wait() {
	ls.mu.Lock()
	end := ls.running
	ls.mu.Unlock()
	if end != nil {
		<-end
	}
}

// repostAfter is how long a queue waits before it sends dead letters again that
// nobody took, in milliseconds.
const repostAfter = 5000

// answerLocked forgets what is safe elsewhere, and keeps the rest for another
// attempt.
func (q *Queue) answerLocked(l *letter) {
	again := grave{reason: l.reason, held: true}
	refused := make(map[uint64]bool, len(l.refused))
	for _, seq := range l.refused {
		refused[seq] = true
	}
	safe := q.ids[:0]
	for i, id := range l.ids {
		if l.failed || l.confirm && refused[uint64(i)+1] {
			again.add(id, l.dead[i])
		} else {
			safe = append(safe, id)
		}
	}
	q.ids = safe
	if l.confirm {
		q.count.deadConfirmed += uint64(len(safe))
	}
	q.cmd = command{op: opForget, time: q.timeLocked(), ids: safe}
	q.doLocked()
	if len(again.ids) == 0 {
		return
	}
	a := &q.after
	if len(a.late) == 0 {
		a.lateAt = q.nowLocked() + repostAfter
		q.env.Log.Warn("dead letters were not taken: they stay in the queue and are sent again; see that the dead letter exchange is there and leads to a queue with room",
			zap.String("queue", q.text), zap.String("exchange", l.target.Exchange), zap.Int("messages", len(again.ids)))
	}
	a.late = append(a.late, again)
	q.wakes.set(a.lateAt, q.nowLocked())
}

// repostLocked sends dead letters again if it is time: the way that is in force
// now, or not at all.
func (q *Queue) repostLocked() {
	a := &q.after
	if len(a.late) == 0 {
		return
	}
	if a.lateAt > q.nowLocked() {
		q.wakes.set(a.lateAt, q.nowLocked())
		return
	}
	late := a.late
	a.late = nil
	for i := range late {
		g := &late[i]
		if q.m.rules.graves == forgotten {
			q.cmd = command{op: opForget, time: q.timeLocked(), ids: g.ids}
			q.doLocked()
			continue
		}
		to := q.graveLocked(g.reason, true, q.m.rules.graves == kept)
		to.dead = append(to.dead, g.dead...)
		to.ids = append(to.ids, g.ids...)
	}
}
