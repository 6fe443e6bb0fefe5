package amqp

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// turnSize is the read after which a reader lets others go first, in bytes: one
// that always finds something to read would hold its processor for as long as Go's
// scheduler lets it, 10 ms.
const turnSize = 32 << 10

// turnEvery is how often the network is looked at all the same, in milliseconds.
const turnEvery = 1

// A turnstile is where readers that always find something to read let others go
// first. That alone is not enough for clients with little to do: while there is
// something to run Go's scheduler asks the system only every 10 ms which sockets
// have something. So the readers wait here from time to time until it has asked:
// with none of them to run, it does so at once.
type turnstile struct {
	mu    sync.Mutex    // guards the fields below; a leaf, not held while waiting
	round chan struct{} // closed when the readers may go on; nil if none waits
	ended int64         // when the last round did, Unix milliseconds
	pipe  *pollPipe     // nil until it is needed
	fails bool          // there can be no pipe
}

// pass lets others go first. now is in Unix milliseconds.
func (t *turnstile) pass(now int64) {
	t.mu.Lock()
	switch round := t.round; {
	case round != nil:
		t.mu.Unlock()
		<-round
	case now-t.ended < turnEvery && now >= t.ended || !t.openLocked():
		t.mu.Unlock()
		runtime.Gosched()
	default:
		t.round = make(chan struct{})
		t.mu.Unlock()
		t.pipe.poll()
		t.mu.Lock()
		t.ended = time.Now().UnixMilli()
		close(t.round)
		t.round = nil
		t.mu.Unlock()
	}
}

// openLocked returns false if there is no pipe. t.mu must be held.
func (t *turnstile) openLocked() bool {
	if t.pipe != nil || t.fails {
		return t.pipe != nil
	}
	var err error
	if t.pipe, err = newPollPipe(); err != nil {
		t.fails = true // it is fair enough without
	}
	return t.pipe != nil
}

// close frees the pipe once no reader is left.
func (t *turnstile) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pipe != nil {
		t.pipe.close()
		t.pipe, t.fails = nil, true
	}
}

// A pollPipe waits until the scheduler has asked the system what can be read: it
// has written to itself by then, and what it reads is part of the answer.
type pollPipe struct {
	from, to *os.File        // immutable
	conn     syscall.RawConn // of from; immutable
	step     func(fd uintptr) bool
	written  bool // the byte is on its way
	buf      [1]byte
}

func newPollPipe() (*pollPipe, error) {
	if !canReadNow {
		return nil, syscall.ENOSYS
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p := &pollPipe{from: from, to: to}
	if p.conn, err = from.SyscallConn(); err != nil {
		p.close()
		return nil, err
	}
	// The first step is taken when the scheduler will be told of the next byte.
	p.step = func(fd uintptr) bool {
		if !p.written {
			_, err := p.to.Write(p.buf[:])
			p.written = true
			return err != nil
		}
		readNow(fd, p.buf[:])
		return true
	}
	return p, nil
}

// poll waits. It must not be called by two at a time.
func (p *pollPipe) poll() {
	p.written = false
	_ = p.conn.Read(p.step) // it fails only when closed: nobody waits then
}

func (p *pollPipe) close() {
	_, _ = p.from.Close(), p.to.Close() // nothing was kept in it
}
