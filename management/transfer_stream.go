package management

import (
	"context"
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/stream"
)

// A streamSource reads a stream for a transfer, as basic.get cannot: it is a
// consumer that begins at an offset and ends with what was there by then.
type streamSource struct {
	q    *stream.Queue // immutable, and so are the next three
	sub  *queue.Subscription
	end  queue.ID      // the id of the last one: the offset after it
	wake chan struct{} // capacity 1: there is something, or the stream was deleted
	last queue.ID      // that get returned; the caller's

	mu      sync.Mutex // guards the fields below; a leaf, held for one batch
	waiting []queue.Delivery
	size    int  // of the bodies in waiting, in bytes
	full    bool // more is there, for when waiting is empty
	gone    bool
}

// maxWaiting is how many bytes of bodies a streamSource reads ahead.
const maxWaiting = 4 << 20

var _ queue.Consumer = (*streamSource)(nil)

// newStreamSource starts reading at an offset, or at the oldest message that is
// there. left is how many there are from there on.
func newStreamSource(q *stream.Queue, offset int64) (s *streamSource, left int, err error) {
	f := q.Figures()
	from := max(uint64(max(offset, 0)), f.First)
	s = &streamSource{q: q, end: queue.ID(f.Next), wake: make(chan struct{}, 1)}
	s.sub = &queue.Subscription{Consumer: s, Tag: "transfer", Prefetch: maxScan, Window: &queue.Window{},
		Arguments: frames.Table{{Name: "x-stream-offset", Value: int64(from)}}}
	return s, int(f.Next - min(from, f.Next)), q.Subscribe(s.sub)
}

// get returns the next message; found is false behind the last one.
func (s *streamSource) get(ctx context.Context) (d queue.Delivery, found bool, err error) {
	for s.last < s.end {
		d, found, err := s.take()
		if found {
			s.last = min(d.ID, s.end) // who goes on begins there
			return d, d.ID <= s.end, nil
		}
		if err != nil || s.q.Figures().First >= uint64(s.end) { // the stream has forgotten the rest
			return d, false, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return d, false, ctx.Err()
		}
	}
	return d, false, nil
}

// take takes what has been read, if anything, and has more read if there is room.
func (s *streamSource) take() (d queue.Delivery, found bool, err error) {
	s.mu.Lock()
	if found = len(s.waiting) > 0; found {
		d, s.waiting = s.waiting[0], s.waiting[1:]
		s.size -= len(d.Msg.Body)
	} else if s.gone {
		err = queue.ErrGone
	}
	resume := s.full && len(s.waiting) == 0
	if resume {
		s.full = false
	}
	s.mu.Unlock()
	if resume {
		s.q.Resume(s.sub)
	}
	return d, found, err
}

// close ends the reading.
func (s *streamSource) close() { s.q.Cancel(s.sub) }

// Deliver implements queue.Consumer: it takes what there is room for.
func (s *streamSource) Deliver(batch []queue.Delivery) (n int) {
	s.mu.Lock()
	for n < len(batch) && s.size < maxWaiting {
		s.size += len(batch[n].Msg.Body)
		n++
	}
	s.waiting = append(s.waiting, batch[:n]...)
	s.full = n < len(batch)
	s.mu.Unlock()
	s.signal()
	return n
}

// Cancelled implements queue.Consumer.
func (s *streamSource) Cancelled(*queue.Subscription) {
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	s.signal()
}

// Activated implements queue.Consumer.
func (s *streamSource) Activated(*queue.Subscription, bool) {}

func (s *streamSource) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
