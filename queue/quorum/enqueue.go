package quorum

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/record"
)

// Enqueue takes a batch in order, stores it, and hands it on to consumers that
// have room. A full queue refuses whole batches: the one that makes it full is
// still taken (RabbitMQ 4.0: publishers are told after the fact).
func (q *Queue) Enqueue(batch []queue.Entry) queue.Writes {
	writes, todo := q.take(batch)
	if todo {
		q.workBriefly()
	}
	return writes
}

// EnqueueOnly is queue.Appender's.
func (q *Queue) EnqueueOnly(batch []queue.Entry) (writes queue.Writes, then func()) {
	writes, todo := q.take(batch)
	if todo {
		then = q.workBriefly
	}
	return writes, then
}

// take is Enqueue without the work that the turn leaves: todo says that there is
// some.
func (q *Queue) take(batch []queue.Entry) (writes queue.Writes, todo bool) {
	if len(batch) == 0 {
		return 0, false
	}
	q.mu.Lock()
	if q.unique != nil && q.state != gone && !q.m.full {
		if batch = q.siftLocked(batch); len(batch) == 0 {
			return 0, false
		}
	}
	switch {
	case q.state == gone:
		q.mu.Unlock()
		release(batch)
		return 0, false
	case q.state == stopped:
		q.numberLocked(batch)
		q.storeLocked(batch)
		q.mu.Unlock()
		return queue.ToStore, false
	}
	q.startLocked()
	q.count.published += uint64(len(batch))
	q.pubAt = batch[len(batch)-1].Msg.Time
	if q.m.full {
		q.count.refused += uint64(len(batch))
		todo = q.finishLocked()
		q.mu.Unlock()
		refuse(batch)
		return 0, todo
	}
	q.numberLocked(batch)
	q.storeLocked(batch)
	q.addLocked(batch)
	q.proceedLocked()
	writes = queue.ToStore | q.settings.DeadLetter.Writes()
	todo = q.finishLocked()
	q.mu.Unlock()
	return writes, todo
}

// siftLocked drops the duplicates of a batch. They count as enqueued for their
// publishers. If nothing is left it unlocks.
func (q *Queue) siftLocked(batch []queue.Entry) []queue.Entry {
	rest, lost := q.unique.Sift(batch)
	q.count.duplicates += uint64(len(batch) - len(rest))
	for _, r := range lost {
		r.Release() // its owner may be told: it takes no lock of a queue
	}
	if len(rest) == 0 {
		q.mu.Unlock()
	}
	return rest
}

// refuse tells the publishers of a batch that it was not taken.
func refuse(batch []queue.Entry) {
	for i := range batch {
		if r := batch[i].Receipt; r != nil {
			r.Refuse(batch[i].Seq)
		}
	}
	release(batch)
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

// numberLocked takes ids for a batch, from q.fresh on.
func (q *Queue) numberLocked(batch []queue.Entry) {
	q.fresh = q.lastID + 1
	q.lastID += queue.ID(len(batch))
}

// maxRecords is how many records go to the log with one call; it bounds the
// scratch memory of a queue.
const maxRecords = 64

// storeLocked appends a batch to the log: each run of one receipt is one append,
// or several, which release the receipt.
func (q *Queue) storeLocked(batch []queue.Entry) {
	for start := 0; start < len(batch); {
		r := batch[start].Receipt
		end := start + 1
		for end < len(batch) && end-start < maxRecords && batch[end].Receipt == r {
			end++
		}
		for i := start; i < end; i++ {
			q.recs = append(q.recs, persistence.Record{})
			q.fillLocked(&q.recs[i-start], &batch[i], q.fresh+queue.ID(i))
		}
		if r != nil && end < len(batch) && batch[end].Receipt == r {
			r.Hold(1)
		}
		q.log.Append(q.recs, r)
		clear(q.recs)
		q.recs = q.recs[:0]
		start = end
	}
}

// fillLocked makes the record of a message.
func (q *Queue) fillLocked(rec *persistence.Record, e *queue.Entry, id queue.ID) {
	record.Fill(rec, e.Msg)
	rec.ID, rec.Lane, rec.Shared = uint64(id), persistence.Lane(laneOf(e.Msg)), e.Shared
	if ttl := q.m.rules.ttl; ttl >= 0 || e.Msg.TTL >= 0 {
		rec.Expires = expiry(e.Msg, ttl)
		q.timed = true
	}
}

// addLocked makes a batch ready.
func (q *Queue) addLocked(batch []queue.Entry) {
	for i := range batch {
		q.msgs = append(q.msgs, batch[i].Msg)
	}
	q.cmd = command{op: opEnqueue, time: q.pubAt, first: q.fresh, messages: q.msgs}
	q.doLocked()
	clear(q.msgs)
	q.msgs = q.msgs[:0]
	if cap(q.msgs) > 4*maxRecords {
		q.msgs = nil
	}
}
