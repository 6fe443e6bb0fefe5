package amqp

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// What depends on time runs on the fake clock of a bubble, over a pipe.

func TestHandshakeTimeout(t *testing.T) {
	for name, send := range map[string]string{"nothing sent": "", "after connection.start": frames.ProtocolHeader} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer(t, zap.NewNop())
				c := dialPipe(t, s)
				start := time.Now()
				if send != "" {
					c.write([]byte(send))
					c.want(frames.ConnectionStartID)
				}
				c.wantEOF()
				if d := time.Since(start); d < 10*time.Second || d > 14*time.Second {
					t.Errorf("closed after %v, want 10 s", d)
				}
			})
		})
	}
}

// tuned is a client that has chosen a heartbeat.
func tuned(t *testing.T, s *Server, heartbeat uint16) *rawClient {
	t.Helper()
	c := dialPipe(t, s)
	c.open(heartbeat)
	return c
}

// open does the handshake.
func (c *rawClient) open(heartbeat uint16) {
	c.t.Helper()
	c.write([]byte(frames.ProtocolHeader))
	c.want(frames.ConnectionStartID)
	c.method(0, &frames.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest"), ClientProperties: frames.Table{
		{Name: "capabilities", Value: frames.Table{{Name: "connection.blocked", Value: true}, {Name: "consumer_cancel_notify", Value: true}}}}})
	c.want(frames.ConnectionTuneID)
	c.method(0, &frames.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072, Heartbeat: heartbeat})
	c.method(0, &frames.ConnectionOpen{VHost: "/"})
	c.want(frames.ConnectionOpenOkID)
}

func TestHeartbeatsAreSentAndASilentClientIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tuned(t, newTestServer(t, zap.NewNop()), 2)
		start := time.Now()
		for i := range 4 {
			f := c.next()
			want := time.Duration(i+2) * time.Second // open-ok counted as traffic of the first second
			if f.Type != frames.HeartbeatFrame || f.Channel != 0 || time.Since(start) != want {
				t.Fatalf("frame type %d on channel %d after %v, want a heartbeat after %v", f.Type, f.Channel, time.Since(start), want)
			}
		}
		c.wantEOF()
		if d := time.Since(start); d != 6*time.Second {
			t.Errorf("a client with a heartbeat of 2 s was cut off after %v, want 6 s", d)
		}
	})
}

func TestAnyByteOfTheClientCountsAsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tuned(t, newTestServer(t, zap.NewNop()), 1)
		beat := frames.AppendHeartbeat(nil)
		for i := range 40 { // one byte in 1.5 s: a frame takes 12 s
			time.Sleep(1500 * time.Millisecond)
			go drainFor(c, time.Millisecond)
			c.write(beat[i%len(beat) : i%len(beat)+1])
		}
	})
}

// drainFor reads what is there, so that the pipe does not block the broker.
func drainFor(c *rawClient, d time.Duration) {
	c.sock.SetReadDeadline(time.Now().Add(d))
	var b [4096]byte
	c.sock.Read(b[:])
}

func TestConsumerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tuned(t, newTestServer(t, zap.NewNop()), 0)
		c.method(1, &frames.ChannelOpen{})
		c.want(frames.ChannelOpenOkID)
		c.call(&frames.QueueDeclare{Queue: "q", Arguments: frames.Table{{Name: "x-consumer-timeout", Value: int32(5000)}}}, frames.QueueDeclareOkID)
		c.call(&frames.BasicConsume{Queue: "q", ConsumerTag: "c"}, frames.BasicConsumeOkID)
		time.Sleep(time.Hour) // nothing is out: nothing times out
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("m")))
		c.want(frames.BasicDeliverID)
		start := time.Now()
		c.next() // header
		c.next() // body
		c.wantClose(1, frames.PreconditionFailed, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. "+
			"Timeout value used: 5000 ms. This timeout value can be configured, see consumers doc guide to learn more")
		if d := time.Since(start); d < 5*time.Second || d > 10*time.Second {
			t.Errorf("closed after %v, want between 5 and 10 s", d)
		}
		c.method(1, &frames.ChannelCloseOk{})
		c.method(1, &frames.ChannelOpen{})
		c.want(frames.ChannelOpenOkID)
		c.method(1, &frames.BasicGet{Queue: "q", NoAck: true})
		if m := c.want(frames.BasicGetOkID).(*frames.BasicGetOk); !m.Redelivered {
			t.Error("the message that timed out is not marked as redelivered")
		}
		c.next()
		c.next()
	})
}

func TestConsumerTimeoutThatIsNotPositiveIsTheGlobalOne(t *testing.T) {
	for _, ms := range []int32{0, -5} {
		synctest.Test(t, func(t *testing.T) {
			c := tuned(t, newTestServer(t, zap.NewNop()), 0)
			c.method(1, &frames.ChannelOpen{})
			c.want(frames.ChannelOpenOkID)
			c.call(&frames.QueueDeclare{Queue: "q", Arguments: frames.Table{{Name: "x-consumer-timeout", Value: ms}}}, frames.QueueDeclareOkID)
			c.call(&frames.BasicConsume{Queue: "q", ConsumerTag: "c"}, frames.BasicConsumeOkID)
			c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("m")))
			c.want(frames.BasicDeliverID)
			c.next() // header
			c.next() // body
			start := time.Now()
			c.wantClose(1, frames.PreconditionFailed, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. "+
				"Timeout value used: 1800000 ms. This timeout value can be configured, see consumers doc guide to learn more")
			if d := time.Since(start); d < 29*time.Minute || d > 31*time.Minute {
				t.Errorf("x-consumer-timeout %d: closed after %v, want 30 min", ms, d)
			}
		})
	}
}

func TestAlarmBlocksPublishersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		s.SetAlarm("memory", true)
		c := tuned(t, s, 0)
		c.method(1, &frames.ChannelOpen{})
		c.want(frames.ChannelOpenOkID)
		c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID) // not blocked until it publishes
		c.write(appendPublish(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("m")), 1, "q", []byte{0, 0}, []byte("n")))
		if m := c.want(frames.ConnectionBlockedID).(*frames.ConnectionBlocked); m.Reason != "low on memory" {
			t.Errorf("blocked with reason %q, want %q", m.Reason, "low on memory")
		}
		other := tuned(t, s, 0)
		other.method(1, &frames.ChannelOpen{})
		other.want(frames.ChannelOpenOkID)
		other.call(&frames.BasicGet{Queue: "q", NoAck: true}, frames.BasicGetEmptyID) // what blocked its publisher waits with it

		s.SetAlarm("disk", true) // a second alarm, and the end of the first, say nothing
		s.SetAlarm("memory", false)
		go c.method(1, &frames.QueueDeclare{Queue: "q", Passive: true}) // waits: the socket is not read
		time.Sleep(time.Hour)
		synctest.Wait()
		s.SetAlarm("disk", false)
		c.want(frames.ConnectionUnblockedID)
		if ok := c.want(frames.QueueDeclareOkID).(*frames.QueueDeclareOk); ok.MessageCount != 2 {
			t.Errorf("%d messages in the queue after the alarm, want 2", ok.MessageCount)
		}
	})
}

func TestARefusedLoginIsAnsweredOnlyToClientsThatUnderstand(t *testing.T) {
	for name, tt := range map[string]struct {
		capable bool
		resp    string
	}{
		"wrong password, capable":     {true, "\x00guest\x00wrong"},
		"wrong password, not capable": {false, "\x00guest\x00wrong"},
		"malformed, capable":          {true, "nonsense"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dialPipe(t, newTestServer(t, zap.NewNop()))
				c.write([]byte(frames.ProtocolHeader))
				c.want(frames.ConnectionStartID)
				start := time.Now()
				c.method(0, &frames.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte(tt.resp), ClientProperties: frames.Table{
					{Name: "capabilities", Value: frames.Table{{Name: "authentication_failure_close", Value: tt.capable}}}}})
				if tt.capable && tt.resp != "nonsense" {
					c.wantClose(0, frames.AccessRefused, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.")
					c.method(0, &frames.ConnectionCloseOk{})
					if d := time.Since(start); d != 0 {
						t.Errorf("answered after %v, want at once", d)
					}
					return
				}
				c.wantEOF()
				if d := time.Since(start); d != 3*time.Second {
					t.Errorf("cut off after %v, want 3 s of silence", d)
				}
			})
		})
	}
}

func TestForcedCloseReachesAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := tuned(t, s, 0)
		synctest.Wait()
		name := s.Connections()[0].Name
		if s.CloseConnection("no such", "bye") {
			t.Error("closed a connection that is not there")
		}
		if !s.CloseConnection(name, "bye") {
			t.Errorf("no connection %q", name)
		}
		c.wantClose(0, frames.ConnectionForced, "CONNECTION_FORCED - bye")
		c.method(0, &frames.ConnectionCloseOk{})
		c.wantEOF()
	})
}

// A halfPipe is a pipe that knows whether its write side was closed by itself.
type halfPipe struct {
	net.Conn
	closed atomic.Bool
}

func (p *halfPipe) CloseWrite() error {
	p.closed.Store(true)
	return nil
}

// dialHalf connects a client through a pipe that notes when the broker closes its side
// alone; done is closed when the broker is through with the connection.
func dialHalf(t *testing.T) (c *rawClient, half *halfPipe, done <-chan struct{}) {
	s := newTestServer(t, zap.NewNop())
	client, server := net.Pipe()
	half = &halfPipe{Conn: server}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serveConn(context.Background(), half)
	}()
	return &rawClient{t: t, sock: client}, half, served
}

// A client that failed the handshake does not even hear that its peer has no more
// to say, until the connection is reset.
func TestAFailedLoginIsNotHalfClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, half, done := dialHalf(t)
		c.write([]byte(frames.ProtocolHeader))
		c.want(frames.ConnectionStartID)
		start := time.Now()
		c.method(0, &frames.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00wrong")})
		c.wantEOF()
		<-done
		if d := time.Since(start); d != 3*time.Second || half.closed.Load() {
			t.Errorf("closed after %v, the write side by itself: %t; want 3 s and false", d, half.closed.Load())
		}
	})
}

// A client that has closed its connection closes the socket too. Until then it hears
// no end of the stream, which its library may take for a failure.
func TestTheClientClosesTheSocketAfterCloseOk(t *testing.T) {
	for name, tt := range map[string]struct {
		heartbeat uint16
		leaves    bool
		want      time.Duration
	}{
		"it does":                     {heartbeat: 60, leaves: true},
		"it does not":                 {heartbeat: 60, want: 30 * time.Second},
		"its heartbeat is shorter":    {heartbeat: 8, want: 8 * time.Second},
		"it does not have heartbeats": {want: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, half, done := dialHalf(t)
				c.open(tt.heartbeat)
				start := time.Now()
				c.method(0, &frames.ConnectionClose{ReplyCode: 200})
				c.want(frames.ConnectionCloseOkID)
				if tt.leaves {
					c.sock.Close()
				} else {
					c.wantEOF()
				}
				<-done
				if d := time.Since(start); d != tt.want || half.closed.Load() {
					t.Errorf("closed after %v, the write side by itself: %t; want %v and false", d, half.closed.Load(), tt.want)
				}
			})
		})
	}
}
