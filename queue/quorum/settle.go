package quorum

import (
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/retry"
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
	if q.unique != nil {
		q.unique.Hand(ds, false)
	}
	switch how {
	case queue.Accepted:
		q.count.acked += uint64(len(ds))
		q.giveLocked(opSettle, ds)
	case queue.Rejected:
		q.giveLocked(opDiscard, ds)
	case queue.Requeued:
		q.requeueLocked(ds)
	case queue.Returned:
		q.PutBack(ds)
	}
	q.consumers.Settled(s, len(ds))
	q.proceedLocked()
	q.unlock()
}

// requeueLocked puts back what clients have seen. That a message was handed out
// once is known by the log's mark, if it reaches so far, else by a note; that it
// was handed out more often was noted at that time.
func (q *Queue) requeueLocked(ds []queue.Delivery) {
	up, dues := q.m.handedUpTo(), q.duesLocked(ds)
	q.handed = true // the log is told of up: purges and expiry raise it, too
	for i := range ds {
		d := &ds[i]
		switch {
		case dues != nil && dues[i] > q.nowLocked():
			q.notes.Write(retry.Note{ID: d.ID, Count: d.Count + 1, Lane: laneNumber(d), Due: dues[i], Size: int64(len(d.Msg.Body))})
		case d.Count == 0 && d.ID > up:
			q.noteLocked(d.ID, 1, 0)
		}
		q.timed = q.timed || d.Expires != 0
	}
	q.ids = q.ids[:0]
	for i := range ds {
		q.ids = append(q.ids, ds[i].ID)
	}
	q.cmd = command{op: opRequeue, time: q.timeLocked(), ids: q.ids, dues: dues}
	if dues != nil {
		q.cmd.time = q.nowLocked()
	}
	q.doLocked()
	if dues != nil {
		q.dueLocked()
	}
}

// Purge drops what no consumer has; nothing is dead-lettered.
func (q *Queue) Purge() (int, error) {
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return 0, queue.ErrGone
	}
	for i := range q.m.lanes {
		q.purgeLogLocked(i)
	}
	q.cmd = command{op: opPurge, time: q.timeLocked()}
	q.doLocked()
	n := q.cmd.count
	q.timed = false
	q.notes.ForgetAll(func(v retry.Note) bool { return q.m.table.get(v.ID) == nil })
	q.apart = nil
	if q.unique != nil {
		q.unique.Purge()
	}
	q.after.epoch++ // what is being read is not wanted any more
	q.unlock()
	return n, nil
}

// purgeLogLocked settles what waits in a lane in the log: all of the lane from
// the first that was never handed out, but for what is dead and not yet
// confirmed, or with a consumer: after a restart that may be among them.
func (q *Queue) purgeLogLocked(number int) {
	from := q.m.lanes[number].first()
	if from == 0 {
		return
	}
	if q.m.dead+q.m.out > 0 {
		for id, s := range q.m.table.all() {
			if (s.fate == dead || s.fate == out) && id >= from {
				q.log.SettleRange(persistence.Lane(number), uint64(from), uint64(id-1))
				from = id + 1
			}
		}
	}
	q.log.SettleRange(persistence.Lane(number), uint64(from), uint64(q.lastID))
}
