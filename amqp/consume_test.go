package amqp

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// consumingTwo is a client whose channel 1 consumes from one queue, and who has
// another one and channel 2.
func consumingTwo(t *testing.T, s *Server) *rawClient {
	t.Helper()
	c := tuned(t, s, 0)
	for _, id := range []uint16{1, 2} {
		c.method(id, &frames.ChannelOpen{})
		c.want(frames.ChannelOpenOkID)
	}
	c.call(&frames.QueueDeclare{Queue: "other"}, frames.QueueDeclareOkID)
	c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	c.call(&frames.BasicConsume{Queue: "q", ConsumerTag: "t"}, frames.BasicConsumeOkID)
	return c
}

func TestADeletedQueueTakesItsConsumerAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		s.cfg.MaxConsumers = 1
		listener, c := tuned(t, s, 0), consumingTwo(t, s)
		listener.method(1, &frames.ChannelOpen{})
		listener.want(frames.ChannelOpenOkID)
		listener.call(&frames.QueueDeclare{Queue: "events"}, frames.QueueDeclareOkID)
		listener.call(&frames.QueueBind{Queue: "events", Exchange: "amq.rabbitmq.event", RoutingKey: "consumer.deleted"}, frames.QueueBindOkID)
		synctest.Wait()
		c.method(2, &frames.QueueDelete{Queue: "q"})
		c.want(frames.BasicCancelID)
		c.want(frames.QueueDeleteOkID)
		synctest.Wait()
		if n := statusOf(t, s, "events").Ready; n != 1 {
			t.Errorf("%d events consumer.deleted, want 1", n)
		}
		if list := s.Consumers(); len(list) != 0 {
			t.Errorf("listed: %v, want none", list)
		}
		for _, ch := range s.running()[1].openChannels() {
			if n := len(ch.consumers); n != 0 {
				t.Errorf("channel %d keeps %d consumers, want none", ch.id, n)
			}
		}
		c.call(&frames.BasicConsume{Queue: "other", ConsumerTag: "t"}, frames.BasicConsumeOkID)
		if list := s.Consumers(); len(list) != 1 || list[0].Queue != "other" {
			t.Errorf("listed: %v, want one of the queue other", list)
		}
		c.call(&frames.BasicCancel{ConsumerTag: "t"}, frames.BasicCancelOkID)
		if n := statusOf(t, s, "events").Ready; n != 2 {
			t.Errorf("%d events consumer.deleted, want 2", n)
		}
	})
}

// A reader that waits forgets the consumer later. Until then it counts for nobody.
func TestAConsumerOfADeletedQueueIsNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		s.cfg.MaxConsumers = 1
		c, other := consumingTwo(t, s), tuned(t, s, 0)
		s.SetAlarm("memory", true)
		c.write(appendPublish(nil, 1, "other", []byte{0, 0}, []byte("m")))
		c.want(frames.ConnectionBlockedID)
		other.method(1, &frames.ChannelOpen{})
		other.want(frames.ChannelOpenOkID)
		go func() {
			c.want(frames.BasicCancelID)
			time.Sleep(time.Second)
			s.SetAlarm("memory", false)
		}()
		other.call(&frames.QueueDelete{Queue: "q"}, frames.QueueDeleteOkID)
		if list := s.Consumers(); len(list) != 0 {
			t.Errorf("listed: %v, want none", list)
		}
		if n := s.Channels()[0].Consumers; n != 0 {
			t.Errorf("the channel shows %d consumers, want none", n)
		}
		time.Sleep(time.Second)
		c.want(frames.ConnectionUnblockedID)
		c.call(&frames.BasicConsume{Queue: "other", ConsumerTag: "t"}, frames.BasicConsumeOkID)
	})
}

// What a client sends together is handled without a pause in which the reader could
// forget a consumer.
func TestAPipelinedConsumeTakesThePlaceOfADeletedQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		s.cfg.MaxConsumers = 1
		c := consumingTwo(t, s)
		b := frames.AppendMethod(nil, 2, &frames.QueueDelete{Queue: "q"})
		b = frames.AppendMethod(b, 1, &frames.BasicConsume{Queue: "other", ConsumerTag: "t"})
		c.write(b)
		c.want(frames.BasicCancelID)
		c.want(frames.QueueDeleteOkID)
		c.want(frames.BasicConsumeOkID)
		synctest.Wait()
		if list := s.Consumers(); len(list) != 1 || list[0].Queue != "other" {
			t.Errorf("listed: %v, want one of the queue other", list)
		}
	})
}
