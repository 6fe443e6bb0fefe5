package amqp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestQuietRead(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(raw *rawSocket, ours, theirs net.Conn) error
		want string
		err  error
	}{
		{"what has come", func(_ *rawSocket, _, theirs net.Conn) error {
			_, err := theirs.Write([]byte("abc"))
			return err
		}, "abc", nil},
		{"what comes when there was nothing", func(raw *rawSocket, _, theirs net.Conn) error {
			raw.tryRead = func(fd uintptr) bool {
				done := raw.readNow(fd)
				if !done {
					if _, err := theirs.Write([]byte("abc")); err != nil {
						t.Error(err)
					}
				}
				return done
			}
			return nil
		}, "abc", nil},
		{"the end", func(_ *rawSocket, _, theirs net.Conn) error { return theirs.Close() }, "", io.EOF},
		{"a reset", func(_ *rawSocket, _, theirs net.Conn) error {
			return errors.Join(theirs.(*net.TCPConn).SetLinger(0), theirs.Close())
		}, "", syscall.ECONNRESET},
		{"a deadline", func(_ *rawSocket, ours, _ net.Conn) error { return ours.SetReadDeadline(time.Unix(1, 0)) }, "", os.ErrDeadlineExceeded},
		{"a closed socket", func(_ *rawSocket, ours, _ net.Conn) error { return ours.Close() }, "", net.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := socketPair(t)
			raw := newRawSocket(ours)
			if err := tt.do(raw, ours, theirs); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 10)
			n, err := raw.read(b)
			if string(b[:n]) != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("read %q, %v; want %q, %v", b[:n], err, tt.want, tt.err)
			}
		})
	}
}

// TestWriteTakesWhatFits: neither way of writing waits for a client that does not
// read, and none writes anything twice.
func TestWriteTakesWhatFits(t *testing.T) {
	for _, quietly := range []bool{false, true} {
		ours, theirs := socketPair(t)
		raw := newRawSocket(ours)
		if err := errors.Join(ours.(*net.TCPConn).SetWriteBuffer(64<<10), theirs.(*net.TCPConn).SetReadBuffer(64<<10)); err != nil {
			t.Fatal(err)
		}
		sent := make([]byte, 4<<20)
		for i := range sent {
			sent[i] = byte(i >> 8)
		}
		n := raw.write(sent, quietly)
		if n <= 0 || n == len(sent) {
			t.Fatalf("quietly %v: %d of %d bytes were taken at once, want a part", quietly, n, len(sent))
		}
		got := make([]byte, n)
		if _, err := io.ReadFull(theirs, got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, sent[:n]) {
			t.Errorf("quietly %v: what came is not what was written", quietly)
		}
		ours.Close()
		if n := raw.write(sent, quietly); n != 0 {
			t.Errorf("quietly %v: %d bytes went to a closed socket", quietly, n)
		}
	}
}
