package classic

import (
	"slices"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// A consumer is what the queue knows of a subscription; guarded by Queue.mu.
type consumer struct {
	sub        *queue.Subscription
	level      *level
	next, prev *consumer // in the ring of its level, while it waits for nothing
	wait       waiting
	inflight   int              // deliveries that it has to settle
	batch      []queue.Delivery // scratch: what it gets in this turn
	reserved   int              // places of its window taken for batch
}

// waiting is a set of reasons why a consumer gets nothing.
type waiting uint8

const (
	waitCredit waiting = 1 << iota // its prefetch is used up: ends with Settle
	waitRoom                       // outbox or window were full: ends with Resume
	waitActive                     // another one is the single active consumer
	departed                       // it was cancelled
)

// A level is the consumers of one priority.
type level struct {
	priority int
	members  int
	ring     *consumer // whose turn it is; nil if all of them wait
}

// Subscribe adds a consumer and starts delivering to it.
func (q *Queue) Subscribe(s *queue.Subscription) error {
	q.mu.Lock()
	if q.state != running {
		q.mu.Unlock()
		return queue.ErrGone
	}
	single := q.spec.Arguments.SingleActive
	if q.exclusive != nil || s.Exclusive && (single || len(q.consumers) > 0) {
		q.mu.Unlock()
		return frames.Errorf(frames.AccessRefused, "%s in exclusive use", q.text)
	}
	q.startLocked()
	c := &consumer{sub: s, level: q.levelLocked(s.Priority), wait: waitActive}
	s.State = c
	c.level.members++
	q.consumers = append(q.consumers, c)
	if s.Exclusive {
		q.exclusive = c
	}
	switch {
	case !single:
		q.readyLocked(c, waitActive)
	case q.active == nil:
		q.activateLocked(c)
	}
	q.proceedLocked()
	q.unlock()
	return nil
}

// levelLocked finds or makes the level of a priority.
func (q *Queue) levelLocked(priority int) *level {
	i, ok := slices.BinarySearchFunc(q.levels, priority, func(l *level, p int) int { return p - l.priority })
	if !ok {
		q.levels = slices.Insert(q.levels, i, &level{priority: priority})
	}
	return q.levels[i]
}

// activateLocked makes the consumer the single active one.
func (q *Queue) activateLocked(c *consumer) {
	q.active = c
	q.readyLocked(c, waitActive)
	c.sub.Consumer.Activated(c.sub, true)
}

// Cancel removes the consumer; what it has unacknowledged stays with it.
func (q *Queue) Cancel(s *queue.Subscription) {
	q.mu.Lock()
	c := stateOf(s)
	if c == nil || c.wait&departed != 0 || q.state != running {
		q.mu.Unlock()
		return
	}
	q.removeLocked(c)
	if len(q.consumers) == 0 {
		q.usedAt = q.nowLocked()
		if q.spec.AutoDelete {
			q.endSelfLocked("auto-delete")
		} else {
			q.leaseLocked()
		}
	}
	q.proceedLocked()
	q.unlock()
}

func (q *Queue) removeLocked(c *consumer) {
	q.waitLocked(c, departed)
	i := slices.Index(q.consumers, c)
	q.consumers = slices.Delete(q.consumers, i, i+1)
	c.level.members--
	if c.level.members == 0 {
		i := slices.Index(q.levels, c.level)
		q.levels = slices.Delete(q.levels, i, i+1)
	}
	if q.exclusive == c {
		q.exclusive = nil
	}
	if q.active == c {
		q.active = nil
		if len(q.consumers) > 0 {
			q.activateLocked(q.consumers[0])
		}
	}
}

// Resume says that the consumer has room again.
func (q *Queue) Resume(s *queue.Subscription) {
	q.mu.Lock()
	c := stateOf(s)
	if c == nil || c.wait&waitRoom == 0 || q.state != running {
		q.mu.Unlock()
		return
	}
	q.readyLocked(c, waitRoom)
	q.proceedLocked()
	q.unlock()
}

// stateOf is the queue's record of a subscription, or nil.
func stateOf(s *queue.Subscription) *consumer {
	if s == nil {
		return nil
	}
	c, _ := s.State.(*consumer)
	return c
}

// topLevelLocked is the level of the highest priority that has a consumer which
// waits for nothing; there must be one.
func (q *Queue) topLevelLocked() *level {
	for _, l := range q.levels {
		if l.ring != nil {
			return l
		}
	}
	panic("classic: no level has an eligible consumer")
}

// waitLocked makes the consumer wait for one thing more.
func (q *Queue) waitLocked(c *consumer, why waiting) {
	if c.wait == 0 {
		q.eligible--
		l := c.level
		if c.next == c {
			l.ring = nil
		} else {
			c.prev.next, c.next.prev = c.next, c.prev
			if l.ring == c {
				l.ring = c.next
			}
		}
		c.next, c.prev = nil, nil
	}
	c.wait |= why
}

// readyLocked ends one reason to wait. A consumer that has no other joins its
// level's ring at the end.
func (q *Queue) readyLocked(c *consumer, why waiting) {
	if c.wait == 0 {
		return
	}
	c.wait &^= why
	if c.wait != 0 {
		return
	}
	q.eligible++
	l := c.level
	if l.ring == nil {
		l.ring, c.next, c.prev = c, c, c
		return
	}
	c.next, c.prev = l.ring, l.ring.prev
	c.prev.next, c.next.prev = c, c
}

// creditLocked makes the consumer wait for credit or not, as its prefetch says.
func (q *Queue) creditLocked(c *consumer) {
	if c.sub.Prefetch == 0 || c.sub.NoAck {
		return
	}
	if c.inflight >= c.sub.Prefetch {
		q.waitLocked(c, waitCredit)
	} else {
		q.readyLocked(c, waitCredit)
	}
}

// room is how many more messages the batch of the consumer may get.
func (c *consumer) room() int {
	n := turn - len(c.batch)
	if c.sub.NoAck || c.sub.Prefetch == 0 {
		return n
	}
	return min(n, c.sub.Prefetch-c.inflight-len(c.batch))
}

// limited says whether the consumer needs a place in a window for each message.
func (c *consumer) limited() bool { return !c.sub.NoAck && c.sub.Window.Limited() }

// reserve takes one place in the window.
func (c *consumer) reserve() bool {
	if c.sub.Window.Take(1) == 0 {
		return false
	}
	c.reserved++
	return true
}

// takePlaces takes n places in the window, those already reserved included, and
// returns how many it got.
func (c *consumer) takePlaces(n int) int {
	got := c.reserved
	c.reserved = 0
	if got > n {
		c.sub.Window.Give(got - n)
		return n
	}
	return got + c.sub.Window.Take(n-got)
}
