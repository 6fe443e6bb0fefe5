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
	// Ready is how many messages there are at most.
	Ready() int
	// Take takes up to n messages off the head and appends their deliveries, for
	// s, to dst. s is nil if they are for several. It appends fewer than n only
	// if there is no more to be had now.
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
	for cs.eligible > 0 && src.Ready() > 0 {
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

// Sole is the consumer that is to get whatever comes now: it alone has the
// highest priority of those that have room. It is nil if there is none. What the
// queue has for it goes through Batch and Offer.
func (cs *Consumers) Sole() *Consumer {
	if cs.eligible == 0 {
		return nil
	}
	if c := cs.top().ring; c.next == c {
		return c
	}
	return nil
}

// Subscription is whose record it is.
func (c *Consumer) Subscription() *queue.Subscription { return c.sub }

// Batch is memory for deliveries to the consumer, empty, and how many those may
// be; none if that is not above 0. It is good until the next call of Offer or Deal.
func (c *Consumer) Batch() (dst []queue.Delivery, room int) { return c.batch, c.room() }

// Offer hands the consumer a batch, not empty, that was not taken from src, and returns how
// many of them it has now. The others stay with the caller, and the consumer
// waits until it says that it has room.
func (cs *Consumers) Offer(c *Consumer, batch []queue.Delivery, src Source) (took int) {
	took = cs.offer(c, batch, src)
	clear(batch)
	return took
}

// serve gives a batch to the only consumer there is, and says whether there may
// be more to deal.
func (cs *Consumers) serve(c *Consumer, src Source) (more bool) {
	want := c.room()
	if want <= 0 {
		cs.wait(c, waitRoom)
		return true
	}
	c.batch = src.Take(c.batch, c.sub, want)
	got := len(c.batch)
	back := got > 0 && cs.hand(c, src)
	return back || got == want
}

// round deals messages to the consumers of a level one by one, each in its turn,
// and then hands everyone its batch.
func (cs *Consumers) round(l *level, src Source) (more bool) {
	cs.plan(l, min(Turn, src.Ready()))
	got := src.Take(cs.scratch, nil, len(cs.turns))
	n := cs.share(got)
	var next *Consumer // whose turn came to nothing
	if n < len(cs.turns) {
		next = cs.turns[n]
	}
	more = cs.handAll(src) || n < len(got) || next == nil
	if n < len(got) {
		src.PutBack(got[n:])
	}
	if next != nil && next.waiting == 0 {
		l.ring = next
	}
	clear(got)
	cs.scratch = got[:0]
	clear(cs.turns)
	return more
}

// share adds what was taken to the batches of those whose turns they are, and returns
// how many that were. It ends with a message for which its consumer has no room. That one
// is offered it all the same, so that the consumer knows what it waits for, but nobody
// gets what comes after it: whoever did might get the message itself later.
func (cs *Consumers) share(got []queue.Delivery) (n int) {
	for i := range got {
		c := cs.turns[i]
		fits := c.fits(&got[i])
		c.batch = append(c.batch, got[i])
		c.batch[len(c.batch)-1].Sub = c.sub
		if !fits {
			return i + 1
		}
	}
	return len(got)
}

// fits says whether the consumer will take a message besides its batch, and takes a place
// for it in a limited window.
func (c *Consumer) fits(d *queue.Delivery) bool {
	if c.measured != nil {
		if len(c.batch) == 0 {
			c.space = c.measured.Room()
		}
		if c.space <= 0 {
			return false
		}
		c.space -= queue.Weight(d.Msg)
	}
	if !c.sub.NoAck && c.sub.Window.Limited() {
		if c.sub.Window.Take(1) == 0 {
			return false
		}
		c.reserved++
	}
	return true
}

// plan puts down up to n turns of the consumers of a level. It ends before the
// second turn of one that is not alone on its channel: messages of a queue come to
// a channel in order, whichever of its consumers they are for (RabbitMQ 4.0).
func (cs *Consumers) plan(l *level, n int) {
	cs.turns, cs.touched = cs.turns[:0], cs.touched[:0]
	for len(cs.turns) < n {
		c := l.ring
		if c == nil {
			return
		}
		switch first := c.turns == 0; {
		case !first && *c.mates > 1:
			return
		case c.room() > 0:
			if first {
				cs.touched = append(cs.touched, c)
			}
			c.turns++
			cs.turns = append(cs.turns, c)
			l.ring = c.next
		case first:
			cs.wait(c, waitRoom)
		default:
			cs.wait(c, waitCredit) // or window: handAll lets it go on if it has more
		}
	}
}

// handAll ends a round: everyone who had turns gets what has come of them. It
// says whether something went back.
func (cs *Consumers) handAll(src Source) (back bool) {
	for _, c := range cs.touched {
		c.turns = 0
		if len(c.batch) == 0 {
			cs.credit(c)
		} else if cs.hand(c, src) {
			back = true
		}
	}
	clear(cs.touched)
	return back
}

// hand gives the consumer its batch. What it does not take goes back, and it
// waits until it says that it has room; hand says whether that is so.
func (cs *Consumers) hand(c *Consumer, src Source) (back bool) {
	batch := c.batch
	took := cs.offer(c, batch, src)
	if took < len(batch) {
		back = true
		src.PutBack(batch[took:])
	}
	clear(batch)
	return back
}

// offer offers the consumer as much of a batch as its window has places for, and
// returns how many it takes. If those are not all it waits for room.
func (cs *Consumers) offer(c *Consumer, batch []queue.Delivery, src Source) (took int) {
	c.batch = batch[:0]
	offered := len(batch)
	if !c.sub.NoAck {
		offered = c.reserved + c.sub.Window.Take(offered-c.reserved)
		c.reserved = 0
	}
	if offered > 0 {
		took = c.sub.Consumer.Deliver(batch[:offered])
	}
	if !c.sub.NoAck {
		c.inflight += took
		if took < offered {
			c.sub.Window.Give(offered - took)
		}
	}
	src.Taken(c.sub, batch[:took])
	cs.credit(c)
	if took < len(batch) {
		cs.wait(c, waitRoom)
	}
	return took
}
