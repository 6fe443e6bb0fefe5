// Package classic is the queue type classic: one node's queue, in memory and,
// for persistent messages of a durable queue, in a log of the store.
//
// A queue has no goroutine. Whoever makes work possible does it: a publisher in
// Enqueue, an acknowledger in Settle, a timer in wake. The way of a message is
// enqueue.go, dispatch.go, settle.go; what an operation causes besides is
// collected under the lock and done after it, see work.go.
package classic

import (
	"fmt"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/dedup"
	"github.com/leveretmq/leveret/queue/dispatch"
	"github.com/leveretmq/leveret/queue/retry"
)

var (
	_ queue.Queue    = (*Queue)(nil)
	_ queue.Appender = (*Queue)(nil)
	_ queue.Logged   = (*Queue)(nil)
	_ queue.Factory  = New
)

// A Queue is a classic queue.
type Queue struct {
	env   queue.Env       // immutable
	spec  queue.Spec      // immutable
	log   persistence.Log // immutable; nil if the queue is not durable
	multi bool            // immutable: it has priorities

	// mu guards the fields below. It is held for one batch, never across disk,
	// and the functions of env are called without it. Order: Queue.mu before a
	// connection's outbox, a log or a receipt.
	mu    sync.Mutex
	state state
	// quiet is true for a reopened queue until it is used: others that its dead
	// letters may go to may not be there yet.
	quiet    bool
	retries  bool            // counts deliveries, or delays what comes back
	trims    bool            // has a length limit and drops the head
	refuses  bool            // has a length limit and refuses publishes
	inTurn   bool            // looks at its length limit before each message of a batch
	timed    bool            // some ready message may expire
	policy   *queue.Policy   // nil if none applies
	settings *queue.Settings // not to be changed

	lastID   queue.ID
	lanes    []lane  // by priority; one for a queue without
	nonEmpty laneSet // lanes that are not empty, if there are several

	ready, readyStored     int
	readyBytes             int64
	unacked, unackedStored int
	unackedBytes           int64
	paged                  int   // ready messages that are not in memory
	memory, counted        int64 // what those in memory weigh, and how much of it env.Memory knows

	consumers dispatch.Consumers
	exclusive *queue.Subscription // the one consumer that wants no other

	ttl   int64 // of messages published now, in milliseconds; queue.None
	fresh queue.ID
	now   int64 // Unix milliseconds; 0 if not asked in this turn

	wakeTimer  *time.Timer
	wakeAt     int64 // when wakeTimer is due, Unix milliseconds; 0 if it is not armed
	leaseTimer *time.Timer
	usedAt     int64 // Unix milliseconds of the last use that counts for the lease
	publishAt  int64 // Unix milliseconds of the last publish

	records     []persistence.Record // scratch of Enqueue
	settled     []uint64             // for the log, at the end of the turn
	deliveredTo queue.ID             // for the log, at the end of the turn

	delayed delayed
	notes   *retry.Notes // nil until there are some
	unique  *dedup.Set   // nil unless duplicates are dropped

	after after
	count counters
}

// A state is where a queue is in its life.
type state uint8

const (
	running state = iota
	stopped       // the broker ends
	gone          // deleted
)

type counters struct {
	published, delivered, deliveredNoAck, got, gotNoAck, getEmpty, acked, redelivered uint64
	deadLettered, expired, dropped, refused, duplicates, rejected, overLimit          uint64
}

// New makes a classic queue, or reopens a durable one if env names its log. It
// is a queue.Factory.
func New(env queue.Env, spec queue.Spec) (queue.Queue, error) {
	if env.Log == nil {
		env.Log = zap.NewNop()
	}
	if env.Memory == nil {
		env.Memory = queue.NewBudget(0)
	}
	spec.Arguments = spec.Arguments.OfType(queue.Classic)
	q := &Queue{
		env: env, spec: spec,
		multi: spec.Arguments.MaxPriority > 0,
		lanes: make([]lane, spec.Arguments.MaxPriority+1),
		fresh: noneFresh,
	}
	if header := spec.Arguments.Deduplication; header != "" {
		q.unique = dedup.NewSet(header)
	}
	if spec.Arguments.SingleActive {
		q.consumers.Mode = dispatch.FirstCome
	}
	q.applyLocked(queue.Merge(nil, nil)) // nobody else has the queue yet
	q.usedAt = time.Now().UnixMilli()
	if !spec.Durable {
		q.env.Store = nil // it is not needed
		q.leaseLocked()
		return q, nil
	}
	if err := q.open(); err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", q.text(), err)
	}
	q.leaseLocked()
	return q, nil
}

// noneFresh is above all ids: no message was just published.
const noneFresh = queue.ID(math.MaxUint64)

// text is how error texts name the queue.
func (q *Queue) text() string { return queue.ResourceText(q.spec.VHost, q.spec.Name) }

// Name is the queue's name in its vhost.
func (q *Queue) Name() string { return q.spec.Name }

// Type is classic.
func (q *Queue) Type() string { return queue.Classic }

// LogID is the id of the queue's log, 0 if it is not durable.
func (q *Queue) LogID() persistence.LogID {
	if q.log == nil {
		return 0
	}
	return q.log.ID()
}

// nowLocked is the time in Unix milliseconds, asked once per turn.
func (q *Queue) nowLocked() int64 {
	if q.now == 0 {
		q.now = time.Now().UnixMilli()
	}
	return q.now
}

// startLocked ends the quiet after a restart.
func (q *Queue) startLocked() {
	if !q.quiet {
		return
	}
	q.quiet = false
	q.usedAt = q.nowLocked()
	q.leaseLocked()
}

// SetPolicy makes a policy take effect at once. A new message TTL holds for
// messages that are published from now on.
func (q *Queue) SetPolicy(p queue.Policy) {
	q.mu.Lock()
	if q.state == running {
		before := q.settings
		q.applyLocked(p)
		if q.settings.Expires != before.Expires {
			q.usedAt = q.nowLocked()
		}
		if q.settings.ConsumerTimeout != before.ConsumerTimeout || q.settings.TimeoutAction != before.TimeoutAction {
			q.consumers.TellTimeout()
		}
		q.startLocked()
		q.leaseLocked()
		q.proceedLocked()
	}
	q.unlock()
}

// applyLocked works out what is in force now.
func (q *Queue) applyLocked(p queue.Policy) {
	s := q.spec.Arguments.Settings(p)
	q.policy, q.settings = nil, s
	if p.Name != "" || p.Operator != "" {
		own := p // p itself stays off the heap if there is none
		q.policy = &own
	}
	q.ttl = s.MessageTTL
	q.retries = q.limited() || s.Backoff.On()
	limited := s.MaxLength != queue.None || s.MaxLengthBytes != queue.None
	q.trims = limited && s.Overflow == queue.DropHead
	q.refuses = limited && s.Overflow != queue.DropHead
	q.inTurn = q.refuses || limited && q.multi
}

// policyLocked is the policy that applies.
func (q *Queue) policyLocked() queue.Policy {
	if q.policy == nil {
		return queue.Merge(nil, nil)
	}
	return *q.policy
}

// Status is a snapshot.
func (q *Queue) Status() queue.Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := queue.Status{
		Ready: q.ready, Unacked: q.unacked, ReadyBytes: q.readyBytes, UnackedBytes: q.unackedBytes,
		Delayed: q.delayed.n, DelayedBytes: q.delayed.bytes,
		Consumers: q.consumers.Len(), Persistent: q.readyStored + q.delayed.stored + q.unackedStored, InMemory: q.ready - q.paged,
		Policy: q.policyLocked(), ActiveTag: q.consumers.ActiveTag(), ConsumerTimeout: q.settings.ConsumerTimeout,
		TimeoutAction: q.settings.TimeoutAction,
		Published:     q.count.published, Delivered: q.count.delivered, DeliveredNoAck: q.count.deliveredNoAck,
		Got: q.count.got, GotNoAck: q.count.gotNoAck, GetEmpty: q.count.getEmpty, Acked: q.count.acked,
		Redelivered: q.count.redelivered, DeadLettered: q.count.deadLettered, Expired: q.count.expired,
		Dropped: q.count.dropped, Refused: q.count.refused, Duplicates: q.count.duplicates,
		Rejected: q.count.rejected, OverLimit: q.count.overLimit,
	}
	if l := q.topLocked(); l != nil {
		if it := l.next(); it != nil {
			s.SetHead(it.msg)
		}
	}
	if q.exclusive != nil {
		s.ExclusiveTag = q.exclusive.Tag
	}
	if q.consumers.Len() == 0 {
		s.IdleSince = max(q.usedAt, q.publishAt)
	}
	return s
}

// Stop ends timers and deliveries and keeps what is durable. What waits in
// memory only is lost. A durable queue goes on to store what is published to it:
// others may still send it their dead letters.
func (q *Queue) Stop() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state == running {
		q.state = stopped
		q.haltLocked()
	}
	return nil
}

// haltLocked ends timers, deliveries and everything that is not in the log.
func (q *Queue) haltLocked() {
	for _, t := range []*time.Timer{q.wakeTimer, q.leaseTimer} {
		if t != nil {
			t.Stop()
		}
	}
	q.env.Memory.Add(-q.counted)
	for i := range q.lanes {
		if spill := q.lanes[i].paged.spill; spill != nil {
			spill.Drop()
		}
	}
	q.lanes = make([]lane, len(q.lanes))
	q.nonEmpty = laneSet{}
	q.consumers.End()
	q.exclusive = nil
	q.ready, q.readyStored, q.readyBytes, q.paged, q.memory, q.counted = 0, 0, 0, 0, 0, 0
	q.unacked, q.unackedStored, q.unackedBytes = 0, 0, 0
	q.settled, q.deliveredTo = nil, 0
	q.delayed, q.notes = delayed{}, nil
	q.after.epoch++
}

// Delete ends the queue with all it holds; nothing of it is dead-lettered.
func (q *Queue) Delete(cond queue.Condition) (int, error) {
	q.mu.Lock()
	n := q.ready + q.delayed.n
	switch {
	case q.state == gone:
		q.mu.Unlock()
		return 0, queue.ErrGone
	case cond.IfEmpty && n > 0:
		q.mu.Unlock()
		return 0, frames.Errorf(frames.PreconditionFailed, "%s not empty", q.text())
	case cond.IfUnused && q.consumers.Len() > 0:
		q.mu.Unlock()
		return 0, frames.Errorf(frames.PreconditionFailed, "%s in use", q.text())
	}
	q.endLocked()
	q.mu.Unlock()
	if q.log != nil {
		q.log.Drop()
	}
	return n, nil
}

// endLocked makes the queue a deleted one and tells its consumers. The caller
// drops the log.
func (q *Queue) endLocked() {
	q.state = gone
	for s := range q.consumers.All() {
		s.Consumer.Cancelled(s)
	}
	q.haltLocked()
}
