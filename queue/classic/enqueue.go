package classic

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// Enqueue takes a batch in order and hands it on to consumers that have room.
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
	if q.unique != nil && q.siftsAtOnceLocked() {
		if batch = q.siftLocked(batch); len(batch) == 0 {
			return 0, false
		}
	}
	if q.state != running {
		return q.enqueueLateLocked(batch), false
	}
	q.startLocked()
	q.fresh = q.lastID + 1
	q.count.published += uint64(len(batch))
	q.publishAt = batch[len(batch)-1].Msg.Time
	handed, forGood := q.passLocked(batch)
	if q.log == nil {
		q.addLocked(batch[handed:])
	} else {
		q.addDurableLocked(batch, handed, forGood)
	}
	q.proceedLocked()
	todo = q.finishLocked()
	writes = q.writesLocked()
	q.mu.Unlock()
	if q.log == nil {
		release(batch)
	}
	return writes, todo
}

// writesLocked says which stores have to write what is published to the queue.
func (q *Queue) writesLocked() queue.Writes {
	writes := q.settings.DeadLetter.Writes()
	if q.log != nil {
		writes |= queue.ToStore
	}
	for i := 0; i < len(q.lanes) && q.paged > 0; i++ {
		if q.lanes[i].paged.spilled > 0 {
			return writes | queue.ToSpill
		}
	}
	return writes
}

// enqueueLateLocked takes a batch when the queue has ended, and unlocks. Only a
// stopped durable queue keeps something, on disk: it will be there again.
func (q *Queue) enqueueLateLocked(batch []queue.Entry) queue.Writes {
	if q.state == gone || q.log == nil {
		q.mu.Unlock()
		release(batch)
		return 0
	}
	q.fresh = q.lastID + 1
	q.lastID += queue.ID(len(batch))
	q.addDurableLocked(batch, len(batch), false)
	q.fresh = noneFresh
	q.mu.Unlock()
	return queue.ToStore
}

// passLocked hands the first messages of a batch on to a consumer without
// making them ready before: if nothing else waits and it is the only one to have
// room. It returns how many those were, and whether they are settled already.
func (q *Queue) passLocked(batch []queue.Entry) (n int, forGood bool) {
	if q.ready > 0 || q.refuses {
		return 0, false
	}
	c := q.consumers.Sole()
	if c == nil {
		return 0, false
	}
	s := c.Subscription()
	forGood = s.NoAck
	store := q.log != nil && !forGood
	ds, room := c.Batch()
	if n = min(len(batch), room); n <= 0 {
		return 0, false
	}
	ds, _ = extend(ds, n)
	for i := range ds {
		m, d := batch[i].Msg, &ds[i]
		d.Msg, d.ID, d.Sub, d.Stored = m, q.fresh+queue.ID(i), s, store && m.Persistent
		d.Expires, d.Count, d.Redelivered, d.Sole = 0, 0, false, q.solely(&batch[i], d.Stored)
		if q.ttl >= 0 || m.TTL >= 0 {
			d.Expires = expiry(m, q.ttl)
		}
	}
	n = q.consumers.Offer(c, ds, q)
	q.lastID += queue.ID(n)
	return n, forGood
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

// addLocked adds messages that live in memory only.
func (q *Queue) addLocked(batch []queue.Entry) {
	for i := range batch {
		e := &batch[i]
		if q.inTurn && !q.roomLocked(e, nil) {
			continue
		}
		q.pushLocked(e, false)
	}
}

// addDurableLocked adds messages of which some may have to be stored: each run
// of one receipt is one append to the log, which releases the receipt. The first
// ones are with a consumer already; if that is for good they need no record.
func (q *Queue) addDurableLocked(batch []queue.Entry, handed int, forGood bool) {
	for start := 0; start < len(batch); {
		r := batch[start].Receipt
		end := start + 1
		for end < len(batch) && batch[end].Receipt == r {
			end++
		}
		for i := start; i < end; i++ {
			e := &batch[i]
			switch {
			case i >= handed:
				q.addOneLocked(e, r)
			case !forGood && e.Msg.Persistent:
				it := item{msg: e.Msg, id: q.fresh + queue.ID(i)}
				if q.ttl >= 0 || e.Msg.TTL >= 0 {
					it.expires = expiry(e.Msg, q.ttl)
				}
				q.storeLocked(&it, e.Shared, r)
			}
		}
		q.closeRunLocked(r)
		start = end
	}
}

// addOneLocked adds a message to a durable queue; r is its receipt.
func (q *Queue) addOneLocked(e *queue.Entry, r *message.Receipt) {
	if q.inTurn && !q.roomLocked(e, r) {
		return
	}
	it := q.pushLocked(e, e.Msg.Persistent)
	if it.stored {
		q.storeLocked(it, e.Shared, r)
	}
}

// maxRecords is how many records go to the log with one call; it bounds the
// scratch memory of a queue.
const maxRecords = 64

// storeLocked makes a message's record, for the next append.
func (q *Queue) storeLocked(it *item, shared *persistence.SharedBody, r *message.Receipt) {
	if len(q.records) == maxRecords {
		q.appendSomeLocked(r)
	}
	q.records = append(q.records, persistence.Record{})
	fill(&q.records[len(q.records)-1], it, q.laneOf(it.msg.Priority), shared)
}

// closeRunLocked appends the rest of a run, which releases its receipt.
func (q *Queue) closeRunLocked(r *message.Receipt) {
	switch {
	case len(q.records) > 0:
		q.log.Append(q.records, r)
		q.clearRecordsLocked()
	case r != nil:
		r.Release()
	}
}

// appendSomeLocked appends the records gathered so far of a run that goes on:
// the receipt waits for them besides the rest.
func (q *Queue) appendSomeLocked(r *message.Receipt) {
	if len(q.records) == 0 {
		return
	}
	if r != nil {
		r.Hold(1)
	}
	q.log.Append(q.records, r)
	q.clearRecordsLocked()
}

func (q *Queue) clearRecordsLocked() {
	clear(q.records)
	q.records = q.records[:0]
}

// roomLocked says whether a queue with a length limit takes the message. It
// does what a refusal asks for. Consumers first take what they can, as they
// would have if the batch had come one by one. A duplicate is not taken, either,
// and is no refusal.
func (q *Queue) roomLocked(e *queue.Entry, r *message.Receipt) bool {
	if q.trims {
		q.trimInTurnLocked(r)
		return true
	}
	if q.unique != nil && !q.unique.Add(e.Msg) {
		q.count.duplicates++
		q.count.published--
		return false
	}
	size := int64(len(e.Msg.Body))
	if q.fitsLocked(1, size) {
		return true
	}
	if q.consumers.Eligible() > 0 && q.ready > 0 {
		if q.log != nil {
			q.appendSomeLocked(r) // the log must know what a consumer settles
		}
		q.consumers.Deal(q)
		if q.fitsLocked(1, size) {
			return true
		}
	}
	q.count.refused++
	if q.unique != nil {
		q.unique.Forget(e.Msg)
	}
	if q.settings.Overflow == queue.RejectPublishDLX {
		q.buryLocked(item{msg: e.Msg}, queue.ReasonMaxlen)
	}
	if e.Receipt != nil {
		e.Receipt.Refuse(e.Seq)
	}
	return false
}

// trimInTurnLocked does between two messages of a batch what is else done after it:
// which one a queue with priorities drops depends on what is there at the time.
func (q *Queue) trimInTurnLocked(r *message.Receipt) {
	if q.fitsLocked(0, 0) {
		return
	}
	if q.log != nil {
		q.appendSomeLocked(r) // the log must know what is dropped
	}
	q.proceedLocked()
	q.fresh = q.lastID + 1
}
