package stream

import (
	"testing"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// The budget of the hot path, in allocations per message.
func TestAllocationBudget(t *testing.T) {
	for _, tt := range []struct {
		name       string
		n, readers int
		budget     float64
	}{
		{"batch", batchSize, 0, 0.02},
		{"batch with a reader", batchSize, 1, 0.1},
		{"one by one", 1, 0, 1},
		{"one by one with a reader", 1, 1, 2},
	} {
		q := open(t, nullStore{}, 0)
		for range tt.readers {
			subscribe(t, q, &counter{}, "next", 1<<40)
		}
		batch := makeBatch(tt.n, 100, false)
		for range 5000 / tt.n { // let scratch memory and the cache grow
			q.Enqueue(batch)
		}
		got := testing.AllocsPerRun(200, func() { q.Enqueue(batch) }) / float64(tt.n)
		if got > tt.budget {
			t.Errorf("%s: %v allocations per message, want at most %v", tt.name, got, tt.budget)
		}
	}
}

// A taker keeps the deliveries in memory of its own.
type taker struct{ held []queue.Delivery }

func (k *taker) Deliver(batch []queue.Delivery) int {
	k.held = append(k.held, batch...)
	return len(batch)
}
func (*taker) Cancelled(*queue.Subscription)       {}
func (*taker) Activated(*queue.Subscription, bool) {}

func TestDeliveryDoesNotAllocate(t *testing.T) {
	h := newStream(t)
	q := h.Queue.(*Queue)
	q.Enqueue(makeBatch(5000, 1, false))
	other := from(h, "first") // keeps the chunks in memory
	defer q.Cancel(other.Sub)
	k := &taker{held: make([]queue.Delivery, 0, 1000)}
	s := subscribe(t, q, k, "first", 4)
	got := testing.AllocsPerRun(100, func() {
		ds := k.held
		k.held = k.held[len(k.held):]
		q.Settle(s, ds, queue.Accepted)
	})
	if len(k.held) != 4 {
		t.Fatalf("%d deliveries", len(k.held))
	}
	if got != 0 {
		t.Errorf("%v allocations for 4 deliveries, want 0", got)
	}
}

// What is in memory is bounded, and known to the budget of all queues.
func TestMemory(t *testing.T) {
	memory := queue.NewBudget(1 << 20)
	h := queuetest.NewWith(t, New, spec(t), queue.Env{Memory: memory})
	q := h.Queue.(*Queue)
	c := subscribe(t, q, &counter{}, "next", 1<<40)
	for range 100 {
		q.Enqueue(makeBatch(100, 1000, false))
	}
	if used := memory.Used(); used < 100<<10 || used > 1<<20+200<<10 {
		t.Errorf("%d bytes in memory", used)
	}
	subscribe(t, q, &counter{}, "first", 1)
	memory.Add(2 << 20)
	q.PageOut()
	if used := memory.Used() - 2<<20; used > smallSize+memoryStep {
		t.Errorf("%d bytes after paging out", used)
	}
	memory.Add(-2 << 20)
	n := &counter{}
	subscribe(t, q, n, "first", 1<<40)
	if n.n != 10_000 {
		t.Errorf("%d messages were read, want 10000", n.n)
	}
	q.Cancel(c)
	if err := q.Stop(); err != nil || memory.Used() != 0 {
		t.Errorf("%d bytes after Stop() = %v", memory.Used(), err)
	}
}
