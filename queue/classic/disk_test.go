package classic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func openDisk(t testing.TB, dir string) *persistence.Disk {
	t.Helper()
	store, err := persistence.Open(persistence.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// A backlog that does not fit in memory goes through the store on disk, over a
// restart.
func TestBacklogOnDisk(t *testing.T) {
	const n = 5000
	dir := t.TempDir()
	store := openDisk(t, dir)
	env := queue.Env{Store: store, Memory: queue.NewBudget(1 << 20)}
	spec := queue.Spec{VHost: "/", Name: "q", Durable: true}
	q, err := New(env, spec)
	if err != nil {
		t.Fatal(err)
	}
	filler := strings.Repeat(".", 1000)
	for i := range n {
		q.Enqueue([]queue.Entry{{Msg: queuetest.Persistent(fmt.Sprint(i, filler))}})
	}
	wantBodies(t, q, 0, 10)
	env.LogID = q.(queue.Logged).LogID()
	if err := q.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store = openDisk(t, dir)
	env.Store = store
	if q, err = New(env, spec); err != nil {
		t.Fatal(err)
	}
	if err := store.Recovered(); err != nil {
		t.Fatal(err)
	}
	if s := q.Status(); s.Ready != n-10 || s.InMemory != 0 {
		t.Errorf("%d ready, %d of them in memory, want %d, 0", s.Ready, s.InMemory, n-10)
	}
	wantBodies(t, q, 10, n)
	if s := q.Status(); s.Ready != 0 || s.ReadyBytes != 0 {
		t.Errorf("%d ready with %d bytes, want none", s.Ready, s.ReadyBytes)
	}
	if err := q.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// wantBodies gets messages from one number to another.
func wantBodies(t *testing.T, q queue.Queue, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		d, _, ok, err := q.Get(true)
		if err != nil || !ok {
			t.Fatalf("message %d: ok %t, error %v", i, ok, err)
		}
		if got, _, _ := strings.Cut(string(d.Msg.Body), "."); got != fmt.Sprint(i) {
			t.Fatalf("message %d is %.20q", i, d.Msg.Body)
		}
	}
}

// A backlog of persistent messages with a small budget: filled and drained.
func BenchmarkBacklogOnDisk(b *testing.B) {
	const n = 200_000
	store := openDisk(b, b.TempDir())
	for b.Loop() {
		q, err := New(queue.Env{Store: store, Memory: queue.NewBudget(16 << 20)}, queue.Spec{VHost: "/", Name: "q", Durable: true})
		if err != nil {
			b.Fatal(err)
		}
		batch := make([]queue.Entry, batchSize)
		for sent := 0; sent < n; sent += batchSize {
			for i := range batch {
				batch[i].Msg = queuetest.Persistent(benchBody)
			}
			q.Enqueue(batch)
			if err := store.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(q.Status().InMemory), "in-memory")
		k, s := subscribe(b, q, queue.Subscription{Prefetch: 1000})
		for got := 0; got < n; {
			if len(k.held) == 0 {
				b.Fatalf("nothing more after %d messages", got)
			}
			got += len(k.held)
			ds := append([]queue.Delivery(nil), k.held...)
			k.held = k.held[:0]
			q.Settle(s, ds, queue.Accepted)
		}
		if _, err := q.Delete(queue.Condition{}); err != nil {
			b.Fatal(err)
		}
	}
	perMessage(b, n)
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

var benchBody = strings.Repeat("x", 100)
