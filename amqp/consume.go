package amqp

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// A consumer is one basic.consume, or the taker of one basic.get (then sub is
// nil). It is the queue.Consumer of its subscription.
type consumer struct {
	ch    *channel            // immutable
	queue queue.Queue         // immutable
	sub   *queue.Subscription // immutable
	apart bool                // of a message that was got: it takes no place in the channel's window

	// Guarded by the outbox's lock.
	okDue    bool // consume-ok is to be sent before the first delivery
	gone     bool // ended by the queue
	promised int  // what the next Deliver takes beyond the outbox's limit, in bytes
}

var (
	_ queue.Consumer = (*consumer)(nil)
	_ queue.Measured = (*consumer)(nil)
)

// Room implements queue.Measured.
func (c *consumer) Room() int { return c.ch.conn.out.roomFor(c) }

// Deliver implements queue.Consumer.
func (c *consumer) Deliver(batch []queue.Delivery) int { return c.ch.conn.out.deliver(c, batch) }

// readyLocked sends consume-ok if that is still due: it precedes the first
// delivery. The outbox's lock must be held.
func (c *consumer) readyLocked() {
	if c.okDue {
		c.okDue = false
		c.ch.conn.out.methodLocked(c.ch.id, &frames.BasicConsumeOk{ConsumerTag: c.sub.Tag})
	}
}

// Cancelled implements queue.Consumer: the client is told if it said that it
// understands that (RabbitMQ 4.0), and the reader forgets the consumer.
func (c *consumer) Cancelled(s *queue.Subscription) {
	out := c.ch.conn.out
	out.mu.Lock()
	defer out.mu.Unlock()
	c.gone = true
	if c.ch.closed {
		return
	}
	if c.ch.conn.caps.cancelNotify {
		c.readyLocked()
		out.methodLocked(c.ch.id, &frames.BasicCancel{ConsumerTag: s.Tag, NoWait: true})
		out.notifyLocked()
	}
	// With the lock: not after the channel has ended, when it would take the deadline
	// of a close handshake back.
	if c.ch.ended = append(c.ch.ended, c); len(c.ch.ended) == 1 {
		c.ch.conn.post(c.ch.dropEnded)
	}
}

// dropEnded forgets the consumers that their queues have ended.
func (ch *channel) dropEnded() error {
	ch.conn.out.mu.Lock()
	ended := ch.ended
	ch.ended = nil
	ch.conn.out.mu.Unlock()
	for _, c := range ended {
		if ch.consumers[c.sub.Tag] == c { // else the client was quicker, or the channel has ended
			ch.dropConsumer(c)
		}
	}
	return nil
}

// dropConsumer forgets a consumer that takes nothing any more.
func (ch *channel) dropConsumer(c *consumer) {
	ch.conn.out.mu.Lock()
	delete(ch.consumers, c.sub.Tag)
	ch.conn.out.mu.Unlock()
	ch.conn.srv.event("consumer.deleted", c.deletedEvent)
}

// Activated implements queue.Consumer; AMQP 0-9-1 clients are not told.
func (c *consumer) Activated(*queue.Subscription, bool) {}

// basicQos handles basic.qos. RabbitMQ 4.0: without global it is the limit of
// each consumer started from now on, and the channel-wide one ends; with global
// it is one limit for all consumers of the channel, at once.
func (ch *channel) basicQos(m *frames.BasicQos) error {
	if m.PrefetchSize != 0 {
		return frames.Errorf(frames.NotImplemented, "prefetch_size!=0 (%d)", m.PrefetchSize)
	}
	if m.Global && !ch.conn.srv.cfg.IgnoreGlobalQoS {
		ch.window.SetLimit(int(m.PrefetchCount))
	} else {
		ch.prefetch.Store(int32(m.PrefetchCount))
		ch.window.SetLimit(0)
	}
	ch.reply(&frames.BasicQosOk{}) // before what there is room for now (RabbitMQ 4.0)
	ch.resumeConsumers("")
	return nil
}

// basicConsume handles basic.consume (ref §1.8.3.3).
func (ch *channel) basicConsume(m *frames.BasicConsume) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	if name == replyToName {
		return ch.consumeReplies(m)
	}
	tag, err := ch.newTag(m.ConsumerTag)
	if err != nil {
		return err
	}
	if err := ch.MayQueue(vhost.Read, name); err != nil {
		return err
	}
	q, err := ch.conn.vhost.Queue(ch, name)
	if err != nil {
		return err
	}
	priority, err := queue.ParseConsumerArguments(m.Arguments, ch.conn.vhost.Name(), name, q.Type())
	if err != nil {
		return err
	}
	if r, ok := q.(interface{ RefusesGlobalQos() bool }); ok && r.RefusesGlobalQos() && ch.window.Limited() {
		return frames.Errorf(frames.NotImplemented, "%s does not support global qos", queue.ResourceText(ch.conn.vhost.Name(), name))
	}
	c := &consumer{ch: ch, queue: q, okDue: !m.NoWait}
	c.sub = &queue.Subscription{Consumer: c, Tag: tag, Arguments: m.Arguments, NoAck: m.NoAck, Exclusive: m.Exclusive,
		Priority: priority, Prefetch: int(ch.prefetch.Load()), Window: &ch.window}
	if err := q.Subscribe(c.sub); err != nil {
		return ch.queueError(name, err)
	}
	if !m.NoAck {
		ch.watchAcks(q)
	}
	ch.conn.out.mu.Lock()
	ch.consumers[tag] = c
	c.readyLocked()
	ch.conn.out.answeredLocked()
	ch.conn.out.mu.Unlock()
	if ch.window.Limited() {
		q.Resume(c.sub) // the writer may have looked for who shares the window before it was there
	}
	ch.conn.srv.event("consumer.created", c.createdEvent)
	return nil
}

// newTag checks a consumer tag, or makes one.
func (ch *channel) newTag(tag string) (string, error) {
	ch.dropEnded()
	if limit := ch.conn.srv.cfg.MaxConsumers; limit > 0 && len(ch.consumers) >= limit {
		return "", frames.Errorf(frames.NotAllowed, "reached maximum (%d) of consumers per channel", limit)
	}
	if tag == "" {
		return "amq.ctag-" + randomName(), nil
	}
	if ch.consumers[tag] != nil {
		return "", frames.Errorf(frames.NotAllowed, "attempt to reuse consumer tag '%s'", tag)
	}
	return tag, nil
}

// randomName is 22 characters of URL-safe base64, as RabbitMQ makes them.
func randomName() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// basicCancel handles basic.cancel; an unknown tag is cancelled already.
func (ch *channel) basicCancel(m *frames.BasicCancel) error {
	if c := ch.consumers[m.ConsumerTag]; c != nil {
		c.queue.Cancel(c.sub)
		ch.dropConsumer(c)
	} else if ch.replyTo != nil && ch.replyTo.tag == m.ConsumerTag {
		ch.dropReplyTo()
	}
	ch.replyUnless(m.NoWait, &frames.BasicCancelOk{ConsumerTag: m.ConsumerTag})
	return nil
}

// basicGet handles basic.get (ref §1.8.3.10).
func (ch *channel) basicGet(m *frames.BasicGet) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	if err := ch.MayQueue(vhost.Read, name); err != nil {
		return err
	}
	q, err := ch.conn.vhost.Queue(ch, name)
	if err != nil {
		return err
	}
	d, left, ok, err := q.Get(m.NoAck)
	if err != nil {
		return ch.queueError(name, err)
	}
	if !ok {
		ch.counts.getEmpty.Add(1)
		ch.reply(&frames.BasicGetEmpty{})
		return nil
	}
	if !m.NoAck {
		if !ch.window.Limited() { // a limit counts what was got before it (RabbitMQ 4.0)
			ch.window.Force(1)
		}
		ch.watchAcks(q)
	}
	ch.conn.out.get(ch, d, q, m.NoAck, left)
	return nil
}

// basicRecover handles basic.recover and basic.recover-async. Only requeueing
// is offered (RabbitMQ 4.0).
func (ch *channel) basicRecover(requeue, answer bool) error {
	if !requeue {
		return frames.Errorf(frames.NotImplemented, "requeue=false")
	}
	list, _ := ch.takeTags(0, true)
	if answer {
		ch.reply(&frames.BasicRecoverOk{})
	}
	ch.settle(list, queue.Requeued)
	return nil
}

const (
	replyToName   = "amq.rabbitmq.reply-to"
	replyToPrefix = replyToName + "."
)
