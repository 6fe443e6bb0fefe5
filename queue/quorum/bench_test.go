package quorum

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/dispatch"
	"github.com/leveretmq/leveret/queue/queuetest"
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

func newQueue(t testing.TB) *Queue {
	t.Helper()
	q, err := open(queue.Env{Store: nullStore{}}, queue.Spec{VHost: "/", Name: "bench", Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func makeBatch(n int) []queue.Entry {
	batch := make([]queue.Entry, n)
	for i := range batch {
		m := message.New(2, 16) // no properties
		m.Time = time.Now().UnixMilli()
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
	q, batch := newQueue(b), makeBatch(batchSize)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		q.Enqueue(batch)
		if n++; n == 1000 {
			n = 0
			if _, err := q.Purge(); err != nil {
				b.Fatal(err)
			}
		}
	}
	perMessage(b, batchSize)
}

// BenchmarkDispatch is the whole way: publish, deliver, acknowledge.
func BenchmarkDispatch(b *testing.B) {
	for _, bm := range []struct {
		name      string
		sub       queue.Subscription
		consumers int
		batch     int
	}{
		{"noack", queue.Subscription{NoAck: true}, 1, batchSize},
		{"ack", queue.Subscription{}, 1, batchSize},
		{"ack-single", queue.Subscription{}, 1, 1},
		{"ack-prefetch", queue.Subscription{Prefetch: 1000}, 1, batchSize},
		{"ack-8-consumers", queue.Subscription{Prefetch: 1000}, 8, batchSize},
	} {
		b.Run(bm.name, func(b *testing.B) {
			q := newQueue(b)
			keepers, subs := make([]*keeper, bm.consumers), make([]*queue.Subscription, bm.consumers)
			for i := range keepers {
				keepers[i], subs[i] = subscribe(b, q, bm.sub)
			}
			batch := makeBatch(bm.batch)
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

// BenchmarkRequeue is a message that comes back again and again: each time its
// header is made anew and its count noted.
func BenchmarkRequeue(b *testing.B) {
	q := newQueue(b)
	q.SetPolicy(policy(queue.Definition{"delivery-limit": -1.0}))
	k, s := subscribe(b, q, queue.Subscription{})
	q.Enqueue(makeBatch(batchSize))
	ds := make([]queue.Delivery, batchSize)
	b.ReportAllocs()
	for b.Loop() {
		copy(ds, k.held)
		k.held = k.held[:0]
		q.Settle(s, ds, queue.Requeued)
	}
	perMessage(b, batchSize)
}

// BenchmarkSnapshot takes and restores the state of a queue.
func BenchmarkSnapshot(b *testing.B) {
	q := newQueue(b)
	for range 1000 {
		q.Enqueue(makeBatch(batchSize))
	}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = q.m.snapshot(buf[:0])
		if _, err := restore(buf); err != nil {
			b.Fatal(err)
		}
	}
	perMessage(b, 1000*batchSize)
}

func TestBudgets(t *testing.T) {
	q := newQueue(t)
	k, s := subscribe(t, q, queue.Subscription{})
	batch := makeBatch(batchSize)
	round := func() {
		q.Enqueue(batch)
		q.Settle(s, k.held, queue.Accepted)
		k.held = k.held[:0]
	}
	for range 10 { // grows the scratch memory
		round()
	}
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations for enqueue, delivery and settling of %d messages, want 0", n, batchSize)
	}
}

// settler is a consumer that settles in another goroutine.
type settler struct {
	to chan queue.Delivery
}

func (c *settler) Deliver(batch []queue.Delivery) int {
	for i := range batch {
		select {
		case c.to <- batch[i]:
		default:
			return i
		}
	}
	return len(batch)
}
func (*settler) Cancelled(*queue.Subscription)       {}
func (*settler) Activated(*queue.Subscription, bool) {}

// Everything at once: nothing may be lost, and the second machine must agree.
func TestStress(t *testing.T) {
	a := queue.NewArguments()
	a.DeliveryLimit = -1
	stress(t, newHarness(t, a), "x")
}

// The same with bodies that do not fit in memory.
func TestStressPaging(t *testing.T) {
	a := queue.NewArguments()
	a.DeliveryLimit = -1
	h := queuetest.NewWith(t, New, queue.Spec{Durable: true, Arguments: &a}, queue.Env{Memory: queue.NewBudget(100_000)})
	stress(t, h, strings.Repeat("x", 20_000))
	if n := h.Env.Memory.Used(); n != 0 {
		t.Errorf("%d bytes of the budget are used, want 0", n)
	}
}

func stress(t *testing.T, h *queuetest.Harness, body string) {
	const publishers, each, consumers = 4, 400, 3
	var settled atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	for i := range consumers {
		c := &settler{to: make(chan queue.Delivery, 20)}
		s := &queue.Subscription{Consumer: c, Tag: fmt.Sprint(i), Priority: i / 2, Prefetch: 7, Window: &queue.Window{}}
		if err := h.Queue.Subscribe(s); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { settle(h.Queue, s, c.to, &settled, publishers*each, done) })
	}
	for i := range publishers {
		wg.Go(func() {
			for j := range each {
				m := queuetest.Message(body)
				if j%5 == 0 {
					m = queuetest.Priority(body, uint8(i*3))
				}
				h.Queue.Enqueue([]queue.Entry{{Msg: m}})
				if j%50 == 0 {
					h.Queue.SetPolicy(policy(queue.Definition{"max-length": float64(10_000 + j)}))
					h.Queue.Status()
				}
			}
		})
	}
	wg.Wait()
	h.WantCounts(0, 0)
	if n := logOf(h).Len(); n != 0 {
		t.Errorf("%d records are left, want 0", n)
	}
}

// settle ends deliveries, each in one of the ways, until all are accepted.
func settle(q queue.Queue, s *queue.Subscription, from chan queue.Delivery, settled *atomic.Int64, all int64, done chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case d := <-from:
			switch {
			case n%7 == 3:
				q.Settle(s, []queue.Delivery{d}, queue.Requeued)
			case n%11 == 5:
				q.Settle(s, []queue.Delivery{d}, queue.Returned)
			default:
				q.Settle(s, []queue.Delivery{d}, queue.Accepted)
				if settled.Add(1) == all {
					close(done)
				}
			}
			q.Resume(s)
		}
	}
}
