package amqp

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

type connState uint8

const (
	awaitHeader connState = iota
	awaitStartOk
	awaitTuneOk
	awaitOpen
	running
	closing // connection.close sent or received: only the handshake's end is read
)

// A conn is one client connection. The goroutine of serve is its reader: it
// alone touches the fields marked so. One other goroutine writes.
type conn struct {
	srv  *Server  // immutable
	sock net.Conn // immutable
	id   uint64   // immutable
	name string   // "peer -> host", immutable
	out  *outbox  // has its own lock
	log  *zap.Logger

	// Set by the reader before state is running, constant afterwards.
	frameMax   uint32
	channelMax uint16
	heartbeat  time.Duration
	start      ConnectionInfo    // published as info
	cert       *x509.Certificate // the client's, verified; nil if it has none
	vhost      *vhost.VHost
	user       auth.User
	grants     *auth.Grants // of the user in the vhost
	caps       capabilities

	state    connState // reader's
	buf      []byte    // reader's: read buffer, data is buf[r:w]
	r, w     int
	spare    int                 // reads in a row that needed little of buf
	now      int64               // Unix milliseconds at the last read
	channels map[uint16]*channel // changed by the reader alone, with the outbox's lock
	last     *channel            // reader's: the channel of the last frame
	dirty    []*channel          // reader's: channels with unflushed publishes
	glutted  bool                // reader's: what it got is too much to handle more before the client reads
	held     bool                // reader's: glutted, but because of an alarm
	largest  uint64              // reader's: how large a body may be in this batch, in bytes
	late     late                // reader's
	departed []uint16            // reader's: channels that the client has closed in this batch
	scratch  []outstanding       // reader's, for settling
	run      []queue.Delivery    // reader's, for settling
	props    frames.Properties   // reader's: of the last publish
	parsed   []byte              // reader's: the block that props are of; empty if it is to be read again
	stock    *message.Stock      // reader's: used bodies; nil until there was a large one
	alike    alike               // reader's
	beats    *beats              // heartbeats; nil if off

	received, sent atomic.Uint64 // bytes
	reads, writes  atomic.Uint64 // of the socket
	published      bool          // reader's: published since the last pause
	toWrite        queue.Writes  // reader's: what that gave the stores to write
	counted        bool          // counted in the vhost's and the user's connections

	// info is what others may ask of a running connection; nil before. What
	// changes is filled in by snapshot.
	info    atomic.Pointer[ConnectionInfo]
	blocked atomic.Bool // an alarm keeps the reader from reading
	hush    atomic.Bool // the client is not to hear that nothing more will be sent
	// forced is why the broker wants the connection closed. The reader is woken
	// by interrupt, which ends its waits, and by a read deadline.
	forced      atomic.Pointer[frames.Error]
	interrupt   context.CancelFunc // set before the connection is known to others
	interrupted <-chan struct{}    // closed by it; set with it

	raw     *rawSocket  // immutable; nil if the socket is not a plain one
	fd      int         // reader's: of raw, while watched
	reading atomic.Bool // the reader waits for its socket; set while state is running only
	joined  bool        // reader's: one of pushes.readers
	pushing []*conn     // reader's: scratch of leave

	tasksMu sync.Mutex // guards tasks; a leaf
	tasks   []func() error
}

// capabilities of the client that change what the broker does.
type capabilities struct{ authFailureClose, cancelNotify, blocked bool }

// minBuffer is the read buffer of a connection at rest, maxBuffer the largest;
// both in bytes. The largest holds a frame of the usual frame-max and more.
const (
	minBuffer = 4 << 10
	maxBuffer = 256 << 10
)

func newConn(s *Server, sock net.Conn) *conn {
	name := sock.RemoteAddr().String() + " -> " + sock.LocalAddr().String()
	c := &conn{
		srv: s, sock: sock, id: s.nextID.Add(1), name: name,
		raw: newRawSocket(sock), log: s.log.WithLazy(zap.String("connection", name)),
		frameMax: min(s.cfg.InitialFrameMax, s.cfg.FrameMax), buf: make([]byte, minBuffer),
		channels: make(map[uint16]*channel), interrupt: func() {}, // until there is something to wait for
	}
	c.out = newOutbox(c)
	c.start = ConnectionInfo{Name: name, Peer: addrPort(sock.RemoteAddr()), Host: addrPort(sock.LocalAddr()), ConnectedAt: time.Now()}
	return c
}

// ConnectionName is the name by which listings and events know the owner of an
// exclusive queue.
func (c *conn) ConnectionName() string { return c.name }

func (c *conn) vhostName() string {
	if i := c.info.Load(); i != nil {
		return i.VHost
	}
	return ""
}

func (c *conn) userName() string {
	if i := c.info.Load(); i != nil {
		return i.User
	}
	return ""
}

// Errors that end a connection without a close method.
var (
	errSilent = errors.New("protocol error in the handshake")
	errEnd    = errors.New("connection ended")
	errLeft   = fmt.Errorf("%w by its client", errEnd)
)

// serve runs the connection and returns when both its goroutines have ended.
//
// The calling goroutine is the reader. The other one is the writer, which is
// started when it is needed; closing the outbox ends it once what is queued has
// been sent. Closing the socket ends both; cancelling waits ends what the reader
// waits for besides it.
func (c *conn) serve(waits context.Context) {
	err := c.read(waits)
	c.unwatch()
	if c.beats != nil {
		c.beats.stop()
	}
	c.guard(c.release)
	c.hush.Store(errors.Is(err, errSilent) || errors.Is(err, errLeft))
	c.out.close(false)
	c.finish(err)
	select {
	case <-c.out.done:
	default:
		c.sock.SetWriteDeadline(time.Now().Add(lingerDelay)) // for a client that does not read
		<-c.out.done
	}
	c.sock.Close()
}

// read runs the read loop; a panic closes the connection with 541.
func (c *conn) read(ctx context.Context) (err error) {
	if !c.guard(func() { err = c.readLoop(ctx) }) {
		c.sendClose(0, frames.Unboundf(frames.InternalError, ""))
		return errEnd
	}
	return err
}

// guard runs f and says whether it came to its end: a panic is logged and ends
// this connection only.
func (c *conn) guard(f func()) (ended bool) {
	defer func() {
		if !ended {
			c.panicked(recover())
		}
	}()
	f()
	return true
}

// panicked logs what recover has returned, with the stack of the panic.
func (c *conn) panicked(r any) {
	c.log.Error("a bug of the broker ended the connection; report it with this line", zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
}

// finish sees the connection off: what is in the outbox is on its way, and the
// client gets some time to take it, so that a reset does not overtake a close.
func (c *conn) finish(err error) {
	c.logClosed(err)
	switch {
	case errors.Is(err, errSilent):
		c.log.Warn("closing connection", zap.Error(err))
		c.discard(silentDelay)
		if tcp, ok := c.sock.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		c.sock.Close()
	case errors.Is(err, errLeft): // who has close-ok closes the socket (RabbitMQ 4.0): many take an earlier end for a failure
		c.discard(c.closeTimeout())
	case errors.Is(err, errEnd):
		c.discard(c.linger())
	default:
		c.sock.Close()
	}
}

// silentDelay is how long a client that failed the handshake waits for nothing
// (RabbitMQ 4.0), so that guessing is slow.
const silentDelay = 3 * time.Second

// lingerDelay is how long the socket stays open after the last frame for the
// client to take it and close first.
const lingerDelay = 3 * time.Second

// stopDelay is lingerDelay, and how long a close handshake may take, while the
// broker stops: container runtimes give it ten seconds for everything.
const stopDelay = time.Second

func (c *conn) linger() time.Duration {
	if c.srv.stopped.Load() {
		return stopDelay
	}
	return lingerDelay
}

// closeTimeout is how long a close handshake may take, or the client's end of its
// socket after one (RabbitMQ 4.0), unless the broker is stopping.
func (c *conn) closeTimeout() time.Duration {
	if c.srv.stopped.Load() {
		return stopDelay
	}
	if c.heartbeat > 0 {
		return min(c.heartbeat, 30*time.Second)
	}
	return 30 * time.Second
}

// discard reads and drops what the client still sends, for at most d or until
// it closes.
func (c *conn) discard(d time.Duration) {
	c.sock.SetReadDeadline(time.Now().Add(d))
	if c.forced.Load() != nil { // its deadline may just have been taken back
		c.sock.SetReadDeadline(time.Now().Add(min(d, c.linger())))
	}
	for {
		n, err := c.sock.Read(c.buf)
		if err != nil || n == 0 {
			return
		}
	}
}

// release gives back all that the connection holds: consumers, unacknowledged
// messages, exclusive queues.
func (c *conn) release() {
	c.answerLate()
	c.releaseChannels()
	c.releaseQueues()
	if c.info.Load() != nil {
		c.srv.event("connection.closed", c.closedEvent)
	}
	c.uncount()
}

// uncount gives back the connection's place among those of the vhost and the user.
func (c *conn) uncount() {
	if c.counted {
		c.counted = false
		c.vhost.ConnectionClosed()
		c.srv.users.connectionClosed(c.user.Name)
	}
}

// releaseChannels ends all channels.
func (c *conn) releaseChannels() {
	for _, ch := range c.channels {
		if len(c.channels) > 1 && !ch.closing {
			ch.pauseConsumers() // they all go
		}
	}
	for _, ch := range c.channels {
		if !ch.closing { // else it was released when it failed
			ch.release()
		}
		ch.forget()
	}
	c.dirty, c.last = nil, nil
}

// releaseQueues deletes the connection's exclusive queues.
func (c *conn) releaseQueues() {
	if c.vhost != nil {
		c.vhost.ReleaseOwner(c)
	}
}

// fail closes the connection after an error in a method, or in none if id is 0.
// The read loop goes on, for the client's close-ok.
func (c *conn) fail(id frames.MethodID, err error) error {
	if !c.answerLate() {
		return nil
	}
	e, ok := errors.AsType[*frames.Error](err)
	if !ok {
		c.log.Error("a method failed, and its client got an internal error: if the disk is all right, report it with this line", zap.Uint16("class", id.Class()), zap.Uint16("method", id.Method()), zap.Error(err))
		e = frames.Errorf(frames.InternalError, "")
	}
	if !c.srv.stopped.Load() { // else the log has said so once
		c.log.Warn("closing connection", zap.String("reason", e.ReplyText()), zap.String("user", c.user.Name))
	}
	c.releaseChannels()
	c.releaseQueues() // others find the names free although the client may never answer (RabbitMQ 4.0)
	c.sendClose(id, e)
	c.state = closing
	c.sock.SetReadDeadline(time.Now().Add(c.closeTimeout()))
	return nil
}

func (c *conn) sendClose(id frames.MethodID, e *frames.Error) {
	if e.Unbound {
		id = 0
	}
	c.out.method(0, &frames.ConnectionClose{ReplyCode: uint16(e.Code), ReplyText: e.ReplyText(), ClassID: id.Class(), MethodID: id.Method()})
}

// force makes the reader close the connection with an error of the broker's.
// It may be called from any goroutine.
func (c *conn) force(e *frames.Error) {
	if c.forced.CompareAndSwap(nil, e) {
		c.interrupt()
		c.sock.SetReadDeadline(time.Unix(1, 0))
	}
}
