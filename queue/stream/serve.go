package stream

import (
	"math"

	"github.com/leveretmq/leveret/queue"
)

// turn is how many messages are handed to a reader at once.
const turn = 256

// A piece is the part of a batch that is from one chunk.
type piece struct {
	c  *chunk
	at int // index in the batch
}

// patience is how often in a row drive reads for a reader without a delivery
// before it leaves that to a goroutine: a reader whose filter wants next to nothing may have the whole
// stream before it, and the caller has other things to do.
const patience = 32

// drive hands the reader what it can take, reading what is not in memory, and
// unlocks. One goroutine does so at a time; what others change for the reader
// meanwhile, that one sees.
func (q *Queue) drive(r *reader) {
	if r.busy {
		q.mu.Unlock()
		return
	}
	r.busy = true
	r.fruitless = 0
	if q.driveLocked(r, patience) {
		q.mu.Unlock()
		return
	}
	// The goroutine owns the reader's busy flag. It ends when the reader has to
	// wait for something or is cancelled; Stop and Delete wait for it.
	q.scans.Go(func() {
		q.mu.Lock()
		q.driveLocked(r, math.MaxInt)
		q.unlock()
	})
	q.mu.Unlock()
}

// driveLocked is drive without the locking at both ends. It returns false if it
// is out of patience.
func (q *Queue) driveLocked(r *reader, patience int) (done bool) {
	for q.serveLocked(r) {
		if r.fruitless >= patience {
			return false
		}
		r.fruitless++
		job := q.jobLocked(r)
		q.mu.Unlock()
		job.do(q)
		q.mu.Lock()
		q.doneLocked(r, &job)
		q.tidyLocked()
	}
	r.busy = false
	if r.wait&waitMore == 0 {
		q.leaveTailLocked(r)
	}
	q.tidyLocked()
	return true
}

// serveLocked hands the reader what is in memory until it has to wait. It
// returns true if something must be read for it first.
func (q *Queue) serveLocked(r *reader) (starving bool) {
	for r.wait == 0 {
		if r.seek >= 0 {
			return true
		}
		r.next = max(r.next, q.first)
		room := min(turn, r.sub.Prefetch-r.inflight)
		if room <= 0 {
			q.awaitCreditLocked(r)
			return false
		}
		starving = q.gatherLocked(r, room)
		if len(q.batch) > 0 {
			q.offerLocked(r)
			continue
		}
		if starving {
			return true
		}
		q.joinTailLocked(r)
	}
	return false
}

// awaitCreditLocked makes the reader wait for credit. It keeps the chunk that it
// is in, which its unsettled deliveries keep alive anyway, unless memory is short.
func (q *Queue) awaitCreditLocked(r *reader) {
	r.wait |= waitCredit
	if q.env.Memory.Exceeded() {
		r.cur = nil
	}
}

// gatherLocked makes q.batch what the reader gets next, up to room messages, and
// moves it on. It returns true if the chunk after that is not there.
func (q *Queue) gatherLocked(r *reader, room int) (starving bool) {
	batch, pieces := q.batch[:0], q.pieces[:0]
	for len(batch) < room && r.next < q.durable.next {
		c := q.chunkLocked(r)
		if c == nil {
			starving = true
			break
		}
		if !r.filter.wants(c) {
			r.next = c.next
			continue
		}
		if c.msgs == nil {
			starving = true
			break
		}
		msgs := c.msgs[r.next-c.first:]
		msgs = msgs[:min(len(msgs), room-len(batch))]
		pieces = append(pieces, piece{c, len(batch)})
		for i := range msgs {
			r.next++
			batch = append(batch, queue.Delivery{Msg: &msgs[i].Message, ID: queue.ID(r.next), Sub: r.sub, Stored: true})
		}
	}
	q.batch, q.pieces = batch, pieces
	return starving
}

// chunkLocked is the chunk that the reader's next message is in, or nil if that
// is not in memory.
func (q *Queue) chunkLocked(r *reader) *chunk {
	if c := r.cur; c == nil || !c.holds(r.next) {
		r.cur = q.cache.get(r.next)
	}
	return r.cur
}

// offerLocked offers the reader q.batch. What it does not take it gets again,
// once it says that it has room.
func (q *Queue) offerLocked(r *reader) {
	batch := q.batch
	offered, took := r.sub.Window.Take(len(batch)), 0
	if offered > 0 {
		took = r.sub.Consumer.Deliver(batch[:offered])
	}
	if took < offered {
		r.sub.Window.Give(offered - took)
	}
	r.inflight += took
	r.fruitless = 0
	if r.progress != nil {
		r.progress.deliver(batch[:took])
	}
	q.count.delivered += uint64(took)
	if took < len(batch) {
		r.wait |= waitRoom
		r.next = uint64(batch[took].ID) - 1
		for _, p := range q.pieces {
			if p.at <= took {
				r.cur = p.c
			}
		}
	}
	clear(batch)
	clear(q.pieces)
}
