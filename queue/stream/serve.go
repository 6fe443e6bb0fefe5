package stream

import (
	"go.uber.org/zap"

	"github.com/leveretmq/leveret/queue"
)

// turn is how many messages are handed to a reader at once.
const turn = 256

// A piece is the part of a batch that is from one chunk.
type piece struct {
	c  *chunk
	at int // index in the batch
}

// drive hands the reader what it can take, reading what is not in memory, and
// unlocks. One goroutine does so at a time; what others change for the reader
// meanwhile, that one sees.
func (q *Queue) drive(r *reader) {
	if r.busy {
		q.mu.Unlock()
		return
	}
	r.busy = true
	for q.serveLocked(r) {
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
	q.unlock()
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
	for len(batch) < room && r.next < q.next {
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
			batch = append(batch, queue.Delivery{Msg: &msgs[i], ID: queue.ID(r.next), Sub: r.sub, Stored: true})
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

// A job is something to be read for a reader, without the lock.
type job struct {
	r    *reader
	seek int64  // find the first chunk of this time, if it is not negative
	from uint64 // or read chunks from this offset on
	end  uint64 // the end of the stream when the job was made
	size int    // in bytes
	cur  *chunk // or decode this one; it may be others' now
	copy *chunk // of cur, as it was when the job was made

	chunks []*chunk // what was read, or the copy with its messages
	err    error
}

func (q *Queue) jobLocked(r *reader) job {
	j := job{r: r, seek: r.seek, from: r.next, end: q.next}
	if r.seek >= 0 {
		j.from = q.first
		return j
	}
	j.size = q.readSizeLocked()
	if r.cur != nil {
		c := *r.cur
		j.cur, j.copy = r.cur, &c
	}
	return j
}

func (j *job) do(q *Queue) {
	switch {
	case j.seek >= 0:
		j.from, j.err = q.find(j.seek, j.from, j.end)
	case j.cur != nil:
		j.err = j.decode(j.copy)
	default:
		j.read(q)
	}
}

// decode makes the messages of c and adds it to j.chunks.
func (j *job) decode(c *chunk) (err error) {
	if c.msgs, err = c.decode(&j.r.names, nil, nil); err == nil {
		j.chunks = append(j.chunks, c)
	}
	return err
}

// read reads chunks; those that the reader wants are decoded.
func (j *job) read(q *Queue) {
	recs, err := q.log.Load(lane, j.from+1, nil, j.size)
	if err != nil {
		j.err = err
		return
	}
	for i := range recs {
		c := &chunk{}
		if j.err = c.open(&recs[i]); j.err != nil {
			return
		}
		if !j.r.filter.wants(c) {
			j.chunks = append(j.chunks, c)
			continue
		}
		if j.err = j.decode(c); j.err != nil {
			return
		}
	}
}

// doneLocked gives the reader what was read for it.
func (q *Queue) doneLocked(r *reader, j *job) {
	switch {
	case q.state != running || r.wait&departed != 0:
		return
	case j.err != nil && len(j.chunks) == 0:
		q.failLocked(r, j.err)
		return
	case j.seek >= 0:
		r.seek, r.next = -1, j.from
		return
	case j.cur != nil:
		q.cache.decoded(j.cur, j.chunks[0])
		return
	case len(j.chunks) == 0:
		q.missLocked(r, j.end)
		return
	}
	for i, c := range j.chunks {
		c = q.cache.put(c)
		if i == 0 {
			if c.first > r.next {
				q.missLocked(r, c.first)
			}
			r.cur = c
		}
	}
}

// missLocked moves the reader over messages that the log turned out not to have:
// they were forgotten meanwhile, or their chunks were damaged.
func (q *Queue) missLocked(r *reader, to uint64) {
	if from := max(r.next, q.first); from < to {
		q.env.Log.Error("messages of a stream are missing in the store",
			zap.String("queue", q.text), zap.Uint64("offset", from), zap.Uint64("messages", to-from))
	}
	r.next = to
}

// find is the first offset of the first chunk that was written at a time or
// later, between two offsets; if nothing is there any more, the chunk is the
// next one after it. It reads about as many chunks as the binary logarithm of
// their distance.
func (q *Queue) find(at int64, from, to uint64) (uint64, error) {
	for from < to {
		mid := from + (to-from)/2
		c, ok, err := q.chunkAt(mid)
		switch {
		case err != nil:
			return 0, err
		case !ok:
			to = mid
		case c.time < at:
			from = c.next
		default:
			to = min(mid, c.first)
		}
	}
	return from, nil
}
