package classic

import "github.com/leveretmq/leveret/queue"

// turn is how many messages are handed to a consumer at once, and to all
// consumers of a level before any of them gets its batch.
const turn = 256

// dispatchLocked hands ready messages to consumers that have room: to those of
// the highest priority first, and in turn to those of the same.
func (q *Queue) dispatchLocked() {
	for q.eligible > 0 && q.ready > 0 {
		if q.topLocked().next() == nil {
			q.after.wantLoad = true // the next message has to be read first
			return
		}
		l := q.topLevelLocked()
		if c := l.ring; c.next == c {
			q.serveLocked(c)
		} else {
			q.roundLocked(l)
		}
	}
}

// serveLocked gives a batch to the only consumer there is.
func (q *Queue) serveLocked(c *consumer) {
	if q.multi || q.timed || len(q.lanes[0].back) > 0 {
		for range c.room() {
			l, next := q.liveLocked()
			if next == nil {
				break
			}
			c.batch = append(c.batch, next.delivery(c.sub))
			q.dropLocked(l, next)
		}
	} else {
		q.takeRunsLocked(c)
	}
	q.handLocked(c)
}

// takeRunsLocked fills the consumer's batch from the head of the only lane, of
// which nothing expires.
func (q *Queue) takeRunsLocked(c *consumer) {
	l := &q.lanes[0]
	for room := c.room(); room > 0 && l.next() != nil; room = c.room() {
		run := l.head.run()
		run = run[:min(len(run), room)]
		var bytes, size int64
		stored := 0
		for i := range run {
			it := &run[i]
			c.batch = append(c.batch, it.delivery(c.sub))
			bytes += int64(len(it.msg.Body))
			size += int64(it.msg.Size())
			if it.stored {
				stored++
			}
		}
		q.ready -= len(run)
		q.readyStored -= stored
		q.readyBytes -= bytes
		q.memory -= size
		l.headSize -= size
		l.head.drop(len(run))
	}
}

// roundLocked deals messages to the consumers of a level one by one, each in
// its turn, and then hands everyone its batch.
func (q *Queue) roundLocked(l *level) {
	touched := q.touched[:0]
	for range turn {
		c := l.ring
		if c == nil {
			break
		}
		from, next := q.liveLocked()
		if next == nil {
			break
		}
		if c.limited() && !c.reserve() {
			q.waitLocked(c, waitRoom)
			continue
		}
		l.ring = c.next
		if len(c.batch) == 0 {
			touched = append(touched, c)
		}
		c.batch = append(c.batch, next.delivery(c.sub))
		q.dropLocked(from, next)
		if c.room() == 0 {
			q.waitLocked(c, waitCredit)
		}
	}
	for _, c := range touched {
		q.handLocked(c)
	}
	clear(touched)
	q.touched = touched[:0]
}

// delivery makes the delivery of a message; s is nil for a basic.get.
func (it *item) delivery(s *queue.Subscription) queue.Delivery {
	return queue.Delivery{Msg: it.msg, ID: it.id, Sub: s, Expires: it.expires, Count: it.count,
		Redelivered: it.redelivered, Stored: it.stored}
}

// handLocked gives the consumer its batch. What it does not take goes back, and
// it waits until it says that it has room.
func (q *Queue) handLocked(c *consumer) {
	batch := c.batch
	took := q.offerLocked(c)
	if took == len(batch) {
		return
	}
	for i := took; i < len(batch); i++ {
		q.putBackLocked(itemOf(&batch[i]))
	}
	clear(batch[took:])
	q.waitLocked(c, waitRoom)
}

// offerLocked offers the consumer its batch, counts what it takes, and returns
// how many those are.
func (q *Queue) offerLocked(c *consumer) (took int) {
	batch := c.batch
	c.batch = batch[:0]
	offered := len(batch)
	if !c.sub.NoAck {
		offered = c.takePlaces(len(batch))
	}
	if offered > 0 {
		took = c.sub.Consumer.Deliver(batch[:offered])
	}
	if c.sub.NoAck {
		q.handedForGoodLocked(batch[:took])
	} else {
		if took < offered {
			c.sub.Window.Give(offered - took)
		}
		c.inflight += took
		q.handedLocked(batch[:took])
		q.creditLocked(c)
	}
	clear(batch[:took])
	return took
}

// handedLocked counts deliveries that wait for an acknowledgement now.
func (q *Queue) handedLocked(ds []queue.Delivery) {
	q.count.delivered += uint64(len(ds))
	q.unacked += len(ds)
	for i := range ds {
		d := &ds[i]
		q.unackedBytes += int64(len(d.Msg.Body))
		if d.Redelivered {
			q.count.redelivered++
		}
		if d.Stored {
			q.unackedStored++
			q.deliveredTo = max(q.deliveredTo, d.ID)
		}
	}
}

// handedForGoodLocked forgets deliveries that nobody acknowledges.
func (q *Queue) handedForGoodLocked(ds []queue.Delivery) {
	q.count.deliveredNoAck += uint64(len(ds))
	for i := range ds {
		d := &ds[i]
		if d.Redelivered {
			q.count.redelivered++
		}
		if d.Stored {
			q.forgetLocked(d.ID)
		}
	}
}

// Get takes one message off the head, reading it from disk if it must.
func (q *Queue) Get(noAck bool) (d queue.Delivery, left int, ok bool, err error) {
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return queue.Delivery{}, 0, false, queue.ErrGone
	}
	q.startLocked()
	q.usedAt = q.nowLocked()
	it, ok, err := q.fetchLocked()
	if err != nil {
		q.unlock()
		return queue.Delivery{}, 0, false, err
	}
	switch {
	case !ok:
		q.count.getEmpty++
	case noAck:
		q.count.gotNoAck++
		if it.stored {
			q.forgetLocked(it.id)
		}
	default:
		q.count.got++
		q.unacked++
		q.unackedBytes += int64(len(it.msg.Body))
		if it.stored {
			q.unackedStored++
			q.deliveredTo = max(q.deliveredTo, it.id)
		}
	}
	if ok {
		d = it.delivery(nil)
		if d.Redelivered {
			q.count.redelivered++
		}
	}
	left = q.ready
	q.proceedLocked()
	q.unlock()
	return d, left, ok, nil
}

// fetchLocked takes the next message and waits for disk if it is paged out; the
// lock is released meanwhile.
func (q *Queue) fetchLocked() (item, bool, error) {
	for {
		q.after.wantLoad = false
		if l, next := q.liveLocked(); next != nil {
			return q.popLocked(l, next), true, nil
		}
		if !q.after.wantLoad {
			return item{}, false, nil
		}
		if err := q.loadNowLocked(); err != nil {
			return item{}, false, err
		}
		if q.state != running {
			return item{}, false, queue.ErrGone
		}
	}
}
