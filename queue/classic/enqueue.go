package classic

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// Enqueue takes a batch in order and hands it on to consumers that have room.
func (q *Queue) Enqueue(batch []queue.Entry) {
	if len(batch) == 0 {
		return
	}
	q.mu.Lock()
	if q.state != running {
		lost := q.state == stopped && q.log != nil
		q.mu.Unlock()
		release(batch, lost)
		return
	}
	q.startLocked()
	q.fresh = q.lastID + 1
	if q.log == nil {
		q.addLocked(batch)
	} else {
		q.addDurableLocked(batch)
	}
	q.publishAt = batch[len(batch)-1].Msg.Time
	q.proceedLocked()
	todo := q.finishLocked()
	q.mu.Unlock()
	if q.log == nil {
		release(batch, false)
	}
	if todo {
		q.work()
	}
}

// release releases each receipt of the batch once; failed says that durable
// messages were lost.
func release(batch []queue.Entry, failed bool) {
	var last *message.Receipt
	for i := range batch {
		r := batch[i].Receipt
		if r == last || r == nil {
			continue
		}
		if failed {
			r.Fail()
		}
		r.Release()
		last = r
	}
}

// addLocked adds messages that live in memory only.
func (q *Queue) addLocked(batch []queue.Entry) {
	for i := range batch {
		e := &batch[i]
		if q.refuses && !q.roomLocked(e, nil) {
			continue
		}
		q.pushLocked(q.newItemLocked(e.Msg))
	}
}

// addDurableLocked adds messages of which some may have to be stored: each run
// of one receipt is one append to the log, which releases the receipt.
func (q *Queue) addDurableLocked(batch []queue.Entry) {
	for start := 0; start < len(batch); {
		r := batch[start].Receipt
		end := start + 1
		for end < len(batch) && batch[end].Receipt == r {
			end++
		}
		q.addRunLocked(batch[start:end], r)
		start = end
	}
}

// maxRecords is how many records go to the log with one call; it bounds the
// scratch memory of a queue.
const maxRecords = 64

func (q *Queue) addRunLocked(run []queue.Entry, r *message.Receipt) {
	for i := range run {
		e := &run[i]
		if q.refuses && !q.roomLocked(e, r) {
			continue
		}
		it := q.newItemLocked(e.Msg)
		if e.Msg.Persistent {
			it.stored = true
			if len(q.records) == maxRecords {
				q.appendSomeLocked(r)
			}
			q.records = append(q.records, persistence.Record{})
			fill(&q.records[len(q.records)-1], &it, q.laneOf(e.Msg.Priority), e.Shared)
		}
		q.pushLocked(it)
	}
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

// newItemLocked gives a message its place and its time of expiry.
func (q *Queue) newItemLocked(m *message.Message) item {
	q.lastID++
	q.count.published++
	it := item{msg: m, id: q.lastID}
	if q.ttl >= 0 || m.TTL >= 0 {
		it.expires = expiry(m, q.ttl)
		q.timed = true
	}
	return it
}

// roomLocked says whether a queue that refuses publishes takes the message. It
// does what a refusal asks for. Consumers first take what they can, as they
// would have if the batch had come one by one.
func (q *Queue) roomLocked(e *queue.Entry, r *message.Receipt) bool {
	size := int64(len(e.Msg.Body))
	if q.fitsLocked(1, size) {
		return true
	}
	if q.eligible > 0 && q.ready > 0 {
		if q.log != nil {
			q.appendSomeLocked(r) // the log must know what a consumer settles
		}
		q.dispatchLocked()
		if q.fitsLocked(1, size) {
			return true
		}
	}
	q.count.refused++
	if q.settings.Overflow == queue.RejectPublishDLX {
		q.buryLocked(item{msg: e.Msg}, queue.ReasonMaxlen)
	}
	if e.Receipt != nil {
		e.Receipt.Refuse(e.Seq)
	}
	return false
}
