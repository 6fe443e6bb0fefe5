package amqp

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// A reader that was nudged while it waits goes on reading.
func TestNudgedReaderGoesOn(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := dialTCP(t, s)
	conn := s.connections()[0]
	for range 3 {
		awaitReading(t, conn)
		conn.nudge()
		awaitReading(t, conn)
		c.write(declare(nil, "q", false))
		c.want(frames.QueueDeclareOkID)
	}
}

func awaitReading(t *testing.T, c *conn) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !c.reading.Load(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the reader does not read")
		}
	}
}
