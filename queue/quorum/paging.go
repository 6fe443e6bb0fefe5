package quorum

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
)

// blockSize is what is read at once, in bodies and headers, in bytes.
const blockSize = 512 << 10

// retryAfter is how long a queue waits after a read that failed.
const retryAfter = time.Second

// pageOutLocked drops from memory what is in the log until the budget of all
// queues is no longer exceeded. The head of each lane stays.
func (q *Queue) pageOutLocked() {
	if q.m.memory < 2*window {
		return
	}
	durable := queue.ID(q.log.Durable())
	need := q.env.Memory.Excess()
	for i := range q.m.lanes {
		if need <= 0 {
			return
		}
		need -= q.m.evict(i, durable, need)
	}
	if need > 0 && q.m.delay.n > 0 {
		q.flushNotesLocked() // of what is not in memory only notes know
		q.m.evictDelayed(durable, need)
	}
}

// PageOut makes the queue give up memory if the budget of all queues is
// exceeded. A queue in use does so by itself.
func (q *Queue) PageOut() {
	q.mu.Lock()
	if q.state == running && q.env.Memory.Exceeded() {
		q.pageOutLocked()
	}
	q.unlock()
}

// dueLaneLocked is the lane of which a block should be read now, because
// something waits for it or a consumer will soon; -1 if there is none.
func (q *Queue) dueLaneLocked() int {
	if q.after.loading != nil || q.after.broken || q.state != running || q.m.absent() == 0 {
		return -1
	}
	soon := q.consumers.Len() > 0
	if q.blockedLocked() && (soon || q.after.wantLoad) {
		return q.m.nextLane()
	}
	for i := range q.m.lanes {
		if l := &q.m.lanes[i]; soon && l.away.count > 0 && l.headSize < window {
			return i
		}
	}
	return -1
}

// A load is the reading of one block of a lane.
type load struct {
	lane, epoch int
	away        // as it was at the start
	ready       chan struct{}
}

// A block is what was read. Up to the id end everything of the load is in it.
type block struct {
	recs []persistence.Record
	msgs []*message.Message
	end  queue.ID
}

// loadLocked reads a block, hands out what it can, and unlocks.
func (q *Queue) loadLocked() (more bool) {
	// A failure was logged, and the alarm is set for another attempt.
	if err := q.loadNowLocked(); err == nil {
		q.proceedLocked()
	}
	more = q.finishLocked()
	q.mu.Unlock()
	return more
}

// loadNowLocked reads the next block of a lane that is due, by default of the
// head's, or waits for the goroutine that does so already. The lock is released
// meanwhile.
func (q *Queue) loadNowLocked() error {
	if ready := q.after.loading; ready != nil {
		q.mu.Unlock()
		<-ready
		q.mu.Lock()
		return nil
	}
	ld := q.beginLoadLocked()
	q.mu.Unlock()
	b, err := q.readBlock(&ld)
	q.mu.Lock()
	return q.endLoadLocked(&ld, b, err)
}

func (q *Queue) beginLoadLocked() load {
	i := q.dueLaneLocked()
	if i < 0 || q.blockedLocked() {
		i = q.m.nextLane()
	}
	q.after.wantLoad = false
	q.after.loading = make(chan struct{})
	return load{lane: i, epoch: q.after.epoch, away: q.m.lanes[i].away, ready: q.after.loading}
}

// readBlock reads a block. The lock is not held; nobody else changes what the
// load is about, except by purging.
func (q *Queue) readBlock(ld *load) (block, error) {
	b := block{end: ld.to}
	recs, err := q.log.Load(persistence.Lane(ld.lane), uint64(ld.from), nil, blockSize)
	if err != nil {
		return b, err
	}
	n := len(recs)
	for n > 0 && queue.ID(recs[n-1].ID) > ld.to {
		n--
	}
	if n > 0 && n == len(recs) {
		b.end = queue.ID(recs[n-1].ID)
	}
	b.recs = recs[:n]
	b.msgs = make([]*message.Message, n)
	rv := record.NewReviver(n)
	for i := range b.recs {
		if b.msgs[i], err = rv.Revive(&b.recs[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

// endLoadLocked puts the block behind the head.
func (q *Queue) endLoadLocked(ld *load, b block, err error) error {
	q.after.loading = nil
	close(ld.ready)
	if q.state != running || ld.epoch != q.after.epoch {
		return nil // nobody wants it any more
	}
	if err != nil {
		q.after.broken = true
		q.wakes.set(q.nowLocked()+retryAfter.Milliseconds(), q.nowLocked())
		q.env.Log.Error("messages cannot be read from the store and stay there; it is tried again every second: look at the disk", zap.String("queue", q.text), zap.Error(err))
		return fmt.Errorf("read messages of %s: %w", q.text, err)
	}
	items := q.arrivalsLocked(ld.lane, &b)
	q.missedLocked(q.m.admit(ld.lane, items, b.end))
	if q.m.absent() == 0 {
		q.apart = nil
	}
	return nil
}

// arrivalsLocked are the messages of a block but for those that were dead or waited
// for their time when the queue was reopened: they have left the lane. A message
// whose last delivery the broker did not survive dies here if that was one too many.
func (q *Queue) arrivalsLocked(number int, b *block) []arrival {
	items := make([]arrival, 0, len(b.recs))
	for i := range b.recs {
		rec := &b.recs[i]
		id := queue.ID(rec.ID)
		if q.apart[id] {
			continue
		}
		count := q.notes.Of(id).Count
		if q.m.tooMany(count) {
			q.m.outlive(number, arrival{id, b.msgs[i], rec.Expires, count}, &q.fx)
			continue
		}
		if count == 0 && rec.Redelivered {
			count = 1
		}
		q.timed = q.timed || rec.Expires != 0
		items = append(items, arrival{id, b.msgs[i], rec.Expires, count})
	}
	q.sequelLocked()
	return items
}
