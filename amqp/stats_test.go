package amqp

import (
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// What a connection has read and written is counted, each answered request at
// least once.
func TestConnectionsCountReadsAndWrites(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := dialTCP(t, s)
	before := s.Connections()[0]
	const calls = 5
	for range calls {
		c.call(&frames.BasicQos{PrefetchCount: 1}, frames.BasicQosOkID)
	}
	after := s.Connections()[0]
	if got := after.Reads - before.Reads; got != calls {
		t.Errorf("%d reads for %d requests", got, calls)
	}
	// The last write may not have been counted yet, the last one before may have come late.
	if got := after.Writes - before.Writes; got < calls-1 || got > calls+1 {
		t.Errorf("%d writes for %d answers", got, calls)
	}
}

func TestPendingIsWhatWaits(t *testing.T) {
	c := newTestConn(t, newTestServer(t, zap.NewNop()))
	c.info.Store(&ConnectionInfo{})
	before := c.snapshot().Pending
	m := message.New(2, 100)
	c.out.mu.Lock()
	c.out.messageLocked(m, false, segment{kind: returnSegment, n: 1, channel: 1})
	c.out.mu.Unlock()
	if got, want := c.snapshot().Pending-before, 64+102; got != want {
		t.Errorf("%d bytes wait, want %d", got, want)
	}
}
