package quorum

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/retry"
)

// Subscribe adds a consumer and starts delivering to it. An exclusive one is
// like any other (RabbitMQ 4.0).
func (q *Queue) Subscribe(s *queue.Subscription) error {
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return queue.ErrGone
	}
	q.startLocked()
	q.consumers.Add(s)
	q.proceedLocked()
	q.unlock()
	return nil
}

// Cancel removes the consumer; what it has unacknowledged stays with it.
func (q *Queue) Cancel(s *queue.Subscription) {
	q.mu.Lock()
	if q.state != running || !q.consumers.Remove(s) {
		q.mu.Unlock()
		return
	}
	if q.consumers.Len() == 0 {
		q.usedAt = q.nowLocked()
		q.leaseLocked()
	}
	q.proceedLocked()
	q.unlock()
}

// Pause keeps messages from a consumer that is about to be cancelled: what it
// gives back before goes to the others in its order.
func (q *Queue) Pause(s *queue.Subscription) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.consumers.Pause(s)
}

// Resume says that the consumer has room again.
func (q *Queue) Resume(s *queue.Subscription) {
	q.mu.Lock()
	if q.state != running || !q.consumers.Resume(s) {
		q.mu.Unlock()
		return
	}
	q.proceedLocked()
	q.unlock()
}

// Ready is for package dispatch: how many messages wait.
func (q *Queue) Ready() int { return q.m.ready }

// Take is for package dispatch: it hands out up to n messages. Those that have
// expired on the way are buried.
func (q *Queue) Take(dst []queue.Delivery, s *queue.Subscription, n int) []queue.Delivery {
	from := len(dst)
	q.fx.handed, q.fx.sub = dst, s
	for n > 0 && q.m.ready > 0 {
		q.cmd = command{op: opCheckout, time: q.timeLocked(), count: n, fresh: q.fresh}
		q.doLocked()
		n -= q.cmd.count
		if n == 0 || q.m.ready == 0 || q.expireLocked() == 0 {
			break
		}
	}
	dst, q.fx.handed = q.fx.handed, nil
	if q.fx.redone {
		q.fx.redone = false
		q.recountLocked(dst[from:])
	}
	return dst
}

// timeLocked is the time of a command; 0 where it does not matter.
func (q *Queue) timeLocked() int64 {
	if !q.timed {
		return 0
	}
	return q.nowLocked()
}

// recountLocked puts into deliveries that are not the first of their message how
// often that was handed out, and sees to it that the log knows.
func (q *Queue) recountLocked(ds []queue.Delivery) {
	q.again = true
	for i := range ds {
		if d := &ds[i]; d.Count > 0 {
			d.Msg = retry.Counted(d.Msg, d.Count)
			q.noteLocked(d.ID, d.Count+1, 0)
		}
	}
}

// Taken is for package dispatch: the consumer has these.
func (q *Queue) Taken(s *queue.Subscription, ds []queue.Delivery) {
	q.handed = true
	if q.again {
		for i := range ds {
			if ds[i].Redelivered {
				q.count.redelivered++
			}
		}
	}
	if q.unique != nil {
		q.unique.Hand(ds, true)
	}
	if !s.NoAck {
		q.count.delivered += uint64(len(ds))
		return
	}
	q.count.deliveredNoAck += uint64(len(ds))
	q.giveLocked(opSettle, ds)
}

// PutBack is for package dispatch: a consumer had no room for these.
func (q *Queue) PutBack(ds []queue.Delivery) {
	for i := range ds {
		if d := &ds[i]; d.Count > 0 {
			q.noteLocked(d.ID, d.Count, 0)
		}
		q.timed = q.timed || ds[i].Expires != 0
	}
	q.giveLocked(opReturn, ds)
}

// giveLocked gives a command about deliveries.
func (q *Queue) giveLocked(op op, ds []queue.Delivery) {
	if q.unique != nil && op == opSettle {
		q.unique.Settled(ds)
	}
	q.ids = q.ids[:0]
	for i := range ds {
		q.ids = append(q.ids, ds[i].ID)
	}
	q.cmd = command{op: op, time: q.timeLocked(), ids: q.ids}
	q.doLocked()
}

// Get takes one message off the head, reading it from disk if it must.
func (q *Queue) Get(noAck bool) (d queue.Delivery, left int, ok bool, err error) {
	q.mu.Lock()
	switch {
	case q.state != running:
		q.mu.Unlock()
		return queue.Delivery{}, 0, false, queue.ErrGone
	case q.spec.Arguments.SingleActive:
		q.mu.Unlock()
		return queue.Delivery{}, 0, false, frames.Errorf(frames.ResourceLocked,
			"cannot obtain access to locked %s. basic.get operations are not supported by quorum queues with single active consumer", q.text)
	}
	q.startLocked()
	q.usedAt = q.nowLocked()
	var room [1]queue.Delivery
	got, err := q.fetchLocked(room[:0])
	if err != nil {
		q.unlock()
		return queue.Delivery{}, 0, false, err
	}
	if ok = len(got) > 0; ok {
		d = got[0]
		q.countGetLocked(got, noAck)
	} else {
		q.count.getEmpty++
	}
	q.expireLocked() // what has expired behind it is not left (RabbitMQ 4.0)
	left = q.m.ready
	q.proceedLocked()
	q.unlock()
	return d, left, ok, nil
}

func (q *Queue) countGetLocked(got []queue.Delivery, noAck bool) {
	q.handed = true
	if q.unique != nil {
		q.unique.Hand(got, true)
	}
	if got[0].Redelivered {
		q.count.redelivered++
	}
	if !noAck {
		q.count.got++
		return
	}
	q.count.gotNoAck++
	q.giveLocked(opSettle, got)
}

// fetchLocked takes the next message and waits for disk if it is away; the lock
// is released meanwhile.
func (q *Queue) fetchLocked(dst []queue.Delivery) ([]queue.Delivery, error) {
	for {
		if dst = q.Take(dst, nil, 1); len(dst) > 0 || !q.blockedLocked() {
			return dst, nil
		}
		if err := q.loadNowLocked(); err != nil {
			return nil, err
		}
		if q.state != running {
			return nil, queue.ErrGone
		}
	}
}

// blockedLocked says whether the next message is away.
func (q *Queue) blockedLocked() bool {
	id, s, _ := q.m.head()
	return id != 0 && s == nil
}
