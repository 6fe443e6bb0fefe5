// Package stream is the queue type stream: a log that readers read at their own
// places, and that forgets nothing but by its age or size.
//
// Messages are kept in chunks, which are records of the store's log: what one
// batch brings, or 20 KiB of it. A chunk's record has the offset after its last
// message as its id, so the log finds the chunk of an offset by itself, and a
// stream keeps no index of its own. See chunk.go for the format.
//
// A queue has no goroutine, but for readers that skip a great deal, see patience.
// A commit of the log has new messages handed to the
// readers that wait for them; whoever gives a reader credit or room (Settle,
// Resume, Subscribe) hands it what it is behind, reading it from the log without
// the queue's lock. The way of a message is append.go, ledger.go, serve.go.
package stream

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

var (
	_ queue.Queue    = (*Queue)(nil)
	_ queue.Appender = (*Queue)(nil)
	_ queue.Logged   = (*Queue)(nil)
	_ queue.Placed   = (*Queue)(nil)
	_ queue.Factory  = New
)

// A Queue is a stream.
type Queue struct {
	env  queue.Env       // immutable
	spec queue.Spec      // immutable
	text string          // immutable: how error texts name the queue
	log  persistence.Log // immutable

	// mu guards the fields below. It is held for one batch, never across disk.
	// Order: Queue.mu before a connection's outbox, a log or a receipt.
	mu       sync.Mutex
	state    state
	quiet    bool // reopened, and has not been given its policy yet
	policy   queue.Policy
	settings settings

	extent
	durable   end       // as the ledger had it when it was looked at
	closed    []segment // segments before the active one, oldest first
	unknown   uint64    // what is below this offset is in segments that are not in closed; 0 if nothing is
	retention bool      // a segment was closed or a limit changed: see retain
	retaining bool      // a goroutine is at it

	tracker tracker
	readers []*reader // in no order
	tailing []*reader // those that have had everything, in no order
	cache   cache
	counted int64 // how much of the cache's size env.Memory knows
	retry   *time.Timer
	scans   sync.WaitGroup // goroutines that drive a reader; added to while running only

	head    header               // of the message published last
	names   names                // of what was published last
	scratch chunk                // one that nobody reads
	bloom   []byte               // scratch of filterLocked
	records []persistence.Record // scratch of appendRunLocked
	batch   []queue.Delivery     // scratch of serveLocked
	pieces  []piece              // scratch of serveLocked

	count counters

	ledger ledger // has a lock of its own
}

// An extent says what the stream holds. Positions are in bytes of the log since
// the stream was made, so what was forgotten counts.
type extent struct {
	first, next uint64 // the oldest offset, and the one that the next message gets
	last        uint64 // the first offset of the youngest chunk
	firstTime   int64  // of the oldest chunk, Unix milliseconds
	lastTime    int64  // of the youngest chunk
	firstPos    int64  // where the oldest chunk begins
	pos         int64  // where the next chunk will begin

	firstSegment uint64 // number of the oldest segment
	active       uint64 // number of the segment that grows
	activeFirst  uint64 // its first offset
	activePos    int64  // where it begins
}

// A state is where a queue is in its life.
type state uint8

const (
	running state = iota
	stopped       // the broker ends
	gone          // deleted
)

type counters struct{ published, delivered, acked uint64 }

// New makes a stream, or reopens one if env names its log. It is a
// queue.Factory.
func New(env queue.Env, spec queue.Spec) (queue.Queue, error) {
	if env.Log == nil {
		env.Log = zap.NewNop()
	}
	if env.Memory == nil {
		env.Memory = queue.NewBudget(0)
	}
	spec.Arguments = spec.Arguments.OfType(queue.Stream)
	q := &Queue{env: env, spec: spec, text: queue.ResourceText(spec.VHost, spec.Name)}
	q.cache.init()
	q.applyLocked(queue.Merge(nil, nil)) // nobody else has the queue yet
	if err := q.open(); err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", q.text, err)
	}
	q.ledger.durable = end{q.last, q.next}
	q.lookLocked()
	return q, nil
}

// Name is the queue's name in its vhost.
func (q *Queue) Name() string { return q.spec.Name }

// Type is stream.
func (q *Queue) Type() string { return queue.Stream }

// LogID is the id of the queue's log.
func (q *Queue) LogID() persistence.LogID { return q.log.ID() }

// PlacesID is the id of the log of where consumers are.
func (q *Queue) PlacesID() persistence.LogID { return q.tracker.log.ID() }

// DeclaredConsumers is the consumer count that declare-ok shows: 0 whatever
// there are (RabbitMQ 4.0).
func (q *Queue) DeclaredConsumers() int { return 0 }

// Get refuses: a stream cannot be read one by one (RabbitMQ 4.0).
func (q *Queue) Get(bool) (d queue.Delivery, left int, ok bool, err error) {
	return d, 0, false, frames.Errorf(frames.NotImplemented, "basic.get not supported by stream queues %s", q.text)
}

// Purge refuses: a stream forgets by its limits only (RabbitMQ 4.0).
func (q *Queue) Purge() (int, error) {
	return 0, frames.Errorf(frames.NotImplemented, "queue.purge not supported by stream queues %s", q.text)
}

// Touch does nothing: a stream does not expire.
func (q *Queue) Touch() {}

// SetPolicy makes a policy take effect at once: segments that a new limit does
// not allow any more are dropped, unless the queue was just reopened.
func (q *Queue) SetPolicy(p queue.Policy) {
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return
	}
	before := q.settings
	q.applyLocked(p)
	s := q.settings
	if !q.quiet && (s.maxBytes != before.maxBytes || s.maxAge != before.maxAge) {
		q.retention = true
	}
	q.quiet = false
	q.unlock()
}

func (q *Queue) applyLocked(p queue.Policy) {
	q.policy = p
	q.settings = effective(*q.spec.Arguments, p)
	if len(q.bloom) != q.settings.filterSize {
		q.bloom = make([]byte, q.settings.filterSize)
	}
}

// unlock ends a turn, and enforces the limits if it has made that necessary.
func (q *Queue) unlock() {
	due := q.finishLocked()
	q.mu.Unlock()
	if due {
		q.retain()
	}
}

// finishLocked ends a turn, and says whether the limits have to be enforced.
func (q *Queue) finishLocked() (due bool) {
	q.tidyLocked()
	return q.retention && !q.retaining && q.state == running
}

// Status is a snapshot. Everything in the log counts as ready, and nothing as
// unacknowledged: what readers hold does not leave the stream. The bytes are
// those of the log.
func (q *Queue) Status() queue.Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := queue.Status{
		Consumers: len(q.readers), Policy: q.policy,
		ConsumerTimeout: queue.Effective(*q.spec.Arguments, q.policy).ConsumerTimeout,
		Published:       q.count.published, Delivered: q.count.delivered, Acked: q.count.acked,
	}
	if q.state == gone {
		return s
	}
	s.Ready = int(q.next - q.first)
	s.Persistent = s.Ready
	s.ReadyBytes = q.pos - q.firstPos
	s.InMemory = min(q.cache.messages, s.Ready)
	if s.Ready > 0 {
		s.HeadTime = q.firstTime
	}
	return s
}

// Figures are what only a stream has.
type Figures struct {
	First, Next uint64 // the oldest offset, and that of the next message
	Segments    int
	Bytes       int64 // in the log
	LastTime    int64 // when the youngest chunk was written, Unix milliseconds; 0 if none was
}

// Figures is a snapshot.
func (q *Queue) Figures() Figures {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Figures{
		First: q.first, Next: q.next, Segments: int(q.active-q.firstSegment) + 1,
		Bytes: q.pos - q.firstPos, LastTime: q.lastTime,
	}
}

// Stop ends deliveries. What is published afterwards is stored: others may still
// send the queue their dead letters.
func (q *Queue) Stop() error {
	q.mu.Lock()
	if q.state == running {
		q.state = stopped
		q.haltLocked()
	}
	q.mu.Unlock()
	q.scans.Wait()
	return nil
}

// haltLocked lets go of the readers and of the memory.
func (q *Queue) haltLocked() {
	if q.retry != nil {
		q.retry.Stop()
	}
	if q.tracker.timer != nil {
		q.tracker.timer.Stop()
	}
	for _, r := range q.readers {
		q.saveLocked(r)
		r.wait |= departed
		r.cur = nil
	}
	q.readers, q.tailing = nil, nil
	q.ledger.await(false)
	q.cache.clear()
	q.tidyLocked()
}

// Delete ends the queue with all it holds. The conditions are ignored, and the
// entries are not counted (RabbitMQ 4.0).
func (q *Queue) Delete(queue.Condition) (int, error) {
	q.mu.Lock()
	if q.state == gone {
		q.mu.Unlock()
		return 0, queue.ErrGone
	}
	q.state = gone
	for _, r := range q.readers {
		r.sub.Consumer.Cancelled(r.sub)
	}
	q.haltLocked()
	q.mu.Unlock()
	q.scans.Wait()
	q.log.Drop()
	q.tracker.log.Drop()
	return 0, nil
}
