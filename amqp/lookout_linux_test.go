package amqp

import (
	"syscall"
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// A bell counts how often it was nudged.
type bell int

func (b *bell) nudge() bool {
	*b++
	return true
}

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

// A reader of much ends its batch early while others have something to send, and
// handles all of it in the end.
func TestReaderTakesTurns(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := newTestConn(t, s)
	if err := c.channels[1].dispatch(&frames.QueueDeclare{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	const ofTurn, all = turn / 3, 5 * turn / 6 // messages, of three frames each
	var read []byte
	for range all {
		read = appendPublish(read, 1, "q", []byte{0, 0}, []byte("x"))
	}
	bell, _, ring := bellOn(t, &s.lookout)
	for _, tt := range []struct {
		name  string
		do    func()
		short bool
	}{
		{"nobody has sent anything", func() {}, false},
		{"somebody has", ring, true},
		{"somebody has lately", func() {}, true},
		{"somebody has not for long", func() { s.lookout.woke = s.lookout.woke.Add(-lately) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.do()
			c.buf, c.r, c.w = read, 0, len(read)
			more, err := c.batch()
			if err != nil || more != tt.short {
				t.Fatalf("there is more to do: %v, %v; want %v", more, err, tt.short)
			}
			want := all
			if tt.short {
				want = ofTurn
			}
			if got := purge(t, c, "q"); got != want {
				t.Errorf("the queue got %d messages in the first batch, want %d", got, want)
			}
			if err := c.handle(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := purge(t, c, "q"); got != all-want {
				t.Errorf("the queue got %d messages then, want %d", got, all-want)
			}
		})
	}
	if *bell != 1 {
		t.Errorf("the other was nudged %d times, want 1", *bell)
	}
}

// A turn of larger messages has fewer.
func TestTurnsAreShorterForLargeMessages(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := newTestConn(t, s)
	if err := c.channels[1].dispatch(&frames.QueueDeclare{Queue: "q"}); err != nil {
		t.Fatal(err)
	}
	var read []byte
	for range turn / 3 {
		read = appendPublish(read, 1, "q", []byte{0, 0}, make([]byte, 1024))
	}
	_, _, ring := bellOn(t, &s.lookout)
	ring()
	c.buf, c.r, c.w = read, 0, len(read)
	if more, err := c.batch(); err != nil || !more {
		t.Fatalf("there is more to do: %v, %v", more, err)
	}
	// A message is two frames of less than 256 bytes and one that counts 1 + 4.
	if got, want := purge(t, c, "q"), (turn+6)/7; got != want {
		t.Errorf("the queue got %d messages in the first batch, want %d", got, want)
	}
}

// purge empties a queue and returns how many messages it had.
func purge(t *testing.T, c *conn, name string) int {
	t.Helper()
	q, err := c.vhost.Queue(c.channels[1], name)
	if err != nil {
		t.Fatal(err)
	}
	n, err := q.Purge()
	if err != nil {
		t.Fatal(err)
	}
	return n
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
