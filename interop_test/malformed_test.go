package interop_test

import (
	"bytes"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// A bystander is a connection that must not notice what others do wrong.
type bystander struct {
	*client
	queue string
}

func newBystander(t *testing.T) *bystander {
	t.Helper()
	c := newClient(t)
	return &bystander{client: c, queue: c.privateQueue(nil)}
}

// check sends a message round.
func (b *bystander) check() {
	b.Helper()
	b.publish("", b.queue, "undisturbed")
	b.wantReady(b.queue, "undisturbed")
}

// Whatever a client sends, it gets the close code of the specification and
// nobody else notices. Channel 1 is open.
func TestMalformedFrames(t *testing.T) {
	publish := frame(frameMethod, 1, methodPayload(basicPublish, u16(0), shortstr(""), shortstr("k"), u8(0)))
	for _, tt := range []struct {
		name string
		send []byte
		code uint16
		text string
	}{
		{"unknown frame type", frame(5, 0, []byte("abc")),
			501, `FRAME_ERROR - type 5, all octets = <<"abc">>: unknown_frame`},
		{"wrong end octet", slices.Concat(frame(frameMethod, 1, []byte("abcd"))[:11], []byte("X")),
			501, `FRAME_ERROR - type 1, all octets = <<"abcd">>: {invalid_frame_end_marker,88}`},
		{"too large", slices.Concat([]byte{frameMethod, 0, 1}, u32(131073)),
			501, `FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,131073,131064}`},
		{"largest length", slices.Concat([]byte{frameBody, 0, 1}, u32(0xFFFFFFFF)),
			501, `FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,4294967295,131064}`},
		{"method cut short", frame(frameMethod, 1, methodPayload(queueDeclare, u16(0), []byte("\x05ab"))),
			501, "FRAME_ERROR - cannot decode <<0,0,5,97,98>>"},
		{"method with bytes left over", frame(frameMethod, 1, methodPayload(channelClose, u16(0), shortstr(""), u16(0), u16(0), u8(7))),
			501, "FRAME_ERROR - cannot decode <<0,0,0,0,0,0,0,7>>"},
		{"bad UTF-8", frame(frameMethod, 1, methodPayload(queueDeclare, u16(0), shortstr("\xff\xfe"), u8(0), table())),
			501, "FRAME_ERROR - Malformed UTF-8 in shortstr"},
		{"a method of the server", frame(frameMethod, 1, methodPayload(queueDeclareOk, shortstr("q"), u32(0), u32(0))),
			503, "COMMAND_INVALID - unimplemented method"},
		{"channel.open twice", frame(frameMethod, 1, methodPayload(channelOpen, shortstr(""))),
			504, "CHANNEL_ERROR - second 'channel.open' seen"},
		{"unopened channel", frame(frameMethod, 2, methodPayload(queueDeclare, u16(0), shortstr("q"), u8(0), table())),
			504, "CHANNEL_ERROR - expected 'channel.open'"},
		{"closing an unopened channel", frame(frameMethod, 3, methodPayload(channelClose, u16(200), shortstr(""), u16(0), u16(0))),
			504, "CHANNEL_ERROR - expected 'channel.open'"},
		{"channel method on channel 0", frame(frameMethod, 0, methodPayload(queueDeclare, u16(0), shortstr("q"), u8(0), table())),
			504, "CHANNEL_ERROR - unexpected method in connection state running"},
		{"second connection.open", frame(frameMethod, 0, methodPayload(connectionOpen, shortstr("/"), shortstr(""), u8(0))),
			504, "CHANNEL_ERROR - unexpected method in connection state running"},
		{"header without a method", frame(frameHeader, 1, contentHeader(60, 0)),
			505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead"},
		{"body without a method", frame(frameBody, 1, []byte("b")),
			505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead"},
		{"method where a header is due", slices.Concat(publish, publish),
			505, "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"},
		{"body where a header is due", slices.Concat(publish, frame(frameBody, 1, []byte("b"))),
			505, "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"},
		{"header of another class", slices.Concat(publish, frame(frameHeader, 1, contentHeader(50, 0))),
			505, "UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead"},
		{"method where a body is due", slices.Concat(publish, frame(frameHeader, 1, contentHeader(60, 5)), publish),
			505, "UNEXPECTED_FRAME - expected content body, got non content body frame instead"},
		{"body after an empty message", slices.Concat(publish, frame(frameHeader, 1, contentHeader(60, 0)), frame(frameBody, 1, []byte("b"))),
			505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead"},
		{"heartbeat on a channel", frame(frameHeartbeat, 1, nil),
			505, "UNEXPECTED_FRAME - type 8, all octets = <<>>"},
		{"heartbeat with a payload", frame(frameHeartbeat, 0, []byte("abc")),
			501, `FRAME_ERROR - type 8, all octets = <<"abc">>: unknown_frame`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := newBystander(t)
			r := dialRaw(t)
			r.handshake(usualTune)
			r.openChannel(1)
			r.send(tt.send)
			r.wantConnectionClose(tt.code, tt.text)
			other.check()
		})
	}
}

func TestChannelIsDeafAfterItsError(t *testing.T) {
	r := dialRaw(t)
	r.handshake(usualTune)
	r.openChannel(1)
	r.method(1, queueDeclare, u16(0), shortstr("no-such-queue"), u8(1), table()) // passive
	r.method(1, queueDeclare, u16(0), shortstr("amq.refused"), u8(0), table())
	r.send(publishFrames(1, "nobody", "ignored"))
	r.wantChannelClose(404, "NOT_FOUND - no queue 'no-such-queue' in vhost '/'")
	r.openChannel(1) // nothing of what came in between is answered
}

func TestEmptyBodyFramesAreAccepted(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	r := dialRaw(t)
	r.handshake(usualTune)
	r.openChannel(1)
	r.send(frame(frameMethod, 1, methodPayload(basicPublish, u16(0), shortstr(""), shortstr(q), u8(0))),
		frame(frameHeader, 1, contentHeader(60, 4)),
		frame(frameBody, 1, nil), frame(frameBody, 1, []byte("ab")), frame(frameBody, 1, nil), frame(frameBody, 1, []byte("cd")))
	r.method(1, channelClose, u16(200), shortstr(""), u16(0), u16(0))
	r.expect(channelCloseOk)
	c.wantReady(q, "abcd")
}

// Frames may come in pieces of any size, and several in one.
func TestFramesInPieces(t *testing.T) {
	c := newClient(t)
	q := c.durableQueue(nil)
	r := dialRaw(t)
	r.handshake(usualTune)
	r.openChannel(1)
	all := slices.Concat(publishFrames(1, q, "first"), frame(frameHeartbeat, 0, nil), publishFrames(1, q, "second"),
		frame(frameMethod, 1, methodPayload(channelClose, u16(200), shortstr(""), u16(0), u16(0))))
	for piece := range slices.Chunk(all, 1) {
		r.send(piece)
	}
	r.expect(channelCloseOk)
	r.openChannel(1)
	r.send(all)
	r.expect(channelCloseOk)
	c.wantReady(q, "first", "second", "first", "second")
}

func TestClientDiesInTheMiddleOfABody(t *testing.T) {
	other := newBystander(t)
	q := other.durableQueue(nil)
	r := dialRaw(t)
	r.handshake(usualTune)
	r.openChannel(1)
	r.send(publishFrames(1, q, "whole"),
		frame(frameMethod, 1, methodPayload(basicPublish, u16(0), shortstr(""), shortstr(q), u8(0))),
		frame(frameHeader, 1, contentHeader(60, 1000)),
		frame(frameBody, 1, make([]byte, 400)), []byte{frameBody, 0, 1, 0})
	if err := r.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.conn); err != nil { // until the broker has closed too
		t.Logf("reading to the end: %v", err) // a reset is as good
	}
	other.check()
	other.wantReady(q, "whole")
}

func TestWrongProtocolHeader(t *testing.T) {
	for _, tt := range []struct{ name, send string }{
		{"another revision", "AMQP\x00\x00\x09\x00"},
		{"AMQP 0-8", "AMQP\x01\x01\x08\x00"},
		{"HTTP", "GET / HTTP/1.1\r\n\r\n"},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := dialRaw(t)
			r.send([]byte(tt.send))
			answer, err := io.ReadAll(r.in)
			if err != nil && len(answer) < 8 {
				t.Fatalf("%q, then %v", answer, err)
			}
			if !strings.HasPrefix(string(answer), "AMQP") || len(answer) != 8 {
				t.Errorf("answered %q, want the protocol header it speaks", answer)
			}
		})
	}
}

func TestOldProtocolHeaderIsAccepted(t *testing.T) {
	r := dialRaw(t)
	r.send([]byte("AMQP\x01\x01\x00\x09"))
	r.expect(connectionStart)
}

func TestConnectAndGoIsSilent(t *testing.T) {
	other := newBystander(t)
	r := dialRaw(t)
	if err := r.conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(r.conn); len(b) > 0 { // a reset is as good as an end
		t.Errorf("got %q, want nothing", b)
	}
	other.check()
}

// A client that does not finish its handshake is cut off after 10 s, without a
// frame, however it dawdles.
func TestHandshakeTimeout(t *testing.T) {
	for _, tt := range []struct {
		name   string
		dawdle func(r *rawConn)
	}{
		{"nothing sent", func(*rawConn) {}},
		{"half a protocol header", func(r *rawConn) { r.send([]byte("AMQP\x00")) }},
		{"nothing after start", func(r *rawConn) {
			r.send([]byte("AMQP\x00\x00\x09\x01"))
			r.expect(connectionStart)
		}},
		{"nothing after tune", func(r *rawConn) { r.start() }},
		{"byte by byte", func(r *rawConn) {
			start := frame(frameMethod, 0, methodPayload(connectionStartOk, table(), shortstr("PLAIN"), longstr("\x00guest\x00guest"), shortstr("en_US")))
			for _, b := range slices.Concat([]byte("AMQP\x00\x00\x09\x01"), start) {
				r.send([]byte{b})
				select {
				case <-time.After(300 * time.Millisecond):
				case <-r.Context().Done():
					return
				}
				if r.ended() {
					return
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			other := newBystander(t)
			began := time.Now()
			r := dialRaw(t)
			tt.dawdle(r)
			other.check()
			_, err := io.Copy(io.Discard, r.in)
			if took := time.Since(began); took < 9*time.Second || took > 25*time.Second {
				t.Errorf("ended after %v (%v), want 10 s, or little more on a busy machine", took, err)
			}
		})
	}
}

// ended says whether the broker has closed the connection; what it sent before
// stays to be read.
func (r *rawConn) ended() bool {
	_ = r.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) // cannot fail on an open socket
	_, err := r.in.Peek(r.in.Buffered() + 1)
	_ = r.conn.SetReadDeadline(time.Now().Add(patience))
	timeout, ok := err.(net.Error)
	return err != nil && (!ok || !timeout.Timeout())
}

// Refused tune answers end the connection; whether with a close is the
// broker's choice, as RabbitMQ 4.0 falls silent where it means 530.
func TestRefusedTune(t *testing.T) {
	for _, tt := range []struct {
		name string
		tune rawTune
	}{
		{"no frame limit", rawTune{channelMax: 10}},
		{"frames too small", rawTune{channelMax: 10, frameMax: 4095}},
		{"frames too large", rawTune{channelMax: 10, frameMax: 131073}},
		{"no channel limit", rawTune{frameMax: 131072}},
		{"too many channels", rawTune{channelMax: 2048, frameMax: 131072}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := dialRaw(t)
			r.start()
			r.method(0, connectionTuneOk, u16(tt.tune.channelMax), u32(tt.tune.frameMax), u16(0))
			r.method(0, connectionOpen, shortstr("/"), shortstr(""), u8(0))
			for {
				f, err := r.read()
				if err != nil {
					return
				}
				if f.is(connectionOpenOk) {
					t.Fatal("the connection was opened")
				}
				if f.is(connectionClose) {
					r.wantCloseFrame(f, 530, "NOT_ALLOWED - negotiated ...")
					r.method(0, connectionCloseOk)
				}
			}
		})
	}
}

// Before the login only the handshake's own methods have a meaning.
func TestMethodsBeforeTheLogin(t *testing.T) {
	other := newBystander(t)
	for _, send := range [][]byte{
		frame(frameMethod, 0, methodPayload(connectionOpen, shortstr("/"), shortstr(""), u8(0))),
		frame(frameMethod, 1, methodPayload(channelOpen, shortstr(""))),
		publishFrames(1, "q", "m"),
		bytes.Repeat([]byte{0xff}, 4096),
	} {
		r := dialRaw(t)
		r.send([]byte("AMQP\x00\x00\x09\x01"))
		r.expect(connectionStart)
		r.send(send)
		for {
			f, err := r.read()
			if err != nil {
				break
			}
			if !f.is(connectionClose) {
				t.Errorf("after %q: got %v, want a close or the end", send[:12], f)
			}
			r.method(0, connectionCloseOk)
		}
	}
	other.check()
}
