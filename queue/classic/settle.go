package classic

import (
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/dispatch"
)

// Settle ends deliveries of one consumer, or of basic.gets if s is nil. After
// the queue was deleted it does nothing.
func (q *Queue) Settle(s *queue.Subscription, ds []queue.Delivery, how queue.Outcome) {
	if len(ds) == 0 || s != nil && s.NoAck {
		return // a no-ack delivery is settled when it is taken
	}
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return
	}
	q.unacked -= len(ds)
	for i := range ds {
		q.unackedBytes -= int64(len(ds[i].Msg.Body))
		if ds[i].Stored {
			q.unackedStored--
		}
	}
	switch how {
	case queue.Accepted:
		q.acceptLocked(ds)
	case queue.Rejected:
		for i := range ds {
			q.buryLocked(itemOf(&ds[i]), queue.ReasonRejected)
		}
	default:
		q.returnLocked(ds, how == queue.Requeued)
		if q.trims {
			q.trimLocked() // before a consumer can have it again (RabbitMQ 4.0)
		}
	}
	q.consumers.Settled(s, len(ds))
	q.proceedLocked()
	todo, urgent := q.finishLocked(), q.after.wantLoad
	q.mu.Unlock()
	switch {
	case !todo:
	case urgent:
		q.work()
	default: // the next block is read while the client works on this one
		q.workBriefly()
	}
}

func (q *Queue) acceptLocked(ds []queue.Delivery) {
	q.count.acked += uint64(len(ds))
	if q.unique != nil {
		q.unique.Settled(ds)
	}
	if q.log == nil {
		return
	}
	for i := range ds {
		if ds[i].Stored {
			q.forgetLocked(ds[i].ID)
		}
	}
}

// returnLocked puts messages back to their places; again says that their
// clients have seen them.
func (q *Queue) returnLocked(ds []queue.Delivery, again bool) {
	if q.unique != nil {
		q.unique.Hand(ds, false)
	}
	if q.retries && again {
		q.retryLocked(ds)
		return
	}
	for i := range ds {
		if q.retries {
			q.undeliveredLocked(&ds[i])
		}
		it := itemOf(&ds[i])
		if again {
			it.count++
			it.redelivered = true
		}
		q.putBackLocked(it)
	}
}

// itemOf makes a delivery a message that waits.
func itemOf(d *queue.Delivery) item {
	return item{msg: d.Msg, id: d.ID, expires: d.Expires, count: d.Count, redelivered: d.Redelivered, stored: d.Stored}
}

// forgetLocked settles a record of the log at the end of the turn.
func (q *Queue) forgetLocked(id queue.ID) {
	if len(q.settled) == dispatch.Turn {
		q.flushSettledLocked()
	}
	q.settled = append(q.settled, uint64(id))
}

func (q *Queue) flushSettledLocked() {
	if q.notes != nil {
		q.settled = q.forgetNotesLocked(q.settled)
	}
	if len(q.settled) > 0 {
		q.log.Settle(q.settled)
		q.settled = q.settled[:0]
	}
}

// Purge drops what no consumer has; nothing is dead-lettered.
func (q *Queue) Purge() (int, error) {
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return 0, queue.ErrGone
	}
	n := q.ready
	if q.delayed.n > 0 || q.notes != nil {
		n += q.purgeDelayedLocked()
	}
	for i := range q.lanes {
		q.purgeLaneLocked(i)
	}
	q.delayed.apart = nil
	if q.unique != nil {
		q.unique.Purge()
	}
	q.nonEmpty = laneSet{}
	q.ready, q.readyStored, q.readyBytes, q.paged, q.memory = 0, 0, 0, 0, 0
	q.timed = false
	q.after.epoch++ // what is being read is not wanted any more
	q.unlock()
	return n, nil
}

// purgeLaneLocked empties a lane. In the log all records of the lane from the
// first one that was never handed out go at once, unread.
func (q *Queue) purgeLaneLocked(i int) {
	l := &q.lanes[i]
	for j := range l.back {
		if l.back[j].stored {
			q.forgetLocked(l.back[j].id)
		}
	}
	if first := l.first(); first != 0 && q.log != nil {
		q.settleFromLocked(i, first)
	}
	if l.paged.spilled > 0 {
		l.paged.spill.SettleRange(laneID(i), uint64(l.paged.from), uint64(l.paged.to))
	}
	*l = lane{paged: pages{spill: l.paged.spill, spilledTo: l.paged.spilledTo}}
}
