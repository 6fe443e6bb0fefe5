package amqp

import (
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

const (
	// outboxLimit is how much may wait in an outbox before consumers get no
	// more, in bytes. As much again may be on its way to the socket.
	outboxLimit = 1 << 20
	// outboxHardLimit is where the connection's own reader stops reading: a
	// client that sends requests and does not read the replies.
	outboxHardLimit = 4 * outboxLimit
	// perDelivery is what a delivery adds on the wire besides header and body,
	// in bytes; an estimate.
	perDelivery = 64
)

// An outbox is the way out of a connection: one FIFO of everything that will be
// sent. Whoever has something appends it; the connection's writer takes it all
// at once.
//
// Delivery tags are given and the unacknowledged deliveries of the connection's
// channels are kept here, under the same lock, so that tags rise in the order
// of the wire and a client can settle whatever it has been sent.
type outbox struct {
	mu sync.Mutex // a leaf lock: held for one append or one swap
	pending
	wake    chan struct{} // capacity 1; the writer sleeps on it
	asleep  bool          // the writer waits for wake
	closing bool          // nothing is taken any more; what is here will be sent
	starved []*consumer   // to be resumed once there is room
	room    chan struct{} // closed when bytes falls below the hard limit; nil if nobody waits
}

// pending is what waits to be sent, in order of segments.
type pending struct {
	segments   []segment
	frames     []byte     // encoded frames of segments of kind framesSegment
	deliveries []outgoing // messages of the other kinds
	bytes      int        // an estimate of all of it on the wire
}

type segmentKind uint8

const (
	framesSegment  segmentKind = iota // n bytes of frames
	deliverSegment                    // n deliveries to one consumer
	getSegment                        // one get-ok
	returnSegment                     // one basic.return
)

// A segment is a part of the outbox that is encoded in one way.
type segment struct {
	kind    segmentKind
	n       int
	channel uint16
	tag     uint64 // of the first delivery; those after it count up
	ctag    string // consumer tag
	left    uint32 // message-count of get-ok
	queue   string // where the deliveries come from, for tracing
}

// An outgoing is one message to be encoded by the writer.
type outgoing struct {
	msg         *message.Message
	redelivered bool
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

// wakeLocked wakes the writer if it sleeps. o.mu must be held.
func (o *outbox) wakeLocked() {
	if o.asleep {
		o.asleep = false
		o.wake <- struct{}{}
	}
}

// method appends a method frame.
func (o *outbox) method(channel uint16, m frames.Method) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.methodLocked(channel, m)
}

func (o *outbox) methodLocked(channel uint16, m frames.Method) {
	if o.closing {
		return
	}
	was := len(o.frames)
	o.frames = frames.AppendMethod(o.frames, channel, m)
	o.framesAddedLocked(len(o.frames) - was)
}

// raw appends bytes that are encoded already.
func (o *outbox) raw(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closing {
		o.frames = append(o.frames, b...)
		o.framesAddedLocked(len(b))
	}
}

// framesAddedLocked accounts for n bytes appended to o.frames.
func (o *outbox) framesAddedLocked(n int) {
	if k := len(o.segments); k > 0 && o.segments[k-1].kind == framesSegment {
		o.segments[k-1].n += n
	} else {
		o.segments = append(o.segments, segment{kind: framesSegment, n: n})
	}
	o.bytes += n
	o.wakeLocked()
}

// heartbeat appends a heartbeat, unless something is waiting to be sent anyway.
func (o *outbox) heartbeat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing || o.bytes > 0 {
		return
	}
	o.frames = frames.AppendHeartbeat(o.frames)
	o.framesAddedLocked(frames.Overhead)
}

// ack appends confirms of a channel: basic.ack or basic.nack.
func (o *outbox) ack(channel uint16, tag uint64, multiple bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return
	}
	was := len(o.frames)
	o.frames = frames.AppendAck(o.frames, channel, tag, multiple)
	o.framesAddedLocked(len(o.frames) - was)
}

// deliver appends as much of the batch as there is room for and enters it in
// the channel's unacknowledged deliveries. It returns how many it took.
func (o *outbox) deliver(c *consumer, batch []queue.Delivery) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing || c.ch.closed {
		return 0
	}
	c.readyLocked()
	n, again := 0, 0
	for ; n < len(batch) && o.bytes < outboxLimit; n++ {
		m := batch[n].Msg
		o.bytes += len(m.Header) + len(m.Body) + perDelivery
		o.deliveries = append(o.deliveries, outgoing{m, batch[n].Redelivered})
		if batch[n].Redelivered {
			again++
		}
	}
	if n < len(batch) {
		o.starved = append(o.starved, c)
	}
	if n == 0 {
		return 0
	}
	tag := c.ch.unacked.next
	if c.sub.NoAck {
		c.ch.unacked.skip(n)
		c.ch.counts.deliveredNoAck.Add(uint64(n))
	} else {
		c.ch.unacked.push(batch[:n], c)
		c.ch.counts.delivered.Add(uint64(n))
	}
	if again > 0 {
		c.ch.counts.redelivered.Add(uint64(again))
	}
	o.deliveriesAddedLocked(c, tag, n)
	return n
}

// deliveriesAddedLocked adds n deliveries to the last segment if that is the
// same consumer's, else a segment.
func (o *outbox) deliveriesAddedLocked(c *consumer, tag uint64, n int) {
	if k := len(o.segments); k > 0 {
		s := &o.segments[k-1]
		if s.kind == deliverSegment && s.channel == c.ch.id && s.tag+uint64(s.n) == tag && s.ctag == c.sub.Tag {
			s.n += n
			o.wakeLocked()
			return
		}
	}
	o.segments = append(o.segments, segment{kind: deliverSegment, n: n, channel: c.ch.id, tag: tag, ctag: c.sub.Tag, queue: c.queue.Name()})
	o.wakeLocked()
}

// get appends basic.get-ok with its message.
func (o *outbox) get(ch *channel, d queue.Delivery, q queue.Queue, noAck bool, left int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return
	}
	tag := ch.unacked.next
	if noAck {
		ch.unacked.skip(1)
		ch.counts.gotNoAck.Add(1)
	} else {
		ch.counts.got.Add(1)
		ch.unacked.push([]queue.Delivery{d}, &consumer{ch: ch, queue: q})
	}
	o.messageLocked(d.Msg, d.Redelivered, segment{kind: getSegment, n: 1, channel: ch.id, tag: tag, left: uint32(left), queue: q.Name()})
}

// reply appends a delivery to a direct reply-to consumer. It shows the
// channel's next tag but does not use it up (RabbitMQ 4.0). A client that does
// not read its replies loses those that do not fit.
func (o *outbox) reply(ch *channel, ctag string, m *message.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing || o.bytes > outboxHardLimit {
		return
	}
	o.messageLocked(m, false, segment{kind: deliverSegment, n: 1, channel: ch.id, tag: ch.unacked.next, ctag: ctag})
}

// returned appends basic.return with the message.
func (o *outbox) returned(channel uint16, m *message.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closing {
		o.messageLocked(m, false, segment{kind: returnSegment, n: 1, channel: channel})
	}
}

func (o *outbox) messageLocked(m *message.Message, redelivered bool, s segment) {
	o.bytes += len(m.Header) + len(m.Body) + perDelivery
	o.deliveries = append(o.deliveries, outgoing{m, redelivered})
	o.segments = append(o.segments, s)
	o.wakeLocked()
}

// next gives the writer all that waits, in exchange for the emptied out, and
// the consumers that can be resumed when it is sent. It sleeps while there is
// nothing; ok is false when the outbox is closed and empty.
func (o *outbox) next(out *pending) (resume []*consumer, ok bool) {
	o.mu.Lock()
	for len(o.segments) == 0 {
		if o.closing {
			o.mu.Unlock()
			return nil, false
		}
		o.asleep = true
		o.mu.Unlock()
		<-o.wake
		o.mu.Lock()
	}
	*out, o.pending = o.pending, *out
	resume, o.starved = o.starved, nil
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
	o.mu.Unlock()
	return resume, true
}

// full returns a channel that is closed when there is room again, or nil if
// there is now.
func (o *outbox) full() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes <= outboxHardLimit || o.closing {
		return nil
	}
	if o.room == nil {
		o.room = make(chan struct{})
	}
	return o.room
}

// close ends the outbox: what is in it is still sent, or dropped if discard is
// set, and nothing more is taken.
func (o *outbox) close(discard bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	if discard {
		o.pending.reset()
	}
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
	o.wakeLocked()
}

// keepDeliveries is how many entries an emptied pending keeps room for; more is
// given back, so that an idle connection is small.
const keepDeliveries = 1 << 15

// reset empties p and keeps its memory, unless it has grown large.
func (p *pending) reset() {
	clear(p.deliveries)
	clear(p.segments)
	p.segments, p.deliveries, p.frames, p.bytes = p.segments[:0], p.deliveries[:0], p.frames[:0], 0
	if cap(p.deliveries) > keepDeliveries {
		p.deliveries = nil
	}
	if cap(p.frames) > 1<<16 {
		p.frames = nil
	}
}
