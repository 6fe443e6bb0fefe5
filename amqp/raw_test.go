package amqp

import (
	"bytes"
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// TestCalmChangesNothing: a client gets the same answers whether there is little to
// do or much, and when that changes between any two of them.
func TestCalmChangesNothing(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := dialTCP(t, s)
	c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	for i := range 300 {
		s.cfg.Calm.Store(i%3 == 0)
		body := bytes.Repeat([]byte{byte(i)}, i*i)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, body))
		s.cfg.Calm.Store(i%2 == 0)
		c.method(1, &frames.BasicGet{Queue: "q", NoAck: true})
		c.want(frames.BasicGetOkID)
		if f := c.next(); f.Type != frames.HeaderFrame {
			t.Fatalf("got a frame of type %d, want a header", f.Type)
		}
		if len(body) == 0 {
			continue
		}
		if f := c.next(); f.Type != frames.BodyFrame || !bytes.Equal(f.Payload, body) {
			t.Fatalf("message %d: got a frame of type %d with %d bytes, want the body of %d", i, f.Type, len(f.Payload), len(body))
		}
	}
	s.cfg.Calm.Store(true)
	c.method(0, &frames.ConnectionClose{ReplyCode: 200})
	c.want(frames.ConnectionCloseOkID)
	c.wantEOF()
}
