package cases_test

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what must come: long, as the machine may
// be slow and busy.
const patience = time.Minute

// A conn is a connection of raw frames. The test's goroutine alone uses it:
// it reads when the test waits for something, and keeps what came before that
// in the inbox of its channel.
type conn struct {
	*testing.T
	suffix   string // makes the names of this test its own
	sock     net.Conn
	in       *bufio.Reader
	frameMax int
	ended    string // why the connection is over: its close, or "eof"
	channels map[uint16]*channel
	created  *[][2]string // kind and name of what to delete after the test
}

// An item is a method as it came, with its content if it has one.
type item struct {
	channel uint16
	method  method
	args    []byte
	props   []byte
	body    []byte
}

// A login is how a connection introduces itself; zero fields are the usual.
type login struct {
	user, password, vhost string
	channelMax            uint16
	frameMax              uint32
	heartbeat             uint16
	capabilities          table // nil is all
}

var allCapabilities = table{"authentication_failure_close", true, "consumer_cancel_notify", true, "connection.blocked", true}

// connect opens a connection as guest, with channel 1 as the one to use.
func connect(t *testing.T) *channel { t.Helper(); return connectAs(t, login{}) }

// connectAs opens a connection that must succeed.
func connectAs(t *testing.T, l login) *channel {
	t.Helper()
	c := dial(t)
	if got := c.login(l); got != "ok" {
		t.Fatalf("login: %s", got)
	}
	return c.on(1)
}

// dial opens a socket to the broker and sends nothing.
func dial(t *testing.T) *conn { t.Helper(); return dialTo(t, brokerAddr(t)) }

func dialTo(t *testing.T, addr string) *conn {
	t.Helper()
	sock, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := &conn{T: t, suffix: "~" + rand.Text()[:6], sock: sock, in: bufio.NewReaderSize(sock, 256<<10),
		frameMax: 131072, channels: make(map[uint16]*channel), created: new([][2]string)}
	t.Cleanup(func() {
		_ = sock.Close() // the broker may have been first
		c.cleanUp(addr)
	})
	return c
}

func brokerAddr(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(brokerURL)
	if err != nil {
		t.Fatal(err)
	}
	if u.Port() == "" {
		return u.Host + ":5672"
	}
	return u.Host
}

// again opens another connection that uses the same names.
func (c *conn) again(l login) *channel {
	c.Helper()
	next := dialTo(c.T, c.sock.RemoteAddr().String())
	next.suffix, next.created = c.suffix, c.created
	if got := next.login(l); got != "ok" {
		c.Fatalf("login: %s", got)
	}
	return next.on(1)
}

// cleanUp deletes what the test declared, over a connection of its own.
func (c *conn) cleanUp(addr string) {
	if len(*c.created) == 0 {
		return
	}
	list := *c.created
	*c.created = nil
	sock, err := net.Dial("tcp", addr)
	if err != nil {
		return // the test has stopped the broker
	}
	defer sock.Close()
	d := &conn{T: c.T, sock: sock, in: bufio.NewReader(sock), frameMax: 131072, channels: make(map[uint16]*channel), created: new([][2]string)}
	if d.login(login{}) != "ok" {
		return
	}
	for _, what := range list {
		if what[0] == "queue" {
			d.on(1).call(queueDelete, u16(0), short(what[1]), u8(0))
		} else {
			d.on(1).call(exchangeDelete, u16(0), short(what[1]), u8(0))
		}
	}
}

// name is what a queue or exchange of the test is called on the wire.
func (c *conn) name(short string) string {
	if short == "" || strings.HasPrefix(short, "amq.") {
		return short
	}
	return short + c.suffix
}

var serverNamed = regexp.MustCompile(`amq\.(gen|ctag)-[-_A-Za-z0-9]{22}`)

// plain is a text of the broker as a test states it: names without what makes
// them unique.
func (c *conn) plain(text string) string {
	if c.suffix != "" {
		text = strings.ReplaceAll(text, c.suffix, "")
	}
	return serverNamed.ReplaceAllString(text, "amq.$1-*")
}

// send writes bytes; the broker may have closed the connection already.
func (c *conn) send(parts ...[]byte) { _, _ = c.sock.Write(slices.Concat(parts...)) }

// login goes through the handshake: "ok", or how the broker ended it.
func (c *conn) login(l login) string {
	c.Helper()
	if l.user == "" {
		l.user, l.password = "guest", "guest"
	}
	return c.open(l, "PLAIN", "\x00"+l.user+"\x00"+l.password)
}

// open is login with any mechanism and response.
func (c *conn) open(l login, mechanism, response string) string {
	c.Helper()
	c.send([]byte("AMQP\x00\x00\x09\x01"))
	if got := c.control(connectionStart); got != "ok" {
		return got
	}
	capabilities := l.capabilities
	if capabilities == nil {
		capabilities = allCapabilities
	}
	c.send(methodFrame(0, connectionStartOk, table{"capabilities", capabilities}.encode(), short(mechanism), long(response), short("en_US")))
	if got := c.control(connectionTune); got != "ok" {
		return got
	}
	if l.channelMax == 0 {
		l.channelMax = 2047
	}
	if l.frameMax == 0 {
		l.frameMax = 131072
	}
	if l.vhost == "" {
		l.vhost = "/"
	}
	c.frameMax = int(l.frameMax)
	c.send(methodFrame(0, connectionTuneOk, u16(l.channelMax), u32(l.frameMax), u16(l.heartbeat)),
		methodFrame(0, connectionOpen, short(l.vhost), short(""), u8(0)))
	return c.control(connectionOpenOk)
}

// control waits for a method on channel 0: "ok", or what came instead.
func (c *conn) control(want method) string {
	it, ok := c.read(patience)
	switch {
	case !ok:
		return c.ended
	case it.channel == 0 && it.method == want:
		return "ok"
	}
	return c.text(it)
}

// frame reads a frame within the time; ok is false when there is none or the
// connection is over, which ended tells.
func (c *conn) frame(within time.Duration) (f rawFrame, ok bool) {
	if c.ended != "" {
		return f, false
	}
	_ = c.sock.SetReadDeadline(time.Now().Add(within)) // cannot fail on an open socket
	if _, err := c.in.Peek(1); err != nil {
		if timeout, is := errors.AsType[net.Error](err); !is || !timeout.Timeout() {
			c.ended = "eof"
		}
		return f, false
	}
	_ = c.sock.SetReadDeadline(time.Now().Add(patience))
	head := make([]byte, 7)
	if _, err := io.ReadFull(c.in, head); err != nil {
		c.ended = "eof"
		return f, false
	}
	size := binary.BigEndian.Uint32(head[3:])
	if size > 1<<20 {
		c.Fatalf("frame head % x", head)
	}
	rest := make([]byte, size+1)
	if _, err := io.ReadFull(c.in, rest); err != nil {
		c.ended = "eof"
		return f, false
	}
	if rest[size] != 0xCE {
		c.Fatalf("frame ends with %#x", rest[size])
	}
	if int(size)+8 > c.frameMax {
		c.Errorf("the broker sent a frame of %d bytes, agreed were %d", size+8, c.frameMax)
	}
	return rawFrame{kind: head[0], channel: binary.BigEndian.Uint16(head[1:]), payload: rest[:size]}, true
}

// read reads the next method, with its content, and keeps the state of the
// connection. Heartbeats are left out.
func (c *conn) read(within time.Duration) (it item, ok bool) {
	for {
		f, ok := c.frame(within)
		if !ok {
			return item{}, false
		}
		if f.kind == frameHeartbeat {
			continue
		}
		if f.kind != frameMethod {
			c.Fatalf("got %v, want a method", f)
		}
		it = item{channel: f.channel, method: f.method(), args: f.payload[4:]}
		switch it.method {
		case basicDeliver, basicReturn, basicGetOk:
			if !c.content(&it) {
				return item{}, false
			}
		case connectionClose:
			c.send(methodFrame(0, connectionCloseOk))
			c.ended = c.text(it)
		case channelClose:
			c.send(methodFrame(it.channel, channelCloseOk))
			c.on(it.channel).open = false
		case channelOpenOk:
			c.on(it.channel).open = true
		}
		return it, true
	}
}

// content reads header and body frames.
func (c *conn) content(it *item) bool {
	f, ok := c.frame(patience)
	if !ok || f.kind != frameHeader || f.channel != it.channel {
		c.Errorf("after %v: %v, want its header", it.method, f)
		return false
	}
	size := binary.BigEndian.Uint64(f.payload[4:])
	it.props = f.payload[12:]
	for uint64(len(it.body)) < size {
		f, ok = c.frame(patience)
		if !ok || f.kind != frameBody || f.channel != it.channel {
			c.Errorf("after %v: %v, want its body", it.method, f)
			return false
		}
		it.body = append(it.body, f.payload...)
	}
	return true
}

// text says what came, as tests state it.
func (c *conn) text(it item) string { return c.plain(itemText(it)) }

func itemText(it item) string {
	r := reader{it.args}
	message := func() string {
		where := r.short() + "/" + r.short()
		return fmt.Sprintf("%s %q", where, it.body)
	}
	redelivered := func(yes byte) string {
		if yes != 0 {
			return " redelivered"
		}
		return ""
	}
	switch it.method {
	case connectionClose, channelClose:
		scope := "channel"
		if it.method == connectionClose {
			scope = "connection"
		}
		code, text := r.u16(), r.short()
		return fmt.Sprintf("%s %d %s (%d,%d)", scope, code, text, r.u16(), r.u16())
	case basicDeliver:
		tag, n, again := r.short(), r.u64(), r.u8()
		return fmt.Sprintf("deliver %s #%d%s %s", tag, n, redelivered(again), message())
	case basicGetOk:
		n, again := r.u64(), r.u8()
		text := message()
		return fmt.Sprintf("#%d%s %s left %d", n, redelivered(again), text, r.u32())
	case basicGetEmpty:
		return "empty"
	case basicReturn:
		code, text := r.u16(), r.short()
		return fmt.Sprintf("return %d %s %s", code, text, message())
	case basicAck, basicNack:
		verb := "ack"
		if it.method == basicNack {
			verb = "nack"
		}
		n := r.u64()
		if r.u8()&1 != 0 {
			return fmt.Sprintf("%s %d multiple", verb, n)
		}
		return fmt.Sprintf("%s %d", verb, n)
	case basicCancel:
		return "cancel " + r.short()
	case basicConsumeOk, basicCancelOk:
		return "ok " + r.short()
	case queueDeclareOk:
		return fmt.Sprintf("ok %s %d %d", r.short(), r.u32(), r.u32())
	case queueDeleteOk, queuePurgeOk:
		return fmt.Sprintf("ok %d", r.u32())
	case channelFlowOk:
		return fmt.Sprintf("ok %v", r.u8() != 0)
	case connectionBlocked:
		return "blocked " + r.short()
	case connectionUnblocked:
		return "unblocked"
	}
	if it.channel != 0 && len(it.args) == 0 || it.method == channelOpenOk {
		return "ok"
	}
	return fmt.Sprintf("method %d,%d %q", it.method.class, it.method.id, it.args)
}
