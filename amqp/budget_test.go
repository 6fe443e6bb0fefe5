//go:build !race

// Budgets of the whole way of a message, of a declaration and of a connection, in
// allocations and bytes: counted, not timed. The race detector adds its own.

package amqp

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"runtime"
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// spent is how much fn allocates, in allocations and bytes, whatever goroutine does:
// the least of some runs, as what it costs is in all of them and what else is going
// on in some.
func spent(fn func()) (allocs, bytes float64) {
	allocs, bytes = math.Inf(1), math.Inf(1)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		fn()
		runtime.ReadMemStats(&after)
		allocs = min(allocs, float64(after.Mallocs-before.Mallocs))
		bytes = min(bytes, float64(after.TotalAlloc-before.TotalAlloc))
	}
	return allocs, bytes
}

// A message of 100 bytes is published with a confirm, routed, delivered and
// acknowledged, over a connection in memory. What a batch costs is shared by 64.
func TestAllocMessageWholeWay(t *testing.T) {
	for _, tt := range []struct {
		exchange, key string
		properties    []byte
		allocs, bytes float64
	}{
		{"", "q", []byte{0, 0}, 1.1, 300},
		{"amq.topic", "a.b.c", []byte{0, 0}, 1.1, 300},
		{"", "q", []byte{0x10, 0, 2}, 1.3, 700}, // persistent; what the log in memory keeps is in it
	} {
		c := dialPipe(t, newTestServer(t, zap.NewNop()))
		c.login()
		c.call(&frames.QueueDeclare{Queue: "q", Durable: true}, frames.QueueDeclareOkID)
		c.call(&frames.QueueBind{Queue: "q", Exchange: "amq.topic", RoutingKey: "a.*.c"}, frames.QueueBindOkID)
		c.call(&frames.ConfirmSelect{}, frames.ConfirmSelectOkID)
		c.call(&frames.BasicConsume{Queue: "q", ConsumerTag: "c"}, frames.BasicConsumeOkID)
		const batch, rounds = 64, 200
		var publishes []byte
		for range batch {
			publishes = frames.AppendMethod(publishes, 1, &frames.BasicPublish{Exchange: tt.exchange, RoutingKey: tt.key})
			publishes = frames.AppendContentHeader(publishes, 1, 100, tt.properties)
			publishes = frames.AppendBody(publishes, 1, make([]byte, 100), 131072)
		}
		w := wholeWay{rawClient: c, publishes: publishes, batch: batch, in: make([]byte, 64<<10)}
		for range 20 { // until scratch memory has grown
			w.round()
		}
		allocs, bytes := spent(func() {
			for range rounds {
				w.round()
			}
		})
		allocs, bytes = allocs/(batch*rounds), bytes/(batch*rounds)
		t.Logf("%q %q %x: %.2f allocations, %.0f bytes a message", tt.exchange, tt.key, tt.properties, allocs, bytes)
		if allocs > tt.allocs || bytes > tt.bytes {
			t.Errorf("%q %q %x: %.2f allocations and %.0f bytes a message, want at most %v and %v",
				tt.exchange, tt.key, tt.properties, allocs, bytes, tt.allocs, tt.bytes)
		}
	}
}

// A wholeWay publishes a batch, and waits for its deliveries and confirms, and
// acknowledges. It allocates nothing itself.
type wholeWay struct {
	*rawClient
	publishes []byte
	batch     int
	in        []byte
	n         int    // unread bytes of in
	delivered uint64 // tags so far
	confirmed uint64
	ack       []byte
}

func (w *wholeWay) round() {
	w.write(w.publishes)
	want := w.delivered + uint64(w.batch)
	for w.delivered < want || w.confirmed < want {
		n, err := w.sock.Read(w.in[w.n:])
		if err != nil {
			w.t.Fatal(err)
		}
		w.n += n
		w.frames()
	}
	w.ack = appendAck(w.ack[:0], w.delivered)
	w.write(w.ack)
}

// frames counts what has come.
func (w *wholeWay) frames() {
	used := 0
	for {
		f, n, err := frames.Parse(w.in[used:w.n], 131072)
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			break
		}
		used += n
		id, args, _ := frames.SplitMethod(f.Payload)
		switch {
		case f.Type != frames.MethodFrame:
		case id == frames.BasicDeliverID:
			w.delivered++
		case id == frames.BasicAckID:
			w.confirmed = tagOf(args)
		}
	}
	w.n = copy(w.in, w.in[used:w.n])
}

func tagOf(args []byte) (tag uint64) {
	for _, b := range args[:8] {
		tag = tag<<8 | uint64(b)
	}
	return tag
}

// appendAck appends basic.ack of everything up to a tag, without boxing it.
func appendAck(b []byte, tag uint64) []byte {
	b = append(b, frames.MethodFrame, 0, 1, 0, 0, 0, 13, 0, 60, 0, 80)
	for shift := 56; shift >= 0; shift -= 8 {
		b = append(b, byte(tag>>shift))
	}
	return append(b, 1, 0xCE)
}

// A declaration with its deletion, in the process of a batch: what is allocated is
// the queue, its definition and the answers.
func TestAllocDeclare(t *testing.T) {
	for _, tt := range []struct {
		durable       bool
		allocs, bytes float64
	}{{false, 22, 3100}, {true, 38, 4500}} {
		c := newTestConn(t, newTestServer(t, zap.NewNop()))
		const n = 32
		var declares, deletes []byte
		for i := range n {
			name := fmt.Sprintf("queue.%d", i)
			declares = frames.AppendMethod(declares, 1, &frames.QueueDeclare{Queue: name, Durable: tt.durable, NoWait: true})
			deletes = frames.AppendMethod(deletes, 1, &frames.QueueDelete{Queue: name, NoWait: true})
		}
		round := func() {
			for _, b := range [2][]byte{declares, deletes} {
				c.buf, c.r, c.w = b, 0, len(b)
				if _, err := c.batch(); err != nil {
					t.Fatal(err)
				}
			}
		}
		round()
		const rounds = 20
		allocs, bytes := spent(func() {
			for range rounds {
				round()
			}
		})
		allocs, bytes = allocs/(n*rounds), bytes/(n*rounds)
		t.Logf("durable %t: %.1f allocations, %.0f bytes to declare and delete a queue", tt.durable, allocs, bytes)
		if allocs > tt.allocs || bytes > tt.bytes {
			t.Errorf("durable %t: %.1f allocations and %.0f bytes to declare and delete a queue, want at most %v and %v",
				tt.durable, allocs, bytes, tt.allocs, tt.bytes)
		}
	}
}

// idleConnectionBudget is what an idle connection with a channel, a queue and a
// consumer may keep, in bytes of heap and stacks; the client's end of the pipe is
// in it.
const idleConnectionBudget = 25 << 10

func TestAllocIdleConnection(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	const n, rounds = 200, 3
	socks := make([]net.Conn, 0, rounds*n+1)
	use := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	done := make(chan struct{}, rounds*n+1)
	open := func() {
		client, server := net.Pipe()
		go func() {
			s.serveConn(context.Background(), server)
			done <- struct{}{}
		}()
		c := &rawClient{t: t, sock: client}
		c.login()
		c.call(&frames.QueueDeclare{Exclusive: true}, frames.QueueDeclareOkID)
		c.call(&frames.BasicConsume{ConsumerTag: "c"}, frames.BasicConsumeOkID)
		socks = append(socks, client)
	}
	open()
	each := int64(math.MaxInt64)
	for range rounds {
		before := use()
		for range n {
			open()
		}
		each = min(each, (use()-before)/n) // what else is going on is not in all of them
	}
	t.Logf("%d bytes each", each)
	if each > idleConnectionBudget {
		t.Errorf("an idle connection keeps %d bytes, the budget is %d", each, idleConnectionBudget)
	}
	for _, sock := range socks {
		go io.Copy(io.Discard, sock)
		sock.Close()
	}
	for range socks {
		<-done
	}
}
