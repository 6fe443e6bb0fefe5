//go:build !race

package classic

import (
	"math"
	"runtime"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// The budget of draining a backlog, in allocations and bytes per message of 100
// bytes: the message, its place in the list, the copy of its record.
func TestAllocationsOfDrain(t *testing.T) {
	allocs, size := math.Inf(1), math.Inf(1)
	for range 5 { // the store's other work is not in all of them
		a, s := drainCost(t)
		allocs, size = min(allocs, a), min(size, s)
	}
	if allocs > 0.1 || size > 330 { // those of the commits that settle included
		t.Errorf("%.3f allocations and %.0f bytes a message, want at most 0.1 and 330", allocs, size)
	}
}

// drainCost fills a queue, drains it and measures the second half of that.
func drainCost(t *testing.T) (allocs, size float64) {
	t.Helper()
	const n = 512 * batchSize
	store := openDisk(t, t.TempDir())
	defer store.Close()
	q, err := New(queue.Env{Store: store, Memory: queue.NewBudget(1)}, queue.Spec{VHost: "/", Name: "q", Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	stored := make(settledOwner, 1)
	r := message.NewReceipt(stored, 0, 0)
	r.Hold(1)
	for range n / batchSize {
		r.Hold(1)
		q.Enqueue(persistentBatch(r))
	}
	r.Release()
	<-stored
	q.(*Queue).PageOut()
	got := 0
	var before, after runtime.MemStats
	k, s := subscribe(t, q, queue.Subscription{Prefetch: batchSize * 8})
	spare := make([]queue.Delivery, 0, cap(k.held))
	for len(k.held) > 0 {
		ds := k.held
		if got == n/2 { // by now scratch memory has grown
			runtime.ReadMemStats(&before)
		}
		got += len(ds)
		k.held, spare = spare[:0], ds
		q.Settle(s, ds, queue.Accepted)
	}
	runtime.ReadMemStats(&after)
	if got != n || before.Mallocs == 0 {
		t.Fatalf("%d messages drained, want %d", got, n)
	}
	return float64(after.Mallocs-before.Mallocs) / (n / 2), float64(after.TotalAlloc-before.TotalAlloc) / (n / 2)
}

// persistentBatch is a batch of persistent messages of 100 bytes.
func persistentBatch(r *message.Receipt) []queue.Entry {
	batch := make([]queue.Entry, batchSize)
	for i := range batch {
		m := message.New(3, 100)
		copy(m.Header, []byte{0x10, 0, 2})
		m.Persistent = true
		batch[i] = queue.Entry{Msg: m, Receipt: r}
	}
	return batch
}

// A settledOwner tells of each receipt that is settled.
type settledOwner chan struct{}

func (o settledOwner) Settled(*message.Receipt) { o <- struct{}{} }

// A queue that grows and shrinks all the time allocates the small chunks that a
// short one has, and takes the large ones from those that are used up.
func TestLongDequeUsesItsMemoryAgain(t *testing.T) {
	const n = 32 * largestChunk
	var d deque
	round := func() {
		for range n {
			d.slot()
		}
		for d.n > 0 {
			d.drop(len(d.run()))
		}
	}
	round()
	// 8, 16, 32, 64 and 128 items, each with its struct, and some when the collector
	// has just taken the large ones.
	if got := testing.AllocsPerRun(20, round); got > 20 {
		t.Errorf("%v allocations for %d items, want at most 20", got, n)
	}
}
