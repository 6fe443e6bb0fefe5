package classic

import (
	"math/rand/v2"
	"time"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/retry"
)

// A queue with a delivery limit or a redelivery delay counts how often a message
// was handed out. One that comes back waits its time in the queue, beside those
// that are ready and in nobody's way, or dies if it came back too often. What is
// persistent is so after a restart, too: the log has notes of counts and times.
//
// Every function here is reached by one branch that is not taken in a queue
// without: q.retries, q.notes or q.delayed.n.

// delayed is the messages that came back and wait for their time.
type delayed struct {
	order  retry.Schedule    // by when they are due, or expire if that is before
	items  map[queue.ID]item // msg is nil if only the log has it: then there is a note of it
	n      int               // of items
	bytes  int64             // of their bodies
	stored int               // of them have a record
	absent int               // of them are not in memory

	// apart are the ids that were found waiting after a restart: their records
	// are between those of their lanes, and not to be read with those. The map is
	// not changed, so that a load may look at it without the lock.
	apart   map[queue.ID]persistence.Lane
	apartTo queue.ID // the highest of them
}

// noteLane is the lane of the log for notes, above those for messages. A queue
// with all priorities that there are has none left, and forgets with a restart.
func (q *Queue) noteLane() (lane persistence.Lane, ok bool) {
	n := len(q.lanes)
	return persistence.Lane(n), n <= 255
}

// retryLocked takes back what clients have seen, as the limit and the delay say.
func (q *Queue) retryLocked(ds []queue.Delivery) {
	limit, wait := q.settings.DeliveryLimit, &q.settings.Backoff
	for i := range ds {
		it := itemOf(&ds[i])
		it.count++
		it.redelivered = true
		if limit >= 0 && int64(it.count) > limit {
			q.buryLocked(it, queue.ReasonDeliveryLimit)
			continue
		}
		due := int64(0)
		if ms := wait.Wait(it.count, rand.Float64()); ms > 0 {
			due = q.nowLocked() + ms
		}
		if it.stored {
			q.noteLocked(&it, it.count, due)
		}
		if due == 0 {
			q.putBackLocked(it)
		} else {
			q.delayLocked(it, due)
		}
	}
}

// limited says whether deliveries are counted for the client to see.
func (q *Queue) limited() bool { return q.settings.DeliveryLimit != queue.NoDeliveryLimit }

// redeliveredLocked sees to a delivery that is not the first of its message: the
// client is told how often it was handed out, the log that it is once more.
func (q *Queue) redeliveredLocked(d *queue.Delivery, forGood bool) {
	if q.limited() && d.Count > 0 {
		d.Msg = retry.Counted(d.Msg, d.Count)
	}
	if d.Stored && !forGood {
		it := itemOf(d)
		q.noteLocked(&it, d.Count+1, 0)
	}
}

// takeCountedLocked is Take for a queue that counts.
func (q *Queue) takeCountedLocked(dst []queue.Delivery, s *queue.Subscription, n int) []queue.Delivery {
	from := len(dst)
	dst = q.takeLiveLocked(dst, s, n)
	for i := from; i < len(dst); i++ {
		q.recountLocked(&dst[i], s != nil && s.NoAck)
	}
	return dst
}

// recountLocked is redeliveredLocked, if it is not the first delivery: of what
// was read from the log, notes know, or else the mark of what was handed out.
func (q *Queue) recountLocked(d *queue.Delivery, forGood bool) {
	known := false
	if d.Count == 0 && d.Stored {
		if known = q.notes != nil && q.notes.Of(d.ID).ID != 0; known {
			d.Count = q.notes.Of(d.ID).Count
		} else if d.Redelivered {
			d.Count = 1
		}
		d.Redelivered = d.Count > 0
	}
	if d.Count > 0 || known {
		q.redeliveredLocked(d, forGood)
	}
}

// outlivedLocked says whether a message was read from the log of which notes say
// that it was handed out too often: the broker did not survive the last time.
func (q *Queue) outlivedLocked(it *item) bool {
	limit := q.settings.DeliveryLimit
	return q.retries && limit >= 0 && it.stored && it.count == 0 && int64(q.notes.Of(it.id).Count) > limit
}

// undeliveredLocked notes that a delivery did not count, although the log has it
// marked as handed out: it did not reach the client.
func (q *Queue) undeliveredLocked(d *queue.Delivery) {
	if d.Stored {
		it := itemOf(d)
		q.noteLocked(&it, d.Count, 0)
	}
}

// noteLocked notes a count, and until when the message waits, for the log.
func (q *Queue) noteLocked(it *item, count uint32, due int64) {
	if _, ok := q.noteLane(); !ok {
		return
	}
	if q.notes == nil {
		q.notes = &retry.Notes{}
	}
	note := retry.Note{ID: it.id, Count: count, Lane: laneID(q.laneOf(it.msg.Priority))}
	if due != 0 {
		note.Due, note.Size = due, int64(len(it.msg.Body))
	}
	q.notes.Write(note)
}

// flushNotesLocked writes the notes of a turn.
func (q *Queue) flushNotesLocked() {
	if !q.notes.Fresh() {
		return
	}
	lane, _ := q.noteLane()
	recs := q.notes.Flush(nil, lane, q.lastID, time.Now().UnixMilli(), func(queue.ID) bool { return true })
	q.lastID += queue.ID(len(recs))
	q.log.Append(recs, nil)
}

// delayLocked makes a message wait until that time.
func (q *Queue) delayLocked(it item, due int64) {
	d := &q.delayed
	if d.items == nil {
		d.items = make(map[queue.ID]item)
	}
	it.msg = it.msg.Apart() // it stays longer than those that came with it
	d.items[it.id] = it
	d.n++
	d.bytes += int64(len(it.msg.Body))
	if it.stored {
		d.stored++
	}
	q.memory += int64(it.msg.Size())
	if it.expires != 0 {
		due = min(due, it.expires)
	}
	d.order.Push(due, it.id)
	at, _ := d.order.First()
	q.wakeAtLocked(at)
}

// dueLocked makes ready what has waited long enough, and sets the alarm for
// what is due next. It stops at a message that has to be read first.
func (q *Queue) dueLocked() {
	d := &q.delayed
	if d.apart != nil {
		q.forgetApartLocked()
	}
	for n := 0; d.order.Len() > 0; n++ {
		at, id := d.order.First()
		switch {
		case at > q.nowLocked():
			q.wakeAtLocked(at)
			return
		case d.items[id].msg == nil:
			q.after.wantDue = true
			return
		case n == crowd:
			q.wakeAtLocked(q.nowLocked()) // let others have the lock
			return
		}
		it := q.popDelayedLocked(id)
		if it.expires != 0 && it.expires <= q.nowLocked() && !q.quiet {
			q.buryLocked(it, queue.ReasonExpired)
		} else {
			q.putBackLocked(it)
		}
	}
}

// popDelayedLocked takes the message that is due first off; its id is given. The
// result has no message if that is not in memory.
func (q *Queue) popDelayedLocked(id queue.ID) item {
	d := &q.delayed
	d.order.Pop()
	it := d.items[id]
	delete(d.items, id)
	d.n--
	if it.stored {
		d.stored--
	}
	if it.msg == nil {
		d.absent--
		d.bytes -= q.notes.Of(id).Size
		return it
	}
	d.bytes -= int64(len(it.msg.Body))
	q.memory -= int64(it.msg.Size())
	return it
}

// trimDelayedLocked drops the message that is due first: it is older than what
// was never handed out. It returns false if that has to be read before.
func (q *Queue) trimDelayedLocked() bool {
	d := &q.delayed
	if d.order.Len() == 0 {
		return false // those that are left are being read
	}
	_, id := d.order.First()
	if d.items[id].msg == nil && (q.settings.DeadLetter != nil || q.unique != nil) {
		q.after.wantDue = true
		return false
	}
	q.buryLocked(q.popDelayedLocked(id), queue.ReasonMaxlen)
	return true
}

// purgeDelayedLocked drops all that wait and returns how many those were.
func (q *Queue) purgeDelayedLocked() int {
	n := q.delayed.n
	for id, it := range q.delayed.items {
		if it.stored {
			q.forgetLocked(id)
		}
	}
	if q.notes != nil {
		q.notes.ForgetAll(func(v retry.Note) bool {
			first := queue.ID(0)
			if int(v.Lane) < len(q.lanes) {
				first = q.lanes[v.Lane].first()
			}
			_, apart := q.delayed.apart[v.ID]
			return first != 0 && v.ID >= first && !apart // else it was handed out
		})
	}
	q.delayed = delayed{apart: q.delayed.apart}
	return n
}

// forgetNotesLocked drops what is noted of messages that leave the log, and
// appends the records that are not needed any more. What is noted in this turn is
// written before.
func (q *Queue) forgetNotesLocked(ids []uint64) []uint64 {
	q.flushNotesLocked()
	for _, id := range ids {
		q.notes.Forget(queue.ID(id))
	}
	return q.notes.TakeStale(ids)
}
