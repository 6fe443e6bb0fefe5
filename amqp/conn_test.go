package amqp

import (
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// A client that is told to close may not answer; nobody waits for it.
func TestExclusiveQueuesEndBeforeTheCloseIsSent(t *testing.T) {
	for name, closing := range map[string]func(s *Server, c *rawClient){
		"error":  func(_ *Server, c *rawClient) { c.method(7, &frames.QueuePurge{Queue: "mine"}) },
		"broker": func(s *Server, _ *rawClient) { s.CloseConnection(s.running()[0].name, "") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer(t, zap.NewNop())
				c := tuned(t, s, 0)
				c.method(1, &frames.ChannelOpen{})
				c.want(frames.ChannelOpenOkID)
				c.call(&frames.QueueDeclare{Queue: "mine", Exclusive: true}, frames.QueueDeclareOkID)
				other := tuned(t, s, 0)
				closing(s, c)
				c.want(frames.ConnectionCloseID)
				other.method(1, &frames.ChannelOpen{})
				other.want(frames.ChannelOpenOkID)
				other.call(&frames.QueueDeclare{Queue: "mine", Exclusive: true}, frames.QueueDeclareOkID)
			})
		})
	}
}
