package amqp

import (
	"maps"
	"slices"
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

const (
	// outboxLimit is how much may wait in an outbox before consumers get no
	// more, in bytes. As much again may be on its way to the socket.
	outboxLimit = 1 << 20
	// outboxHardLimit is where the connection's own reader stops reading, and handles
	// no more of what it has read if messages were got: a client that sends requests
	// and does not read the replies. A read may bring 15 000 basic.get.
	outboxHardLimit = 4 * outboxLimit
)

// An outbox is the way out of a connection: one FIFO of everything that will be
// sent. Whoever has something appends it; the connection's writer takes it all
// at once.
//
// Delivery tags are given and the unacknowledged deliveries of the connection's
// channels are kept here, under the same lock, so that tags rise in the order
// of the wire and a client can settle whatever it has been sent.
type outbox struct {
	conn     *conn // immutable; nil in tests
	batching bool  // the reader's: what it appends is sent when its batch is done

	mu sync.Mutex // held for one append or one swap; before it a queue's, after it pushes.mu
	pending
	started bool          // there is a writer: it was needed once
	wake    chan struct{} // capacity 1; the writer sleeps on it
	asleep  bool          // the writer waits for wake or is not there, and nobody writes in its place
	queued  bool          // in pushes.conns
	closing bool          // nothing is taken any more; what is here will be sent
	starved []*consumer   // to be resumed once there is room
	room    chan struct{} // closed when bytes falls below the hard limit; nil if nobody waits

	taken pending // of who writes: the writer, or in its place who has seized the outbox

	done chan struct{} // closed when the outbox is closed and everything was sent
}

// pending is what waits to be sent, in order of segments.
type pending struct {
	encoded    []byte // comes before the segments: what a push could not write
	segments   []segment
	frames     []byte     // encoded frames of segments of kind framesSegment
	deliveries []outgoing // messages of the other kinds
	bytes      int        // an estimate of all of it on the wire
	sole       bool       // some of the messages nobody else has
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
	sole        bool // nobody else has the message
}

func newOutbox(c *conn) *outbox {
	return &outbox{conn: c, asleep: c != nil, done: make(chan struct{})}
}

// wakeLocked wakes the writer if it sleeps, or starts it. o.mu must be held.
func (o *outbox) wakeLocked() {
	switch {
	case !o.asleep:
		return
	case o.started:
		o.wake <- struct{}{}
	default:
		o.started = true
		o.wake = make(chan struct{}, 1)
		go o.conn.writer() // ends when the outbox is closed and empty; serve waits for it
	}
	o.asleep = false
}

func (o *outbox) wakeUp() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued = false
	if len(o.segments) > 0 {
		o.wakeLocked()
	}
}

// notifyLocked sees to it that what was appended is sent: by a reader that is at
// work, or by the writer. o.mu must be held.
func (o *outbox) notifyLocked() {
	switch {
	case !o.asleep:
	case o.bytes <= pushLimit && o.conn != nil && o.conn.raw != nil && (o.queued || o.conn.srv.pushes.add(o.conn)):
		o.queued = true
	default:
		o.wakeLocked()
	}
}

// answeredLocked is notifyLocked for what the connection's own reader appends,
// which pushes when its batch is done. o.mu must be held.
func (o *outbox) answeredLocked() {
	if !o.batching || o.bytes > pushLimit {
		o.wakeLocked()
	}
}

// seize gives what waits to the caller, in o.taken, to write it in the writer's
// place; yield must follow. It returns false if there is nothing, if the writer
// is at work, or if it is the writer's to do, which it wakes then: if there is
// much, if others wait for it to be sent, or if the caller is not able to.
func (o *outbox) seize(able bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued = false
	if !o.asleep || len(o.segments) == 0 {
		return false
	}
	if !able || o.bytes > pushLimit || len(o.starved) > 0 || o.room != nil {
		o.wakeLocked()
		return false
	}
	o.asleep = false
	o.taken, o.pending = o.pending, o.taken
	return true
}

// yield gives the write side back. What is left in o.taken, all of it encoded,
// goes before what has come since; both are the writer's.
func (o *outbox) yield() {
	o.mu.Lock()
	o.encoded, o.taken.encoded = o.taken.encoded, nil
	o.bytes += o.taken.bytes
	o.taken.bytes = 0
	o.asleep = true
	ended := o.closing && o.endLocked()
	if len(o.encoded) > 0 || len(o.segments) > 0 {
		o.wakeLocked()
	}
	o.mu.Unlock()
	if ended {
		o.conn.endWrites()
	}
}

// endLocked ends the sending of an outbox that is closing and asleep: it has the
// writer do it, or returns true if there is none and nothing for one to send. It
// does so once. o.mu must be held.
func (o *outbox) endLocked() (ended bool) {
	if o.asleep && !o.started && len(o.encoded) == 0 && len(o.segments) == 0 {
		o.asleep = false
		return true
	}
	o.wakeLocked()
	return false
}

// method appends a method frame of the connection's own reader.
func (o *outbox) method(channel uint16, m frames.Method) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.methodLocked(channel, m)
	o.answeredLocked()
}

func (o *outbox) methodLocked(channel uint16, m frames.Method) {
	if o.closing {
		return
	}
	was := len(o.frames)
	o.frames = frames.AppendMethod(o.frames, channel, m)
	o.framesAddedLocked(len(o.frames) - was)
}

// raw appends bytes of the connection's own reader that are encoded already.
func (o *outbox) raw(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closing {
		o.frames = append(o.frames, b...)
		o.framesAddedLocked(len(b))
		o.answeredLocked()
	}
}

// framesAddedLocked accounts for n bytes appended to o.frames. Whoever is to send
// them is still to be told.
func (o *outbox) framesAddedLocked(n int) {
	if k := len(o.segments); k > 0 && o.segments[k-1].kind == framesSegment {
		o.segments[k-1].n += n
	} else {
		o.segments = append(o.segments, segment{kind: framesSegment, n: n})
	}
	o.bytes += n
}

// heartbeat appends a heartbeat, unless something is waiting to be sent anyway.
// The caller pushes it.
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
	o.notifyLocked()
}

// nack appends a refusal of a channel's confirms; its requeue bit is set
// (RabbitMQ 4.0).
func (o *outbox) nack(channel uint16, tag uint64, multiple bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.methodLocked(channel, &frames.BasicNack{DeliveryTag: tag, Multiple: multiple, Requeue: true})
	o.notifyLocked()
}

// roomFor is how much there is room for, in bytes. The consumer's next delivery may take
// as much even if others are quicker: the outbox grows beyond its limit rather.
func (o *outbox) roomFor(c *consumer) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.promised = 0
	if !o.closing && !c.ch.closed {
		c.promised = max(0, outboxLimit-o.bytes)
	}
	return c.promised
}

// deliver appends as much of the batch as there is room for, or as was promised, and enters
// it in the channel's unacknowledged deliveries. It returns how many it took.
func (o *outbox) deliver(c *consumer, batch []queue.Delivery) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing || c.ch.closed {
		return 0
	}
	c.readyLocked()
	n, again := 0, 0
	promised := c.promised
	c.promised = 0
	for ; n < len(batch) && (o.bytes < outboxLimit || promised > 0); n++ {
		m := batch[n].Msg
		weight := queue.Weight(m)
		o.bytes += weight
		promised -= weight
		sole := batch[n].Sole && c.sub.NoAck
		o.deliveries = append(o.deliveries, outgoing{m, batch[n].Redelivered, sole})
		o.sole = o.sole || sole
		if batch[n].Redelivered {
			again++
		}
	}
	if n < len(batch) {
		o.starved = append(o.starved, c)
	}
	if n == 0 {
		return 0 // it is full, so the writer is at work
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
	o.notifyLocked()
	return n
}

// deliveriesAddedLocked adds n deliveries to the last segment if that is the
// same consumer's, else a segment.
func (o *outbox) deliveriesAddedLocked(c *consumer, tag uint64, n int) {
	if k := len(o.segments); k > 0 {
		s := &o.segments[k-1]
		if s.kind == deliverSegment && s.channel == c.ch.id && s.tag+uint64(s.n) == tag && s.ctag == c.sub.Tag {
			s.n += n
			return
		}
	}
	o.segments = append(o.segments, segment{kind: deliverSegment, n: n, channel: c.ch.id, tag: tag, ctag: c.sub.Tag, queue: c.queue.Name()})
}

// get appends basic.get-ok with its message. What can be sent no more is outstanding
// all the same, as the queue counts it as that: the end of the channel requeues it.
func (o *outbox) get(ch *channel, d queue.Delivery, q queue.Queue, noAck bool, left int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	tag := ch.unacked.next
	if noAck {
		ch.unacked.skip(1)
		ch.counts.gotNoAck.Add(1)
	} else {
		ch.counts.got.Add(1)
		ch.unacked.push([]queue.Delivery{d}, &consumer{ch: ch, queue: q, apart: ch.window.Limited()})
	}
	if d.Redelivered {
		ch.counts.redelivered.Add(1)
	}
	if !o.closing {
		o.messageLocked(d.Msg, d.Redelivered, segment{kind: getSegment, n: 1, channel: ch.id, tag: tag, left: uint32(left), queue: q.Name()})
		o.answeredLocked()
	}
	ch.conn.glutted = o.closing || o.bytes > outboxHardLimit
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
	o.notifyLocked()
}

// returned appends basic.return with the message.
func (o *outbox) returned(channel uint16, m *message.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closing {
		o.messageLocked(m, false, segment{kind: returnSegment, n: 1, channel: channel})
		o.answeredLocked()
	}
}

func (o *outbox) messageLocked(m *message.Message, redelivered bool, s segment) {
	o.bytes += queue.Weight(m)
	o.deliveries = append(o.deliveries, outgoing{msg: m, redelivered: redelivered})
	o.segments = append(o.segments, s)
}

// next gives the writer all that waits, in exchange for the emptied out, and
// the consumers that can be resumed when it is sent. It sleeps while there is
// nothing; ok is false when the outbox is closed and empty.
func (o *outbox) next(out *pending) (resume []*consumer, ok bool) {
	o.mu.Lock()
	for len(o.segments) == 0 && len(o.encoded) == 0 {
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

// sharers are the consumers of the channels of those that were starved, as far as
// the channel limits what its consumers have together; the starved ones are among
// them.
func (o *outbox) sharers(starved []*consumer) (all []*consumer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var done map[*channel]bool
	for _, s := range starved {
		if !s.ch.window.Limited() || done[s.ch] {
			continue
		}
		if done == nil {
			done = make(map[*channel]bool)
		}
		done[s.ch] = true
		all = slices.AppendSeq(all, maps.Values(s.ch.consumers))
	}
	return all
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

// ended says whether the outbox takes nothing any more.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing
}

// close ends the outbox: what is in it is still sent, or dropped if discard is
// set, and nothing more is taken.
func (o *outbox) close(discard bool) {
	o.mu.Lock()
	o.closing = true
	if discard {
		o.pending.reset()
	}
	if o.room != nil {
		close(o.room)
		o.room = nil
	}
	ended := o.endLocked()
	o.mu.Unlock()
	if ended {
		o.conn.endWrites()
	}
}

// keepDeliveries is how many deliveries, and segments, an emptied pending keeps room
// for; more is given back, so that an idle connection is small.
const keepDeliveries = 1 << 15

// reset empties p and keeps its memory, unless it has grown large.
func (p *pending) reset() {
	clear(p.deliveries)
	clear(p.segments)
	p.encoded = nil
	p.segments, p.deliveries, p.frames, p.bytes, p.sole = p.segments[:0], p.deliveries[:0], p.frames[:0], 0, false
	if cap(p.segments) > keepDeliveries {
		p.segments = nil
	}
	if cap(p.deliveries) > keepDeliveries {
		p.deliveries = nil
	}
	if cap(p.frames) > 1<<16 {
		p.frames = nil
	}
}
