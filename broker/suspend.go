package broker

import (
	"fmt"
	"net"
	"sync"
)

// A suspendable listener can be closed for a while: clients are refused by the
// system, and Accept waits until it is resumed.
type suspendable struct {
	again func(net.Addr) (net.Listener, error) // opens it anew; immutable
	addr  net.Addr                             // immutable

	// mu guards the fields below; it is never held while a connection is waited
	// for.
	mu     sync.Mutex
	open   net.Listener  // nil while suspended, and after Close
	wake   chan struct{} // closed by resume and Close; nil while open
	closed bool
}

func newSuspendable(l net.Listener, again func(net.Addr) (net.Listener, error)) *suspendable {
	return &suspendable{again: again, addr: l.Addr(), open: l}
}

// Accept implements net.Listener.
func (s *suspendable) Accept() (net.Conn, error) {
	for {
		l, wake := s.current()
		if l == nil && wake == nil {
			return nil, net.ErrClosed
		}
		if l == nil {
			<-wake
			continue
		}
		c, err := l.Accept()
		if err == nil {
			return c, nil
		}
		if now, _ := s.current(); now == l { // neither suspended nor closed: it has failed
			return nil, err
		}
	}
}

// current is what to accept from, or else what to wait for. Both are nil when it
// is closed.
func (s *suspendable) current() (net.Listener, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open, s.wake
}

// suspend closes the socket; one that is closed stays so.
func (s *suspendable) suspend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.open == nil {
		return
	}
	_ = s.open.Close() // it refuses clients whatever this returns
	s.open, s.wake = nil, make(chan struct{})
}

// resume opens the socket again. What has taken its address meanwhile is an
// error, and it can be tried again.
func (s *suspendable) resume() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.open != nil {
		return nil
	}
	l, err := s.again(s.addr)
	if err != nil {
		return fmt.Errorf("cannot listen on %s again: %w; free the address and resume once more", s.addr, err)
	}
	close(s.wake)
	s.open, s.wake = l, nil
	return nil
}

// Close implements net.Listener.
func (s *suspendable) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.closed = true
	if s.open == nil {
		close(s.wake)
		s.wake = nil
		return nil
	}
	err := s.open.Close()
	s.open = nil
	return err
}

// Addr implements net.Listener.
func (s *suspendable) Addr() net.Addr { return s.addr }
