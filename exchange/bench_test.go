package exchange

import (
	"fmt"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// benchRoute routes the messages in turn; every one must reach want queues.
func benchRoute(b *testing.B, x *Exchange, want int, ms ...*message.Message) {
	b.Helper()
	var to Matches
	find := finder()
	for _, m := range ms {
		to.Reset()
		x.Route(m, find, &to)
		if got := len(to.Queues()); got != want {
			b.Fatalf("key %q reaches %d queues, want %d", m.RoutingKey, got, want)
		}
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		to.Reset()
		x.Route(ms[i], find, &to)
		if i++; i == len(ms) {
			i = 0
		}
	}
}

// devices binds n/2 queues with two patterns each, and returns messages for
// some of them.
func devices(tb testing.TB, n int) (*Exchange, []*message.Message) {
	x := newExchange(tb, "topic")
	for i := range n / 2 {
		q := newQueue(fmt.Sprint("q", i))
		bind(tb, x, q, fmt.Sprintf("dev.%d.*.temp", i))
		bind(tb, x, q, fmt.Sprintf("dev.%d.#", i))
	}
	var ms []*message.Message
	for i := range 64 {
		ms = append(ms, keyed(fmt.Sprintf("dev.%d.room.temp", i*n/128)))
	}
	return x, ms
}

func BenchmarkRouteDirect(b *testing.B) {
	x := newExchange(b, "direct")
	var ms []*message.Message
	for i := range 1000 {
		bind(b, x, newQueue(fmt.Sprint("q", i)), fmt.Sprint("orders.", i))
		ms = append(ms, keyed(fmt.Sprint("orders.", i)))
	}
	benchRoute(b, x, 1, ms...)
}

func BenchmarkRouteTopic1000(b *testing.B) {
	x, ms := devices(b, 1000)
	benchRoute(b, x, 1, ms...)
}

func BenchmarkRouteTopic100k(b *testing.B) {
	x, ms := devices(b, 100_000)
	benchRoute(b, x, 1, ms...)
}

func BenchmarkRouteFanout10(b *testing.B) { benchFanout(b, 10) }

func BenchmarkRouteFanout1000(b *testing.B) { benchFanout(b, 1000) }

func benchFanout(b *testing.B, n int) {
	x := newExchange(b, "fanout")
	for i := range n {
		bind(b, x, newQueue(fmt.Sprint("q", i)), "")
	}
	benchRoute(b, x, n, keyed("k"))
}

func BenchmarkRouteHeaders(b *testing.B) {
	x := newExchange(b, "headers")
	for i := range 100 {
		bind(b, x, newQueue(fmt.Sprint("q", i)), "", frames.Field{Name: "region", Value: "eu"}, frames.Field{Name: "shard", Value: int32(i)})
	}
	var ms []*message.Message
	for i := range 100 {
		ms = append(ms, withHeaders(
			frames.Field{Name: "trace", Value: "7f3a"},
			frames.Field{Name: "region", Value: "eu"},
			frames.Field{Name: "shard", Value: int64(i)}))
	}
	benchRoute(b, x, 1, ms...)
}

func BenchmarkRouteConsistentHash(b *testing.B) {
	x := newExchange(b, "x-consistent-hash")
	for i := range 10 {
		bind(b, x, newQueue(fmt.Sprint("q", i)), "10")
	}
	benchRoute(b, x, 1, keyed("a"), keyed("orders.17"), keyed("orders.18"))
}

func BenchmarkRouteConsistentHash1000(b *testing.B) {
	x := newExchange(b, "x-consistent-hash")
	for i := range 1000 {
		bind(b, x, newQueue(fmt.Sprint("q", i)), fmt.Sprint(1+i%10))
	}
	benchRoute(b, x, 1, keyed("a"), keyed("orders.17"), keyed("orders.18"))
}

// BenchmarkBindUnbind has 100 000 bindings to one queue around it.
func BenchmarkBindUnbind(b *testing.B) {
	for _, kind := range []string{"direct", "fanout", "topic", "headers", "x-modulus-hash"} {
		b.Run(kind, func(b *testing.B) {
			x, q := newExchange(b, kind), newQueue("q")
			for i := range 100_000 {
				bind(b, x, q, fmt.Sprintf("dev.%d.temp", i))
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Bind(&Binding{Queue: q, Key: "dev.x.temp"}); err != nil {
					b.Fatal(err)
				}
				x.Unbind(q, nil, "dev.x.temp", nil)
			}
		})
	}
}
