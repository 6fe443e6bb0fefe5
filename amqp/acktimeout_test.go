package amqp

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// consumeWithTimeout is a client that consumes from a queue of which late
// deliveries go back.
func consumeWithTimeout(t *testing.T, s *Server, ms int32, prefetch uint16) *rawClient {
	t.Helper()
	c := tuned(t, s, 0)
	c.method(1, &frames.ChannelOpen{})
	c.want(frames.ChannelOpenOkID)
	c.call(&frames.QueueDeclare{Queue: "q", Arguments: frames.Table{{Name: "x-consumer-timeout", Value: ms},
		{Name: "x-consumer-timeout-action", Value: "requeue"}}}, frames.QueueDeclareOkID)
	c.call(&frames.BasicQos{PrefetchCount: prefetch}, frames.BasicQosOkID)
	c.call(&frames.BasicConsume{Queue: "q", ConsumerTag: "c"}, frames.BasicConsumeOkID)
	return c
}

// wantDelivery reads one delivery and returns its tag.
func (c *rawClient) wantDelivery(redelivered bool, body string) uint64 {
	c.t.Helper()
	m := c.want(frames.BasicDeliverID).(*frames.BasicDeliver)
	c.next() // header
	if got := string(c.next().Payload); got != body || m.Redelivered != redelivered {
		c.t.Errorf("delivered %q, redelivered %t, want %q, %t", got, m.Redelivered, body, redelivered)
	}
	return m.DeliveryTag
}

// declareCount is how many messages of the queue are ready.
func (c *rawClient) declareCount() uint32 {
	c.t.Helper()
	c.method(1, &frames.QueueDeclare{Queue: "q", Passive: true})
	return c.want(frames.QueueDeclareOkID).(*frames.QueueDeclareOk).MessageCount
}

func TestLateDeliveryGoesBackAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumeWithTimeout(t, newTestServer(t, zap.NewNop()), 5000, 2)
		start := time.Now()
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("late")))
		first := c.wantDelivery(false, "late")
		time.Sleep(3 * time.Second)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("other")))
		other := c.wantDelivery(false, "other")
		second := c.wantDelivery(true, "late") // at 5 s
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("delivered again after %v, want 5 s", d)
		}
		c.method(1, &frames.BasicAck{DeliveryTag: first}) // does not settle the second copy
		c.method(1, &frames.BasicNack{DeliveryTag: other, Requeue: false})
		if n := c.declareCount(); n != 0 {
			t.Errorf("%d ready, want none", n)
		}
		third := c.wantDelivery(true, "late")
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("delivered a third time after %v, want 10 s", d)
		}
		c.method(1, &frames.BasicReject{DeliveryTag: second, Requeue: true}) // late, too
		c.method(1, &frames.BasicAck{DeliveryTag: third})
		if n := c.declareCount(); n != 0 {
			t.Errorf("%d ready, want none", n)
		}
		time.Sleep(time.Hour)
		c.method(1, &frames.BasicAck{DeliveryTag: third}) // is settled: that is an error as ever
		c.wantClose(1, frames.PreconditionFailed, "PRECONDITION_FAILED - unknown delivery tag 4")
	})
}

func TestLateAckOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumeWithTimeout(t, newTestServer(t, zap.NewNop()), 5000, 3)
		for _, body := range []string{"a", "b", "c"} {
			c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte(body)))
			c.wantDelivery(false, body)
			time.Sleep(2 * time.Second)
		} // at 6 s: a was late at 5 s
		c.wantDelivery(true, "a")                                     // 4
		c.wantDelivery(true, "b")                                     // 5, at 7 s
		c.method(1, &frames.BasicAck{DeliveryTag: 2, Multiple: true}) // both are late
		c.method(1, &frames.BasicAck{DeliveryTag: 3})                 // c is not
		c.method(1, &frames.BasicAck{DeliveryTag: 5, Multiple: true}) // a and b, the second time
		if n := c.declareCount(); n != 0 {
			t.Errorf("%d ready, want none", n)
		}
		time.Sleep(time.Minute)
		if n := c.declareCount(); n != 0 {
			t.Errorf("%d ready, want none", n)
		}
	})
}

// One channel, two queues: each has its own time.
func TestTimeoutOfEachQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := consumeWithTimeout(t, newTestServer(t, zap.NewNop()), 2000, 0)
		c.call(&frames.QueueDeclare{Queue: "slow", Arguments: frames.Table{{Name: "x-consumer-timeout", Value: int32(30000)}}}, frames.QueueDeclareOkID)
		c.call(&frames.BasicConsume{Queue: "slow", ConsumerTag: "d"}, frames.BasicConsumeOkID)
		start := time.Now()
		c.write(appendPublish(nil, 1, "slow", []byte{0, 0}, []byte("slow")))
		c.wantDelivery(false, "slow")
		time.Sleep(10 * time.Second)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("quick")))
		c.wantDelivery(false, "quick")
		tag := c.wantDelivery(true, "quick")
		if d := time.Since(start); d != 12*time.Second {
			t.Errorf("delivered again after %v, want 12 s", d)
		}
		c.method(1, &frames.BasicAck{DeliveryTag: tag})
		c.wantClose(1, frames.PreconditionFailed, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. "+
			"Timeout value used: 30000 ms. This timeout value can be configured, see consumers doc guide to learn more")
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("closed after %v, want 30 s", d)
		}
	})
}

// A channel that uses one short-lived queue after the other watches those in use only.
func TestQueuesInUseAreWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := consumeWithTimeout(t, s, 5000, 0)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("late")))
		c.wantDelivery(false, "late")
		for i := range 200 {
			name := fmt.Sprint(i)
			c.call(&frames.QueueDeclare{Queue: name}, frames.QueueDeclareOkID)
			c.call(&frames.BasicConsume{Queue: name, ConsumerTag: name}, frames.BasicConsumeOkID)
			c.write(appendPublish(nil, 1, name, []byte{0, 0}, []byte("m")))
			c.method(1, &frames.BasicAck{DeliveryTag: c.wantDelivery(false, "m")})
			c.call(&frames.BasicCancel{ConsumerTag: name}, frames.BasicCancelOkID)
			c.call(&frames.QueueDelete{Queue: name}, frames.QueueDeleteOkID)
		}
		conn := s.running()[0]
		conn.post(func() error {
			if n := len(conn.channels[1].timeouts.limits); n > 2*fewLimits {
				t.Errorf("%d queues are watched, want at most %d", n, 2*fewLimits)
			}
			return nil
		})
		c.wantDelivery(true, "late")
	})
}

func TestLateTags(t *testing.T) {
	var l lateTags
	if l.take(1) || l.take(0) {
		t.Error("tags of no delivery are late")
	}
	for tag := range uint64(maxLateTags + 2) {
		l.add(tag + 1)
	}
	if len(l.tags) != 2 {
		t.Errorf("%d tags are remembered, want 2", len(l.tags))
	}
	for _, tt := range []struct {
		tag  uint64
		want bool
	}{{maxLateTags, true}, {1, true}, {maxLateTags + 1, true}, {maxLateTags + 1, false}, {maxLateTags + 2, true}, {maxLateTags + 3, false}, {0, false}} {
		if got := l.take(tt.tag); got != tt.want {
			t.Errorf("take(%d) = %t, want %t", tt.tag, got, tt.want)
		}
	}
}
