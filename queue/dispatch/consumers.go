package dispatch

import (
	"cmp"
	"iter"
	"slices"

	"github.com/leveretmq/leveret/queue"
)

// A Mode says which consumers get messages.
type Mode uint8

// The modes.
const (
	Everyone   Mode = iota
	FirstCome       // a single active one: whoever subscribed first
	ByPriority      // a single active one: the first of the highest priority
)

// Consumers are the consumers of one queue. Make them with Mode set; it is not
// changed later.
type Consumers struct {
	Mode Mode

	list     []*Consumer // in the order of Add
	levels   []*level    // by falling priority
	eligible int         // that would take a message now
	active   *Consumer   // the single active one

	// channels has how many of the consumers are of a channel, by its window. It is nil
	// until there are two consumers.
	channels map[*queue.Window]*int

	turns   []*Consumer      // scratch of round: who gets the first message, the second ...
	touched []*Consumer      // scratch of round: who has turns
	scratch []queue.Delivery // scratch of round, empty
}

// A Consumer is what the queue knows of a subscription; it is its State.
type Consumer struct {
	sub        *queue.Subscription
	level      *level
	next, prev *Consumer // in the ring of its level, while it waits for nothing
	waiting    waiting
	inflight   int              // deliveries that it has to settle
	batch      []queue.Delivery // scratch: what it gets in this round
	turns      int              // of this round
	mates      *int             // how many consumers of the queue its channel has

	measured queue.Measured // immutable; nil if it does not know how much it will take
	space    int            // how much of this round's messages it will take, by queue.Weight
	reserved int            // places in its window that it has for its batch already
}

// waiting is a set of reasons why a consumer gets nothing.
type waiting uint8

const (
	waitCredit waiting = 1 << iota // its prefetch is used up: ends with Settled
	waitRoom                       // outbox or window were full: ends with Resume
	waitActive                     // it is not, or will not be, the single active one
	departed                       // it was cancelled
)

// A level is the consumers of one priority.
type level struct {
	priority int
	members  int
	ring     *Consumer // whose turn it is; nil if all of them wait
}

// Len is how many consumers there are.
func (cs *Consumers) Len() int { return len(cs.list) }

// Eligible is how many consumers would take a message now.
func (cs *Consumers) Eligible() int { return cs.eligible }

// ActiveTag is the tag of the single active consumer, or "".
func (cs *Consumers) ActiveTag() string {
	if cs.active == nil {
		return ""
	}
	return cs.active.sub.Tag
}

// All are the subscriptions in the order of Add.
func (cs *Consumers) All() iter.Seq[*queue.Subscription] {
	return func(yield func(*queue.Subscription) bool) {
		for _, c := range cs.list {
			if !yield(c.sub) {
				return
			}
		}
	}
}

// TellTimeout tells the consumers that want to know that the time in which they
// have to acknowledge has changed.
func (cs *Consumers) TellTimeout() {
	for s := range cs.All() {
		if w, ok := s.Consumer.(queue.Watcher); ok {
			w.TimeoutChanged(s)
		}
	}
}

// Add adds a consumer, which may be dealt to from now on.
func (cs *Consumers) Add(s *queue.Subscription) {
	c := &Consumer{sub: s, level: cs.levelOf(s.Priority), waiting: waitActive}
	c.measured, _ = s.Consumer.(queue.Measured)
	s.State = c
	c.level.members++
	cs.list = append(cs.list, c)
	cs.enterChannel(c)
	if cs.Mode == Everyone {
		cs.ready(c, waitActive)
		return
	}
	cs.elect()
}

// levelOf finds or makes the level of a priority.
func (cs *Consumers) levelOf(priority int) *level {
	i, ok := slices.BinarySearchFunc(cs.levels, priority, func(l *level, p int) int { return cmp.Compare(p, l.priority) })
	if !ok {
		cs.levels = slices.Insert(cs.levels, i, &level{priority: priority})
	}
	return cs.levels[i]
}

// Remove takes a consumer off; it says whether it was there. What it has to
// settle stays with it.
func (cs *Consumers) Remove(s *queue.Subscription) bool {
	c := of(s)
	if c == nil || c.waiting&departed != 0 {
		return false
	}
	cs.wait(c, departed)
	i := slices.Index(cs.list, c)
	cs.list = slices.Delete(cs.list, i, i+1)
	cs.leaveChannel(c)
	c.level.members--
	if c.level.members == 0 {
		i := slices.Index(cs.levels, c.level)
		cs.levels = slices.Delete(cs.levels, i, i+1)
	}
	if cs.active == c {
		cs.active = nil
	}
	if cs.Mode != Everyone {
		cs.elect()
	}
	return true
}

// alone is the count of a consumer that is the only one of its queue.
var alone = 1

// enterChannel counts a consumer, the last of the list, among those of its channel.
func (cs *Consumers) enterChannel(c *Consumer) {
	switch {
	case cs.channels != nil:
		cs.count(c)
	case len(cs.list) == 1:
		c.mates = &alone
	default:
		cs.channels = make(map[*queue.Window]*int)
		for _, each := range cs.list {
			cs.count(each)
		}
	}
}

func (cs *Consumers) count(c *Consumer) {
	n := cs.channels[c.sub.Window]
	if n == nil {
		n = new(int)
		cs.channels[c.sub.Window] = n
	}
	*n++
	c.mates = n
}

// leaveChannel takes a consumer out of the count.
func (cs *Consumers) leaveChannel(c *Consumer) {
	if c.mates == &alone {
		return
	}
	if *c.mates--; *c.mates == 0 {
		delete(cs.channels, c.sub.Window)
	}
}

// End takes all consumers off without a word to any of them.
func (cs *Consumers) End() {
	for _, c := range cs.list {
		cs.wait(c, departed)
	}
	cs.list, cs.levels, cs.active, cs.channels = nil, nil, nil, nil
}

// Resume says that the consumer has room again; it returns false if it did not
// wait for that.
func (cs *Consumers) Resume(s *queue.Subscription) bool {
	c := of(s)
	if c == nil || c.waiting&(waitRoom|departed) != waitRoom {
		return false
	}
	cs.ready(c, waitRoom)
	return true
}

// Pause makes a consumer wait until it says that it has room.
func (cs *Consumers) Pause(s *queue.Subscription) {
	if c := of(s); c != nil && c.waiting&departed == 0 {
		cs.wait(c, waitRoom)
	}
}

// Settled says that n deliveries of the consumer are settled; s may be nil.
func (cs *Consumers) Settled(s *queue.Subscription, n int) {
	c := of(s)
	if c == nil {
		return
	}
	c.inflight -= n
	cs.credit(c)
	if c.inflight == 0 && c == cs.active {
		cs.elect()
	}
}

// of is the record of a subscription, or nil.
func of(s *queue.Subscription) *Consumer {
	if s == nil {
		return nil
	}
	c, _ := s.State.(*Consumer)
	return c
}

// elect sees to it that the right consumer is the single active one. One that
// has to give way gets nothing more, and does so when it has settled all that it
// got, so that messages keep their order.
func (cs *Consumers) elect() {
	best, now := cs.best(), cs.active
	switch {
	case best == nil, best == now:
		if now != nil {
			cs.ready(now, waitActive)
		}
	case now == nil:
		cs.activate(best)
	case now.inflight > 0:
		cs.wait(now, waitActive)
	default:
		cs.wait(now, waitActive)
		now.sub.Consumer.Activated(now.sub, false)
		cs.activate(best)
	}
}

// best is the consumer that should be the active one, nil if there is none: the
// one that is stays unless the mode knows a better one.
func (cs *Consumers) best() *Consumer {
	best := cs.active
	if best != nil && cs.Mode == FirstCome {
		return best
	}
	for _, c := range cs.list {
		if best == nil || cs.Mode == ByPriority && c.sub.Priority > best.sub.Priority {
			best = c
		}
	}
	return best
}

func (cs *Consumers) activate(c *Consumer) {
	cs.active = c
	cs.ready(c, waitActive)
	c.sub.Consumer.Activated(c.sub, true)
}

// top is the level of the highest priority that has a consumer which waits for
// nothing; there must be one.
func (cs *Consumers) top() *level {
	for _, l := range cs.levels {
		if l.ring != nil {
			return l
		}
	}
	panic("dispatch: no level has an eligible consumer")
}

// wait makes the consumer wait for one thing more.
func (cs *Consumers) wait(c *Consumer, why waiting) {
	if c.waiting == 0 {
		cs.eligible--
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
	c.waiting |= why
}

// ready ends one reason to wait. A consumer that has no other joins its level's
// ring at the end.
func (cs *Consumers) ready(c *Consumer, why waiting) {
	if c.waiting == 0 {
		return
	}
	c.waiting &^= why
	if c.waiting != 0 {
		return
	}
	cs.eligible++
	l := c.level
	if l.ring == nil {
		l.ring, c.next, c.prev = c, c, c
		return
	}
	c.next, c.prev = l.ring, l.ring.prev
	c.prev.next, c.next.prev = c, c
}

// credit makes the consumer wait for credit or not, as its prefetch says.
func (cs *Consumers) credit(c *Consumer) {
	if spent := c.spent(); spent != (c.waiting&waitCredit != 0) {
		cs.setCredit(c, spent)
	}
}

func (cs *Consumers) setCredit(c *Consumer, spent bool) {
	if spent {
		cs.wait(c, waitCredit)
	} else {
		cs.ready(c, waitCredit)
	}
}

// spent says whether the prefetch of the consumer is used up.
func (c *Consumer) spent() bool {
	return c.sub.Prefetch > 0 && c.inflight >= c.sub.Prefetch && !c.sub.NoAck
}

// room is how many messages more than its turns the consumer may get. If that is
// not above 0 for one that waits for nothing and has no turns, its window is full.
func (c *Consumer) room() int {
	n := Turn
	switch places := c.sub.Window.Room(); {
	case places == 0: // who does not acknowledge takes none, and waits all the same (RabbitMQ 4.0)
		n = 0
	case !c.sub.NoAck:
		n = min(n, places)
		if c.sub.Prefetch > 0 {
			n = min(n, c.sub.Prefetch-c.inflight)
		}
	}
	return n - c.turns
}
