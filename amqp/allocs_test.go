//go:build !race

// The race detector makes sync.Pool forget, so budgets are checked without it.

package amqp

import (
	"io"
	"net"
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
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

func TestPublishAllocatesTheMessageOnly(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	sock, _ := net.Pipe()
	c := newConn(s, sock)
	c.vhost, _ = s.cfg.VHosts.Get("/")
	c.user, c.grants = auth.User{Name: "guest"}, s.cfg.Auth.Grants("guest", "/")
	c.channelMax, c.state = 1, running
	if err := c.openChannel(1); err != nil {
		t.Fatal(err)
	}
	// A queue that keeps nothing: what is measured is the way there.
	declare := &frames.QueueDeclare{Queue: "q", Arguments: frames.Table{{Name: "x-max-length", Value: int32(0)}}}
	if err := c.channels[1].dispatch(declare); err != nil {
		t.Fatal(err)
	}
	const n = 64
	var read []byte
	for range n {
		read = appendPublish(read, 1, "q", []byte{0x10, 0, 1}, make([]byte, 100))
	}
	round := func() {
		c.buf, c.r, c.w = read, 0, len(read)
		if err := c.batch(); err != nil {
			t.Fatal(err)
		}
	}
	round()
	round()
	if got := testing.AllocsPerRun(100, round) / n; got > 1 {
		t.Errorf("%v allocations per published message, want at most 1", got)
	}
	if q, err := c.vhost.Queue(c.channels[1], "q"); err != nil || q.Status().Published != 103*n {
		t.Errorf("the queue has taken %d messages, %v; want %d", q.Status().Published, err, 103*n)
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
