package amqp

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// ack handles basic.ack (ref §1.8.3.13).
func (ch *channel) ack(args []byte) error {
	tag, bits, err := frames.ParseSettle(args)
	if err != nil {
		return err
	}
	ch.conn.join()
	return ch.settleTags(tag, bits&1 != 0, queue.Accepted)
}

// basicNack handles basic.nack, an extension of RabbitMQ's.
func (ch *channel) basicNack(m *frames.BasicNack) error {
	return ch.settleTags(m.DeliveryTag, m.Multiple, rejection(m.Requeue))
}

// basicReject handles basic.reject (ref §1.8.3.14).
func (ch *channel) basicReject(m *frames.BasicReject) error {
	return ch.settleTags(m.DeliveryTag, false, rejection(m.Requeue))
}

func rejection(requeue bool) queue.Outcome {
	if requeue {
		return queue.Requeued
	}
	return queue.Rejected
}

// settleTags ends one delivery, or all up to the tag.
func (ch *channel) settleTags(tag uint64, multiple bool, how queue.Outcome) error {
	list, ok := ch.takeTags(tag, multiple)
	if !ok {
		list, ok = ch.takeLate(tag, multiple)
	}
	if !ok {
		return frames.Errorf(frames.PreconditionFailed, "unknown delivery tag %d", tag)
	}
	if ch.tx != nil {
		ch.tx.settle(ch, list, how)
		return nil
	}
	ch.settle(list, how)
	return nil
}

// takeTags takes deliveries out of the unacknowledged ones. The list is valid
// until the next call.
func (ch *channel) takeTags(tag uint64, multiple bool) (list []outstanding, ok bool) {
	list = ch.conn.scratch[:0]
	out := ch.conn.out
	out.mu.Lock()
	switch {
	case !multiple:
		var o outstanding
		if o, ok = ch.unacked.take(tag); ok {
			list = append(list, o)
		}
	case tag == 0:
		list, ok = ch.unacked.takeAll(list), true
	default:
		list, ok = ch.unacked.takeUpTo(tag, list)
	}
	out.mu.Unlock()
	ch.conn.scratch = list
	return list, ok
}

// settle hands deliveries back to their queues, in runs of one consumer's. The list
// is empty then, and the connection keeps no more memory for the next than keepRing.
func (ch *channel) settle(list []outstanding, how queue.Outcome) {
	run := ch.conn.run[:0]
	apart := 0
	for i := range list {
		run = append(run, list[i].Delivery)
		if i+1 == len(list) || list[i+1].c != list[i].c {
			if list[i].c.apart {
				apart += len(run)
			}
			list[i].c.queue.Settle(list[i].c.sub, run, how)
			clear(run)
			run = run[:0]
		}
	}
	if cap(run) > keepRing {
		run = nil
	}
	ch.conn.run = run
	total := len(list)
	last := ""
	if total > 0 && list[total-1].c.sub != nil { // else it was got
		last = list[total-1].c.sub.Tag
	}
	if how == queue.Accepted {
		ch.counts.acked.Add(uint64(total))
	}
	clear(list)
	if cap(ch.conn.scratch) > keepRing {
		ch.conn.scratch = nil
	}
	if total > apart && ch.window.Give(total-apart) {
		ch.resumeConsumers(last)
	}
}

// resumeConsumers lets the channel's consumers take deliveries again after the
// channel-wide limit was reached. As the first may take all that there is room for, the
// one that has just settled something comes last.
func (ch *channel) resumeConsumers(settled string) {
	for tag, c := range ch.consumers {
		if tag != settled {
			c.queue.Resume(c.sub)
		}
	}
	if c := ch.consumers[settled]; c != nil {
		c.queue.Resume(c.sub)
	}
}
