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
