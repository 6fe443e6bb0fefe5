package amqp

import (
	"bytes"
	"net"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A recordConn keeps what is written to it.
type recordConn struct {
	net.Conn
	writes [][]byte
}

func (r *recordConn) Write(b []byte) (int, error) {
	r.writes = append(r.writes, bytes.Clone(b))
	return len(b), nil
}

// TestDeliveriesThatAreAlike: what a delivery has in common with the one before is
// copied, whatever lies between them, a write or another envelope.
func TestDeliveriesThatAreAlike(t *testing.T) {
	_, c, _ := newTestChannel(true)
	sock := &recordConn{}
	c.ch.conn.sock = sock
	one, two := message.NewEnvelope([]byte{0x10, 0, 2}), message.NewEnvelope([]byte{0, 0})
	one.Exchange, one.RoutingKey, two.RoutingKey = "x", "a", "b"
	var batch []queue.Delivery
	var want []byte
	for i, m := range []struct {
		e    *message.Envelope
		body int
	}{{one, 10}, {one, 0}, {one, 15 << 10}, {two, 5}, {two, 200}, {one, 15 << 10}, {one, 3}, {two, 9}} {
		for k := range 20 { // more than one write can take
			msg := message.NewIn(m.e, m.body)
			for j := range msg.Body {
				msg.Body[j] = byte(i)
			}
			redelivered := k%3 == 0
			batch = append(batch, queue.Delivery{Msg: msg, Redelivered: redelivered})
			want = frames.AppendMethod(want, 1, &frames.BasicDeliver{ConsumerTag: c.sub.Tag, DeliveryTag: uint64(len(batch)),
				Redelivered: redelivered, Exchange: msg.Exchange, RoutingKey: msg.RoutingKey})
			want = frames.AppendContentHeader(want, 1, uint64(m.body), msg.Header)
			want = frames.AppendBody(want, 1, msg.Body, c.ch.conn.frameMax)
		}
	}
	var out pending
	if err := deliverAndSend(c, batch, &out); err != nil {
		t.Fatal(err)
	}
	if got := bytes.Join(sock.writes, nil); !bytes.Equal(got, want) {
		t.Errorf("%d bytes were written, want these %d", len(got), len(want))
	}
	if len(sock.writes) < 3 {
		t.Errorf("%d writes: the buffer was never full", len(sock.writes))
	}
}
