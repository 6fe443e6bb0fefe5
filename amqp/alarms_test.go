package amqp

import (
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// An alarm stops a publisher at the first message of a read, also an empty one.
func TestAlarmStopsAtTheFirstEmptyMessage(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := newTestConn(t, s)
	if err := c.channels[1].dispatch(&frames.QueueDeclare{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	s.SetAlarm("memory", true)
	var read []byte
	for range 3 {
		read = appendPublish(read, 1, "q", []byte{0, 0}, nil)
	}
	c.buf, c.r, c.w = read, 0, len(read)
	c.largest = s.largest()
	if more, err := c.batch(); err != nil || !more || !c.held {
		t.Fatalf("more %t, held %t, %v; want the turn to end", more, c.held, err)
	}
	if q, err := c.vhost.Queue(c.channels[1], "q"); err != nil || q.Status().Published != 1 {
		t.Errorf("the queue has taken %d messages, %v; want 1", q.Status().Published, err)
	}
}
