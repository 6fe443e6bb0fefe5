package amqp

import (
	"net"
	"syscall"
)

// Before each system call Go is told that one begins: if it lasts, another thread goes
// on in its place. Of a broker that has little to do that is a large part of the work. At
// its first call after a rest Go's monitor thread is woken, which then looks on for a
// while; when the call has taken long, as the processor was needed elsewhere, a second
// thread starts, and the first one finds itself without work. So in calm times (see
// Config.Calm) a socket is read and written without that, which is right for calls that
// never wait: many-100q takes 43 us a message instead of 49, both on one processor (medians
// of eight runs). At other times it is wrong: topic-1000 lost two fifths of its rate.

// A rawSocket reads and writes a socket without waiting in the system. One goroutine
// reads, and only who has the outbox's write side writes.
type rawSocket struct {
	conn     syscall.RawConn       // immutable
	tryRead  func(fd uintptr) bool // immutable
	tryWrite func(fd uintptr) bool // immutable

	in      []byte // of the reader, as the next two
	got     int
	readErr error

	out     []byte // of the writer, as the next two
	quiet   bool
	written int
}

// newRawSocket returns nil for what is no plain socket: a connection with TLS, a
// pipe.
func newRawSocket(sock net.Conn) *rawSocket {
	var sc syscall.Conn
	switch sock := sock.(type) {
	case *net.TCPConn:
		sc = sock
	case *net.UnixConn:
		sc = sock
	default:
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil || !canWriteNow {
		return nil
	}
	r := &rawSocket{conn: raw}
	r.tryRead, r.tryWrite = r.readNow, r.writeNow
	return r
}

// fd is the socket's file descriptor, good until the socket is closed.
func (r *rawSocket) fd() (fd int) {
	_ = r.conn.Control(func(f uintptr) { fd = int(f) }) // a closed socket has none to watch
	return fd
}

// write returns how much of b the socket has taken. Why it was not all does not
// matter: whoever writes the rest will know. Quietly is without telling Go.
func (r *rawSocket) write(b []byte, quietly bool) int {
	r.out, r.quiet, r.written = b, quietly, 0
	err := r.conn.Write(r.tryWrite)
	r.out = nil
	if err != nil {
		return 0
	}
	return r.written
}

func (r *rawSocket) writeNow(fd uintptr) bool {
	if r.quiet && canBeQuiet {
		r.written = writeQuietly(fd, r.out)
	} else {
		r.written = writeNow(fd, r.out)
	}
	return true
}

// read is net.Conn's Read, without telling Go. It waits in Go's poller. b must not be
// empty.
func (r *rawSocket) read(b []byte) (n int, err error) {
	r.in, r.got, r.readErr = b, 0, nil
	err = r.conn.Read(r.tryRead)
	r.in = nil
	if err == nil {
		err = r.readErr
	}
	return r.got, err
}

// readNow returns false if there is nothing to read now.
func (r *rawSocket) readNow(fd uintptr) bool {
	var done bool
	r.got, done, r.readErr = readQuietly(fd, r.in)
	return done
}
