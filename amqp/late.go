package amqp

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

// Methods that change the topology are answered when the change is durable. A
// client that sends many of them without waiting for each answer does not wait for
// a sync with each: all that a read has brought, up to the first method of another
// kind or the first publish, is made durable together and then answered. What
// follows on the connection finds it durable as ever.

// late is the answers to topology methods whose changes are not durable yet, in
// the order of the methods. It belongs to the reader.
type late struct {
	changes vhost.Changes
	replies []lateReply
}

type lateReply struct {
	channel uint16
	method  frames.Method
}

// A channel leaves it to its connection to wait for its changes.
var _ vhost.Later = (*channel)(nil)

// Changes implements vhost.Later.
func (ch *channel) Changes() *vhost.Changes { return &ch.conn.late.changes }

// replyLate answers a topology method, unless the client did not want that, once
// all that came before is durable: at once if it is.
func (ch *channel) replyLate(noWait bool, m frames.Method) {
	late := &ch.conn.late
	switch {
	case noWait:
	case late.changes.Any():
		late.replies = append(late.replies, lateReply{ch.id, m})
	default:
		ch.reply(m)
	}
}

// answerLate waits until all topology changes are durable and sends the answers. If
// they cannot be made so, it ends the connection with 541 and returns false.
func (c *conn) answerLate() bool {
	late := &c.late
	if !late.changes.Any() {
		return true
	}
	c.leave() // the wait is for the disk
	c.beats.pause()
	err := late.changes.Wait()
	c.beats.resume()
	replies := late.replies
	late.replies = nil
	if err != nil {
		c.fail(0, err)
		return false
	}
	for _, r := range replies {
		c.out.method(r.channel, r.method)
	}
	return true
}
