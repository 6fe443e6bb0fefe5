package amqp

import (
	"errors"
	"math"
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// queueDeclare handles queue.declare (ref §1.7.2.1).
func (ch *channel) queueDeclare(m *frames.QueueDeclare) error {
	if strings.HasPrefix(m.Queue, replyToName) {
		return ch.declareReplyTo(m)
	}
	q, err := ch.conn.vhost.DeclareQueue(ch, vhost.QueueDeclare{
		Name: m.Queue, Passive: m.Passive, Durable: m.Durable, Exclusive: m.Exclusive,
		AutoDelete: m.AutoDelete, Arguments: m.Arguments,
	})
	if err != nil {
		return err
	}
	ch.lastQueue = q.Name()
	if m.NoWait {
		return nil
	}
	s := q.Status()
	consumers := s.Consumers
	if d, ok := q.(interface{ DeclaredConsumers() int }); ok { // not all of them count (RabbitMQ 4.0)
		consumers = d.DeclaredConsumers()
	}
	ch.replyLate(false, &frames.QueueDeclareOk{Queue: q.Name(), MessageCount: uint32(min(s.Ready, math.MaxUint32)), ConsumerCount: uint32(consumers)})
	return nil
}

// queueName resolves the name of a queue: "" is the one last declared on this
// channel (ref §1.7.2.2).
func (ch *channel) queueName(name string) (string, error) {
	if name != "" {
		return name, nil
	}
	if ch.lastQueue == "" {
		return "", frames.Errorf(frames.NotFound, "no previously declared queue")
	}
	return ch.lastQueue, nil
}

// queueError makes a queue that was deleted between being found and being used
// a missing one.
func (ch *channel) queueError(name string, err error) error {
	if errors.Is(err, queue.ErrGone) {
		return frames.Errorf(frames.NotFound, "no queue '%s' in vhost '%s'", name, ch.conn.vhost.Name())
	}
	return err
}

// bindNames resolves queue and routing key of a binding: if both are empty the
// key is the queue's name too (RabbitMQ 4.0).
func (ch *channel) bindNames(name, key string) (string, string, error) {
	q, err := ch.queueName(name)
	if name == "" && key == "" {
		key = q
	}
	return q, key, err
}

// queueBind handles queue.bind (ref §1.7.2.3).
func (ch *channel) queueBind(m *frames.QueueBind) error {
	q, key, err := ch.bindNames(m.Queue, m.RoutingKey)
	if err != nil {
		return err
	}
	if err := ch.conn.vhost.BindQueue(ch, q, m.Exchange, key, m.Arguments); err != nil {
		return err
	}
	ch.replyLate(m.NoWait, &frames.QueueBindOk{})
	return nil
}

// queueUnbind handles queue.unbind (ref §1.7.2.5).
func (ch *channel) queueUnbind(m *frames.QueueUnbind) error {
	q, key, err := ch.bindNames(m.Queue, m.RoutingKey)
	if err != nil {
		return err
	}
	if err := ch.conn.vhost.UnbindQueue(ch, q, m.Exchange, key, m.Arguments); err != nil {
		return err
	}
	ch.replyLate(false, &frames.QueueUnbindOk{})
	return nil
}

// queuePurge handles queue.purge: it drops the ready messages and leaves the
// unacknowledged ones with their consumers (ref §1.7.2.7).
func (ch *channel) queuePurge(m *frames.QueuePurge) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	n, err := ch.conn.vhost.PurgeQueue(ch, name)
	if err != nil {
		return ch.queueError(name, err)
	}
	ch.replyUnless(m.NoWait, &frames.QueuePurgeOk{MessageCount: uint32(n)})
	return nil
}

// queueDelete handles queue.delete (ref §1.7.2.9); a missing queue is deleted
// already (RabbitMQ 4.0).
func (ch *channel) queueDelete(m *frames.QueueDelete) error {
	name, err := ch.queueName(m.Queue)
	if err != nil {
		return err
	}
	n := 0
	if !strings.HasPrefix(name, replyToName) {
		n, err = ch.conn.vhost.DeleteQueue(ch, name, queue.Condition{IfUnused: m.IfUnused, IfEmpty: m.IfEmpty})
	}
	if err != nil {
		return err
	}
	ch.replyLate(m.NoWait, &frames.QueueDeleteOk{MessageCount: uint32(n)})
	return nil
}
