package amqp

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/frames"
)

// wantPanicLogged wants one error line with the stack.
func wantPanicLogged(t *testing.T, logs *observer.ObservedLogs) {
	t.Helper()
	lines := logs.FilterLevelExact(zap.ErrorLevel).All()
	if len(lines) != 1 || !strings.Contains(lines[0].ContextMap()["stack"].(string), "amqp/conn.go") {
		t.Errorf("logged %v, want one line with the stack", lines)
	}
}

func TestAPanicEndsOnlyItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		s := newTestServer(t, zap.New(core))
		c, other := tuned(t, s, 0), tuned(t, s, 0)
		synctest.Wait()
		s.running()[0].post(func() error { panic("a bug") })
		c.wantClose(0, frames.InternalError, "INTERNAL_ERROR")
		c.wantEOF()
		other.method(1, &frames.ChannelOpen{})
		other.want(frames.ChannelOpenOkID)
		wantPanicLogged(t, logs)
	})
}

func TestAPanicOfTheWriterEndsOnlyItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.ErrorLevel)
		s := newTestServer(t, zap.New(core))
		c, other := tuned(t, s, 0), tuned(t, s, 0)
		synctest.Wait()
		out := s.running()[0].out
		out.mu.Lock()
		out.segments = append(out.segments, segment{kind: returnSegment, n: 1}) // of a message that is not there
		out.wakeLocked()
		out.mu.Unlock()
		c.wantEOF()
		other.method(1, &frames.ChannelOpen{})
		other.want(frames.ChannelOpenOkID)
		wantPanicLogged(t, logs)
	})
}

// The writer fails while the reader waits for it to make room.
func TestAPanicOfTheWriterEndsAWaitingReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := tuned(t, s, 0)
		synctest.Wait()
		out := s.running()[0].out
		out.mu.Lock()
		out.messageLocked(testBatch(1, flushSize)[0].Msg, false, segment{kind: getSegment, n: 1, channel: 1}) // is written first
		out.segments = append(out.segments, segment{kind: returnSegment, n: 1})                               // of a message that is not there
		out.wakeLocked()
		out.mu.Unlock()
		synctest.Wait()
		out.mu.Lock()
		out.bytes = outboxHardLimit + 1
		out.mu.Unlock()
		c.write(frames.AppendHeartbeat(nil))
		synctest.Wait()
		io.Copy(io.Discard, c.sock)
		synctest.Wait()
		if n := len(s.running()); n != 0 {
			t.Errorf("%d connections are left, want none", n)
		}
		out.close(true) // or the reader would wait for ever
	})
}
