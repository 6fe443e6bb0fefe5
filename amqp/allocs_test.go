//go:build !race

// The race detector makes sync.Pool forget, so budgets are checked without it.

package amqp

import (
	"io"
	"runtime"
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

func TestDeliverAndSettleDoNotAllocate(t *testing.T) {
	ch, c, q := newTestChannel(false)
	batch := testBatch(64, 100)
	var out pending
	round := func() {
		if err := deliverAndSend(c, batch, &out); err != nil {
			t.Fatal(err)
		}
		if err := ch.settleTags(ch.unacked.next-1, true, queue.Accepted); err != nil {
			t.Fatal(err)
		}
	}
	round()
	round()
	if got := testing.AllocsPerRun(200, round); got != 0 {
		t.Errorf("delivering and settling 64 messages: %v allocations, want 0", got)
	}
	if q.settled != 203*64 {
		t.Errorf("settled %d messages, want %d", q.settled, 203*64)
	}
}

func TestPublishAllocatesMessagesOnly(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		queues []string // in turn
		props  string
		want   float64
		maker  bool // is kept for the next batch
	}{
		{"many to one queue", lonely + 48, []string{"q"}, "\x10\x00\x01", lonely + 48/12, true},
		{"many to two queues", 64, []string{"q", "r"}, "\x10\x00\x01", 64, false},
		{"with headers, which may send each elsewhere", 64, []string{"q"}, "\x20\x00\x00\x00\x00\x00", 64, false},
		{"few", lonely, []string{"q"}, "\x10\x00\x01", lonely, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newTestConn(t, newTestServer(t, zap.NewNop()))
			for _, name := range tt.queues {
				// A queue that keeps nothing: what is measured is the way there.
				declare := &frames.QueueDeclare{Queue: name, Arguments: frames.Table{{Name: "x-max-length", Value: int32(0)}}}
				if err := c.channels[1].dispatch(declare); err != nil {
					t.Fatal(err)
				}
			}
			var read []byte
			for i := range tt.n {
				read = appendPublish(read, 1, tt.queues[i%len(tt.queues)], []byte(tt.props), make([]byte, 100))
			}
			round := func() {
				c.buf, c.r, c.w = read, 0, len(read)
				if _, err := c.batch(); err != nil {
					t.Fatal(err)
				}
			}
			round()
			round()
			if got := testing.AllocsPerRun(100, round); got > tt.want {
				t.Errorf("%v allocations for %d messages, want at most %v", got, tt.n, tt.want)
			}
			if kept := c.alike.maker != nil; kept != tt.maker {
				t.Errorf("a maker is kept: %t, want %t", kept, tt.maker)
			}
			if q, err := c.vhost.Queue(c.channels[1], "q"); err != nil || int(q.Status().Published) != 103*tt.n/len(tt.queues) {
				t.Errorf("the queue has taken %d messages, %v; want %d", q.Status().Published, err, 103*tt.n/len(tt.queues))
			}
		})
	}
}

func TestPushDoesNotAllocate(t *testing.T) {
	c, client := newSleeper(t, zap.NewNop())
	go io.Copy(io.Discard, client) // ends with the test
	round := func() { pushAck(c) }
	round()
	if got := testing.AllocsPerRun(200, round); got != 0 {
		t.Errorf("writing an ack in the writer's place: %v allocations, want 0", got)
	}
	if c.woken() {
		t.Error("the writer was woken")
	}
}

// TestAllocBodiesAreUsedAgain: the memory of a body that one no-ack consumer got is that
// of the next one; that of a body which somebody else may still have is not.
func TestAllocBodiesAreUsedAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // a pool may keep one value for each processor
	for _, tt := range []struct {
		name        string
		noAck, sole bool
		traced      bool
		again       bool
	}{
		{"nobody else has it", true, true, false, true},
		{"to be acknowledged", false, true, false, false},
		{"others have it", true, false, false, false},
		{"copies go to the trace exchange", true, true, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const size = 40 << 10
			ch, c, q := newTestChannel(tt.noAck)
			q.name = "q"
			ch.conn.user.Name = "guest"
			ch.conn.vhost = newTestConn(t, newTestServer(t, zap.NewNop())).vhost
			ch.conn.vhost.SetTracing(tt.traced)
			var stock message.Stock
			for stock.Take(size) != nil { // what other tests have left
			}
			batch := testBatch(1, 0)
			batch[0].Msg.Body = make([]byte, size)
			batch[0].Sole = tt.sole
			var out pending
			if err := deliverAndSend(c, batch, &out); err != nil {
				t.Fatal(err)
			}
			stock.Rest()
			body := stock.Take(size)
			if got := body != nil && &body[:1][0] == &batch[0].Msg.Body[0]; got != tt.again {
				t.Errorf("the body is used again: %v, want %v", got, tt.again)
			}
		})
	}
}

func TestPublishOfALargeBodyAllocatesNoBody(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := newTestConn(t, s)
	_, consumer, _ := newTestChannel(true)
	var out pending
	const size = 3 << 10
	read := appendPublish(nil, 1, "q", []byte{0x10, 0, 1}, make([]byte, size))
	round := func() {
		c.buf, c.r, c.w = read, 0, len(read)
		if _, err := c.batch(); err != nil {
			t.Fatal(err)
		}
		q, err := c.vhost.Queue(c.channels[1], "q")
		if err != nil {
			t.Fatal(err)
		}
		d, _, ok, err := q.Get(true)
		if !ok || err != nil {
			t.Fatalf("no message: %v", err)
		}
		d.Sole = true // a basic.get does not say so
		if err := deliverAndSend(consumer, []queue.Delivery{d}, &out); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.channels[1].dispatch(&frames.QueueDeclare{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	round()
	round()
	before := allocated()
	const n = 100
	for range n {
		round()
	}
	if got := (allocated() - before) / n; got > size/4 {
		t.Errorf("%d bytes allocated for a message with a body of %d, want none for the body", got, size)
	}
}

// allocated is how many bytes were allocated since the program began.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
