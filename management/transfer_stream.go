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
	q    queue.Queue
	sub  *queue.Subscription
	end  queue.ID      // the id of the last one: the offset after it
	wake chan struct{} // capacity 1: there is something, or the stream was deleted

	mu      sync.Mutex // guards the fields below; a leaf, held for one batch
	waiting []queue.Delivery
	gone    bool
}

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

// get returns the next message; found is false behind the last one. There must be
// one, or it waits for ctx.
func (s *streamSource) get(ctx context.Context) (d queue.Delivery, found bool, err error) {
	for {
		s.mu.Lock()
		if len(s.waiting) > 0 {
			d, s.waiting = s.waiting[0], s.waiting[1:]
			s.mu.Unlock()
			return d, d.ID <= s.end, nil
		}
		gone := s.gone
		s.mu.Unlock()
		if gone {
			return d, false, queue.ErrGone
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return d, false, ctx.Err()
		}
	}
}

// close ends the reading.
func (s *streamSource) close() { s.q.Cancel(s.sub) }

// Deliver implements queue.Consumer.
func (s *streamSource) Deliver(batch []queue.Delivery) int {
	s.mu.Lock()
	s.waiting = append(s.waiting, batch...) // at most the prefetch
	s.mu.Unlock()
	s.signal()
	return len(batch)
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
