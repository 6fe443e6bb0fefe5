package amqp

import (
	"sync"
	"time"
)

// Go looks for sockets that can be read when a processor has nothing else to do,
// and else every 10 ms. So while a few clients keep all processors busy, a message
// of any other client lies in its socket for up to 10 ms. A reader that has handled
// a large batch therefore looks itself, and wakes the readers that wait on sockets
// with something to read, before it lets others run. With two publishers at full
// speed on two cores this halves how long other messages take, 2.6 ms to 1.3 at the
// median, and costs one system call a batch. While that finds somebody, readers look
// more often, see turn.

// A lookout finds which of many sockets have something new to read. It watches them
// only while somebody looks: being watched makes each arrival a little dearer.
type lookout struct {
	mu      sync.Mutex     // a leaf, but that nudge is called with it; held for a few system calls
	sockets map[int]nudger // by file descriptor
	poller  poller
	open    bool      // the poller watches all sockets
	looked  time.Time // the last look
	woke    time.Time // the last look that woke somebody
}

// lookoutRest is how long nobody looks before the sockets are watched no more.
const lookoutRest = 10 * time.Second

// lately is for how long after a client was found readers make their batches short,
// so that the next thing it sends is found soon.
const lately = 100 * time.Millisecond

// A nudger is told that its socket has something to read, and says whether it had
// waited for that. It must not block.
type nudger interface{ nudge() bool }

// add enters a socket.
func (l *lookout) add(fd int, n nudger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sockets == nil {
		l.sockets = make(map[int]nudger)
	}
	l.sockets[fd] = n
	if l.open {
		l.poller.add(fd)
	}
}

// remove takes a socket out, before it is closed. After it n is not told anything
// any more.
func (l *lookout) remove(fd int, n nudger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sockets[fd] != n {
		return
	}
	delete(l.sockets, fd)
	if l.open {
		l.poller.remove(fd)
	}
}

// beginLocked has the system watch all sockets, until nobody has looked for
// lookoutRest. l.mu must be held.
func (l *lookout) beginLocked() {
	if l.open = l.poller.open(); !l.open {
		return
	}
	for fd := range l.sockets {
		l.poller.add(fd)
	}
	time.AfterFunc(lookoutRest, l.end)
}

// end ends what beginLocked began, if it is time.
func (l *lookout) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rest := lookoutRest - time.Since(l.looked); rest > 0 && len(l.sockets) > 0 {
		time.AfterFunc(rest, l.end)
		return
	}
	l.poller.close()
	l.open = false
}

// look tells those whose sockets have got something since the last look, or have
// something at all if that is long ago. It says whether a look has woken somebody
// lately. It never waits: if another goroutine is looking, that is enough.
func (l *lookout) look() bool {
	if !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	l.looked = time.Now()
	if !l.open {
		l.beginLocked()
	}
	for _, fd := range l.poller.ready() {
		if n := l.sockets[fd]; n != nil {
			if n.nudge() {
				l.woke = l.looked
			}
		}
	}
	return l.looked.Sub(l.woke) < lately
}

// watch has the lookout watch the connection's socket, if it is a plain one.
func (c *conn) watch() {
	if c.raw != nil {
		c.fd = c.raw.fd()
		c.srv.lookout.add(c.fd, c)
	}
}

// unwatch ends what watch began.
func (c *conn) unwatch() {
	if c.raw != nil {
		c.srv.lookout.remove(c.fd, c)
	}
}

// nudge wakes the reader if it waits for its socket: as if a task had been posted.
func (c *conn) nudge() bool {
	waits := c.reading.CompareAndSwap(true, false)
	if waits {
		c.sock.SetReadDeadline(time.Unix(1, 0))
	}
	return waits
}
