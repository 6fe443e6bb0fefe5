// Package dispatch deals the messages of a queue to its consumers: it knows who
// has room, whose turn it is, and who is the single active one. What a message
// is, and where it waits, is the business of the queue.
//
// Nothing here has a lock: the queue's lock guards all of it.
package dispatch

import "github.com/leveretmq/leveret/queue"

// Turn is how many messages are handed to a consumer at once, and to all
// consumers of a priority before any of them gets its batch.
const Turn = 256

// A Source is a queue as far as its consumers are concerned.
type Source interface {
	// Take takes up to n messages off the head for a consumer and appends their
	// deliveries to dst. It appends none if there is nothing to be had now.
	Take(dst []queue.Delivery, s *queue.Subscription, n int) []queue.Delivery
	// Taken says that the consumer has these: settled already if it is a no-ack
	// one. ds is good for the call only.
	Taken(s *queue.Subscription, ds []queue.Delivery)
	// PutBack returns what a consumer had no room for, as if never taken.
	PutBack(ds []queue.Delivery)
}

// Deal hands out messages while there are some and consumers that have room: to
// those of the highest priority first, and in turn to those of the same.
func (cs *Consumers) Deal(src Source) {
	for cs.eligible > 0 {
		l := cs.top()
		c := l.ring
		more := false
		if c.next == c {
			more = cs.serve(c, src)
		} else {
			more = cs.round(l, src)
		}
		if !more {
			return
		}
	}
}

// serve gives a batch to the only consumer there is, and says whether there may
// be more to deal.
func (cs *Consumers) serve(c *Consumer, src Source) (more bool) {
	want := c.room()
	c.batch = src.Take(c.batch, c.sub, want)
	got := len(c.batch)
	back := got > 0 && cs.hand(c, src)
	return back || got == want
}

// round deals messages to the consumers of a level one by one, each in its turn,
// and then hands everyone its batch.
func (cs *Consumers) round(l *level, src Source) (more bool) {
	touched := cs.touched[:0]
	more = true
	for range Turn {
		c := l.ring
		if c == nil {
			break
		}
		if c.limited() && !c.reserve() {
			cs.wait(c, waitRoom)
			continue
		}
		n := len(c.batch)
		c.batch = src.Take(c.batch, c.sub, 1)
		if len(c.batch) == n {
			more = false // a place reserved for nothing goes back with hand or here
			if n == 0 {
				c.release()
			}
			break
		}
		if n == 0 {
			touched = append(touched, c)
		}
		l.ring = c.next
		if c.room() == 0 {
			cs.wait(c, waitCredit)
		}
	}
	for _, c := range touched {
		if cs.hand(c, src) {
			more = true
		}
	}
	clear(touched)
	cs.touched = touched[:0]
	return more
}

// hand gives the consumer its batch. What it does not take goes back, and it
// waits until it says that it has room; hand says whether that is so.
func (cs *Consumers) hand(c *Consumer, src Source) (back bool) {
	batch := c.batch
	c.batch = batch[:0]
	took := cs.offer(c, batch, src)
	if took < len(batch) {
		back = true
		src.PutBack(batch[took:])
		cs.wait(c, waitRoom)
	}
	clear(batch)
	return back
}

// offer offers the consumer its batch and returns how many it takes.
func (cs *Consumers) offer(c *Consumer, batch []queue.Delivery, src Source) (took int) {
	if c.sub.NoAck {
		took = c.sub.Consumer.Deliver(batch)
		src.Taken(c.sub, batch[:took])
		cs.credit(c)
		return took
	}
	offered := c.takePlaces(len(batch))
	if offered > 0 {
		took = c.sub.Consumer.Deliver(batch[:offered])
	}
	if took < offered {
		c.sub.Window.Give(offered - took)
	}
	c.inflight += took
	src.Taken(c.sub, batch[:took])
	cs.credit(c)
	return took
}
