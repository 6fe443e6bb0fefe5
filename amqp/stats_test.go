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

// Those of a transaction count when it is committed (RabbitMQ 4.0). What reached no
// queue is counted as dropped too, or as returned if it was mandatory.
func TestPublishesAreCounted(t *testing.T) {
	for _, begin := range []frames.Method{nil, &frames.ConfirmSelect{NoWait: true}, &frames.TxSelect{}} {
		s := newTestServer(t, zap.NewNop())
		c := dialTCP(t, s)
		if begin != nil {
			c.method(1, begin)
		}
		c.write(appendPublish(nil, 1, "nowhere", []byte{0, 0}, nil))
		c.write(appendPublish(nil, 1, "nowhere", []byte{0, 0}, []byte("x")))
		c.method(1, &frames.BasicPublish{RoutingKey: "nowhere", Mandatory: true})
		c.write(frames.AppendContentHeader(nil, 1, 0, []byte{0, 0}))
		c.method(1, &frames.ChannelFlow{Active: true})
		for done := false; !done; {
			f := c.next()
			id, _, _ := frames.SplitMethod(f.Payload)
			done = f.Type == frames.MethodFrame && id == frames.ChannelFlowOkID
		}
		got := s.Channels()[0]
		if got.Dropped != 2 {
			t.Errorf("after %T %d dropped, want 2", begin, got.Dropped)
		}
		if got.Tx {
			if got.Published != 0 {
				t.Errorf("%d published before the commit, want none", got.Published)
			}
			c.method(1, &frames.TxCommit{})
			c.skipTo(frames.TxCommitOkID)
			got = s.Channels()[0]
		}
		if got.Published != 3 {
			t.Errorf("after %T %d published, want 3", begin, got.Published)
		}
	}
}

// What a full queue has refused is settled and not confirmed (RabbitMQ 4.0).
func TestNacksAreNoConfirms(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := dialTCP(t, s)
	full := frames.Table{{Name: "x-max-length", Value: int32(1)}, {Name: "x-overflow", Value: "reject-publish"}}
	c.call(&frames.QueueDeclare{Queue: "full", Arguments: full}, frames.QueueDeclareOkID)
	c.call(&frames.ConfirmSelect{}, frames.ConfirmSelectOkID)
	for seq := range uint64(5) {
		c.write(appendPublish(nil, 1, "full", []byte{0, 0}, []byte("x")))
		if seq == 0 {
			c.want(frames.BasicAckID)
			continue
		}
		c.want(frames.BasicNackID)
	}
	got := s.Channels()[0]
	if got.Published != 5 || got.Confirmable != 5 || got.Confirmed != 1 || got.Unconfirmed != 0 {
		t.Errorf("%d of %d published may be confirmed, %d are, %d are not yet: want 5 of 5, 1, 0", got.Confirmable, got.Published, got.Confirmed, got.Unconfirmed)
	}
	c.call(&frames.ChannelClose{}, frames.ChannelCloseOkID)
	if past := s.Past()["/"]; past.Confirmable != 5 || past.Confirmed != 1 {
		t.Errorf("%d of %d were confirmed after the channel has gone, want 1 of 5", past.Confirmed, past.Confirmable)
	}
}

// What is got a second time counts as redelivered, as what is consumed does (RabbitMQ 4.0).
func TestGotAgainCountsAsRedelivered(t *testing.T) {
	for _, noAck := range []bool{false, true} {
		s := newTestServer(t, zap.NewNop())
		c := dialTCP(t, s)
		c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, []byte("m")))
		c.method(1, &frames.BasicGet{Queue: "q"})
		c.want(frames.BasicGetOkID)
		c.next() // header
		c.next() // body
		if got := s.Channels()[0].Redelivered; got != 0 {
			t.Errorf("%d redelivered at first, want none", got)
		}
		c.method(1, &frames.BasicNack{DeliveryTag: 1, Requeue: true})
		c.method(1, &frames.BasicGet{Queue: "q", NoAck: noAck})
		if m := c.want(frames.BasicGetOkID).(*frames.BasicGetOk); !m.Redelivered {
			t.Error("the message that came back is not marked as redelivered")
		}
		if got := s.Channels()[0].Redelivered; got != 1 {
			t.Errorf("no-ack %v: %d redelivered, want 1", noAck, got)
		}
	}
}

// A channel that the broker has closed is there until the client has answered.
func TestClosingChannels(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := dialTCP(t, s)
	c.call(&frames.ChannelFlow{Active: true}, frames.ChannelFlowOkID)
	if got := s.Channels(); len(got) != 1 || got[0].Closing {
		t.Fatalf("got %+v, want an open channel", got)
	}
	c.call(&frames.QueueDeclare{Queue: "nope", Passive: true}, frames.ChannelCloseID)
	if got := s.Channels(); len(got) != 1 || !got[0].Closing {
		t.Errorf("got %+v, want a channel that is closing", got)
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
