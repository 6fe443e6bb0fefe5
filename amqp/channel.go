package amqp

import (
	"errors"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// What a channel expects next.
type expectation uint8

const (
	expectMethod expectation = iota
	expectHeader
	expectBody
	expectRest // of a content whose channel was closed before it was complete; it may not come
)

// A channel is one channel of a connection. The connection's reader alone
// touches it, but for what is guarded by the outbox's lock.
type channel struct {
	id   uint16
	conn *conn
	log  *zap.Logger

	expect  expectation
	closing bool // channel.close was sent: everything is dropped until close-ok
	dirty   bool // on conn.dirty

	pub  *vhost.Publisher
	cur  publishing
	acks *confirms    // nil unless in confirm mode
	tx   *transaction // nil unless in tx mode
	// batch is the receipt of the publishes since the last flush; nil if none
	// of them is to be confirmed.
	batch *message.Receipt

	consumers map[string]*consumer // changed by the reader alone, with the outbox's lock
	replyTo   *replyConsumer       // the direct reply-to consumer; nil if none
	window    queue.Window         // the channel-wide prefetch limit
	prefetch  atomic.Int32         // for consumers started from now on
	lastQueue string               // last declared: what "" means
	timeouts  ackWatch             // looks for deliveries that are not acknowledged in time

	confirming, transactional atomic.Bool // acks, tx are set: for snapshots
	counts                    channelCounts

	// Guarded by conn.out.mu.
	unacked unacked
	ended   []*consumer // by their queues, and not forgotten yet
	closed  bool        // takes no more deliveries
}

func (c *conn) openChannel(id uint16) error {
	if len(c.channels) >= int(c.channelMax) {
		return c.fail(0, frames.Unboundf(frames.NotAllowed,
			"number of channels opened (%d) has reached the negotiated channel_max (%d)", len(c.channels), c.channelMax))
	}
	if err := c.srv.users.channelOpened(c.user.Name); err != nil {
		return c.fail(0, err)
	}
	ch := &channel{id: id, conn: c, log: c.log, pub: c.vhost.NewPublisher(), consumers: make(map[string]*consumer)}
	ch.unacked.init()
	c.out.mu.Lock()
	c.channels[id] = ch
	c.out.mu.Unlock()
	ch.pub.Owns = true
	ch.pub.Source = vhost.TraceSource{Connection: c.name, Channel: id, User: c.user.Name}
	c.srv.event("channel.created", ch.createdEvent)
	c.out.method(id, &frames.ChannelOpenOk{})
	return nil
}

// frame handles one frame of the channel.
func (ch *channel) frame(f frames.Frame) error {
	switch {
	case ch.closing:
		return ch.frameClosing(f)
	case f.Type == frames.HeartbeatFrame:
		return ch.conn.fail(0, unexpectedFrame(f))
	case ch.expect == expectMethod:
		return ch.methodFrame(f)
	case ch.expect == expectHeader:
		return ch.headerFrame(f)
	}
	return ch.bodyFrame(f)
}

// methodFrame handles a frame where a method is due. The methods of the hot
// path are parsed as views; all others are decoded and dispatched.
func (ch *channel) methodFrame(f frames.Frame) error {
	if f.Type != frames.MethodFrame {
		return ch.noMethod()
	}
	id, args, _ := frames.SplitMethod(f.Payload)
	var err error
	switch id {
	case frames.BasicPublishID:
		err = ch.publish(args)
	case frames.BasicAckID:
		err = ch.ack(args)
	default:
		ch.flush() // what was published before happens before
		if ch.conn.state != running {
			return nil // that has ended the connection
		}
		ch.conn.leave() // the method may wait
		var m frames.Method
		if m, err = frames.DecodeMethod(id, args); err == nil {
			err = ch.dispatch(m)
		}
	}
	if err != nil {
		return ch.fail(id, err)
	}
	return nil
}

// frameClosing handles a frame after the broker sent channel.close. It is dropped,
// but what the protocol does not allow ends the connection (RabbitMQ 4.0).
func (ch *channel) frameClosing(f frames.Frame) error {
	switch {
	case f.Type == frames.HeartbeatFrame:
		return ch.conn.fail(0, unexpectedFrame(f))
	case ch.expect == expectRest && f.Type != frames.MethodFrame:
		return nil
	case ch.expect == expectMethod || ch.expect == expectRest:
		ch.expect = expectMethod
		return ch.methodClosing(f)
	}
	return ch.contentClosing(f)
}

// methodClosing is methodFrame for a channel that is closing.
func (ch *channel) methodClosing(f frames.Frame) error {
	if f.Type != frames.MethodFrame {
		return ch.noMethod()
	}
	id, args, _ := frames.SplitMethod(f.Payload)
	if _, err := frames.DecodeMethod(id, args); err != nil {
		return ch.conn.fail(id, err)
	}
	switch id {
	case frames.BasicPublishID:
		ch.expect = expectHeader
	case frames.ChannelCloseOkID:
		ch.forget()
	case frames.ChannelCloseID:
		ch.conn.out.method(ch.id, &frames.ChannelCloseOk{})
	case frames.ChannelOpenID:
		return ch.conn.fail(id, frames.Errorf(frames.ChannelError, "second 'channel.open' seen"))
	}
	return nil
}

func (ch *channel) noMethod() error {
	return ch.conn.fail(0, frames.Unboundf(frames.UnexpectedFrame, "expected method frame, got non method frame instead"))
}

// fail ends the channel, or for a hard code the connection, after an error in
// a method. Soft and hard are properties of the code (spec §1.2).
func (ch *channel) fail(id frames.MethodID, err error) error {
	ch.flush()
	if !ch.conn.answerLate() || ch.conn.state != running {
		return nil
	}
	e, ok := errors.AsType[*frames.Error](err)
	if !ok || e.Code.Hard() {
		return ch.conn.fail(id, err)
	}
	ch.log.Named("channel").Warn("closing channel", zap.Uint16("channel", ch.id), zap.String("reason", e.ReplyText()), zap.String("user", ch.conn.user.Name))
	if e.Unbound {
		id = 0
	}
	ch.release()
	ch.closing = true
	ch.cur = publishing{}
	if ch.expect != expectMethod {
		ch.expect = expectRest
	}
	ch.conn.out.method(ch.id, &frames.ChannelClose{ReplyCode: uint16(e.Code), ReplyText: e.ReplyText(), ClassID: id.Class(), MethodID: id.Method()})
	return nil
}

// release cancels the channel's consumers and requeues what is unacknowledged.
// Confirms that are still outstanding are dropped; a transaction is rolled back.
func (ch *channel) release() {
	if ch.tx != nil {
		ch.tx.rollback(ch)
	}
	ch.flush()
	ch.conn.leave() // what follows may wait
	ch.pub.Discard()
	if ch.acks != nil {
		ch.acks.drop()
	}
	ch.dropReplyTo()
	ch.stopAckTimer()
	out := ch.conn.out
	out.mu.Lock()
	ch.closed = true
	all := ch.unacked.takeAll(ch.conn.scratch[:0])
	out.mu.Unlock()
	if len(all) > 0 {
		ch.pauseConsumers()
	}
	// Requeued before the consumers go, so that a single active consumer's
	// successor gets the messages in their order.
	ch.settle(all, queue.Requeued)
	n := len(ch.consumers)
	for _, c := range ch.consumers {
		c.queue.Cancel(c.sub)
		ch.conn.srv.event("consumer.deleted", c.deletedEvent)
	}
	ch.conn.srv.event("channel.closed", func() frames.Table { return ch.closedEvent(n) })
	out.mu.Lock()
	clear(ch.consumers)
	out.mu.Unlock()
}

// pauseConsumers keeps the queues from dealing turns to the channel's consumers,
// which would refuse them: others would get what comes after first.
func (ch *channel) pauseConsumers() {
	for _, c := range ch.consumers {
		if q, ok := c.queue.(interface{ Pause(*queue.Subscription) }); ok { // a stream takes nothing back
			q.Pause(c.sub)
		}
	}
}

// forget frees the channel's number.
func (ch *channel) forget() {
	ch.conn.srv.users.channelClosed(ch.conn.user.Name)
	ch.conn.out.mu.Lock()
	delete(ch.conn.channels, ch.id)
	ch.conn.out.mu.Unlock()
	ch.conn.srv.users.past.channel(ch.conn.info.Load().VHost, &ch.counts)
	if ch.conn.last == ch {
		ch.conn.last = nil
	}
}

// flush hands the channel's publishes to their queues, unless they wait for a
// tx.commit. If their queues cannot be made durable, that ends the connection.
func (ch *channel) flush() {
	if !ch.dirty {
		return
	}
	ch.dirty = false
	if ch.tx != nil {
		return
	}
	if !ch.conn.answerLate() { // a queue is durable before what is published to it
		return
	}
	r := ch.batch
	ch.batch = nil
	n := uint64(ch.pub.Len())
	ch.counts.published.Add(n)
	if r != nil {
		r.Last = ch.acks.published
		ch.counts.confirmable.Store(r.Last)
	}
	ch.conn.join()
	ch.conn.toWrite |= ch.pub.Flush()
	if r != nil {
		r.Release() // the hold of publishDone's
	}
}

// reply answers a method.
func (ch *channel) reply(m frames.Method) { ch.conn.out.method(ch.id, m) }

// replyUnless answers a method unless the client did not want that.
func (ch *channel) replyUnless(noWait bool, m frames.Method) {
	if !noWait {
		ch.reply(m)
	}
}
