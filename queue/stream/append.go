package stream

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// Enqueue appends a batch, whether its messages are persistent or not, and hands
// it to the readers that wait for it once it is on disk. The log releases the
// receipts.
func (q *Queue) Enqueue(batch []queue.Entry) queue.Writes {
	writes, due, starving := q.take(batch)
	q.follow(due, starving)
	return writes
}

// EnqueueOnly is queue.Appender's.
func (q *Queue) EnqueueOnly(batch []queue.Entry) (writes queue.Writes, then func()) {
	writes, due, starving := q.take(batch)
	if due || len(starving) > 0 {
		then = func() { q.follow(due, starving) }
	}
	return writes, then
}

// follow does what a batch has left to be done: it enforces the limits if that is
// due, and reads for readers.
func (q *Queue) follow(due bool, starving []*reader) {
	if due {
		q.retain()
	}
	for _, r := range starving {
		q.mu.Lock()
		q.drive(r)
	}
}

// take is Enqueue without what is left for follow.
func (q *Queue) take(batch []queue.Entry) (writes queue.Writes, due bool, starving []*reader) {
	if len(batch) == 0 {
		return 0, false, nil
	}
	q.mu.Lock()
	if q.state == gone {
		q.mu.Unlock()
		release(batch)
		return 0, false, nil
	}
	q.count.published += uint64(len(batch))
	for start := 0; start < len(batch); {
		r := batch[start].Receipt
		end := start + 1
		for end < len(batch) && batch[end].Receipt == r {
			end++
		}
		q.appendRunLocked(batch[start:end], r)
		start = end
	}
	if q.lookLocked() {
		starving = q.feedLocked()
	}
	due = q.finishLocked()
	q.mu.Unlock()
	return queue.ToStore, due, starving
}

// release releases each receipt of the batch once.
func release(batch []queue.Entry) {
	var last *message.Receipt
	for i := range batch {
		if r := batch[i].Receipt; r != last && r != nil {
			r.Release()
			last = r
		}
	}
}

// appendRunLocked appends entries that have the same receipt.
func (q *Queue) appendRunLocked(run []queue.Entry, r *message.Receipt) {
	for len(run) > 0 {
		n, room := cut(run)
		q.appendChunkLocked(run[:n], room)
		run = run[n:]
	}
	q.log.Append(q.records, q.pledgeLocked(r))
	clear(q.records)
	q.records = q.records[:0]
	if cap(q.records) > keptRecords {
		q.records = nil
	}
}

// keptRecords bounds the scratch memory of a queue.
const keptRecords = 64

// perMessage is what a message takes in a chunk besides its strings and its
// body, in bytes: what is added to its header, the lengths, the flags.
const perMessage = 24

// cut is how many entries go into the next chunk, and how much memory that takes
// at most, in bytes.
func cut(run []queue.Entry) (n, room int) {
	var before *message.Message
	for ; n < len(run) && n < chunkMessages; n++ {
		m := run[n].Msg
		size := len(m.Body) + perMessage/4
		if before == nil || !similar(m, before) {
			size += perMessage + len(m.Exchange) + len(m.RoutingKey) + len(m.Header)
		}
		if n > 0 && room+size > chunkSize {
			break
		}
		room += size
		before = m
	}
	return n, room
}

// similar says that the second of two messages in a row is all body.
func similar(a, b *message.Message) bool {
	return a.RoutingKey == b.RoutingKey && a.Exchange == b.Exchange && string(a.Header) == string(b.Header)
}

// appendChunkLocked makes a chunk and its record of some entries. room is what
// their encoding takes.
func (q *Queue) appendChunkLocked(entries []queue.Entry, room int) {
	q.rollLocked()
	lone := len(entries) == 1 && len(entries[0].Msg.Body) >= apartSize
	a := q.beginLocked(entries[0].Msg, len(entries))
	if lone {
		a.c.flags |= apart
		room -= len(entries[0].Msg.Body)
	}
	e := encoder{b: make([]byte, 0, room+a.need(q.settings.filterSize, lone, entries[0].Msg))}
	for i := range entries {
		m := entries[i].Msg
		e.add(m, &q.head)
		if !lone {
			e.b = appendBytes(e.b, m.Body)
		}
		q.filterLocked(a.c)
	}
	a.c.headers = e.headers
	a.seal(e.b, entries[0].Msg)
	rec := persistence.Record{ID: a.c.next, Time: a.c.time, Extra: a.c.extra, Body: a.c.body}
	if lone {
		rec.Shared = entries[0].Shared
	}
	q.records = append(q.records, rec)
	q.names = e.names
	q.extendLocked(&a)
}

// An appending is a chunk that is being made.
type appending struct {
	c     *chunk
	msgs  []message.Single // room for the messages; may be nil
	spare []byte           // room for their property blocks; may be nil
	keep  bool             // somebody may read the chunk soon
	now   bool             // somebody waits for it
}

// A single is a chunk with room for its only message.
type single struct {
	chunk
	msg [1]message.Single
}

// beginLocked is a chunk of n messages at the end of the stream.
func (q *Queue) beginLocked(m *message.Message, n int) appending {
	a := appending{keep: q.awaitedLocked(), now: len(q.tailing) > 0}
	switch {
	case !a.keep:
		a.c = &q.scratch
	case a.now && n == 1:
		s := &single{}
		a.c, a.msgs = &s.chunk, s.msg[:]
	default:
		a.c = &chunk{}
	}
	q.lastTime = max(q.lastTime, m.Time)
	c := a.c
	c.first, c.next, c.time, c.pos = q.next, q.next+uint64(n), q.lastTime, q.pos
	c.segment, c.segmentFirst, c.segmentPos = q.active, q.activeFirst, q.activePos
	c.tracker = q.tracker.log.ID()
	return a
}

// awaitedLocked says whether a reader is so near the end that it may find the
// next chunk in memory. Of many readers that are behind a few are asked.
func (q *Queue) awaitedLocked() bool {
	if len(q.tailing) > 0 {
		return true
	}
	for _, r := range q.readers[:min(8, len(q.readers))] {
		if q.durable.next < r.next+4*chunkMessages {
			return true
		}
	}
	return false
}

// need is the memory to allot in one piece besides the encoding of the messages,
// in bytes.
func (a *appending) need(filterSize int, lone bool, m *message.Message) int {
	n := extraSize + filterSize
	if lone {
		n += 2*perMessage + len(m.Exchange) + len(m.RoutingKey) + len(m.Header)
	}
	if a.msgs != nil {
		n += offsetSize + perMessage + len(m.Header)
	}
	return n
}

// filterLocked notes the filter value of the message that q.head is of.
func (q *Queue) filterLocked(c *chunk) {
	if !q.head.filtered {
		c.flags |= unfiltered
		return
	}
	if c.flags&filtered == 0 {
		c.flags |= filtered
		clear(q.bloom)
		c.bloom = q.bloom
	}
	bloomAdd(q.bloom, q.head.value)
}

// seal completes the chunk; b is the encoding of its messages, and the chunk's
// memory. m is the first one.
func (a *appending) seal(b []byte, m *message.Message) {
	c, n := a.c, len(b)
	b = c.appendExtra(b)
	described := len(b)
	if c.flags&apart != 0 {
		b = append(b, b[:n]...)
	}
	end := len(b)
	c.extra = b[n:end:end]
	if len(c.bloom) > 0 {
		c.bloom = b[described-len(c.bloom) : described : described]
	}
	c.body, c.data = b[:n:n], b[:n:n]
	if c.flags&apart != 0 {
		c.body, c.data = m.Body, b[described:end:end]
	}
	a.spare = b[end:end:cap(b)]
}

// extendLocked makes the chunk the youngest of the stream, and keeps it in
// memory if somebody may want it.
func (q *Queue) extendLocked(a *appending) {
	c := a.c
	if q.first == q.next {
		q.firstTime = c.time
	}
	q.last, q.next = c.first, c.next
	q.pos += c.size()
	if !a.keep {
		q.scratch = chunk{}
		return
	}
	if a.now {
		// It was encoded just now: if it cannot be read, it can no more when it
		// comes from the log, and the reader reports it then.
		c.msgs, _ = c.decode(&q.names, a.msgs, a.spare)
	}
	q.cache.put(c)
}
