package amqp

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/vhost"
)

// A slowStore counts how often definitions are written. A test may hold or fail the
// writes.
type slowStore struct {
	*persistence.Memory
	writes  atomic.Int32
	holding chan struct{} // told of a write, if not nil
	hold    chan struct{} // a write waits until it is closed
	err     error
}

func (s *slowStore) PutAll(defs []persistence.Definition) []error {
	s.writes.Add(1)
	if s.holding != nil {
		s.holding <- struct{}{}
		<-s.hold
	}
	if s.err != nil {
		return slices.Repeat([]error{s.err}, len(defs))
	}
	return s.Memory.PutAll(defs)
}

// dialSlow logs in a client of a server on a store whose writes can be slow.
func dialSlow(t *testing.T) (*rawClient, *slowStore, *Server) {
	t.Helper()
	store := &slowStore{Memory: persistence.NewMemory()}
	s := newServerOn(t, store, zap.NewNop())
	c := dialPipe(t, s)
	c.login()
	store.writes.Store(0)
	return c, store, s
}

func declare(b []byte, name string, noWait bool) []byte {
	return frames.AppendMethod(b, 1, &frames.QueueDeclare{Queue: name, Durable: true, NoWait: noWait})
}

func TestPipelinedDeclarationsShareAWrite(t *testing.T) {
	c, store, _ := dialSlow(t)
	var b []byte
	for i := range 20 {
		b = declare(b, fmt.Sprint(i), i%2 == 1)
		b = frames.AppendMethod(b, 1, &frames.QueueBind{Queue: fmt.Sprint(i), Exchange: "amq.topic", RoutingKey: "k", NoWait: i > 0})
	}
	c.write(b)
	for i := range 20 {
		if i%2 == 0 {
			if m := c.want(frames.QueueDeclareOkID).(*frames.QueueDeclareOk); m.Queue != fmt.Sprint(i) {
				t.Errorf("answer %d is about queue %q", i, m.Queue)
			}
		}
		if i == 0 {
			c.want(frames.QueueBindOkID)
		}
	}
	if n := store.writes.Load(); n != 1 {
		t.Errorf("20 declarations and bindings were written in %d goes, want 1", n)
	}
	n := 0
	for range store.All(persistence.Bindings) {
		n++
	}
	if n != 20 {
		t.Errorf("%d bindings are stored, want 20", n)
	}
}

// A method of another kind, an error, and the end of the connection come after the
// answers to what was before.
func TestLateAnswersComeInOrder(t *testing.T) {
	c, store, _ := dialSlow(t)
	b := declare(nil, "a", false)
	b = frames.AppendMethod(b, 1, &frames.BasicGet{Queue: "a"})
	b = declare(b, "b", false)
	b = frames.AppendMethod(b, 1, &frames.QueueDeclare{Queue: "missing", Passive: true})
	c.write(b)
	c.want(frames.QueueDeclareOkID)
	c.want(frames.BasicGetEmptyID)
	c.want(frames.QueueDeclareOkID)
	c.wantClose(1, frames.NotFound, "NOT_FOUND - no queue 'missing' in vhost '/'")
	if n := store.writes.Load(); n != 2 {
		t.Errorf("%d writes, want 2", n)
	}
	c.method(1, &frames.ChannelCloseOk{})
	c.call(&frames.ChannelOpen{}, frames.ChannelOpenOkID)
	b = declare(nil, "c", false)
	b = frames.AppendMethod(b, 0, &frames.ConnectionClose{})
	c.write(b)
	c.want(frames.QueueDeclareOkID)
	c.want(frames.ConnectionCloseOkID)
}

func TestLateAnswersComeBeforeThatOfAReplyQueue(t *testing.T) {
	c, _, _ := dialSlow(t)
	b := declare(nil, "a", false)
	b = frames.AppendMethod(b, 1, &frames.QueueDeclare{Queue: replyToName, Passive: true})
	c.write(b)
	for _, want := range []string{"a", replyToName} {
		if m := c.want(frames.QueueDeclareOkID).(*frames.QueueDeclareOk); m.Queue != want {
			t.Errorf("the answer is about queue %q, want %q", m.Queue, want)
		}
	}
}

// What comes before bytes that are no frame counts.
func TestBadFrameComesAfterLateAnswers(t *testing.T) {
	c, store, _ := dialSlow(t)
	b := declare(nil, "a", false)
	c.write(append(b, 99, 0, 0, 0, 0, 0, 0, 99)) // of no known type
	c.want(frames.QueueDeclareOkID)
	if store.writes.Load() != 1 {
		t.Error("the declaration was not written")
	}
}

// A message must not be safe before the queue that has it is.
func TestPublishWaitsForItsQueue(t *testing.T) {
	c, store, s := dialSlow(t)
	c.call(&frames.ConfirmSelect{}, frames.ConfirmSelectOkID)
	store.holding, store.hold = make(chan struct{}), make(chan struct{})
	b := declare(nil, "q", false)
	b = appendPublish(b, 1, "q", []byte{0, 0}, []byte("m"))
	b = declare(b, "other", true)
	c.write(b)
	<-store.holding
	v, _ := s.cfg.VHosts.Get("/")
	q, err := v.Queue(vhost.System, "q")
	if err != nil {
		t.Fatal(err)
	}
	if n := q.Status().Ready; n != 0 {
		t.Errorf("%d messages are in a queue whose definition is not durable", n)
	}
	close(store.hold)
	go func() { <-store.holding }() // the other queue's
	c.want(frames.QueueDeclareOkID)
	c.want(frames.BasicAckID)
}

func TestFailedDeclarationIsNotAnswered(t *testing.T) {
	c, store, _ := dialSlow(t)
	store.err = errors.New("disk full")
	b := declare(nil, "a", false)
	b = declare(b, "b", false)
	b = frames.AppendMethod(b, 1, &frames.BasicConsume{Queue: "a", ConsumerTag: "t"})
	c.write(b)
	c.wantClose(0, frames.InternalError, "INTERNAL_ERROR")
}

// What follows a publish whose queue could not be made durable is not handled: it
// would leave a consumer, or a message that was got, with a channel that is gone.
func TestNothingIsHandledAfterAFailedDeclaration(t *testing.T) {
	consume := &frames.BasicConsume{Queue: "q", ConsumerTag: "t"}
	for name, m := range map[string]frames.Method{"consume": consume, "get": &frames.BasicGet{Queue: "q"}, "error": &frames.QueuePurge{Queue: "missing"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, store, s := dialSlow(t)
				c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
				c.call(&frames.QueueDeclare{Queue: "events"}, frames.QueueDeclareOkID)
				c.call(&frames.QueueBind{Queue: "events", Exchange: "amq.rabbitmq.event", RoutingKey: "channel.closed"}, frames.QueueBindOkID)
				c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("there before")))
				synctest.Wait()
				store.err = errors.New("disk full")
				b := appendPublish(declare(nil, "a", false), 1, "a", []byte{0, 0}, []byte("m"))
				c.write(frames.AppendMethod(b, 1, m))
				c.wantClose(0, frames.InternalError, "INTERNAL_ERROR")
				c.sock.Close()
				synctest.Wait()
				if st := statusOf(t, s, "q"); st.Consumers != 0 || st.Ready != 1 || st.Unacked != 0 {
					t.Errorf("%d consumers, %d ready, %d unacknowledged, want 0, 1, 0", st.Consumers, st.Ready, st.Unacked)
				}
				if n := statusOf(t, s, "events").Ready; n != 1 {
					t.Errorf("%d events channel.closed, want 1", n)
				}
			})
		})
	}
}
