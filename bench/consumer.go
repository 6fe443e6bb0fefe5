package bench

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// consumerTag names the one consumer of each channel.
const consumerTag = "bench"

// A consumer consumes on one channel. It is owned by the reader of its
// connection.
type consumer struct {
	tag     uint64 // of the delivery that is being read
	left    uint64 // bytes of its body to come
	due     int64  // when it was to be published, by the clock; 0 if it has no latency
	first   bool   // the next body frame is the first
	pending int    // deliveries since the last ack
	lost    bool   // the broker has closed its channel or cancelled it

	repeated bool // the delivery is marked as redelivered
	foreign  bool // it was published before the run, or by somebody else
}

// A subConn is a connection of consumers. Its one goroutine reads, and writes
// the acks that a read leads to at its end: no hand-off, one write.
type subConn struct {
	r         *run
	c         *conn
	consumers []consumer // by channel number - 1
	every     int        // deliveries of an ack, 0 = no acks
	since     int64      // messages with an earlier time are foreign, 0 = none are
	marked    bool       // likewise those without a time
	acks      []byte     // what is to be written after this read
	starting  int        // consumers that have not been accepted yet
	open      int        // consumers that have not been cancelled
	served    int        // consumers that are not lost
	arrivals  tally
	ready     chan struct{} // closed when all consumers have been accepted
	gone      chan struct{} // closed when all consumers are lost
	read      chan struct{} // closed when the reader has ended
}

// newSubConn makes the consumers of a connection, by channel number.
func (r *run) newSubConn(c *conn, consumers int) *subConn {
	s := &subConn{r: r, c: c, consumers: make([]consumer, consumers), starting: consumers, open: consumers, served: consumers,
		ready: make(chan struct{}), gone: make(chan struct{}), read: make(chan struct{})}
	if r.sc.Publishers > 0 {
		s.since, s.marked = r.m.began, r.sc.Size.min() >= stampSize
	}
	if !r.sc.AutoAck {
		s.every = r.sc.AckEvery
		if r.sc.Prefetch > 0 {
			s.every = max(1, min(s.every, r.sc.Prefetch/2))
		}
	}
	return s
}

// openConsumers opens channels with the consumers numbered from up to but not
// including to. They get deliveries from then on.
func (r *run) openConsumers(c *conn, from, to int) (*subConn, error) {
	sc := r.newSubConn(c, to-from)
	for i := from; i < to; i++ {
		channel := uint16(i - from + 1)
		if err := c.openChannel(channel); err != nil {
			return nil, err
		}
		if r.sc.Prefetch > 0 && !r.sc.AutoAck {
			if _, err := call[*frames.BasicQosOk](c, channel, &frames.BasicQos{PrefetchCount: uint16(r.sc.Prefetch)}); err != nil {
				return nil, err
			}
		}
	}
	for i := from; i < to; i++ {
		if err := sc.subscribe(uint16(i-from+1), r.sc.queueName(i%r.sc.Queues)); err != nil {
			return nil, err
		}
	}
	return sc, nil
}

// subscribe asks for deliveries. The answer is left to the reader: deliveries
// may come before it on other channels.
func (s *subConn) subscribe(channel uint16, queue string) error {
	m := &frames.BasicConsume{Queue: queue, ConsumerTag: consumerTag, NoAck: s.r.sc.AutoAck, Arguments: s.r.sc.ConsumerArgs}
	_, err := s.c.sock.Write(frames.AppendMethod(nil, channel, m))
	return err
}

// readLoop takes deliveries until the connection ends.
func (s *subConn) readLoop() {
	defer close(s.read)
	defer s.loseAll()
	for {
		b := delivered{}
		for {
			f, ok, err := s.c.next()
			if err != nil {
				s.r.failed(err)
				return
			}
			if !ok {
				break
			}
			if done := s.handle(f, &b); done {
				s.count(&b)
				return
			}
		}
		s.count(&b)
		if err := s.flush(); err != nil {
			s.r.failed(err)
			return
		}
		if err := s.c.fill(); err != nil {
			s.r.failed(err)
			return
		}
	}
}

// delivered is what one read has brought.
type delivered struct {
	now      int64 // the clock, read with the first delivery that is whole
	messages int64
	bytes    int64
	foreign  int64 // messages that are not the run's; they are not in messages
	repeated int64 // messages that were delivered before, likewise
}

// handle handles one frame; done says that the connection is over.
func (s *subConn) handle(f frames.Frame, b *delivered) (done bool) {
	if f.Channel == 0 || int(f.Channel) > len(s.consumers) {
		return s.control(f)
	}
	c := &s.consumers[f.Channel-1]
	switch f.Type {
	case frames.BodyFrame:
		if c.first {
			c.first = false
			s.origin(f.Payload, c)
		}
		if !c.foreign && !c.repeated {
			b.bytes += int64(len(f.Payload))
		}
		c.left -= min(c.left, uint64(len(f.Payload)))
		if c.left == 0 {
			s.whole(f.Channel, c, b)
		}
	case frames.HeaderFrame:
		if len(f.Payload) < 12 {
			return false
		}
		c.left, c.due, c.first, c.foreign = binary.BigEndian.Uint64(f.Payload[4:]), 0, true, s.marked
		if c.left == 0 {
			s.whole(f.Channel, c, b)
		}
	case frames.MethodFrame:
		return s.method(f, c)
	}
	return false
}

// origin reads from the beginning of a body where it comes from, and since when
// its latency counts: if it says when it was sent and that was in this run.
func (s *subConn) origin(body []byte, c *consumer) {
	due := stampOf(body)
	if due == 0 {
		return
	}
	c.foreign = due < s.since
	if !c.foreign && !c.repeated && s.r.sc.Kind != KindBacklog { // the age of a backlog is no latency
		c.due = due
	}
}

// arrived takes the latency of a delivery whose last byte has come.
func (s *subConn) arrived(c *consumer, b *delivered) {
	if b.now == 0 || s.r.sc.ConsumerLatency > 0 {
		b.now = s.r.m.clock.now()
	}
	s.arrivals.add(b.now - c.due)
}

// whole counts a message that has come to its end, and acknowledges it in turn.
func (s *subConn) whole(channel uint16, c *consumer, b *delivered) {
	if c.due != 0 {
		s.arrived(c, b)
	}
	switch {
	case c.foreign:
		b.foreign++
	case c.repeated:
		b.repeated++
	default:
		b.messages++
	}
	if d := s.r.sc.ConsumerLatency; d > 0 {
		s.think(d, b)
	}
	if s.every == 0 {
		return
	}
	if c.pending++; c.pending >= s.every {
		c.pending = 0
		s.acks = frames.AppendAck(s.acks, channel, c.tag, true)
	}
}

// think takes the consumer's time over a delivery. What has been done before is
// counted and acknowledged first.
func (s *subConn) think(d time.Duration, b *delivered) {
	s.count(b)
	*b = delivered{}
	_ = s.flush() // if the connection has ended, the next read says so
	if s.r.leaving.Load() {
		return
	}
	if d < 2*time.Millisecond {
		pause(d)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.r.leave:
	}
}

// method handles the methods of a consumer's channel.
func (s *subConn) method(f frames.Frame, c *consumer) (done bool) {
	id, args, ok := frames.SplitMethod(f.Payload)
	switch {
	case !ok:
	case id == frames.BasicDeliverID:
		if len(args) > 0 && len(args) >= 10+int(args[0]) {
			c.tag = binary.BigEndian.Uint64(args[1+int(args[0]):])
			c.repeated = s.since > 0 && args[9+int(args[0])]&1 != 0
		}
	case id == frames.ChannelCloseID:
		done := s.r.closedBy(s.c, f)
		s.lose(c)
		s.acks = frames.AppendMethod(s.acks, f.Channel, &frames.ChannelCloseOk{})
		return done
	case id == frames.BasicCancelID:
		s.r.failed(fmt.Errorf("the broker cancelled a consumer"))
		s.lose(c)
	case id == frames.BasicConsumeOkID:
		if s.starting--; s.starting == 0 {
			close(s.ready)
		}
	case id == frames.BasicCancelOkID:
		return s.cancelled(f.Channel, c)
	}
	return false
}

// lose notes that a consumer gets nothing more.
func (s *subConn) lose(c *consumer) {
	if c.lost {
		return
	}
	c.lost = true
	if s.served--; s.served == 0 {
		close(s.gone)
	}
}

// loseAll is lose for the consumers of a connection that has ended.
func (s *subConn) loseAll() {
	for i := range s.consumers {
		s.lose(&s.consumers[i])
	}
}

// cancelled acknowledges what is left of a consumer, and closes the connection
// after the last one.
func (s *subConn) cancelled(channel uint16, c *consumer) (done bool) {
	if c.pending > 0 {
		c.pending = 0
		s.acks = frames.AppendAck(s.acks, channel, c.tag, true)
	}
	if s.open--; s.open == 0 {
		s.acks = frames.AppendMethod(s.acks, 0, &frames.ConnectionClose{ReplyCode: 200, ReplyText: "done"})
	}
	return false
}

// control handles frames of channel 0.
func (s *subConn) control(f frames.Frame) (done bool) {
	id, _, ok := frames.SplitMethod(f.Payload)
	switch {
	case f.Type != frames.MethodFrame || !ok:
	case id == frames.ConnectionCloseOkID:
		return true
	case id == frames.ConnectionCloseID:
		return s.r.closedBy(s.c, f)
	}
	return false
}

// count adds what a read has brought to the run's counters.
func (s *subConn) count(b *delivered) {
	if b.foreign > 0 || b.repeated > 0 {
		s.r.m.foreign.Add(b.foreign)
		s.r.m.repeated.Add(b.repeated)
	}
	if b.messages == 0 && b.bytes == 0 {
		return
	}
	s.r.m.latencies[latencyDelivery].record(&s.arrivals)
	s.r.m.consumedBytes.Add(b.bytes)
	if s.r.m.consumed.Add(b.messages) >= s.r.target.Load() {
		wake(s.r.reached)
	}
	s.r.gate.passed()
}

// flush writes the acks of a read. The reader may wait here for the broker to
// read; it reads on as long as it can write, and acks are too few and small to
// fill the sockets of both sides.
func (s *subConn) flush() error {
	if len(s.acks) == 0 {
		return nil
	}
	_, err := s.c.sock.Write(s.acks)
	s.acks = s.acks[:0]
	return err
}

// finish cancels the consumers, takes what is still under way and closes the
// connection in order.
func (s *subConn) finish(wg *sync.WaitGroup) {
	wg.Go(func() {
		var out []byte
		for i := range s.consumers {
			out = frames.AppendMethod(out, uint16(i+1), &frames.BasicCancel{ConsumerTag: consumerTag})
		}
		s.r.farewell(s.c, out, s.read)
	})
}
