package amqp

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// yieldAfter is how much one read brings, in bytes, after which a reader lets
// others run. Whoever always has more to send would else keep a processor until the
// scheduler takes it away after 10 ms: of four publishers at full speed and one
// consumer, the consumer's writer came last, and what piled up for it cost three times
// as much processor time a message.
const yieldAfter = 32 << 10

// turn is after how much of one read a reader looks whether other clients have sent
// something, and ends its batch if one has lately: see share. That is 500 small messages,
// or 220 of 1 KiB. A read may bring thousands, which take milliseconds. Beside two
// publishers at full speed a client with little to send took 0.5 ms and not 0.9 at the
// median so, and 4.9 and not 7.8 at p99 (medians of six runs).
const turn = 1536

// share is what a frame counts of a turn: one, and one for every 256 bytes, as large
// frames take longer.
func share(f frames.Frame) int { return 1 + len(f.Payload)/256 }

// readLoop reads the socket and handles all frames of each read as one batch.
// It returns why the connection ended.
func (c *conn) readLoop(ctx context.Context) error {
	c.sock.SetReadDeadline(time.Now().Add(c.srv.cfg.HandshakeTimeout))
	c.out.batching = true
	err := c.readHeader(ctx)
	c.batchDone()
	if err != nil {
		return err
	}
	for {
		c.reading.Store(c.state == running)
		var n int
		var err error
		if canBeQuiet && c.raw != nil && c.srv.cfg.Calm.Load() {
			n, err = c.raw.read(c.buf[c.w:])
		} else {
			n, err = c.sock.Read(c.buf[c.w:])
		}
		c.reading.Store(false)
		if err != nil {
			if err = c.readFailed(err); err != nil {
				return err
			}
			continue
		}
		c.w += n
		c.received.Add(uint64(n))
		c.reads.Add(1)
		if err := c.handle(ctx); err != nil {
			return err
		}
		c.makeRoom(n)
		if n >= yieldAfter {
			c.srv.lookout.look()
			runtime.Gosched()
		}
		if err := c.pause(ctx); err != nil {
			return err
		}
	}
}

// handle handles all whole frames in the buffer: in one batch, or in several between
// which others run, or the client takes what it was sent.
func (c *conn) handle(ctx context.Context) error {
	c.now = time.Now().UnixMilli()
	c.departed = c.departed[:0]
	for {
		more, err := c.batch()
		if err != nil || !more {
			return err
		}
		if c.glutted {
			c.glutted = false
			if c.held {
				c.held = false
				c.waitAlarm(ctx)
				c.now = time.Now().UnixMilli()
			}
			if c.waitRoom(ctx); ctx.Err() != nil || c.out.ended() {
				return nil // the next read says why
			}
		}
		runtime.Gosched()
	}
}

// readFailed says whether a failed read ends the connection: not if the broker
// only woke the reader.
func (c *conn) readFailed(err error) error {
	switch {
	case !errors.Is(err, os.ErrDeadlineExceeded):
		if c.state == closing {
			return errEnd
		}
		return err
	case c.state != running:
		if e := c.forced.Load(); e != nil && c.state == awaitOpen {
			return c.fail(0, e)
		}
		return errEnd // a handshake or a close that took too long
	}
	if e := c.forced.Load(); e != nil {
		return c.fail(0, e)
	}
	if err := c.runTasks(); err != nil || c.state != running {
		return err
	}
	if e := c.forced.Load(); e != nil { // its deadline may just have been taken back
		return c.fail(0, e)
	}
	return nil
}

// frames handles the whole frames in the buffer and then hands the publishes among
// them to their queues. If others are to run before it has handled all, or the client
// is to read first, there is more.
func (c *conn) frames() (more bool, err error) {
	c.largest = c.srv.largest()
	done := 0 // of a turn
	for {
		f, n, err := frames.Parse(c.buf[c.r:c.w], c.frameMax)
		if err != nil {
			return false, c.badFrame(err)
		}
		if n == 0 {
			break
		}
		c.r += n
		if err := c.frame(f); err != nil {
			return false, err
		}
		if c.glutted {
			more = true
			break
		}
		if done += share(f); done >= turn {
			if more = c.srv.lookout.look(); more {
				break
			}
			done = 0
		}
	}
	return more, c.flush()
}

// badFrame ends the connection after bytes that are no frame: nothing that
// follows them can be read.
func (c *conn) badFrame(err error) error {
	c.r, c.w = 0, 0
	switch {
	case c.state == closing:
		return errEnd
	case c.state < awaitOpen:
		return errSilent
	}
	if err := c.flush(); err != nil {
		return err
	}
	c.fail(0, err)
	return errEnd
}

// frame handles one frame.
func (c *conn) frame(f frames.Frame) error {
	if c.state == running && f.Channel != 0 {
		ch := c.last
		if ch == nil || ch.id != f.Channel {
			if ch = c.channels[f.Channel]; ch == nil {
				return c.unopened(f)
			}
			c.last = ch
		}
		return ch.frame(f)
	}
	if c.state == closing {
		return c.frameClosing(f)
	}
	return c.frameZero(f)
}

// frameClosing handles what comes after a close was sent or received: only the
// end of the handshake matters.
func (c *conn) frameClosing(f frames.Frame) error {
	if f.Type != frames.MethodFrame || f.Channel != 0 {
		return nil
	}
	switch id, _, _ := frames.SplitMethod(f.Payload); id {
	case frames.ConnectionCloseOkID:
		return errEnd
	case frames.ConnectionCloseID:
		c.out.method(0, &frames.ConnectionCloseOk{})
	}
	return nil
}

// unopened handles a frame for a channel that is not open.
func (c *conn) unopened(f frames.Frame) error {
	if f.Type == frames.HeartbeatFrame {
		return c.fail(0, unexpectedFrame(f))
	}
	id, args, _ := frames.SplitMethod(f.Payload)
	if id != frames.ChannelOpenID && slices.Contains(c.departed, f.Channel) {
		return nil // sent before the client could see close-ok (RabbitMQ 4.0)
	}
	if f.Type != frames.MethodFrame {
		return c.fail(0, frames.Unboundf(frames.UnexpectedFrame, "expected method frame, got non method frame instead"))
	}
	if id != frames.ChannelOpenID {
		return c.fail(id, frames.Errorf(frames.ChannelError, "expected 'channel.open'"))
	}
	if _, err := frames.DecodeMethod(id, args); err != nil {
		return c.fail(id, err)
	}
	return c.openChannel(f.Channel)
}

func unexpectedFrame(f frames.Frame) error {
	return frames.Unboundf(frames.UnexpectedFrame, "%s", frames.Octets(f.Type, f.Payload))
}

// flush hands the publishes of the batch to their queues.
func (c *conn) flush() error {
	c.answerLate()
	for _, ch := range c.dirty {
		ch.flush()
	}
	c.dirty = c.dirty[:0]
	return nil
}

// makeRoom moves what is left in the buffer to its front and fits the buffer to
// what the client sends: n bytes came with the last read.
func (c *conn) makeRoom(n int) {
	left := c.w - c.r
	if left == 0 {
		c.r, c.w = 0, 0
	}
	switch {
	case c.w == len(c.buf) && left < len(c.buf) || left == len(c.buf):
		c.resize(min(max(2*len(c.buf), minBuffer), max(maxBuffer, int(c.frameMax)+frames.Overhead)))
	case n > len(c.buf)/8 || left > 0:
		c.spare = 0
		if len(c.buf)-c.w < len(c.buf)/2 {
			c.resize(len(c.buf))
		}
	case len(c.buf) > minBuffer:
		if c.spare++; c.spare > 64 {
			c.spare = 0
			c.resize(len(c.buf) / 2)
		}
	}
}

// resize moves the unread bytes to the front of a buffer of this size.
func (c *conn) resize(size int) {
	left := c.w - c.r
	if size != len(c.buf) {
		b := make([]byte, size)
		copy(b, c.buf[c.r:c.w])
		c.buf = b
	} else {
		copy(c.buf, c.buf[c.r:c.w])
	}
	c.r, c.w = 0, left
}

// pause keeps the reader from reading while it must not take more: while a store
// is behind, while an alarm is up (publishers only), or while the client
// does not read what it is sent.
func (c *conn) pause(ctx context.Context) error {
	if c.published {
		c.published = false
		if err := c.waitStores(ctx); err != nil {
			return err
		}
		c.waitAlarm(ctx)
	}
	c.waitRoom(ctx)
	return nil
}

// waitRoom waits while the client does not read what it is sent.
func (c *conn) waitRoom(ctx context.Context) {
	room := c.out.full()
	if room == nil {
		return
	}
	c.beats.reads(true)
	defer c.beats.reads(false)
	for room != nil {
		select {
		case <-room:
		case <-ctx.Done():
			return
		}
		room = c.out.full()
	}
}

// readHeader reads the protocol header and answers with connection.start.
func (c *conn) readHeader(ctx context.Context) error {
	if err := c.handshakeTLS(ctx); err != nil {
		return err
	}
	var h [8]byte
	if _, err := io.ReadFull(c.sock, h[:]); err != nil {
		return err // a health check that sends nothing is no error
	}
	switch {
	case string(h[:]) == frames.ProtocolHeader, h == [8]byte{'A', 'M', 'Q', 'P', 1, 1, 0, 9}:
	default:
		c.refuseHeader(h)
		return errEnd
	}
	c.state = awaitStartOk
	c.logAccepted()
	if c.cert != nil {
		c.out.raw(c.srv.certStart)
	} else {
		c.out.raw(c.srv.start)
	}
	return nil
}

// refuseHeader answers a header that is not ours with the one that is, and says
// in the log what the client probably was.
func (c *conn) refuseHeader(h [8]byte) {
	c.log.Warn("closing connection", headerHint(h))
	c.out.raw([]byte(frames.ProtocolHeader))
	c.state = closing
}
