package amqp

import (
	"syscall"
	"testing"
)

// A bell counts how often it was nudged.
type bell int

func (b *bell) nudge() { *b++ }

// bellOn watches one end of a new connection. ring makes the other end send.
func bellOn(t *testing.T, l *lookout) (b *bell, fd int, ring func()) {
	t.Helper()
	ours, theirs := socketPair(t)
	raw := newRawSocket(ours)
	b, fd = new(bell), raw.fd()
	l.add(fd, b)
	sent := 0
	return b, fd, func() {
		if _, err := theirs.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		sent++
		err := raw.conn.Read(func(fd uintptr) bool { // until it has arrived
			n, _, err := syscall.Recvfrom(int(fd), make([]byte, sent), syscall.MSG_PEEK)
			return err == nil && n == sent
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLookoutTellsOfNewBytesOnce(t *testing.T) {
	var l lookout
	a, aFD, ringA := bellOn(t, &l)
	b, bFD, ringB := bellOn(t, &l)
	want := func(wantA, wantB bell) {
		t.Helper()
		if l.look(); *a != wantA || *b != wantB {
			t.Errorf("nudged %d and %d times, want %d and %d", *a, *b, wantA, wantB)
		}
	}
	want(0, 0)
	ringB()
	want(0, 1)
	want(0, 1)
	ringB()
	ringA()
	want(1, 2)
	l.remove(aFD, b) // another's
	ringA()
	want(2, 2)
	l.remove(aFD, a)
	ringA()
	ringB()
	want(2, 3)
	l.remove(bFD, b)
	ringB()
	want(2, 3)
}

// While nobody looks nothing is watched; the next look tells of what has come since.
func TestLookoutRests(t *testing.T) {
	var l lookout
	b, _, ring := bellOn(t, &l)
	l.look()
	if l.end(); !l.open {
		t.Error("the sockets are not watched right after a look")
	}
	l.looked = l.looked.Add(-lookoutRest)
	if l.end(); l.open {
		t.Error("the sockets are still watched")
	}
	ring()
	if l.look(); *b != 1 {
		t.Errorf("nudged %d times, want 1", *b)
	}
}
