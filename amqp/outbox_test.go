package amqp

import (
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// statusOf is the state of a queue of the vhost "/".
func statusOf(t *testing.T, s *Server, name string) queue.Status {
	t.Helper()
	v, _ := s.cfg.VHosts.Get("/")
	q, err := v.Queue(vhost.System, name)
	if err != nil {
		t.Fatal(err)
	}
	return q.Status()
}

// The writer has failed, but the reader still has requests in its buffer.
func TestAGetThatCannotBeSentGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := tuned(t, s, 0)
		c.method(1, &frames.ChannelOpen{})
		c.want(frames.ChannelOpenOkID)
		c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("m")))
		synctest.Wait()
		conn := s.running()[0]
		conn.post(func() error {
			conn.out.close(true)
			return conn.channels[1].basicGet(&frames.BasicGet{Queue: "q"})
		})
		synctest.Wait()
		if st := statusOf(t, s, "q"); st.Ready != 0 || st.Unacked != 1 {
			t.Errorf("%d ready and %d unacknowledged, want 0 and 1: it was got", st.Ready, st.Unacked)
		}
		c.sock.Close()
		synctest.Wait()
		if st := statusOf(t, s, "q"); st.Ready != 1 || st.Unacked != 0 {
			t.Errorf("%d ready and %d unacknowledged, want 1 and 0", st.Ready, st.Unacked)
		}
	})
}

// manyGets is a client that has sent a request for each of 1000 messages of 64 KB in
// queue "q" and does not read the answers, or heartbeats.
func manyGets(t *testing.T, s *Server, heartbeat uint16) *rawClient {
	t.Helper()
	publisher, c := tuned(t, s, 0), tuned(t, s, heartbeat)
	for _, c := range []*rawClient{publisher, c} {
		c.method(1, &frames.ChannelOpen{})
		c.want(frames.ChannelOpenOkID)
	}
	publisher.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	publish := appendPublish(nil, 1, "q", []byte{0, 0}, make([]byte, 64_000))
	var gets []byte
	for range 1000 {
		publisher.write(publish)
		gets = frames.AppendMethod(gets, 1, &frames.BasicGet{Queue: "q"})
	}
	synctest.Wait()
	go c.sock.Write(gets) // until the connection ends; in reads of 4 KB at first
	synctest.Wait()
	if st := statusOf(t, s, "q"); st.Unacked*64_000 > 3*outboxHardLimit {
		t.Errorf("%d messages of 64 kB are out to a client that does not read, want at most %d", st.Unacked, 3*outboxHardLimit/64_000)
	}
	return c
}

func TestGetsStopWhenNobodyReadsTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := manyGets(t, s, 0)
		for i := range 1000 {
			if m := c.want(frames.BasicGetOkID).(*frames.BasicGetOk); m.DeliveryTag != uint64(i+1) || m.MessageCount != uint32(999-i) {
				t.Fatalf("answer %d has the tag %d and %d left, want %d and %d", i, m.DeliveryTag, m.MessageCount, i+1, 999-i)
			}
			c.next() // header
			c.next() // body
		}
	})
}

func TestGetsOfAClosedConnectionEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := manyGets(t, s, 0)
		s.running()[1].force(frames.Unboundf(frames.ConnectionForced, "bye"))
		synctest.Wait()
		if st := statusOf(t, s, "q"); st.Ready != 1000 || st.Got > 3*outboxHardLimit/64_000 {
			t.Errorf("%d messages are ready and %d were got, want 1000 and at most %d", st.Ready, st.Got, 3*outboxHardLimit/64_000)
		}
		for {
			f := c.next()
			if id, _, _ := frames.SplitMethod(f.Payload); f.Type == frames.MethodFrame && id == frames.ConnectionCloseID {
				return
			}
		}
	})
}

func TestAnEmptiedOutboxIsSmall(t *testing.T) {
	ch, _, q := newTestChannel(true)
	d := testBatch(1, 0)[0]
	for range 2 * keepDeliveries {
		ch.conn.out.get(ch, d, q, true, 0)
	}
	var p pending
	ch.conn.out.next(&p)
	p.reset()
	if s, d := cap(p.segments), cap(p.deliveries); s > keepDeliveries || d > keepDeliveries {
		t.Errorf("room for %d segments and %d deliveries is kept, want at most %d", s, d, keepDeliveries)
	}
}
