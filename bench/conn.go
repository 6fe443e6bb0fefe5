package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/leveretmq/leveret/frames"
)

const (
	dialTimeout = 10 * time.Second
	// callTimeout is how long an answer to a synchronous method may take. A
	// cluster may need long to declare a queue.
	callTimeout = 30 * time.Second
	// frameMax is what is asked for, in bytes, unless the broker wants less.
	frameMax = 131072
)

// A closedError is what the broker said when it closed a channel or connection.
type closedError struct {
	code       uint16
	text       string
	connection bool
}

func (e *closedError) Error() string {
	what := "channel"
	if e.connection {
		what = "connection"
	}
	return fmt.Sprintf("the broker closed the %s: %d %s", what, e.code, e.text)
}

// A conn is one client connection. One goroutine at a time may read. Any may
// write, whole frames at once: the socket keeps writes apart.
type conn struct {
	sock     net.Conn
	frameMax uint32 // negotiated, in bytes; immutable after dial
	product  string // what the broker calls itself; immutable after dial

	in   []byte // owned by the reader
	r, w int    // unread bytes of in; owned by the reader

	stopBeats func()
}

// dial opens a connection up to connection.open-ok. bufferSize is that of the
// read buffer, in bytes; it grows when a frame is larger.
func dial(ctx context.Context, b *Broker, heartbeat time.Duration, bufferSize int) (*conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	sock, err := d.DialContext(ctx, "tcp", b.Address)
	if err != nil {
		return nil, cutOff(ctx, fmt.Errorf("no broker can be reached: %w", err))
	}
	if b.TLS != nil {
		sock = tls.Client(sock, b.TLS)
	}
	c := &conn{sock: sock, frameMax: frameMax, in: make([]byte, bufferSize), stopBeats: func() {}}
	stop := context.AfterFunc(ctx, func() { _ = sock.Close() }) // ends the handshake
	defer stop()
	if err := c.open(b, heartbeat); err != nil {
		_ = sock.Close() // the handshake's error says more
		return nil, cutOff(ctx, err)
	}
	return c, nil
}

// errCutOff: the run was ended while a connection was being opened. It says nothing
// about the broker.
var errCutOff = errors.New("the run was cut off while it was connecting; what it would have measured is not known")

// cutOff is why a connection could not be opened: err, unless ctx is over.
func cutOff(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errCutOff
	}
	return err
}

// open does the handshake (spec §2.2.4).
func (c *conn) open(b *Broker, heartbeat time.Duration) error {
	if err := c.sock.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	if _, err := c.sock.Write([]byte(frames.ProtocolHeader)); err != nil {
		return err
	}
	start, err := expect[*frames.ConnectionStart](c, 0)
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	c.product = productOf(start.ServerProperties)
	tune, err := call[*frames.ConnectionTune](c, 0, &frames.ConnectionStartOk{
		ClientProperties: clientProperties(), Mechanism: "PLAIN", Response: []byte("\x00" + b.user + "\x00" + b.password), Locale: "en_US",
	})
	if err != nil {
		return fmt.Errorf("login as %s: %w", b.user, refused(err))
	}
	if tune.FrameMax > 0 {
		c.frameMax = min(c.frameMax, tune.FrameMax)
	}
	seconds := uint16(min(heartbeat/time.Second, 65535))
	out := frames.AppendMethod(nil, 0, &frames.ConnectionTuneOk{ChannelMax: tune.ChannelMax, FrameMax: c.frameMax, Heartbeat: seconds})
	out = frames.AppendMethod(out, 0, &frames.ConnectionOpen{VHost: b.VHost})
	if err := c.sock.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return err
	}
	if _, err := c.sock.Write(out); err != nil {
		return err
	}
	if _, err := expect[*frames.ConnectionOpenOk](c, 0); err != nil {
		return fmt.Errorf("virtual host %s: %w", b.VHost, refused(err))
	}
	if seconds > 0 {
		c.startBeats(heartbeat / 2)
	}
	return c.sock.SetDeadline(time.Time{})
}

// refused explains a connection that ends without a word, which is how a broker
// refuses those that cannot hear a close.
func refused(err error) error {
	if _, ok := errors.AsType[*closedError](err); ok {
		return err
	}
	return fmt.Errorf("the broker ended the connection (%w); check user, password and virtual host", err)
}

func productOf(properties frames.Table) string {
	product, _ := properties.Lookup("product")
	version, _ := properties.Lookup("version")
	p, _ := product.(string)
	v, _ := version.(string)
	if v == "" {
		return p
	}
	return p + " " + v
}

// clientProperties asks for what the measurement counts: connection.blocked,
// nacks, and a close that says why.
func clientProperties() frames.Table {
	return frames.Table{
		{Name: "product", Value: "leveret bench"},
		{Name: "capabilities", Value: frames.Table{
			{Name: "publisher_confirms", Value: true},
			{Name: "basic.nack", Value: true},
			{Name: "consumer_cancel_notify", Value: true},
			{Name: "connection.blocked", Value: true},
			{Name: "authentication_failure_close", Value: true},
		}},
	}
}

// startBeats sends heartbeats until the connection is closed.
func (c *conn) startBeats(every time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	c.stopBeats = func() { cancel(); wg.Wait() }
	beat := frames.AppendHeartbeat(nil)
	wg.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if _, err := c.sock.Write(beat); err != nil {
					return // the reader finds out why
				}
			}
		}
	})
}

// fill reads once from the socket into the buffer.
func (c *conn) fill() error {
	switch {
	case c.r == c.w:
		c.r, c.w = 0, 0
	case c.w > len(c.in)/2:
		c.w = copy(c.in, c.in[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.in) {
		c.in = append(c.in, make([]byte, len(c.in))...)
	}
	n, err := c.sock.Read(c.in[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	return err
}

// next is the next whole frame of the buffer, false if more must be read. Its
// payload is good until the next fill.
func (c *conn) next() (frames.Frame, bool, error) {
	f, n, err := frames.Parse(c.in[c.r:c.w], frameMax)
	if err != nil {
		return frames.Frame{}, false, fmt.Errorf("the broker sent what is no frame: %w", err)
	}
	c.r += n
	return f, n > 0, nil
}

// call sends a method and waits for the one that answers it, callTimeout at
// most. Nobody else may be reading.
func call[T frames.Method](c *conn, channel uint16, m frames.Method) (T, error) {
	var none T
	if err := c.sock.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		return none, err
	}
	if _, err := c.sock.Write(frames.AppendMethod(nil, channel, m)); err != nil {
		return none, err
	}
	answer, err := expect[T](c, channel)
	if err != nil {
		return none, err
	}
	return answer, c.sock.SetDeadline(time.Time{})
}

// expect reads until a method of this type comes on the channel. Anything else
// but a close is passed over.
func expect[T frames.Method](c *conn, channel uint16) (T, error) {
	var none T
	for {
		f, ok, err := c.next()
		if err != nil {
			return none, err
		}
		if !ok {
			if err := c.fill(); err != nil {
				return none, err
			}
			continue
		}
		if f.Type != frames.MethodFrame {
			continue
		}
		m, err := decode(f)
		if err != nil {
			return none, err
		}
		if answer, ok := m.(T); ok && f.Channel == channel {
			return answer, nil
		}
		if closed := closeOf(m); closed != nil {
			return none, closed
		}
	}
}

func decode(f frames.Frame) (frames.Method, error) {
	id, args, ok := frames.SplitMethod(f.Payload)
	if !ok {
		return nil, errors.New("the broker sent a method without a name")
	}
	return frames.DecodeMethod(id, args)
}

// closeOf is what a close method says, nil for any other.
func closeOf(m frames.Method) *closedError {
	switch m := m.(type) {
	case *frames.ChannelClose:
		return &closedError{code: m.ReplyCode, text: m.ReplyText}
	case *frames.ConnectionClose:
		return &closedError{code: m.ReplyCode, text: m.ReplyText, connection: true}
	}
	return nil
}

// openChannel opens a channel.
func (c *conn) openChannel(channel uint16) error {
	_, err := call[*frames.ChannelOpenOk](c, channel, &frames.ChannelOpen{})
	return err
}

// goodbye closes the connection in order. It may be called while nobody reads.
func (c *conn) goodbye() error {
	c.stopBeats()
	_, err := call[*frames.ConnectionCloseOk](c, 0, &frames.ConnectionClose{ReplyCode: 200, ReplyText: "done"})
	return errors.Join(err, c.sock.Close())
}

// cut ends the connection at once.
func (c *conn) cut() {
	c.stopBeats()
	_ = c.sock.Close() // there is nothing to lose any more
}
