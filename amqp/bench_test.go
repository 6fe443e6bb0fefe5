package amqp

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// discardConn is a socket that takes everything.
type discardConn struct {
	net.Conn
	n int
}

func (d *discardConn) Write(b []byte) (int, error) {
	d.n += len(b)
	return len(b), nil
}

// fakeQueue takes back what is settled.
type fakeQueue struct {
	queue.Queue
	name    string // without one nothing is traced
	settled int
}

func (q *fakeQueue) Name() string { return q.name }

func (q *fakeQueue) Settle(_ *queue.Subscription, ds []queue.Delivery, _ queue.Outcome) {
	q.settled += len(ds)
}

// newTestChannel is a channel on a socket that takes everything, with a consumer
// of a fake queue.
func newTestChannel(noAck bool) (*channel, *consumer, *fakeQueue) {
	conn := &conn{out: newOutbox(nil), sock: &discardConn{}, frameMax: 131072, log: zap.NewNop()}
	ch := &channel{id: 1, conn: conn, consumers: map[string]*consumer{}}
	ch.unacked.init()
	q := &fakeQueue{}
	c := &consumer{ch: ch, queue: q}
	c.sub = &queue.Subscription{Consumer: c, Tag: "amq.ctag-0123456789abcdefghijkl", NoAck: noAck, Window: &ch.window}
	ch.consumers[c.sub.Tag] = c
	return ch, c, q
}

func testBatch(n, size int) []queue.Delivery {
	batch := make([]queue.Delivery, n)
	for i := range batch {
		m := message.New(14, size)
		m.RoutingKey = "queue"
		binary.BigEndian.PutUint16(m.Header, 0)
		batch[i] = queue.Delivery{Msg: m, ID: queue.ID(i + 1)}
	}
	return batch
}

// deliverAndSend is the way of a batch from a queue to the socket.
func deliverAndSend(c *consumer, batch []queue.Delivery, out *pending) error {
	c.Deliver(batch)
	c.ch.conn.out.next(out)
	return c.ch.conn.send(out)
}

func BenchmarkDeliver(b *testing.B) {
	ch, c, _ := newTestChannel(true)
	batch := testBatch(64, 16)
	var out pending
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		if err := deliverAndSend(c, batch, &out); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(ch.conn.sock.(*discardConn).n / b.N))
}

func BenchmarkSettle(b *testing.B) {
	ch, c, _ := newTestChannel(false)
	batch := testBatch(64, 16)
	var out pending
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(batch) {
		c.Deliver(batch)
		ch.conn.out.next(&out)
		out.reset()
		if err := ch.settleTags(ch.unacked.next-1, true, queue.Accepted); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEndToEnd publishes and consumes 16-byte transient messages over
// loopback with auto-ack.
func BenchmarkEndToEnd(b *testing.B) {
	s := newTestServer(b, zap.NewNop())
	c := dialTCP(b, s)
	c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	c.call(&frames.BasicConsume{Queue: "q", ConsumerTag: "c", NoAck: true}, frames.BasicConsumeOkID)
	const batch = 256
	var publishes []byte
	for range batch {
		publishes = appendPublish(publishes, 1, "q", []byte{0, 0}, make([]byte, 16))
	}
	delivery := frames.AppendDeliver(nil, 1, "c", 1, false, "", "q")
	delivery = frames.AppendBody(frames.AppendContentHeader(delivery, 1, 16, []byte{0, 0}), 1, make([]byte, 16), 4096)
	rounds := (b.N + batch - 1) / batch
	c.sock.SetDeadline(time.Now().Add(time.Minute))
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for range rounds {
			if _, err := c.sock.Write(publishes); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	if _, err := io.CopyN(io.Discard, c.sock, int64(rounds*batch*len(delivery))); err != nil {
		b.Fatal(err)
	}
}
