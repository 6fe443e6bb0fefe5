package amqp

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

func TestDrainClosesAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := tuned(t, s, 0)
		start := time.Now()
		s.Drain(time.Hour)
		s.Drain(10 * time.Second) // counts from now on
		if !s.InMaintenance() {
			t.Error("a drained server says that it is not in maintenance")
		}
		late := dialPipe(t, s)
		late.write([]byte(frames.ProtocolHeader))
		late.want(frames.ConnectionStartID)
		late.method(0, &frames.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest")})
		late.want(frames.ConnectionTuneID)
		late.method(0, &frames.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072})
		late.method(0, &frames.ConnectionOpen{VHost: "/"})
		late.want(frames.ConnectionCloseID)
		late.method(0, &frames.ConnectionCloseOk{})
		late.wantEOF()
		c.want(frames.ConnectionCloseID)
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("closed after %v, want 10 s", d)
		}
		c.method(0, &frames.ConnectionCloseOk{})
		c.wantEOF()
		s.Revive()
		tuned(t, s, 0)
	})
}

func TestReviveWithinTheGraceClosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		tuned(t, s, 0)
		s.Drain(10 * time.Second)
		time.Sleep(5 * time.Second)
		s.Revive()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := asked(s); n != 0 || s.InMaintenance() {
			t.Errorf("%d connections were asked to close; in maintenance: %v", n, s.InMaintenance())
		}
	})
}

func TestDrainClosesInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		for range 120 {
			tuned(t, s, 0)
		}
		s.Drain(time.Second)
		time.Sleep(time.Second - 1)
		for _, want := range []int{0, 50, 100, 120} {
			synctest.Wait()
			if n := asked(s); n != want {
				t.Errorf("%d connections are asked to close, want %d", n, want)
			}
			time.Sleep(drainEvery)
		}
	})
}

// asked is how many connections the server wants closed.
func asked(s *Server) int {
	n := 0
	for _, c := range s.connections() {
		if c.forced.Load() != nil {
			n++
		}
	}
	return n
}
