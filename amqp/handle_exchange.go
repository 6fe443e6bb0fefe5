package amqp

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

// exchangeDeclare handles exchange.declare (ref §1.6.2.1).
func (ch *channel) exchangeDeclare(m *frames.ExchangeDeclare) error {
	err := ch.conn.vhost.DeclareExchange(ch, vhost.ExchangeDeclare{
		Name: m.Exchange, Type: m.Type, Passive: m.Passive, Durable: m.Durable,
		AutoDelete: m.AutoDelete, Internal: m.Internal, Arguments: m.Arguments,
	})
	if err != nil {
		return err
	}
	ch.replyLate(m.NoWait, &frames.ExchangeDeclareOk{})
	return nil
}

// exchangeDelete handles exchange.delete; a missing exchange is deleted
// already (RabbitMQ 4.0).
func (ch *channel) exchangeDelete(m *frames.ExchangeDelete) error {
	if err := ch.conn.vhost.DeleteExchange(ch, m.Exchange, m.IfUnused); err != nil {
		return err
	}
	ch.replyLate(m.NoWait, &frames.ExchangeDeleteOk{})
	return nil
}

// exchangeBind handles exchange.bind, an extension of RabbitMQ's.
func (ch *channel) exchangeBind(m *frames.ExchangeBind) error {
	if err := ch.conn.vhost.BindExchange(ch, m.Destination, m.Source, m.RoutingKey, m.Arguments); err != nil {
		return err
	}
	ch.replyLate(m.NoWait, &frames.ExchangeBindOk{})
	return nil
}

// exchangeUnbind handles exchange.unbind.
func (ch *channel) exchangeUnbind(m *frames.ExchangeUnbind) error {
	if err := ch.conn.vhost.UnbindExchange(ch, m.Destination, m.Source, m.RoutingKey, m.Arguments); err != nil {
		return err
	}
	ch.replyLate(m.NoWait, &frames.ExchangeUnbindOk{})
	return nil
}
