package stream

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// A chaser is a consumer whose goroutine settles what it gets, until it has seen
// the end.
type chaser struct {
	sub  *queue.Subscription
	wake chan struct{} // capacity 1

	mu   sync.Mutex // guards the fields below
	held []queue.Delivery
	next uint64
	bad  int // offsets that were not the next
	full bool
}

func (c *chaser) Deliver(batch []queue.Delivery) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(batch), 500-len(c.held))
	c.full = n < len(batch)
	for _, d := range batch[:n] {
		if uint64(d.ID) != c.next+1 {
			c.bad++
		}
		c.next = uint64(d.ID)
		c.held = append(c.held, d)
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return n
}
func (*chaser) Cancelled(*queue.Subscription)       {}
func (*chaser) Activated(*queue.Subscription, bool) {}

// run settles until everything before end was delivered.
func (c *chaser) run(q *Queue, end uint64) {
	for range c.wake {
		c.mu.Lock()
		held, full, next := c.held, c.full, c.next
		c.held, c.full = nil, false
		c.mu.Unlock()
		q.Settle(c.sub, held, queue.Accepted)
		if full {
			q.Resume(c.sub)
		}
		if next == end {
			return
		}
	}
}

// TestManyReaders has readers chase publishers from different places, while
// others come and go.
func TestManyReaders(t *testing.T) {
	const publishers, batches, size, readers = 4, 40, 60, 60
	d := newDisk(t)
	q := d.Queue
	var wg, passers sync.WaitGroup
	for range publishers {
		wg.Go(func() {
			for range batches {
				q.Enqueue(makeBatch(size, 100, true))
			}
		})
	}
	var left atomic.Bool
	passers.Go(func() { // one after another
		for !left.Load() {
			c := &chaser{wake: make(chan struct{}, 1)}
			c.sub = subscribe(t, q, c, "last", 10)
			q.Cancel(c.sub)
			q.PageOut()
			q.Status()
		}
	})
	chasers := make([]*chaser, readers)
	for i := range chasers {
		q.mu.Lock()
		start := q.durable.next * uint64(i) / readers
		q.mu.Unlock()
		c := &chaser{wake: make(chan struct{}, 1), next: start}
		c.sub = &queue.Subscription{Consumer: c, Window: &queue.Window{}, Prefetch: 1 + 7*i%400,
			Arguments: frames.Table{{Name: offsetName, Value: int64(start)}}}
		chasers[i] = c
		if err := q.Subscribe(c.sub); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { c.run(q, publishers*batches*size) })
	}
	wg.Wait()
	left.Store(true)
	passers.Wait()
	for i, c := range chasers {
		if c.bad > 0 {
			t.Errorf("reader %d got %d offsets out of order", i, c.bad)
		}
	}
	if n := q.Status().Delivered; n == 0 {
		t.Error("nothing was delivered")
	}
}
