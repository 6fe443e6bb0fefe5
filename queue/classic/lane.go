package classic

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// An item is one message that waits.
type item struct {
	msg         *message.Message
	id          queue.ID
	expires     int64 // Unix milliseconds; 0 is never
	count       uint32
	redelivered bool
	stored      bool // a record is in the queue's log
	sole        bool // nobody else has the message, see queue.Delivery
}

// A lane is the messages of one priority that wait, in order of id:
//
//	back, then head, then those that are paged out, then tail.
//
// Messages leave it only at the front, so everything that was put back is older
// than everything that was not yet handed out.
type lane struct {
	back  returned
	head  deque
	paged pages
	tail  deque // empty unless something was paged out

	headSize, tailSize int64 // what the messages of head and tail weigh, in bytes
}

// pages is the part of a lane whose messages are not in memory but in a log.
type pages struct {
	from, to queue.ID // the first and the last; meaningless if there are none
	stored   int      // in the queue's log
	spilled  int      // in the spill log
	bytes    int64    // of their bodies; an estimate after a restart
	earliest int64    // no expiry of any of them is before; 0 if none expires

	spill     persistence.Log // of transient messages; nil until one is needed
	spilledTo queue.ID        // the last id that went there
}

func (p *pages) count() int { return p.stored + p.spilled }

func (l *lane) len() int { return len(l.back) + l.head.n + l.paged.count() + l.tail.n }

// slot adds the youngest and returns its place, to be filled; size is what its
// message weighs, in bytes.
func (l *lane) slot(size int64) *item {
	if l.tail.n == 0 && l.paged.count() == 0 {
		l.headSize += size
		return l.head.slot()
	}
	l.tailSize += size
	return l.tail.slot()
}

// next is the oldest, in its place, or nil if that is not in memory or there is
// none.
func (l *lane) next() *item {
	if len(l.back) > 0 {
		return &l.back[0]
	}
	if l.head.n == 0 && !l.advance() {
		return nil
	}
	return l.head.front()
}

// advance makes the tail the head if nothing is between them.
func (l *lane) advance() bool {
	if l.tail.n == 0 || l.paged.count() > 0 {
		return false
	}
	l.head, l.tail = l.tail, l.head
	l.headSize, l.tailSize = l.tailSize, l.headSize
	return true
}

// first is the lowest id that was never handed out, or 0.
func (l *lane) first() queue.ID {
	switch {
	case l.head.n > 0:
		return l.head.front().id
	case l.paged.count() > 0:
		return l.paged.from
	case l.tail.n > 0:
		return l.tail.front().id
	}
	return 0
}

// returned is what was handed out and came back: a heap, the lowest id first.
type returned []item

func (h *returned) push(it item) {
	s := append(*h, it)
	*h = s
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up].id <= it.id {
			break
		}
		s[i], s[up] = s[up], it
		i = up
	}
}

// pop takes off the first.
func (h *returned) pop() {
	s := *h
	n := len(s) - 1
	last := s[n]
	s[n] = item{}
	s = s[:n]
	*h = s
	if n == 0 {
		if cap(s) > 2*keptChunk {
			*h = nil
		}
		return
	}
	s.sink(last)
}

// sink puts it in the hole at the top.
func (h returned) sink(it item) {
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].id < h[child].id {
			child++
		}
		if h[child].id >= it.id {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = it
}
