// Package queue is the seam between routing and storing: the contracts of
// queues and consumers, and the arguments and policies of queues. It holds no
// queue; the types of queue are in the folders below it.
package queue

import (
	"math"
	"sync/atomic"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// An ID is a message's place in its queue: ids rise in the order of enqueueing
// and are never used again, but for some that were gone before a crash (see
// persistence.Log.LastID). A requeued message keeps its id.
type ID uint64

// An Entry is one message of a publish batch.
type Entry struct {
	Msg *message.Message
	// Receipt is the promise to the publisher, or nil if nobody waits. The
	// batch's entries of one queue are in runs of the same receipt; the queue
	// releases each run's receipt once (see Queue.Enqueue).
	Receipt *message.Receipt
	// Seq is the confirm number of the message within Receipt.
	Seq uint64
	// Shared ties the entries of one publish to several durable queues
	// together, so that the store keeps the body once; nil for one queue.
	Shared *persistence.SharedBody
	// Sole says that nobody but this entry has the message, which has a large body:
	// see Delivery.Sole.
	Sole bool
}

// A Delivery is one message on its way to a consumer and back. Whoever holds
// it may hand it to Settle; nobody else has its message.
type Delivery struct {
	Msg         *message.Message
	ID          ID
	Sub         *Subscription // nil for a basic.get
	Expires     int64         // Unix milliseconds; 0 is never
	Count       uint32        // how often it was handed out before
	Redelivered bool
	Stored      bool // the queue's own: a record of it is in the log
	// Sole says that nobody has the message once a no-ack consumer is through with
	// it, so that its body may be used again (message.Returns). A queue says so only of what
	// came with Entry.Sole and went nowhere else meanwhile.
	Sole bool
}

// An Outcome is what becomes of a delivered message.
type Outcome uint8

// The outcomes of Settle.
const (
	Accepted Outcome = iota // ack: forget it
	Requeued                // back to its place, redelivered next time
	Rejected                // dead-letter it, or forget it
	Returned                // back to its place as if never delivered: it did not reach the client
)

// A Queue holds messages for consumers. Its methods are safe for concurrent
// use, take batches, and never wait for disk or network, except Stop and Delete.
// What an operation causes besides (dead letters, its own deletion, events) is
// done by the caller's goroutine after the queue's lock is released.
type Queue interface {
	Name() string
	// Type is classic, quorum or stream.
	Type() string
	// Enqueue takes a batch in order. It releases each distinct Receipt of the
	// batch once, when the queue has taken responsibility for all messages of
	// it or refused some: at once, or for persistent messages of a durable
	// queue when they are on disk. A deleted queue drops the batch and
	// releases the receipts.
	//
	// It says which stores may have to write what the batch has brought: before
	// the publisher sends more it waits while one of those is behind.
	Enqueue(batch []Entry) Writes
	// Get takes one message off the head; ok is false if there is none. left is
	// how many are ready after it. A no-ack one is settled already.
	Get(noAck bool) (d Delivery, left int, ok bool, err error)
	// Subscribe adds a consumer and starts delivering to it, perhaps before it
	// returns. A refusal is an error for the client.
	Subscribe(s *Subscription) error
	// Cancel removes the consumer; nothing is delivered to it afterwards. What
	// it holds unacknowledged stays with it until settled. Cancelling the last
	// consumer of an auto-delete queue deletes the queue. Unknown ones are ignored.
	Cancel(s *Subscription)
	// Settle ends deliveries of one consumer, or of basic.gets if s is nil.
	Settle(s *Subscription, ds []Delivery, how Outcome)
	// Settle of accepted, requeued or rejected deliveries frees the consumer's
	// own prefetch by itself. Places in its Window are the channel's to give
	// back: Settle, Window.Give, and Resume if Give says so.
	//
	// Resume says that the consumer has room again: in its outbox, or in the
	// window it shares.
	Resume(s *Subscription)
	// Purge drops the messages that no consumer has and returns how many those were.
	Purge() (int, error)
	// SetPolicy makes a policy, merged of user and operator policy, take effect
	// at once. The owner calls it, perhaps with no policy, for each queue that
	// it has reopened when all of them are there: a reopened queue expires
	// nothing before that or the first use of another method.
	SetPolicy(p Policy)
	// Touch restarts the expiry lease (x-expires): a declare has named the queue.
	Touch()
	// Status is a snapshot.
	Status() Status
	// Stop ends timers and deliveries at shutdown and keeps what is durable.
	Stop() error
	// Delete ends the queue with all it holds. Consumers are told by
	// Consumer.Cancelled. If cond is not met, which is decided under the queue's
	// lock, that is the error instead. It returns how many messages were ready. A
	// second call returns ErrGone.
	Delete(cond Condition) (ready int, err error)
}

// An Appender is a queue that can take a batch and leave to the caller what that
// causes besides: within persistence.Store.Together nobody may wait for the store, as
// who reads, ends a queue or publishes dead letters might. All types of queue are.
type Appender interface {
	// EnqueueOnly is Enqueue, but it only appends and hands to consumers. What is left
	// is in then, if that is not nil: the caller calls it soon, without a lock.
	EnqueueOnly(batch []Entry) (writes Writes, then func())
}

// Writes are the stores that may have something to write, for instance after a
// batch was enqueued.
type Writes uint8

const (
	// ToStore is the store of what is durable.
	ToStore Writes = 1 << iota
	// ToSpill is the store of transient messages that do not fit in memory.
	ToSpill
	// Anywhere is for messages that may go on to other queues.
	Anywhere = ToStore | ToSpill
)

// A Condition limits a Delete.
type Condition struct{ IfUnused, IfEmpty bool }

// A Consumer takes deliveries. Its methods are called with the queue's lock
// held: they must only append and wake, and never call the queue.
type Consumer interface {
	// Deliver returns how many of the batch it took, from the front; the rest
	// stay ready, and the queue skips the consumer until Resume. The batch is
	// the queue's memory: copy what is taken. Of a consumer with a limited
	// Window the queue had taken places for all of the batch and gives those of
	// the rest back itself: when there is room again, resume all consumers that
	// share the window.
	Deliver(batch []Delivery) int
	// Cancelled says that the queue has ended the subscription: it was deleted
	// or has expired. No delivery follows.
	Cancelled(s *Subscription)
	// Activated says that a single active consumer became active or ceased to be.
	Activated(s *Subscription, active bool)
}

// A Watcher is a Consumer that wants to know when Status.ConsumerTimeout or its
// action have changed. The method is called with the queue's lock held, as those
// of a Consumer are.
type Watcher interface{ TimeoutChanged(s *Subscription) }

// A Measured consumer knows how much it will take. Before a queue deals messages to several
// consumers in turn it asks them: what one of them gave back another would get after
// later ones.
type Measured interface {
	// Room is how much the next Deliver will take, whatever else happens meanwhile
	// but the consumer's end: messages until they weigh as much, see Weight. If it is
	// not above 0, or the next Deliver takes only a part, the consumer waits for Resume.
	// It is called with the queue's lock held, as Deliver is.
	Room() int
}

// deliveryWeight is what a delivery adds on the wire besides header and body, in bytes; an
// estimate.
const deliveryWeight = 64

// Weight is what a delivery of the message takes on its way to a client, in bytes.
func Weight(m *message.Message) int { return len(m.Header) + len(m.Body) + deliveryWeight }

// A Subscription is one consumer's place at a queue.
type Subscription struct {
	// The fields up to Window are set by the front door and not changed after
	// Subscribe.
	Consumer  Consumer
	Tag       string
	Arguments frames.Table // as sent with basic.consume, for listings
	NoAck     bool
	Exclusive bool
	Priority  int     // x-priority
	Prefetch  int     // at most so many unacknowledged; 0 is no limit. Ignored with NoAck
	Window    *Window // the channel's common limit; never nil

	// State belongs to the queue and is guarded by its lock.
	State any
}

// A Window limits the unacknowledged messages of all consumers of a channel
// together (basic.qos with global=true). Queues take places without a lock;
// the channel gives them back and then calls Resume on its consumers.
type Window struct {
	limit atomic.Int32 // 0 is no limit
	used  atomic.Int32
}

// SetLimit changes the limit; 0 is none.
func (w *Window) SetLimit(n int) { w.limit.Store(int32(n)) }

// Limit is the limit; 0 is none.
func (w *Window) Limit() int { return int(w.limit.Load()) }

// Limited says whether there is a limit.
func (w *Window) Limited() bool { return w.limit.Load() > 0 }

// Room is how many places are free now; a large number without a limit.
func (w *Window) Room() int {
	limit := w.limit.Load()
	if limit <= 0 {
		return math.MaxInt32
	}
	return max(0, int(limit-w.used.Load()))
}

// Take takes up to n places and returns how many it got. Without a limit it
// gives all of them; they still count.
func (w *Window) Take(n int) int {
	for {
		limit, used := w.limit.Load(), w.used.Load()
		got := int32(n)
		if limit > 0 {
			got = max(0, min(got, limit-used))
		}
		if got == 0 || w.used.CompareAndSwap(used, used+got) {
			return int(got)
		}
	}
}

// Force takes n places even beyond the limit: for basic.get, which is never
// limited but counts for limits that are set later (RabbitMQ 4.0).
func (w *Window) Force(n int) { w.used.Add(int32(n)) }

// Give returns places, and says whether the window was full before and is not
// now, so that its consumers must be resumed.
func (w *Window) Give(n int) (resume bool) {
	left := w.used.Add(-int32(n))
	limit := w.limit.Load()
	return limit > 0 && left < limit && left+int32(n) >= limit
}

// Status is a snapshot of a queue for passive declares, management and metrics.
type Status struct {
	Ready, Unacked           int
	ReadyBytes, UnackedBytes int64 // of bodies
	Delayed                  int   // came back and wait for their time; not among Ready
	DelayedBytes             int64 // of their bodies
	Consumers                int
	Persistent               int    // ready, delayed and unacknowledged messages that are stored
	InMemory                 int    // ready messages whose body is in memory
	HeadTime                 int64  // Unix milliseconds at which the oldest ready message came; 0 if none
	HeadTimestamp            uint64 // its property timestamp, in Unix seconds; 0 if it has none
	Policy                   Policy
	ActiveTag                string // the single active consumer's tag
	ExclusiveTag             string // the exclusive consumer's tag
	ConsumerTimeout          int64  // milliseconds, of argument and policy; None if neither says
	TimeoutAction            TimeoutAction
	IdleSince                int64 // Unix milliseconds since when there is no consumer and no use; 0 if used

	// Counters since the queue was made or recovered.
	Published, Delivered, DeliveredNoAck, Got, GotNoAck, GetEmpty, Acked, Redelivered uint64
	DeadLettered, Expired, Dropped, Refused, Duplicates                               uint64
	// Rejected by consumers for good, OverLimit of deliveries: with or without a
	// dead-letter target. DeadConfirmed were confirmed by the targets, of a queue
	// that waits for that.
	Rejected, OverLimit, DeadConfirmed uint64
}

// SetHead enters the oldest ready message.
func (s *Status) SetHead(m *message.Message) {
	s.HeadTime, s.HeadTimestamp = m.Time, frames.TimestampOf(m.Header)
}

// AddCounters adds another queue's counters, and nothing else of it.
func (s *Status) AddCounters(o *Status) {
	s.Published += o.Published
	s.Delivered += o.Delivered
	s.DeliveredNoAck += o.DeliveredNoAck
	s.Got += o.Got
	s.GotNoAck += o.GotNoAck
	s.GetEmpty += o.GetEmpty
	s.Acked += o.Acked
	s.Redelivered += o.Redelivered
	s.DeadLettered += o.DeadLettered
	s.Expired += o.Expired
	s.Dropped += o.Dropped
	s.Refused += o.Refused
	s.Duplicates += o.Duplicates
	s.Rejected += o.Rejected
	s.OverLimit += o.OverLimit
	s.DeadConfirmed += o.DeadConfirmed
}

// Messages is how many messages there are, whatever they wait for.
func (s *Status) Messages() int { return s.Ready + s.Delayed + s.Unacked }

// Bytes is the bytes of the bodies of all messages.
func (s *Status) Bytes() int64 { return s.ReadyBytes + s.DelayedBytes + s.UnackedBytes }
