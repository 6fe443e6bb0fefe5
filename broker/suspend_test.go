package broker

import (
	"errors"
	"net"
	"testing"
)

// connected says whether the address takes a connection.
func connected(addr net.Addr) bool {
	c, err := net.Dial("tcp", addr.String())
	if err == nil {
		c.Close()
	}
	return err == nil
}

func openSuspendable(t *testing.T) *suspendable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newSuspendable(l, func(addr net.Addr) (net.Listener, error) { return net.Listen("tcp", addr.String()) })
}

// A suspended listener refuses clients, and accepts them at the same address
// when it is resumed: Accept does not return in between.
func TestSuspendedListenerRefusesClients(t *testing.T) {
	s := openSuspendable(t)
	accepted := make(chan error)
	go func() {
		for {
			c, err := s.Accept()
			if err == nil {
				c.Close()
			}
			accepted <- err
			if err != nil {
				return
			}
		}
	}()
	for range 2 {
		if !connected(s.Addr()) {
			t.Fatal("refuses clients while it is open")
		}
		if err := <-accepted; err != nil {
			t.Fatalf("Accept: %v", err)
		}
		s.suspend()
		s.suspend()
		if connected(s.Addr()) {
			t.Error("takes clients while it is suspended")
		}
		if err := s.resume(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

func TestSuspendedListenerIsClosed(t *testing.T) {
	s := openSuspendable(t)
	s.suspend()
	accepted := make(chan error, 1)
	go func() {
		_, err := s.Accept()
		accepted <- err
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v, want net.ErrClosed", err)
	}
	if err := s.resume(); err != nil || connected(s.Addr()) {
		t.Errorf("resume opens what was closed: %v", err)
	}
}

func TestResumeTellsOfATakenAddress(t *testing.T) {
	s := openSuspendable(t)
	defer s.Close()
	s.suspend()
	other, err := net.Listen("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.resume(); err == nil {
		t.Error("resume has no error although the address is taken")
	}
	other.Close()
	if err := s.resume(); err != nil {
		t.Errorf("resume once more: %v", err)
	}
}
