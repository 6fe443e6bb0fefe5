package amqp

import "github.com/leveretmq/leveret/frames"

// dispatch calls the handler of a method that is not on the hot path.
func (ch *channel) dispatch(m frames.Method) error {
	if err, ok := ch.topology(m); ok {
		return err
	}
	if !ch.conn.answerLate() {
		return nil
	}
	switch m := m.(type) {
	case *frames.ChannelOpen:
		return frames.Errorf(frames.ChannelError, "second 'channel.open' seen")
	case *frames.ChannelFlow:
		return ch.channelFlow(m)
	case *frames.ChannelClose:
		return ch.channelClose()
	case *frames.AccessRequest:
		ch.reply(&frames.AccessRequestOk{Ticket: 1})
		return nil

	case *frames.QueuePurge:
		return ch.queuePurge(m)

	case *frames.BasicQos:
		return ch.basicQos(m)
	case *frames.BasicConsume:
		return ch.basicConsume(m)
	case *frames.BasicCancel:
		return ch.basicCancel(m)
	case *frames.BasicCancelOk:
		return nil // RabbitMQ 4.0 closes with 503; some clients send it, and it harms nobody
	case *frames.BasicGet:
		return ch.basicGet(m)
	case *frames.BasicNack:
		return ch.basicNack(m)
	case *frames.BasicReject:
		return ch.basicReject(m)
	case *frames.BasicRecover:
		return ch.basicRecover(m.Requeue, true)
	case *frames.BasicRecoverAsync:
		return ch.basicRecover(m.Requeue, false)

	case *frames.ConfirmSelect:
		return ch.confirmSelect(m)
	case *frames.TxSelect:
		return ch.txSelect()
	case *frames.TxCommit:
		return ch.txCommit()
	case *frames.TxRollback:
		return ch.txRollback()
	}
	return frames.Errorf(frames.CommandInvalid, "unimplemented method")
}

// topology calls the handler of a method that changes the topology; it is false if
// the method is none. Those that follow each other without a pause are made durable
// together: see late.go.
func (ch *channel) topology(m frames.Method) (err error, ok bool) {
	switch m := m.(type) {
	case *frames.ExchangeDeclare:
		return ch.exchangeDeclare(m), true
	case *frames.ExchangeDelete:
		return ch.exchangeDelete(m), true
	case *frames.ExchangeBind:
		return ch.exchangeBind(m), true
	case *frames.ExchangeUnbind:
		return ch.exchangeUnbind(m), true
	case *frames.QueueDeclare:
		return ch.queueDeclare(m), true
	case *frames.QueueBind:
		return ch.queueBind(m), true
	case *frames.QueueUnbind:
		return ch.queueUnbind(m), true
	case *frames.QueueDelete:
		return ch.queueDelete(m), true
	}
	return nil, false
}

// channelFlow handles channel.flow. Only the state that is always there can be
// asked for (RabbitMQ 4.0).
func (ch *channel) channelFlow(m *frames.ChannelFlow) error {
	if !m.Active {
		return frames.Errorf(frames.NotImplemented, "active=false")
	}
	ch.reply(&frames.ChannelFlowOk{Active: true})
	return nil
}

// channelClose handles channel.close: the number is free once close-ok is sent.
func (ch *channel) channelClose() error {
	ch.release()
	ch.reply(&frames.ChannelCloseOk{})
	ch.forget()
	ch.conn.departed = append(ch.conn.departed, ch.id)
	return nil
}
