package amqp

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// beats sends a connection's heartbeats and watches for the client's. It has no
// goroutine: a timer that fires every half interval.
//
// RabbitMQ 4.0: a heartbeat goes out if nothing was sent for half an interval;
// a client is given up after two whole intervals in a row without a byte, each
// counted from the one before.
type beats struct {
	conn *conn
	half time.Duration

	// waits is raised when the reader begins to wait and when it is through with
	// that. It is odd while the client cannot be heard.
	waits  atomic.Uint32
	unread atomic.Bool // the reader waits for the client to read: that it does is a sign of life

	mu      sync.Mutex // guards the fields below; held for one tick
	timer   *time.Timer
	stopped bool
	ticks   int
	silent  int    // whole intervals without a sign of life
	heard   uint64 // bytes, at the last whole interval
	waited  uint32 // waits, then
	sent    uint64
}

func startBeats(c *conn) *beats {
	b := &beats{conn: c, half: c.heartbeat / 2, sent: c.sent.Load()}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(b.half, b.tick)
	return b
}

func (b *beats) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	if b.ticks++; b.ticks%2 == 0 && b.silentLocked() {
		b.stopped = true
		b.conn.log.Warn("closing connection: missed heartbeats from client, timeout: " + roughly(b.conn.heartbeat))
		b.conn.sock.Close()
		return
	}
	sent := b.conn.sent.Load()
	if sent == b.sent {
		b.conn.out.heartbeat()
		b.conn.push()
		sent += frames.Overhead // it does not count as traffic at the next tick
	}
	b.sent = sent
	b.timer.Reset(b.half)
}

// silentLocked says whether the client is to be given up. b.mu must be held.
func (b *beats) silentLocked() bool {
	heard, waits := b.conn.received.Load(), b.waits.Load()
	if b.unread.Load() {
		heard += b.conn.sent.Load()
	}
	if heard != b.heard || waits != b.waited || waits%2 == 1 {
		b.heard, b.waited, b.silent = heard, waits, 0
		return false
	}
	b.silent++
	return b.silent >= 2
}

// pause stops watching the client until resume, as its reader waits for something else
// (RabbitMQ 4.0); sending goes on.
func (b *beats) pause() {
	if b != nil {
		b.waits.Add(1)
	}
}

// resume ends what pause began. Whatever came meanwhile counts as life.
func (b *beats) resume() {
	if b != nil {
		b.waits.Add(1)
	}
}

// reads says whether the reader waits for the client to read.
func (b *beats) reads(waiting bool) {
	if b != nil {
		b.unread.Store(waiting)
	}
}

func (b *beats) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.timer.Stop()
}

// addrPort is a TCP address; zero for what has none: a pipe or a Unix socket.
func addrPort(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
