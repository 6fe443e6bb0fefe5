package amqp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// skipTo reads up to this method.
func (c *rawClient) skipTo(id frames.MethodID) {
	c.t.Helper()
	for {
		f := c.next()
		if got, _, _ := frames.SplitMethod(f.Payload); f.Type == frames.MethodFrame && got == id {
			return
		}
	}
}

// A client whose reader waits for the disk cannot be heard, and so is not given up.
func TestAClientIsNotGivenUpWhileItsReaderWaits(t *testing.T) {
	const stall = 10 * time.Second
	for name, begin := range map[string]func(s *Server, store *slowStore, c *rawClient){
		"publish": func(s *Server, _ *slowStore, c *rawClient) {
			s.cfg.Wait = func(context.Context, queue.Writes) error { time.Sleep(stall); return nil }
			c.write(appendPublish(nil, 1, "q", []byte{0x10, 0, 2}, []byte("m")))
		},
		"declare": func(_ *Server, store *slowStore, c *rawClient) {
			store.holding, store.hold = make(chan struct{}, 1), make(chan struct{})
			time.AfterFunc(stall, func() { close(store.hold) })
			c.write(declare(nil, "other", true))
		},
		"commit": func(s *Server, _ *slowStore, c *rawClient) {
			c.call(&frames.TxSelect{}, frames.TxSelectOkID)
			c.write(appendPublish(nil, 1, "q", []byte{0x10, 0, 2}, []byte("m")))
			var r *message.Receipt
			s.running()[0].post(func() error {
				r = s.running()[0].channels[1].tx.receipt
				r.Hold(1)
				return nil
			})
			synctest.Wait()
			time.AfterFunc(stall, r.Release)
			c.method(1, &frames.TxCommit{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &slowStore{Memory: persistence.NewMemory()}
				s := newServerOn(t, store, zap.NewNop())
				c := tuned(t, s, 1)
				c.method(1, &frames.ChannelOpen{})
				c.want(frames.ChannelOpenOkID)
				c.call(&frames.QueueDeclare{Queue: "q", Durable: true}, frames.QueueDeclareOkID)
				begin(s, store, c)
				began := time.Now()
				go c.method(1, &frames.QueueDeclare{Queue: "q", Passive: true}) // not read before the disk is back
				c.skipTo(frames.QueueDeclareOkID)
				if d := time.Since(began); d != stall {
					t.Errorf("answered after %s, want %s", d, stall)
				}
				began = time.Now()
				for c.sawBeat() {
				}
				if d := time.Since(began); d < 2*time.Second || d > 4*time.Second {
					t.Errorf("then a client that is silent was given up after %s, want 2 to 4 s", d)
				}
			})
		})
	}
}

// sawBeat reads one frame; it is false at the end of the stream.
func (c *rawClient) sawBeat() bool {
	var b [frames.Overhead]byte
	_, err := c.sock.Read(b[:])
	return err == nil
}

// A client that reads slowly is alive, one that does not is not.
func TestAClientThatReadsIsNotGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := manyGets(t, s, 1)
		for range 500 { // 10 messages in an interval
			time.Sleep(100 * time.Millisecond)
			c.want(frames.BasicGetOkID)
			c.next() // header
			c.next() // body
		}
		time.Sleep(4 * time.Second)
		if st := statusOf(t, s, "q"); st.Ready != 1000 || len(s.running()) != 1 {
			t.Errorf("%d messages are back and %d connections left after the client has stopped to read, want 1000 and 1", st.Ready, len(s.running()))
		}
	})
}
