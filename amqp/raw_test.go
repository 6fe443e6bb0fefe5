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

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

func TestQuietRead(t *testing.T) {
	if !canBeQuiet {
		t.Skip("sockets are not read quietly on this system")
	}
	for _, tt := range []struct {
		name string
		do   func(ours, theirs net.Conn) error
		want string
		err  error
	}{
		{"what has come", func(_, theirs net.Conn) error {
			_, err := theirs.Write([]byte("abc"))
			return err
		}, "abc", nil},
		{"what comes later", func(_, theirs net.Conn) error {
			time.AfterFunc(time.Millisecond, func() { _, _ = theirs.Write([]byte("abc")) }) // else the read does not end
			return nil
		}, "abc", nil},
		{"the end", func(_, theirs net.Conn) error { return theirs.Close() }, "", io.EOF},
		{"a reset", func(_, theirs net.Conn) error {
			return errors.Join(theirs.(*net.TCPConn).SetLinger(0), theirs.Close())
		}, "", syscall.ECONNRESET},
		{"a deadline", func(ours, _ net.Conn) error { return ours.SetReadDeadline(time.Unix(1, 0)) }, "", os.ErrDeadlineExceeded},
		{"a closed socket", func(ours, _ net.Conn) error { return ours.Close() }, "", net.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ours, theirs := socketPair(t)
			raw := newRawSocket(ours)
			if err := tt.do(ours, theirs); err != nil {
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
		if raw == nil {
			t.Skip("sockets are not written to without a writer on this system")
		}
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

// TestCalmChangesNothing: a client gets the same answers whether there is little to
// do or much, and when that changes between any two of them.
func TestCalmChangesNothing(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	c := dialTCP(t, s)
	c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	for i := range 300 {
		s.cfg.Calm.Store(i%3 == 0)
		body := bytes.Repeat([]byte{byte(i)}, i*i)
		c.write(appendPublish(nil, 1, "q", []byte{0, 0}, body))
		s.cfg.Calm.Store(i%2 == 0)
		c.method(1, &frames.BasicGet{Queue: "q", NoAck: true})
		c.want(frames.BasicGetOkID)
		if f := c.next(); f.Type != frames.HeaderFrame {
			t.Fatalf("got a frame of type %d, want a header", f.Type)
		}
		if len(body) == 0 {
			continue
		}
		if f := c.next(); f.Type != frames.BodyFrame || !bytes.Equal(f.Payload, body) {
			t.Fatalf("message %d: got a frame of type %d with %d bytes, want the body of %d", i, f.Type, len(f.Payload), len(body))
		}
	}
	s.cfg.Calm.Store(true)
	c.method(0, &frames.ConnectionClose{ReplyCode: 200})
	c.want(frames.ConnectionCloseOkID)
	c.wantEOF()
}
