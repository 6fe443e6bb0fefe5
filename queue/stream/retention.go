package stream

import (
	"time"

	"go.uber.org/zap"
)

// A segment is a stretch of the stream that is forgotten as one. This is one
// that is closed: nothing is added to it any more.
type segment struct {
	number uint64
	next   uint64 // the offset after its last
	end    int64  // the position after its last chunk
	time   int64  // of its last chunk, Unix milliseconds
}

// rollLocked begins a new segment if the active one is full.
func (q *Queue) rollLocked() {
	if q.pos-q.activePos < q.settings.segmentSize {
		return
	}
	q.closed = append(q.closed, segment{q.active, q.next, q.pos, q.lastTime})
	q.active++
	q.activeFirst, q.activePos = q.next, q.pos
	q.retention = true
}

// retain forgets the segments that the limits do not allow any more, the oldest
// first and never the active one. The lock is not held. One goroutine does so at
// a time; what becomes necessary meanwhile, that one does, too.
func (q *Queue) retain() {
	q.mu.Lock()
	for q.retention && !q.retaining && q.state == running {
		q.retention = false
		if q.settings.maxBytes == none && q.settings.maxAge == none {
			continue
		}
		q.retaining = true
		if err := q.forgetLocked(); err != nil {
			q.env.Log.Error("the limits of a stream cannot be enforced, and it grows until the next try: look at the disk", zap.String("queue", q.text), zap.Error(err))
		}
		q.retaining = false
	}
	q.tidyLocked()
	q.mu.Unlock()
}

// forgetLocked is retain's one pass. It releases the lock while it reads.
func (q *Queue) forgetLocked() error {
	if q.unknown > 0 {
		first, unknown := q.first, q.unknown
		q.mu.Unlock()
		list, err := q.recall(first, unknown)
		q.mu.Lock()
		if err != nil {
			return err
		}
		q.closed = append(list, q.closed...)
		q.unknown = 0
	}
	n := q.expendableLocked(time.Now().UnixMilli())
	if n == 0 || q.state != running {
		return nil
	}
	s := q.closed[n-1]
	q.closed = append(q.closed[:0], q.closed[n:]...)
	q.first, q.firstPos, q.firstSegment = s.next, s.end, s.number+1
	q.firstTime = s.time // until the oldest chunk was looked at
	q.tracker.begin(s.next)
	q.log.SettleRange(lane, 0, s.next)
	q.tracker.forget(s.next)
	q.mu.Unlock()
	c, ok, err := q.chunkAt(s.next)
	q.mu.Lock()
	if ok && q.first == s.next {
		q.firstTime = c.time
	}
	return err
}

// expendableLocked is how many closed segments the limits do not allow. What is not on
// disk stays: it would never be written, and the store might have what is before it
// after a crash.
func (q *Queue) expendableLocked(now int64) (n int) {
	begin, durable := q.firstPos, q.ledger.end().next
	for ; n < len(q.closed) && q.closed[n].next <= durable; n++ {
		s := &q.closed[n]
		tooLarge := q.settings.maxBytes != none && q.pos-begin > q.settings.maxBytes
		tooOld := q.settings.maxAge != none && s.time < now-q.settings.maxAge
		if !tooLarge && !tooOld {
			break
		}
		begin = s.end
	}
	return n
}

// recall finds the closed segments between two offsets after a restart, from the
// youngest to the oldest: each chunk says where its segment begins, so that only
// the last one of each segment is read.
func (q *Queue) recall(first, to uint64) (list []segment, err error) {
	for to > first {
		c, ok, err := q.chunkAt(to - 1)
		if err != nil || !ok {
			return nil, err
		}
		list = append(list, segment{c.segment, to, c.pos + c.size(), c.time})
		to = min(c.segmentFirst, to-1)
	}
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, nil
}
