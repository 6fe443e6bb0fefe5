package interop_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// Frame types (spec §4.2.3).
const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8
)

// A methodID is a class and a method of it.
type methodID struct{ class, method uint16 }

var (
	connectionStart   = methodID{10, 10}
	connectionStartOk = methodID{10, 11}
	connectionTune    = methodID{10, 30}
	connectionTuneOk  = methodID{10, 31}
	connectionOpen    = methodID{10, 40}
	connectionOpenOk  = methodID{10, 41}
	connectionClose   = methodID{10, 50}
	connectionCloseOk = methodID{10, 51}
	channelOpen       = methodID{20, 10}
	channelOpenOk     = methodID{20, 11}
	channelClose      = methodID{20, 40}
	channelCloseOk    = methodID{20, 41}
	queueDeclare      = methodID{50, 10}
	queueDeclareOk    = methodID{50, 11}
	basicConsume      = methodID{60, 20}
	basicPublish      = methodID{60, 40}
)

// A rawConn speaks frames, right or wrong.
type rawConn struct {
	*testing.T
	conn net.Conn
	in   *bufio.Reader
}

// A rawFrame is one frame as it came.
type rawFrame struct {
	kind    byte
	channel uint16
	payload []byte
}

func (f rawFrame) String() string {
	return fmt.Sprintf("frame type %d on channel %d with payload %q", f.kind, f.channel, f.payload)
}

func (f rawFrame) is(m methodID) bool {
	return f.kind == frameMethod && len(f.payload) >= 4 &&
		binary.BigEndian.Uint16(f.payload) == m.class && binary.BigEndian.Uint16(f.payload[2:]) == m.method
}

// dialRaw opens a TCP connection that ends with the test.
func dialRaw(t *testing.T) *rawConn {
	t.Helper()
	return dialRawTo(t, brokerAddr(t))
}

func dialRawTo(t *testing.T, addr string) *rawConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the broker may have been first
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &rawConn{T: t, conn: conn, in: bufio.NewReader(conn)}
}

// send writes bytes; the broker may have closed the connection already.
func (r *rawConn) send(parts ...[]byte) { _, _ = r.conn.Write(slices.Concat(parts...)) }

// method sends a method.
func (r *rawConn) method(channel uint16, m methodID, args ...[]byte) {
	r.send(frame(frameMethod, channel, methodPayload(m, args...)))
}

// read reads a frame; the error says that the connection has ended.
func (r *rawConn) read() (rawFrame, error) {
	head := make([]byte, 7)
	if _, err := io.ReadFull(r.in, head); err != nil {
		return rawFrame{}, err
	}
	size := binary.BigEndian.Uint32(head[3:])
	if size > 1<<20 {
		return rawFrame{}, fmt.Errorf("frame of %d bytes", size)
	}
	rest := make([]byte, size+1)
	if _, err := io.ReadFull(r.in, rest); err != nil {
		return rawFrame{}, err
	}
	if rest[size] != 0xCE {
		return rawFrame{}, fmt.Errorf("frame ends with %#x", rest[size])
	}
	return rawFrame{kind: head[0], channel: binary.BigEndian.Uint16(head[1:]), payload: rest[:size]}, nil
}

// expect reads the method that must come next, heartbeats aside.
func (r *rawConn) expect(m methodID) rawFrame {
	r.Helper()
	for {
		f, err := r.read()
		if err != nil {
			r.Fatalf("waiting for method %v: %v", m, err)
		}
		if f.kind == frameHeartbeat {
			continue
		}
		if !f.is(m) {
			r.Fatalf("got %v, want method %v", f, m)
		}
		return f
	}
}

// A rawTune is what the client answers to tune.
type rawTune struct {
	channelMax uint16
	frameMax   uint32
	heartbeat  uint16
}

var usualTune = rawTune{channelMax: 2047, frameMax: 131072}

// start goes through the handshake up to the broker's tune.
func (r *rawConn) start() {
	r.Helper()
	r.send([]byte("AMQP\x00\x00\x09\x01"))
	r.expect(connectionStart)
	r.method(0, connectionStartOk, table(authenticationFailureClose), shortstr("PLAIN"), longstr("\x00guest\x00guest"), shortstr("en_US"))
	r.expect(connectionTune)
}

// handshake goes through all of it.
func (r *rawConn) handshake(tune rawTune) {
	r.Helper()
	r.start()
	r.method(0, connectionTuneOk, u16(tune.channelMax), u32(tune.frameMax), u16(tune.heartbeat))
	r.method(0, connectionOpen, shortstr("/"), shortstr(""), u8(0))
	r.expect(connectionOpenOk)
}

func (r *rawConn) openChannel(n uint16) {
	r.Helper()
	r.method(n, channelOpen, shortstr(""))
	r.expect(channelOpenOk)
}

// wantConnectionClose reads the close that must come next, answers it and
// waits for the end of the connection.
func (r *rawConn) wantConnectionClose(code uint16, text string) {
	r.Helper()
	r.wantCloseFrame(r.expect(connectionClose), code, text)
	r.method(0, connectionCloseOk)
	if f, err := r.read(); err == nil {
		r.Errorf("after close-ok: got %v, want the end", f)
	}
}

// wantChannelClose reads the channel.close that must come next and answers it.
func (r *rawConn) wantChannelClose(code uint16, text string) {
	r.Helper()
	f := r.expect(channelClose)
	r.wantCloseFrame(f, code, text)
	r.method(f.channel, channelCloseOk)
}

// wantCloseFrame compares code and text of either close; a text that ends in
// "..." is a beginning.
func (r *rawConn) wantCloseFrame(f rawFrame, code uint16, text string) {
	r.Helper()
	got := binary.BigEndian.Uint16(f.payload[4:])
	gotText := string(f.payload[7 : 7+int(f.payload[6])])
	if got != code || !matchText(gotText, text) {
		r.Errorf("closed with %d %q, want %d %q", got, gotText, code, text)
	}
}

func matchText(got, want string) bool {
	if n := len(want) - 3; n >= 0 && want[n:] == "..." {
		return len(got) >= n && got[:n] == want[:n]
	}
	return got == want
}

// The rest builds frames and fields.

func frame(kind byte, channel uint16, payload []byte) []byte {
	return slices.Concat([]byte{kind}, u16(channel), u32(uint32(len(payload))), payload, []byte{0xCE})
}

func methodPayload(m methodID, args ...[]byte) []byte {
	return slices.Concat(u16(m.class), u16(m.method), slices.Concat(args...))
}

// contentHeader is a header frame's payload without properties.
func contentHeader(class uint16, size uint64) []byte {
	return slices.Concat(u16(class), u16(0), binary.BigEndian.AppendUint64(nil, size), u16(0))
}

func u8(v byte) []byte    { return []byte{v} }
func u16(v uint16) []byte { return binary.BigEndian.AppendUint16(nil, v) }
func u32(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

func shortstr(s string) []byte { return append([]byte{byte(len(s))}, s...) }
func longstr(s string) []byte  { return append(u32(uint32(len(s))), s...) }

// table is a field table of encoded entries.
func table(entries ...[]byte) []byte {
	all := slices.Concat(entries...)
	return append(u32(uint32(len(all))), all...)
}

// authenticationFailureClose is the entry of client-properties that asks for a
// close frame when the login is refused.
var authenticationFailureClose = slices.Concat(shortstr("capabilities"), []byte("F"),
	table(slices.Concat(shortstr("authentication_failure_close"), []byte("t\x01"))))

// publishFrames are the frames of a message to the default exchange.
func publishFrames(channel uint16, key, body string) []byte {
	return slices.Concat(
		frame(frameMethod, channel, methodPayload(basicPublish, u16(0), shortstr(""), shortstr(key), u8(0))),
		frame(frameHeader, channel, contentHeader(60, uint64(len(body)))),
		frame(frameBody, channel, []byte(body)))
}
