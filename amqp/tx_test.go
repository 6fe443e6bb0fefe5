package amqp

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// A transaction waits for the first copy of a message of its own. That may have come
// with it, on another channel.
func TestCommitWaitsForNoOtherChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := tuned(t, s, 0)
		for id := range uint16(3) {
			c.method(id+1, &frames.ChannelOpen{})
			c.want(frames.ChannelOpenOkID)
		}
		c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
		c.call(&frames.ConfirmSelect{}, frames.ConfirmSelectOkID)
		for _, id := range []uint16{2, 3} {
			c.method(id, &frames.TxSelect{})
			c.want(frames.TxSelectOkID)
		}
		retry := func(channel uint16, number int64) []byte {
			p := frames.Properties{Flags: frames.FlagHeaders, Headers: frames.AppendTable(nil, frames.Table{
				{Name: "x-producer-id", Value: "p"}, {Name: "x-producer-sequence", Value: number}})[4:]}
			return appendPublish(nil, channel, "q", p.Append(nil), []byte("m"))
		}
		c.write(frames.AppendMethod(append(retry(1, 1), retry(2, 1)...), 2, &frames.TxCommit{}))
		c.want(frames.BasicAckID)
		c.want(frames.TxCommitOkID)
		c.write(frames.AppendMethod(append(retry(2, 2), retry(3, 2)...), 3, &frames.TxCommit{}))
		c.wantClose(3, frames.PreconditionFailed, "PRECONDITION_FAILED - partial tx completion")
		c.method(2, &frames.TxCommit{})
		c.want(frames.TxCommitOkID)
	})
}

// The time to live of what a transaction publishes begins with the commit (RabbitMQ 4.0).
func TestMessagesOfATransactionAgeFromItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tuned(t, newTestServer(t, zap.NewNop()), 0)
		c.method(1, &frames.ChannelOpen{})
		c.want(frames.ChannelOpenOkID)
		c.call(&frames.QueueDeclare{Queue: "q", Arguments: frames.Table{{Name: "x-message-ttl", Value: int32(1000)}}}, frames.QueueDeclareOkID)
		c.call(&frames.TxSelect{}, frames.TxSelectOkID)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("m")))
		time.Sleep(2 * time.Second)
		c.call(&frames.TxCommit{}, frames.TxCommitOkID)
		for _, tt := range []struct {
			after time.Duration
			want  uint32
		}{{0, 1}, {900 * time.Millisecond, 1}, {200 * time.Millisecond, 0}} {
			time.Sleep(tt.after)
			c.method(1, &frames.QueueDeclare{Queue: "q", Passive: true})
			if ok := c.want(frames.QueueDeclareOkID).(*frames.QueueDeclareOk); ok.MessageCount != tt.want {
				t.Errorf("%d messages another %v after the commit, want %d", ok.MessageCount, tt.after, tt.want)
			}
		}
	})
}

func TestCommitEndsWithItsConnection(t *testing.T) {
	for name, end := range map[string]func(s *Server, c *rawClient){
		"operator": func(s *Server, c *rawClient) {
			s.CloseConnection(s.running()[0].name, "bye")
			c.skipTo(frames.ConnectionCloseID)
			c.method(0, &frames.ConnectionCloseOk{})
		},
		"stop": func(s *Server, c *rawClient) {
			go s.Shutdown(context.Background()) // ends with the connection
			c.skipTo(frames.ConnectionCloseID)
			c.method(0, &frames.ConnectionCloseOk{})
		},
		"socket": func(s *Server, c *rawClient) {
			c.sock.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer(t, zap.NewNop())
				c := tuned(t, s, 1)
				c.method(1, &frames.ChannelOpen{})
				c.want(frames.ChannelOpenOkID)
				c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
				c.call(&frames.TxSelect{}, frames.TxSelectOkID)
				c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("m")))
				var r *message.Receipt
				s.running()[0].post(func() error {
					r = s.running()[0].channels[1].tx.receipt
					r.Hold(1) // a queue's that is not released
					return nil
				})
				synctest.Wait()
				c.method(1, &frames.TxCommit{})
				synctest.Wait()
				end(s, c)
				time.Sleep(10 * time.Second)
				if n := len(s.connections()); n != 0 {
					t.Errorf("there are %d connections, want none", n)
				}
				r.Release()
			})
		})
	}
}
