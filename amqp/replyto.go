package amqp

import (
	"slices"
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// Direct reply-to: a client consumes from a pseudo-queue and gets answers
// without declaring a queue. Each such consumer has an address that its
// channel's publishes carry as reply-to; what is published to the default
// exchange under that address goes straight to the channel (RabbitMQ 4.0).

// A replyConsumer is a channel's direct reply-to consumer.
type replyConsumer struct {
	ch      *channel
	tag     string
	address string // amq.rabbitmq.reply-to.<opaque>.<key>==, the form that RabbitMQ gives it
}

// replies are all direct reply-to consumers of a server by address.
type replies struct {
	mu        sync.RWMutex // guards the map; a leaf, but for an outbox's
	byAddress map[string]*replyConsumer
}

func (r *replies) init() { r.byAddress = make(map[string]*replyConsumer) }

// send gives a message to the consumers of its routing keys that are there, once to
// each: those of CC and BCC count, too (RabbitMQ 4.0).
func (r *replies) send(m *message.Message) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	r.giveLocked(m.RoutingKey, m)
	if m.More == nil {
		return
	}
	keys := slices.Concat(m.More.CC, m.More.BCC)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if key != m.RoutingKey {
			r.giveLocked(key, m)
		}
	}
}

// giveLocked gives a message to the consumer of an address. r.mu must be held.
func (r *replies) giveLocked(address string, m *message.Message) {
	if c := r.byAddress[address]; c != nil {
		c.ch.conn.out.reply(c.ch, c.tag, m)
	}
}

func (r *replies) exists(address string) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byAddress[address] != nil
}

func (r *replies) add(c *replyConsumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byAddress[c.address] = c
}

func (r *replies) remove(c *replyConsumer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byAddress, c.address)
}

// consumeReplies handles basic.consume of amq.rabbitmq.reply-to.
func (ch *channel) consumeReplies(m *frames.BasicConsume) error {
	tag, err := ch.newTag(m.ConsumerTag)
	switch {
	case err != nil:
		return err
	case !m.NoAck:
		return frames.Errorf(frames.PreconditionFailed, "reply consumer cannot acknowledge")
	case ch.replyTo != nil:
		return frames.Errorf(frames.PreconditionFailed, "reply consumer already set")
	}
	ch.replyTo = &replyConsumer{ch: ch, tag: tag, address: replyToPrefix + randomName() + "." + randomName() + "=="}
	ch.replyUnless(m.NoWait, &frames.BasicConsumeOk{ConsumerTag: tag})
	ch.conn.srv.replies.add(ch.replyTo)
	return nil
}

// dropReplyTo ends the channel's direct reply-to consumer.
func (ch *channel) dropReplyTo() {
	if ch.replyTo != nil {
		ch.conn.srv.replies.remove(ch.replyTo)
		ch.replyTo = nil
	}
}

var errNoReplyConsumer = frames.Errorf(frames.PreconditionFailed, "fast reply consumer does not exist")

// rewriteReplyTo puts the address of the channel's reply consumer into a
// request. A basic.return shows it, too (RabbitMQ 4.0).
func (ch *channel) rewriteReplyTo(m *message.Message, p *frames.Properties) error {
	if ch.replyTo == nil {
		return errNoReplyConsumer
	}
	p.ReplyTo = []byte(ch.replyTo.address)
	m.Header = p.Append(nil)
	return nil
}

// declareReplyTo handles queue.declare of a reply-to name: it asks whether the
// requester is still there.
func (ch *channel) declareReplyTo(m *frames.QueueDeclare) error {
	if m.Queue != replyToName && !ch.conn.srv.replies.exists(m.Queue) {
		return frames.Errorf(frames.NotFound, "no queue '%s' in vhost '%s'", m.Queue, ch.conn.vhost.Name())
	}
	ch.lastQueue = m.Queue
	ch.replyLate(m.NoWait, &frames.QueueDeclareOk{Queue: m.Queue, ConsumerCount: 1})
	return nil
}
