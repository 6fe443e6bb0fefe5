package stream

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// batchSize is how many messages the benchmarks publish at once: about what one
// socket read brings at high rates.
const batchSize = 256

// A counter is a consumer that takes everything and keeps nothing but the number.
type counter struct{ n, bytes int }

func (c *counter) Deliver(batch []queue.Delivery) int {
	c.n += len(batch)
	for i := range batch {
		c.bytes += len(batch[i].Msg.Header) + len(batch[i].Msg.Body)
	}
	return len(batch)
}
func (*counter) Cancelled(*queue.Subscription)       {}
func (*counter) Activated(*queue.Subscription, bool) {}

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
func (*nullLog) SettleRange(persistence.Lane, uint64, uint64) int { return 0 }
func (*nullLog) ID() persistence.LogID                            { return 1 }
func (*nullLog) Drop()                                            {}

// makeBatch makes messages of so many bytes; with headers each of them has
// properties of its own.
func makeBatch(n, size int, headers bool) []queue.Entry {
	batch := make([]queue.Entry, n)
	for i := range batch {
		p := frames.Properties{Flags: frames.FlagDeliveryMode, DeliveryMode: 2}
		if headers {
			p.Flags |= frames.FlagMessageID
			p.MessageID = fmt.Append(nil, "message-", i)
			p.SetTable(frames.Table{{Name: "kind", Value: "order"}, {Name: "n", Value: int64(i)}})
		}
		raw := p.Append(nil)
		m := message.New(len(raw), size)
		copy(m.Header, raw)
		m.RoutingKey, m.Time, m.Persistent = "stream", time.Now().UnixMilli(), true
		batch[i].Msg = m
	}
	return batch
}

func open(b testing.TB, store persistence.Store, id persistence.LogID) *Queue {
	b.Helper()
	q, err := New(queue.Env{Store: store, LogID: id}, spec(b))
	if err != nil {
		b.Fatal(err)
	}
	return q.(*Queue)
}

func subscribe(b testing.TB, q *Queue, c queue.Consumer, offset any, prefetch int) *queue.Subscription {
	b.Helper()
	s := &queue.Subscription{Consumer: c, Window: &queue.Window{}, Prefetch: prefetch,
		Arguments: frames.Table{{Name: "x-stream-offset", Value: offset}}}
	if err := q.Subscribe(s); err != nil {
		b.Fatal(err)
	}
	return s
}

// perMessageTime reports the time for one message instead of for one batch.
func perMessageTime(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/msg")
}

func BenchmarkPublish(b *testing.B) {
	for _, tt := range []struct {
		name    string
		n, size int
		headers bool
		readers int
	}{
		{"100B", batchSize, 100, false, 0},
		{"100B/headers", batchSize, 100, true, 0},
		{"100B/reader", batchSize, 100, false, 1},
		{"100B/10readers", batchSize, 100, false, 10},
		{"1KiB", 64, 1024, false, 0},
		{"64KiB", 4, 64 << 10, false, 0},
		{"one", 1, 100, false, 0},
		{"one/reader", 1, 100, false, 1},
	} {
		b.Run(tt.name, func(b *testing.B) {
			q := open(b, nullStore{}, 0)
			for range tt.readers {
				subscribe(b, q, &counter{}, "next", 1<<40)
			}
			batch := makeBatch(tt.n, tt.size, tt.headers)
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				q.Enqueue(batch)
			}
			perMessageTime(b, b.N*tt.n)
		})
	}
}

// BenchmarkTrackedAck settles one by one what a tracked reader has, and delivers
// the next.
func BenchmarkTrackedAck(b *testing.B) {
	for _, tt := range []struct {
		prefetch int
		given    bool // the first delivery is given back
	}{{100, false}, {100, true}, {60_000, false}} {
		prefetch := tt.prefetch
		b.Run(fmt.Sprintf("prefetch-%d/given-back-%t", prefetch, tt.given), func(b *testing.B) {
			p := &progress{}
			if tt.given {
				p.deliver([]queue.Delivery{{ID: 1}})
			}
			next := queue.ID(1)
			deliver := func() {
				next++
				p.deliver([]queue.Delivery{{ID: next}})
			}
			for range prefetch {
				deliver()
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				p.settle([]queue.Delivery{{ID: next - queue.ID(prefetch) + 1}})
				deliver()
			}
		})
	}
}

// BenchmarkScan reads stored messages from the first to the last.
func BenchmarkScan(b *testing.B) {
	for _, tt := range []struct {
		name    string
		n, size int
		headers bool
		batch   int
	}{
		{"100B", 1_000_000, 100, false, batchSize},
		{"100B/headers", 500_000, 100, true, batchSize},
		{"1KiB", 200_000, 1024, false, 64},
		{"100B/one", 100_000, 100, false, 1},
	} {
		b.Run(tt.name, func(b *testing.B) {
			dir := b.TempDir()
			store, err := persistence.Open(persistence.Options{Dir: dir, Profile: persistence.Server, Durability: persistence.Relaxed, DiskLimit: 1})
			if err != nil {
				b.Fatal(err)
			}
			q := open(b, store, 0)
			batch := makeBatch(tt.batch, tt.size, tt.headers)
			for range tt.n / tt.batch {
				q.Enqueue(batch)
				if err := store.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			for q.log.Durable() < q.next {
				time.Sleep(time.Millisecond)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for b.Loop() {
				c := &counter{}
				s := subscribe(b, q, c, "first", 1<<40)
				q.Cancel(s)
				if c.n != tt.n/tt.batch*tt.batch {
					b.Fatalf("%d messages", c.n)
				}
			}
			perMessageTime(b, b.N*tt.n)
			b.StopTimer()
			if err := store.Close(); err != nil {
				b.Fatal(err)
			}
			_ = os.RemoveAll(dir)
		})
	}
}
