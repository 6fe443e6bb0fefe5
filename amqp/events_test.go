package amqp

import (
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

func TestAChannelIsClosedOnceInTheEvents(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	listener := dialTCP(t, s)
	listener.call(&frames.QueueDeclare{Queue: "events"}, frames.QueueDeclareOkID)
	listener.call(&frames.QueueBind{Queue: "events", Exchange: "amq.rabbitmq.event", RoutingKey: "channel.closed"}, frames.QueueBindOkID)

	c := dialPipe(t, s)
	c.login()
	c.method(1, &frames.QueueDeclare{Queue: "no such queue", Passive: true})
	c.wantClose(1, frames.NotFound, "NOT_FOUND - no queue 'no such queue' in vhost '/'")
	c.method(0, &frames.ConnectionClose{ReplyCode: 200}) // with the channel.close unanswered
	c.want(frames.ConnectionCloseOkID)

	listener.method(1, &frames.QueueDeclare{Queue: "events", Passive: true})
	if m := listener.want(frames.QueueDeclareOkID).(*frames.QueueDeclareOk); m.MessageCount != 1 {
		t.Errorf("%d channel.closed events for one channel, want 1", m.MessageCount)
	}
}
