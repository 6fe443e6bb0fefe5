// Package quorum is the queue type quorum, on one node: every message is stored
// in a log of the store whatever its delivery mode, deliveries are counted, and
// a message that comes back too often dies.
//
// What the queue is lies in machine.go and the files beside it (command, table,
// lane, memory, snapshot): a state machine without I/O, clock or lock, which
// another node can replay. The rest wraps it: Queue decides which commands to
// give, writes the log, deals to consumers, and does what commands cause.
//
// A queue has no goroutine. Whoever makes work possible does it: a publisher in
// Enqueue, an acknowledger in Settle, a timer. The way of a message is
// enqueue.go, deliver.go, settle.go; what an operation causes besides is
// collected under the lock and done after it, see work.go.
package quorum

import (
	"fmt"
	"math"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/dedup"
	"github.com/leveretmq/leveret/queue/dispatch"
	"github.com/leveretmq/leveret/queue/retry"
)

var (
	_ queue.Queue     = (*Queue)(nil)
	_ queue.Appender  = (*Queue)(nil)
	_ queue.Logged    = (*Queue)(nil)
	_ queue.Factory   = New
	_ dispatch.Source = (*Queue)(nil)
)

// A Queue is a quorum queue.
type Queue struct {
	env  queue.Env       // immutable
	spec queue.Spec      // immutable
	text string          // immutable: how error texts name the queue
	log  persistence.Log // immutable

	// mu guards the fields below. It is held for one batch, never across disk,
	// and the functions of env are called without it. Order: Queue.mu before a
	// connection's outbox, a log, a receipt or letters.mu.
	mu    sync.Mutex
	state state
	// quiet is true for a reopened queue until it is used: others that its dead
	// letters may go to may not be there yet.
	quiet    bool
	policy   queue.Policy
	settings queue.Settings

	m         *machine
	consumers dispatch.Consumers
	lastID    queue.ID // of messages and notes
	notes     retry.Notes
	unique    *dedup.Set        // nil unless duplicates are dropped
	apart     map[queue.ID]bool // that were found dead or waiting for their time; nil if none is in a lane's block

	cmd    command              // scratch: the command that is given
	fx     effects              // what commands have caused in this turn
	handed bool                 // something was handed out in this turn, or has come back
	again  bool                 // and some of that not for the first time
	trace  func(c *command)     // told of all commands; nil but in tests
	fresh  queue.ID             // messages from this id on were just published
	now    int64                // Unix milliseconds; 0 if not asked in this turn
	ids    []queue.ID           // scratch of commands
	msgs   []*message.Message   // scratch of Enqueue
	recs   []persistence.Record // scratch of Enqueue
	marked queue.ID             // what the log knows as handed out
	budget int64                // how much of m.memory env.Memory knows
	timed  bool                 // some ready message may expire
	wakes  alarm                // something at the head may expire
	lease  alarm                // x-expires
	after  after                // what is to be done without the lock
	count  counters             // for Status
	usedAt int64                // Unix milliseconds of the last use that counts for the lease
	pubAt  int64                // Unix milliseconds of the last publish

	letters letters // has a lock of its own
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
	deadLettered, expired, dropped, refused, duplicates, deadConfirmed                uint64
}

// noneFresh is above all ids: no message was just published.
const noneFresh = queue.ID(math.MaxUint64)

// New makes a quorum queue, or reopens one if env names its log. It is a
// queue.Factory.
func New(env queue.Env, spec queue.Spec) (queue.Queue, error) {
	return open(env, spec)
}

func open(env queue.Env, spec queue.Spec) (*Queue, error) {
	if env.Log == nil {
		env.Log = zap.NewNop()
	}
	if env.Memory == nil {
		env.Memory = queue.NewBudget(0)
	}
	spec.Arguments = spec.Arguments.OfType(queue.Quorum)
	q := &Queue{
		env: env, spec: spec, text: queue.ResourceText(spec.VHost, spec.Name),
		m: newMachine(), fresh: noneFresh, usedAt: time.Now().UnixMilli(),
	}
	q.wakes.ring, q.lease.ring = q.wake, q.leaseOver
	if spec.Arguments.SingleActive {
		q.consumers.Mode = dispatch.ByPriority
	}
	if header := spec.Arguments.Deduplication; header != "" {
		q.unique = dedup.NewSet(header)
	}
	q.fx.mourns = q.unique != nil
	q.applyLocked(queue.Merge(nil, nil)) // nobody else has the queue yet
	if err := q.openLog(); err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", q.text, err)
	}
	q.leaseLocked()
	q.now = 0
	return q, nil
}

// Name is the queue's name in its vhost.
func (q *Queue) Name() string { return q.spec.Name }

// Type is quorum.
func (q *Queue) Type() string { return queue.Quorum }

// LogID is the id of the queue's log.
func (q *Queue) LogID() persistence.LogID { return q.log.ID() }

// RefusesGlobalQos says that a channel with a limit for all of its consumers
// together must not consume from this queue: the front door answers with 540
// "<queue> does not support global qos" (RabbitMQ 4.0).
func (q *Queue) RefusesGlobalQos() bool { return true }

// DeclaredConsumers is the consumer count that declare-ok shows: of consumers
// of which one is active at a time, that one (RabbitMQ 4.0).
func (q *Queue) DeclaredConsumers() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.consumers.Len(); n == 0 || !q.spec.Arguments.SingleActive {
		return n
	}
	return 1
}

// nowLocked is the time in Unix milliseconds, asked once per turn.
func (q *Queue) nowLocked() int64 {
	if q.now == 0 {
		q.now = time.Now().UnixMilli()
	}
	return q.now
}

// doLocked gives the machine the command in q.cmd.
func (q *Queue) doLocked() {
	q.m.apply(&q.cmd, &q.fx)
	if q.trace != nil {
		q.trace(&q.cmd)
	}
	q.sequelLocked()
}

// sequelLocked does what the deaths ask for that the machine has told.
func (q *Queue) sequelLocked() {
	if len(q.fx.dead) > 0 {
		q.mournLocked()
	}
	if len(q.fx.lost) > 0 {
		for i, m := range q.fx.lost {
			q.unique.Forget(m)
			q.fx.lost[i] = nil
		}
		q.fx.lost = q.fx.lost[:0]
	}
	if len(q.fx.gone) >= dispatch.Turn {
		q.flushGoneLocked()
	}
}

// startLocked ends the quiet after a restart.
func (q *Queue) startLocked() {
	if !q.quiet {
		return
	}
	q.quiet = false
	q.usedAt = q.nowLocked()
	q.leaseLocked()
	q.repostLocked() // what was dead when the broker ended
	q.dueLocked()
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

// defaultDeliveryLimit is how often a message may come back where neither
// arguments nor policy say (RabbitMQ 4.0).
const defaultDeliveryLimit = 20

// applyLocked works out what is in force now.
func (q *Queue) applyLocked(p queue.Policy) {
	s := queue.Effective(*q.spec.Arguments, p)
	if s.DeliveryLimit == queue.NoDeliveryLimit {
		s.DeliveryLimit = defaultDeliveryLimit
	}
	if s.Overflow == queue.RejectPublishDLX {
		s.Overflow = queue.DropHead // RabbitMQ 4.0: quorum queues take the name and drop the head
		q.env.Log.Warn("overflow reject-publish-dlx is not for quorum queues, the head is dropped instead: set reject-publish or drop-head", zap.String("queue", q.text))
	}
	q.policy, q.settings = p, s
	q.cmd = command{op: opRules, time: q.nowLocked(), rules: rules{
		ttl: s.MessageTTL, maxLength: s.MaxLength, maxBytes: s.MaxLengthBytes, deliveryLimit: s.DeliveryLimit,
		refuses: s.Overflow == queue.RejectPublish && (s.MaxLength != queue.None || s.MaxLengthBytes != queue.None),
		graves:  q.gravesOf(s, p),
	}}
	q.doLocked()
}

// gravesOf says what becomes of dead messages. The strategy at-least-once needs
// overflow reject-publish; without that it is at-most-once (RabbitMQ 4.0).
func (q *Queue) gravesOf(s queue.Settings, p queue.Policy) graves {
	switch {
	case s.DeadLetter == nil || q.env.DeadLetter == nil:
		return forgotten
	case strategy(*q.spec.Arguments, p) != "at-least-once":
		return sent
	case s.Overflow != queue.RejectPublish:
		q.env.Log.Warn("dead letter strategy at-least-once needs overflow reject-publish, dead letters are sent at most once: set both, or neither", zap.String("queue", q.text))
		return sent
	}
	return kept
}

// strategy is the dead letter strategy of the arguments, else of the policy.
func strategy(a queue.Arguments, p queue.Policy) string {
	v, ok := a.Table.Lookup("x-dead-letter-strategy")
	if !ok {
		v = p.Definition["dead-letter-strategy"]
	}
	s, _ := v.(string)
	return s
}

// Status is a snapshot. Messages that are dead and wait for their target to
// confirm them are neither ready nor unacknowledged.
func (q *Queue) Status() queue.Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.m
	s := queue.Status{
		Ready: m.ready, Unacked: m.out, ReadyBytes: m.readyBytes, UnackedBytes: m.outBytes,
		Delayed: m.delay.n, DelayedBytes: m.delay.bytes, TimeoutAction: q.settings.TimeoutAction,
		Consumers: q.consumers.Len(), Persistent: m.ready + m.delay.n + m.out, InMemory: m.ready - m.absent(),
		Policy: q.policy, ActiveTag: q.consumers.ActiveTag(), ConsumerTimeout: q.settings.ConsumerTimeout,
		Published: q.count.published, Delivered: q.count.delivered, DeliveredNoAck: q.count.deliveredNoAck,
		Got: q.count.got, GotNoAck: q.count.gotNoAck, GetEmpty: q.count.getEmpty, Acked: q.count.acked,
		Redelivered: q.count.redelivered, DeadLettered: q.count.deadLettered, Expired: q.count.expired,
		Dropped: q.count.dropped, Refused: q.count.refused, Duplicates: q.count.duplicates,
		Rejected: q.fx.died[rejected], OverLimit: q.fx.died[deliveryLimit], DeadConfirmed: q.count.deadConfirmed,
	}
	if _, head, _ := m.head(); head != nil {
		s.SetHead(head.msg)
	}
	if q.consumers.Len() == 0 {
		s.IdleSince = max(q.usedAt, q.pubAt)
	}
	return s
}

// Stop ends timers and deliveries; everything is stored. The queue goes on to
// store what is published to it: others may still send it their dead letters.
func (q *Queue) Stop() error {
	q.mu.Lock()
	if q.state == running {
		q.state = stopped
		q.haltLocked()
	}
	q.mu.Unlock()
	q.letters.wait()
	return nil
}

// haltLocked ends timers, deliveries and everything that is not in the log.
func (q *Queue) haltLocked() {
	q.wakes.stop()
	q.lease.stop()
	q.env.Memory.Add(-q.budget)
	q.budget = 0
	q.consumers.End()
	rules := q.m.rules // publishes are still stored by them
	q.m = newMachine()
	q.m.rules = rules
	q.notes, q.apart = retry.Notes{}, nil
	q.fx = effects{mourns: q.fx.mourns, died: q.fx.died}
	q.after.epoch++
	q.after.late = nil
}

// Delete ends the queue with all it holds; nothing of it is dead-lettered. It
// takes no conditions.
func (q *Queue) Delete(cond queue.Condition) (int, error) {
	if cond.IfUnused {
		return 0, q.cannotDelete("if-unused")
	}
	if cond.IfEmpty {
		return 0, q.cannotDelete("if-empty")
	}
	q.mu.Lock()
	if q.state == gone {
		q.mu.Unlock()
		return 0, queue.ErrGone
	}
	n := q.m.ready + q.m.delay.n
	q.endLocked()
	q.mu.Unlock()
	q.log.Drop()
	return n, nil
}

func (q *Queue) cannotDelete(flag string) error {
	return frames.Errorf(frames.NotImplemented, "cannot delete %s. queue.delete operations with %s flag set are not supported by quorum queues",
		q.text, flag)
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
