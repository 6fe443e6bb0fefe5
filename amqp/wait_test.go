package amqp

import (
	"context"
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// Who has given a store something to write waits while it is behind, and nobody
// else.
func TestOnlyWritersWaitForAStore(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	asked, caughtUp := make(chan queue.Writes, 1), make(chan struct{})
	s.cfg.Wait = func(ctx context.Context, w queue.Writes) error {
		asked <- w
		<-caughtUp
		return ctx.Err()
	}
	writer, other := dialTCP(t, s), dialTCP(t, s)
	writer.call(&frames.QueueDeclare{Queue: "durable", Durable: true}, frames.QueueDeclareOkID)
	other.call(&frames.QueueDeclare{Queue: "transient"}, frames.QueueDeclareOkID)
	publish := func(c *rawClient, key string) {
		c.method(1, &frames.BasicPublish{RoutingKey: key})
		c.write(frames.AppendContentHeader(nil, 1, 0, []byte{0, 0}))
	}
	publish(writer, "durable")
	if w := <-asked; w != queue.ToStore {
		t.Errorf("waits for %b, want %b", w, queue.ToStore)
	}
	publish(other, "transient")
	other.call(&frames.QueueDeclare{Queue: "transient", Passive: true}, frames.QueueDeclareOkID)
	publish(other, "nowhere")
	other.call(&frames.QueueDeclare{Queue: "transient", Passive: true}, frames.QueueDeclareOkID)
	close(caughtUp)
	writer.call(&frames.QueueDeclare{Queue: "durable", Passive: true}, frames.QueueDeclareOkID)
	if len(asked) > 0 {
		t.Errorf("somebody waited for %b", <-asked)
	}
}
