package amqp

import (
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// ackCheckInterval is how often at least a channel's oldest delivery is looked
// at; RabbitMQ 4.0's channel_tick_interval.
const ackCheckInterval = 60 * time.Second

// watchAcks makes sure that the channel's deliveries are watched, now that one
// of this queue may come. The timer ends with the channel.
func (ch *channel) watchAcks(q queue.Queue) {
	d := min(ch.conn.ackTimeout(q), ackCheckInterval)
	if ch.ackTimer == nil {
		ch.ackEvery = d
		ch.ackTimer = time.AfterFunc(d, func() { ch.conn.post(ch.checkAcks) })
	} else if d < ch.ackEvery {
		ch.ackEvery = d
		ch.ackTimer.Reset(d)
	}
}

// ackTimeout is how long a delivery of the queue may stay unacknowledged. A
// queue's own limit is not validated when it is declared (RabbitMQ 4.0); one that
// is not positive is none.
func (c *conn) ackTimeout(q queue.Queue) time.Duration {
	if ms := q.Status().ConsumerTimeout; ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return c.srv.cfg.ConsumerTimeout
}

// checkAcks ends the channel if its oldest delivery has been out for too long.
func (ch *channel) checkAcks() error {
	if ch.closing || ch.ackTimer == nil {
		return nil
	}
	out := ch.conn.out
	out.mu.Lock()
	oldest, ok := ch.unacked.oldest()
	out.mu.Unlock()
	wait := ch.ackEvery // positive, as every timeout is
	if ok {
		timeout := ch.conn.ackTimeout(oldest.c.queue)
		left := timeout - time.Since(time.UnixMilli(oldest.at))
		if left <= 0 {
			return ch.fail(0, frames.Unboundf(frames.PreconditionFailed, "delivery acknowledgement on channel %d timed out. "+
				"Timeout value used: %d ms. This timeout value can be configured, see consumers doc guide to learn more", ch.id, timeout.Milliseconds()))
		}
		wait = min(wait, left)
	}
	ch.ackTimer.Reset(wait)
	return nil
}

func (ch *channel) stopAckTimer() {
	if ch.ackTimer != nil {
		ch.ackTimer.Stop()
		ch.ackTimer = nil
	}
}

// post has the reader run a task of the broker's between two reads. It may be
// called from any goroutine. A connection that is closing runs no more tasks.
func (c *conn) post(task func() error) {
	c.tasksMu.Lock()
	defer c.tasksMu.Unlock()
	c.tasks = append(c.tasks, task)
	c.sock.SetReadDeadline(time.Unix(1, 0))
}

// runTasks runs what was posted.
func (c *conn) runTasks() error {
	c.tasksMu.Lock()
	tasks := c.tasks
	c.tasks = nil
	c.sock.SetReadDeadline(time.Time{})
	c.tasksMu.Unlock()
	for _, task := range tasks {
		if c.state != running {
			return nil
		}
		if err := task(); err != nil {
			return err
		}
	}
	return nil
}
