package amqp

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/leveretmq/leveret/message"
)

// An UnackedInfo is a snapshot of one delivery that its client has not settled.
type UnackedInfo struct {
	Connection, User string
	Channel          uint16
	Consumer         string // its tag; "" of a basic.get
	DeliveryTag      uint64
	At               time.Time // when it was delivered
	Redelivered      bool
	Count            uint32 // how often it was delivered before
	Message          *message.Message
}

// unackedPiece is how many places of a ring are looked at under one hold of the
// outbox's lock, which every delivery of the connection needs.
const unackedPiece = 1024

// Unacked lists deliveries from a queue that are not settled, by connection, the
// oldest first, channel and delivery tag: at most limit of them after the first
// offset ones, and how many there are. It is no snapshot of a moment: what is
// delivered or settled meanwhile may be in it or not.
func (s *Server) Unacked(vhost, queue string, offset, limit int) (page []UnackedInfo, total int) {
	for _, c := range s.running() {
		if c.info.Load().VHost != vhost {
			continue
		}
		for _, ch := range c.openChannels() {
			total += ch.unackedOf(queue, func(i int, o *outstanding) {
				if i += total; i >= offset && i < offset+limit {
					page = append(page, ch.describe(o))
				}
			})
		}
	}
	return page, total
}

// unackedOf calls each with the channel's outstanding deliveries from a queue, in
// order of tag, and returns how many those are. each is called with the outbox's
// lock held.
func (ch *channel) unackedOf(queue string, each func(i int, o *outstanding)) (n int) {
	see := func(o *outstanding) {
		if o.Msg != nil && o.c.queue.Name() == queue {
			each(n, o)
			n++
		}
	}
	out := ch.conn.out
	out.mu.Lock()
	defer out.mu.Unlock()
	u := &ch.unacked
	for _, tag := range slices.SortedFunc(maps.Keys(u.old), cmp.Compare) {
		o := u.old[tag]
		see(&o)
	}
	for from := u.low; u.live > 0; {
		from = max(from, u.low)
		to := min(from+unackedPiece, u.next)
		for t := from; t < to; t++ {
			see(&u.ring[t&uint64(len(u.ring)-1)])
		}
		if from = to; from >= u.next {
			break
		}
		out.mu.Unlock() // others have a turn; the ring may be another one then
		out.mu.Lock()
	}
	return n
}

func (ch *channel) describe(o *outstanding) UnackedInfo {
	i := UnackedInfo{
		Connection: ch.conn.name, User: ch.conn.info.Load().User, Channel: ch.id, DeliveryTag: o.tag,
		At: time.UnixMilli(o.at), Redelivered: o.Redelivered, Count: o.Count, Message: o.Msg,
	}
	if o.Sub != nil {
		i.Consumer = o.Sub.Tag
	}
	return i
}
