package amqp

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/classic"
	"github.com/leveretmq/leveret/vhost"
)

// newTestServer is a server on an in-memory store, without a listener.
func newTestServer(t testing.TB, log *zap.Logger) *Server {
	t.Helper()
	return newServerOn(t, persistence.NewMemory(), log)
}

func newServerOn(t testing.TB, store persistence.Store, log *zap.Logger) *Server {
	t.Helper()
	authority, err := auth.New(auth.Config{Mechanisms: []string{"AMQPLAIN", "PLAIN", "EXTERNAL"}, CertName: auth.CommonName}, store)
	if err != nil {
		t.Fatal(err)
	}
	vhosts, err := vhost.Open(vhost.Config{Log: log, Store: store, Memory: queue.NewBudget(0),
		Factories: map[string]queue.Factory{"classic": classic.New}})
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(Config{Log: log, VHosts: vhosts, Auth: authority,
		Wait: func(ctx context.Context, _ queue.Writes) error { return store.Wait(ctx) }})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.Shutdown(ctx)
		if err := vhosts.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		store.Close()
	})
	return s
}

// newTestConn is a connection with channel 1 of which nobody reads.
func newTestConn(t *testing.T, s *Server) *conn {
	t.Helper()
	sock, _ := net.Pipe()
	c := newConn(s, sock)
	c.vhost, _ = s.cfg.VHosts.Get("/")
	c.user, c.grants = auth.User{Name: "guest"}, s.cfg.Auth.Grants("guest", "/")
	c.channelMax, c.state = 1, running
	if err := c.openChannel(1); err != nil {
		t.Fatal(err)
	}
	return c
}

// A rawClient speaks frames over a socket.
type rawClient struct {
	t    testing.TB
	sock net.Conn
}

// dialTCP serves s on a free port and logs in a client with channel 1 open.
func dialTCP(t testing.TB, s *Server) *rawClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(context.Background(), l)
	return dialAddr(t, l.Addr().String())
}

func dialAddr(t testing.TB, addr string) *rawClient {
	t.Helper()
	sock, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sock.Close() })
	c := &rawClient{t: t, sock: sock}
	c.login()
	return c
}

func (c *rawClient) login() {
	c.t.Helper()
	c.write([]byte(frames.ProtocolHeader))
	c.want(frames.ConnectionStartID)
	c.method(0, &frames.ConnectionStartOk{Mechanism: "PLAIN", Response: []byte("\x00guest\x00guest"), Locale: "en_US"})
	c.want(frames.ConnectionTuneID)
	c.method(0, &frames.ConnectionTuneOk{ChannelMax: 2047, FrameMax: 131072})
	c.method(0, &frames.ConnectionOpen{VHost: "/"})
	c.want(frames.ConnectionOpenOkID)
	c.method(1, &frames.ChannelOpen{})
	c.want(frames.ChannelOpenOkID)
}

func (c *rawClient) write(b []byte) {
	c.t.Helper()
	if _, err := c.sock.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *rawClient) method(channel uint16, m frames.Method) {
	c.t.Helper()
	c.write(frames.AppendMethod(nil, channel, m))
}

// call sends a method on channel 1 and wants this answer.
func (c *rawClient) call(m frames.Method, answer frames.MethodID) {
	c.t.Helper()
	c.method(1, m)
	c.want(answer)
}

// next reads one frame.
func (c *rawClient) next() frames.Frame {
	c.t.Helper()
	var h [7]byte
	if _, err := io.ReadFull(c.sock, h[:]); err != nil {
		c.t.Fatalf("reading a frame: %v", err)
	}
	p := make([]byte, binary.BigEndian.Uint32(h[3:])+1)
	if _, err := io.ReadFull(c.sock, p); err != nil {
		c.t.Fatalf("reading a frame: %v", err)
	}
	return frames.Frame{Type: h[0], Channel: binary.BigEndian.Uint16(h[1:]), Payload: p[:len(p)-1]}
}

// want reads one frame, which must be this method.
func (c *rawClient) want(id frames.MethodID) frames.Method {
	c.t.Helper()
	f := c.next()
	got, args, _ := frames.SplitMethod(f.Payload)
	if f.Type != frames.MethodFrame || got != id {
		c.t.Fatalf("got frame type %d, method %d.%d; want %d.%d", f.Type, got.Class(), got.Method(), id.Class(), id.Method())
	}
	m, err := frames.DecodeMethod(got, args)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// appendPublish appends a publish to the default exchange.
func appendPublish(dst []byte, channel uint16, key string, properties, body []byte) []byte {
	dst = frames.AppendMethod(dst, channel, &frames.BasicPublish{RoutingKey: key})
	dst = frames.AppendContentHeader(dst, channel, uint64(len(body)), properties)
	return frames.AppendBody(dst, channel, body, 131072)
}

// dialPipe is a client on a pipe, which works in a synctest bubble. It has not
// logged in.
func dialPipe(t *testing.T, s *Server) *rawClient {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.serveConn(context.Background(), server)
	}()
	t.Cleanup(func() {
		client.Close()
		<-done
	})
	return &rawClient{t: t, sock: client}
}

// wantEOF wants the end of the stream, and nothing before it.
func (c *rawClient) wantEOF() {
	c.t.Helper()
	b, err := io.ReadAll(c.sock)
	if err != nil || len(b) > 0 {
		c.t.Fatalf("got %x, %v; want the end of the stream", b, err)
	}
}

// wantClose wants connection.close on channel 0, or channel.close on others.
func (c *rawClient) wantClose(channel uint16, code frames.Code, text string) {
	c.t.Helper()
	f := c.next()
	id, args, _ := frames.SplitMethod(f.Payload)
	m, err := frames.DecodeMethod(id, args)
	if err != nil {
		c.t.Fatal(err)
	}
	var got frames.ConnectionClose
	switch m := m.(type) {
	case *frames.ConnectionClose:
		got = *m
	case *frames.ChannelClose:
		got = frames.ConnectionClose(*m)
	default:
		c.t.Fatalf("got method %d.%d, want a close", id.Class(), id.Method())
	}
	if f.Channel != channel || got.ReplyCode != uint16(code) || got.ReplyText != text {
		c.t.Fatalf("got close %d %q on channel %d; want %d %q on channel %d", got.ReplyCode, got.ReplyText, f.Channel, code, text, channel)
	}
}

func TestCancellingServeClosesTheConnections(t *testing.T) {
	s := newTestServer(t, zap.NewNop())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	c := dialAddr(t, l.Addr().String())
	cancel()
	if b, err := io.ReadAll(c.sock); err != nil || len(b) > 0 {
		t.Errorf("the client got %q, %v, want the end", b, err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
