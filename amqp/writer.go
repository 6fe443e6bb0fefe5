package amqp

import (
	"net"
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/vhost"
)

const (
	// flushSize is how much is encoded before it is written, in bytes.
	flushSize = 256 << 10
	// referencedBody is the size from which a body is not copied into the
	// write buffer but handed to writev where it lies, in bytes.
	referencedBody = 16 << 10
)

// writeBuffers are the buffers of writers that have something to write; a
// connection at rest has none.
var writeBuffers = sync.Pool{New: func() any { return new(writeBuffer) }}

// A writeBuffer gathers encoded bytes, and bodies by reference between them.
type writeBuffer struct {
	b    []byte
	cuts []cut       // bodies that go between the bytes of b
	iov  net.Buffers // scratch of flush
	held int         // bytes of the bodies in cuts

	returns message.Returns // scratch of recycle
}

// A cut is a body that goes out after the first at bytes of the buffer.
type cut struct {
	at   int
	body []byte
}

// writer is the connection's second goroutine. It is started when there is
// something to send that nobody can send in its place, see push: a connection at
// rest may never need one.
func (c *conn) writer() {
	if !c.guard(c.writeLoop) {
		c.out.close(true) // the reader may wait for room
		c.interrupt()     // or for something else
		c.sock.Close()
	}
	c.endWrites()
}

// endWrites closes the socket's write side, once nothing more will be sent, unless
// the client is not to hear of it.
func (c *conn) endWrites() {
	if hc, ok := c.sock.(interface{ CloseWrite() error }); ok && !c.hush.Load() {
		hc.CloseWrite() // the peer may be gone already: nothing depends on it
	}
	close(c.out.done)
}

// writeLoop sends what is in the outbox until that is closed and empty, or the
// socket fails.
func (c *conn) writeLoop() {
	out := &c.out.taken
	for {
		resume, ok := c.out.next(out)
		if !ok {
			return
		}
		if err := c.send(out); err != nil {
			c.out.close(true)
			c.interrupt() // the reader may wait for what has nothing to do with the client
			c.sock.Close()
			return
		}
		c.resume(resume)
	}
}

// resume lets consumers that were starved take deliveries again, and then all that
// share a limited window with one of them: while the queue of a starved one had taken
// places for what that did not take, they may have found the window full. Its Resume
// returns after the queue has given those back, so who is looked for only now misses
// nothing; nor does who consumes later, see basicConsume.
func (c *conn) resume(starved []*consumer) {
	if len(starved) == 0 {
		return
	}
	for _, s := range starved {
		s.queue.Resume(s.sub)
	}
	for _, s := range c.out.sharers(starved) {
		s.queue.Resume(s.sub)
	}
}

// send encodes and writes everything in out and leaves it empty.
func (c *conn) send(out *pending) error {
	w := writeBuffers.Get().(*writeBuffer)
	err := c.gather(w, out)
	if err == nil {
		err = c.flushBuffer(w)
	}
	if err == nil {
		w.recycle(out)
	}
	out.reset()
	w.giveBack()
	return err
}

// recycle returns the bodies that nobody has any more, now that out was written.
func (w *writeBuffer) recycle(out *pending) {
	if !out.sole {
		return
	}
	for i := range out.deliveries {
		if d := &out.deliveries[i]; d.sole {
			w.returns.Put(d.msg.Body)
		}
	}
	w.returns.Flush()
}

// gather encodes everything in out. What is more than flushSize is written.
func (c *conn) gather(w *writeBuffer, out *pending) error {
	w.b = append(w.b, out.encoded...)
	f, d := out.frames, out.deliveries
	for i := range out.segments {
		s := &out.segments[i]
		if s.kind == framesSegment {
			w.b = append(w.b, f[:s.n]...)
			f = f[s.n:]
			continue
		}
		if err := c.encode(w, s, d[:s.n]); err != nil {
			return err
		}
		if s.queue != "" && c.vhost.Tracing() {
			c.trace(s, d[:s.n])
			out.sole = false // the copies share the bodies
		}
		d = d[s.n:]
	}
	return nil
}

// trace publishes copies of what is delivered to the trace exchange.
func (c *conn) trace(s *segment, ds []outgoing) {
	to := vhost.TraceSource{Connection: c.name, Channel: s.channel, User: c.user.Name}
	for i := range ds {
		c.vhost.TraceDeliver(&to, s.queue, ds[i].msg, ds[i].redelivered)
	}
}

// encode appends the messages of one segment, and flushes between them when
// enough has gathered.
func (c *conn) encode(w *writeBuffer, s *segment, ds []outgoing) error {
	if s.kind == deliverSegment {
		return c.encodeDeliveries(w, s, ds)
	}
	m := ds[0].msg
	if s.kind == getSegment {
		w.b = frames.AppendMethod(w.b, s.channel, &frames.BasicGetOk{DeliveryTag: s.tag, Redelivered: ds[0].redelivered,
			Exchange: m.Exchange, RoutingKey: m.RoutingKey, MessageCount: s.left})
	} else {
		w.b = frames.AppendMethod(w.b, s.channel, &frames.BasicReturn{ReplyCode: uint16(frames.NoRoute), ReplyText: frames.NoRoute.String(),
			Exchange: m.Exchange, RoutingKey: m.RoutingKey})
	}
	w.b = frames.AppendContentHeader(w.b, s.channel, uint64(len(m.Body)), m.Header)
	w.body(s.channel, m.Body, c.frameMax)
	_, err := c.flushIfFull(w)
	return err
}

func (c *conn) encodeDeliveries(w *writeBuffer, s *segment, ds []outgoing) error {
	var head frames.DeliverHead
	var last *message.Envelope // of head; nil if that is not in the buffer any more
	for i := range ds {
		m, tag, size := ds[i].msg, s.tag+uint64(i), uint64(len(ds[i].msg.Body))
		if m.Envelope == last {
			w.b = head.AppendAgain(w.b, tag, ds[i].redelivered, size)
		} else {
			w.b, head = frames.AppendDeliverHead(w.b, s.channel, s.ctag, tag, ds[i].redelivered, m.Exchange, m.RoutingKey, size, m.Header)
			last = m.Envelope
		}
		w.body(s.channel, m.Body, c.frameMax)
		if flushed, err := c.flushIfFull(w); err != nil {
			return err
		} else if flushed {
			last = nil
		}
	}
	return nil
}

func (c *conn) flushIfFull(w *writeBuffer) (flushed bool, err error) {
	if len(w.b)+w.held <= flushSize {
		return false, nil
	}
	return true, c.flushBuffer(w)
}

// body appends the body frames of a message; what is large is referenced.
func (w *writeBuffer) body(channel uint16, body []byte, frameMax uint32) {
	if len(body) < referencedBody {
		w.b = frames.AppendBody(w.b, channel, body, frameMax)
		return
	}
	limit := int(frameMax) - frames.Overhead
	for len(body) > 0 {
		n := min(len(body), limit)
		w.b = frames.AppendBodyStart(w.b, channel, n)
		w.cuts = append(w.cuts, cut{len(w.b), body[:n]})
		w.b = frames.AppendBodyEnd(w.b)
		w.held += n
		body = body[n:]
	}
}

// flushBuffer writes what has gathered with one call.
func (c *conn) flushBuffer(w *writeBuffer) error {
	if len(w.b) == 0 {
		return nil
	}
	var n int64
	var err error
	if len(w.cuts) == 0 {
		var k int
		k, err = c.sock.Write(w.b)
		n = int64(k)
	} else {
		iov, at := w.iov[:0], 0
		for _, x := range w.cuts {
			iov = append(iov, w.b[at:x.at], x.body)
			at = x.at
		}
		iov = append(iov, w.b[at:])
		w.iov = iov
		n, err = iov.WriteTo(c.sock)
	}
	c.sent.Add(uint64(n))
	c.writes.Add(1)
	w.clear()
	return err
}

func (w *writeBuffer) clear() {
	clear(w.cuts)
	clear(w.iov[:cap(w.iov)])
	w.b, w.cuts, w.iov, w.held = w.b[:0], w.cuts[:0], w.iov[:0], 0
}

// giveBack empties the buffer for another connection. After a panic it must not
// be called: nobody else may send what is in it.
func (w *writeBuffer) giveBack() {
	w.clear()
	if cap(w.b) > 2*flushSize {
		w.b = nil
	}
	writeBuffers.Put(w)
}
