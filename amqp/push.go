package amqp

import "sync"

// Waking a writer is dear when there is little to write: another thread wakes
// up, looks for work and goes to sleep again. So a reader that has handled a
// batch of frames writes what that has put into the outboxes of sleeping
// writers itself, as far as the sockets take it at once. The rest, and whatever
// is large, is the writers' as before.
const (
	// pushLimit is how much is written without the writer, in bytes of an
	// outbox. It is below referencedBody, and so small that the encoded bytes
	// stay below flushSize whatever the names in them, so that gathering them
	// does not write: at 64 bytes each, see queue.Weight, it is 256 deliveries at most.
	pushLimit = referencedBody - 1
	// maxPushes is how many connections a reader writes to after one batch. To
	// wake the writers of more lets other processors help.
	maxPushes = 16
)

// pushes are the connections with something to send whose writers were not
// woken, as a reader will see to them when its batch is done.
type pushes struct {
	mu      sync.Mutex // guards the fields below; a leaf, taken after an outbox's lock
	readers int        // in a batch that they handle without waiting for anything
	conns   []*conn
}

// add leaves a connection to the readers that are at work. It returns false if
// there is none.
func (p *pushes) add(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers == 0 {
		return false
	}
	p.conns = append(p.conns, c)
	return true
}

// join begins the part of a reader's batch in which it will see to the
// connections that it delivers to. It must not wait for anything before leave.
func (c *conn) join() {
	if c.joined || !c.out.batching {
		return
	}
	c.joined = true
	p := &c.srv.pushes
	p.mu.Lock()
	p.readers++
	p.mu.Unlock()
}

// leave ends what join began: it sees to all connections that wait for it,
// whoever left them.
func (c *conn) leave() {
	if !c.joined {
		return
	}
	c.joined = false
	p := &c.srv.pushes
	p.mu.Lock()
	p.readers--
	p.conns, c.pushing = c.pushing[:0], p.conns
	p.mu.Unlock()
	for i, other := range c.pushing {
		if i < maxPushes {
			other.push()
		} else {
			other.out.wakeUp()
		}
	}
	clear(c.pushing)
}

// batch handles frames that a read has brought. There may be more of them, see frames.
func (c *conn) batch() (more bool, err error) {
	c.out.batching = true
	defer c.batchDone()
	return c.frames()
}

// batchDone sends what the batch has caused: deliveries to others, and answers.
func (c *conn) batchDone() {
	c.out.batching = false
	if c.stock != nil {
		c.stock.Rest()
	}
	c.alike.rest()
	c.leave()
	c.push()
}

// push sends what waits in the outbox if the writer sleeps: at once if it is
// little, by waking the writer else, or if the socket does not take it all. It
// never waits, and may be called from any goroutine without locks.
func (c *conn) push() {
	o := c.out
	if !o.seize(c.pushable()) {
		return
	}
	done := false
	defer func() {
		if !done {
			c.panicked(recover())
			o.taken.reset()
			o.close(true)
			c.sock.Close()
		}
		o.yield()
	}()
	c.writeNow(&o.taken)
	done = true
}

// pushable says whether the socket can be written to without waiting, and the
// messages need nothing but that. Before the connection runs there are none, and the
// vhost is the reader's.
func (c *conn) pushable() bool {
	return c.raw != nil && (c.info.Load() == nil || !c.vhost.Tracing())
}

// writeNow encodes out and writes what the socket takes. What it does not take
// stays in out, encoded.
func (c *conn) writeNow(out *pending) {
	w := writeBuffers.Get().(*writeBuffer)
	c.gather(w, out) // writes nothing: see pushLimit
	n := c.raw.write(w.b, c.srv.cfg.Calm.Load())
	c.sent.Add(uint64(n))
	c.writes.Add(1)
	w.recycle(out)
	out.reset()
	if left := w.b[n:]; len(left) > 0 {
		out.encoded = append(out.encoded, left...)
		out.bytes = len(left)
	}
	w.giveBack()
}
