package classic

import (
	"testing"
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/dispatch"
)

// batchSize is how many messages the benchmarks publish at once: about what one
// socket read brings at high rates.
const batchSize = 64

// keeper is a consumer that keeps its deliveries in memory of its own.
type keeper struct{ held []queue.Delivery }

func (k *keeper) Deliver(batch []queue.Delivery) int {
	k.held = append(k.held, batch...)
	return len(batch)
}
func (k *keeper) Cancelled(*queue.Subscription)       {}
func (k *keeper) Activated(*queue.Subscription, bool) {}

// subscribe adds a keeper.
func subscribe(t testing.TB, q queue.Queue, s queue.Subscription) (*keeper, *queue.Subscription) {
	t.Helper()
	k := &keeper{held: make([]queue.Delivery, 0, 4*dispatch.Turn)}
	s.Consumer, s.Window = k, &queue.Window{}
	if err := q.Subscribe(&s); err != nil {
		t.Fatal(err)
	}
	return k, &s
}

func newQueue(t testing.TB, spec queue.Spec) queue.Queue {
	t.Helper()
	spec.VHost, spec.Name = "/", "bench"
	q, err := New(queue.Env{Store: nullStore{}}, spec)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func makeBatch(n int, persistent bool) []queue.Entry {
	batch := make([]queue.Entry, n)
	for i := range batch {
		m := message.New(16, 16)
		m.Time = time.Now().UnixMilli()
		m.Persistent = persistent
		batch[i].Msg = m
	}
	return batch
}

// nullStore and nullLog take everything and keep nothing.
type (
	nullStore struct{ persistence.Store }
	nullLog   struct{ persistence.Log }
)

func (nullStore) NewLog() (persistence.Log, error) { return &nullLog{}, nil }

func (*nullLog) Append(_ []persistence.Record, r *message.Receipt) (taken bool) {
	if r != nil {
		r.Release()
	}
	return true
}
func (*nullLog) Settle([]uint64)                                  {}
func (*nullLog) SettleRange(persistence.Lane, uint64, uint64) int { return 0 }
func (*nullLog) Delivered(uint64)                                 {}
func (*nullLog) Durable() uint64                                  { return 0 }
func (*nullLog) Drop()                                            {}

// perMessage reports the time for one message instead of for one batch.
func perMessage(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/msg")
}

func BenchmarkEnqueue(b *testing.B) {
	for _, bm := range []struct {
		name    string
		durable bool
	}{{"transient", false}, {"persistent", true}} {
		b.Run(bm.name, func(b *testing.B) {
			q := newQueue(b, queue.Spec{Durable: bm.durable})
			batch := makeBatch(batchSize, bm.durable)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				q.Enqueue(batch)
				if n++; n == 1000 {
					n = 0
					purge(b, q)
				}
			}
			perMessage(b, batchSize)
		})
	}
}

func purge(t testing.TB, q queue.Queue) {
	if _, err := q.Purge(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkDispatch(b *testing.B) {
	for _, bm := range []struct {
		name      string
		sub       queue.Subscription
		consumers int
		durable   bool
		batch     int
	}{
		{"noack", queue.Subscription{NoAck: true}, 1, false, batchSize},
		{"ack", queue.Subscription{}, 1, false, batchSize},
		{"ack-single", queue.Subscription{}, 1, false, 1},
		{"ack-prefetch", queue.Subscription{Prefetch: 1000}, 1, false, batchSize},
		{"ack-8-consumers", queue.Subscription{Prefetch: 1000}, 8, false, batchSize},
		{"ack-persistent", queue.Subscription{}, 1, true, batchSize},
	} {
		b.Run(bm.name, func(b *testing.B) {
			q := newQueue(b, queue.Spec{Durable: bm.durable})
			keepers, subs := make([]*keeper, bm.consumers), make([]*queue.Subscription, bm.consumers)
			for i := range keepers {
				keepers[i], subs[i] = subscribe(b, q, bm.sub)
			}
			batch := makeBatch(bm.batch, bm.durable)
			b.ReportAllocs()
			for b.Loop() {
				q.Enqueue(batch)
				for i, k := range keepers {
					q.Settle(subs[i], k.held, queue.Accepted)
					k.held = k.held[:0]
				}
			}
			perMessage(b, bm.batch)
		})
	}
}

// BenchmarkWindow settles messages one by one while many wait and the limit of
// the channel is used up.
func BenchmarkWindow(b *testing.B) {
	q := newQueue(b, queue.Spec{})
	k, s := subscribe(b, q, queue.Subscription{})
	s.Window.SetLimit(10)
	for range 20 {
		q.Enqueue(makeBatch(batchSize, false))
	}
	one := makeBatch(1, false)
	b.ReportAllocs()
	for b.Loop() {
		q.Enqueue(one)
		last := len(k.held) - 1
		q.Settle(s, k.held[last:], queue.Accepted)
		k.held = k.held[:last]
		s.Window.Give(1)
		q.Resume(s)
	}
}

func BenchmarkSettle(b *testing.B) {
	for _, bm := range []struct {
		name string
		how  queue.Outcome
	}{{"accepted", queue.Accepted}, {"requeued", queue.Requeued}} {
		b.Run(bm.name, func(b *testing.B) {
			q := newQueue(b, queue.Spec{})
			k, s := subscribe(b, q, queue.Subscription{})
			batch := makeBatch(batchSize, false)
			q.Enqueue(batch)
			ds := make([]queue.Delivery, batchSize)
			b.ReportAllocs()
			for b.Loop() {
				copy(ds, k.held)
				k.held = k.held[:0]
				q.Settle(s, ds, bm.how)
				if bm.how == queue.Accepted {
					q.Enqueue(batch)
				}
			}
			perMessage(b, batchSize)
		})
	}
}

func TestPersistentBudget(t *testing.T) {
	q := newQueue(t, queue.Spec{Durable: true})
	k, s := subscribe(t, q, queue.Subscription{Prefetch: 1000})
	batch := makeBatch(batchSize, true)
	round := func() {
		q.Enqueue(batch)
		q.Settle(s, k.held, queue.Accepted)
		k.held = k.held[:0]
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for a batch of %d persistent messages, want 0", n, batchSize)
	}
}

func TestBudgets(t *testing.T) {
	q := newQueue(t, queue.Spec{})
	k, s := subscribe(t, q, queue.Subscription{})
	batch := makeBatch(batchSize, false)
	q.Enqueue(batch) // grows the scratch memory
	q.Settle(s, k.held, queue.Accepted)
	k.held = k.held[:0]
	if n := testing.AllocsPerRun(100, func() {
		q.Enqueue(batch)
		q.Settle(s, k.held, queue.Accepted)
		k.held = k.held[:0]
	}); n != 0 {
		t.Errorf("%v allocations for enqueue, delivery and settling of %d messages, want 0", n, batchSize)
	}
}
