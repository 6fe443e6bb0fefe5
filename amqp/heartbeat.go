package amqp

import (
	"net"
	"net/netip"
	"sync"
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

	mu             sync.Mutex // guards the fields below; held for one tick
	timer          *time.Timer
	stopped        bool
	ticks          int
	silent         int // whole intervals without a byte from the client
	received, sent uint64
	paused         bool // the reader does not read: the client cannot be heard
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
	received := b.conn.received.Load()
	if received != b.received || b.paused {
		b.received, b.silent = received, 0
		return false
	}
	b.silent++
	return b.silent >= 2
}

// pause stops and resumes watching the client; sending goes on.
func (b *beats) pause(paused bool) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.paused = paused
	b.received = 0 // whatever came meanwhile counts as life
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
