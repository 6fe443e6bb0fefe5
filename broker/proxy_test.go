package broker

import (
	"crypto/tls"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/config"
)

// startProxied starts a broker behind a proxy, and tells what it logs.
func startProxied(t *testing.T, change func(*config.Config)) (*Broker, *observer.ObservedLogs) {
	t.Helper()
	core, logged := observer.New(zapcore.InfoLevel)
	cfg := testConfig(t)
	cfg.InMemory, cfg.TCP.Proxy = true, true
	change(&cfg)
	b := New(cfg, zap.New(core))
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b, logged
}

// v2 is a header of version 2: from 192.0.2.7:1000 to 192.0.2.8:5672, with one
// more field that says nothing.
func v2(t *testing.T, command byte) string {
	t.Helper()
	b, err := hex.DecodeString("0d0a0d0a000d0a515549540a" + hex.EncodeToString([]byte{0x20 | command}) + "110010" + "c0000207c000020803e81628" + "04000100")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// dialThrough connects as a proxy does: with a header, and then TLS if there is
// any.
func dialThrough(b *Broker, header string, secure *tls.Config) (*amqp091.Connection, error) {
	return dialThroughTo(b.listeners[0].Addr(), header, secure)
}

func dialThroughTo(to net.Addr, header string, secure *tls.Config) (*amqp091.Connection, error) {
	return amqp091.DialConfig("amqp://guest:guest@"+to.String(), amqp091.Config{
		Dial: func(network, addr string) (net.Conn, error) {
			c, err := net.DialTimeout(network, addr, time.Minute)
			if err != nil {
				return nil, err
			}
			if _, err := io.WriteString(c, header); err != nil {
				return nil, err
			}
			if secure != nil {
				return tls.Client(c, secure), nil
			}
			return c, nil
		}})
}

func TestProxyHeaders(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	for _, secure := range []bool{false, true} {
		b, _ := startProxied(t, func(c *config.Config) {
			c.Auth.LoopbackUsers = []string{}
			if secure {
				c.Listen, c.TLSListen, c.TLS = "", "127.0.0.1:0", ca.files(t.TempDir())
			}
		})
		var client *tls.Config
		if secure {
			client = ca.client("", nil)
		}
		for _, tt := range []struct{ header, want string }{
			{"PROXY TCP4 192.0.2.1 192.0.2.2 56324 5672\r\n", "192.0.2.1:56324 -> 192.0.2.2:5672"},
			{"PROXY TCP6 2001:db8::1 2001:db8::2 56324 5672\r\n", "[2001:db8::1]:56324 -> [2001:db8::2]:5672"},
			{v2(t, 1), "192.0.2.7:1000 -> 192.0.2.8:5672"},
			{v2(t, 0), "127.0.0.1:"}, // of the proxy's own
			{"PROXY UNKNOWN\r\n", "127.0.0.1:"},
		} {
			conn, err := dialThrough(b, tt.header, client)
			if err != nil {
				t.Errorf("TLS %v, %q: %v", secure, tt.header, err)
				continue
			}
			list := b.server.Connections() // those before may still be closing
			if n := len(list); n == 0 || !strings.HasPrefix(list[n-1].Name, tt.want) || list[n-1].TLS != secure {
				t.Errorf("TLS %v, %q: connections %+v, want %s", secure, tt.header, list, tt.want)
			}
			conn.Close()
		}
	}
}

// The address in the header counts for who may come from this machine only.
func TestProxiedClientsAreNotLocal(t *testing.T) {
	b, _ := startProxied(t, func(*config.Config) {})
	if conn, err := dialThrough(b, "PROXY TCP4 192.0.2.1 127.0.0.1 56324 5672\r\n", nil); err == nil {
		conn.Close()
		t.Error("guest could log in from another machine through a proxy on this one")
	}
}

// farListener's clients come from another machine.
type farListener struct{ net.Listener }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c}, nil
}

type farConn struct{ net.Conn }

func (farConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 1000}
}

// Nobody on another machine becomes local by a header that says so.
func TestHeadersFromAfarMakeNobodyLocal(t *testing.T) {
	ca := newAuthority(t, "root", nil)
	for _, tt := range []struct{ far, secure, ok bool }{
		{far: false, secure: false, ok: true},
		{far: true, secure: false, ok: false},
		{far: false, secure: true, ok: true},
		{far: true, secure: true, ok: false},
	} {
		b, _ := startProxied(t, func(*config.Config) {})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if tt.far {
			l = farListener{l}
		}
		l = newProxyListener(l, time.Minute, zap.NewNop())
		var client *tls.Config
		if tt.secure {
			cert, err := newCertificate(ca.files(t.TempDir()), zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			l, client = tls.NewListener(l, cert.config()), ca.client("", nil)
		}
		go func() { _ = b.server.Serve(t.Context(), l) }() // until the broker stops
		for _, header := range []string{"PROXY TCP4 127.0.0.1 127.0.0.1 56324 5672\r\n", "PROXY TCP6 ::1 ::1 56324 5672\r\n"} {
			conn, err := dialThroughTo(l.Addr(), header, client)
			if (err == nil) != tt.ok {
				t.Errorf("far %v, TLS %v, %q: guest's login: %v, want it to work: %v", tt.far, tt.secure, header, err, tt.ok)
			}
			if err == nil {
				conn.Close()
			}
		}
	}
}

func TestConnectionsWithoutAProxyHeaderAreClosed(t *testing.T) {
	b, logged := startProxied(t, func(*config.Config) {})
	for _, header := range []string{
		"AMQP\x00\x00\x09\x01", "PROXY TCP4 nonsense\r\n", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 " + strings.Repeat("x", 200), "\x16\x03\x01\x02\x00\x01\x00\x01",
		"\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff" + strings.Repeat("x", 100_000),
	} {
		c, err := net.Dial("tcp", b.listeners[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		_, _ = io.WriteString(c, header) // may be closed in between
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("after %.20q: got %q, want nothing", header, got)
		}
		c.Close()
	}
	if n := logged.FilterMessageSnippet("PROXY protocol").Len(); n != 5 {
		t.Errorf("%d lines in the log, want 5", n)
	}
	conn, err := dialThrough(b, "PROXY UNKNOWN\r\n", nil)
	if err != nil {
		t.Fatalf("afterwards: %v", err)
	}
	conn.Close()
}

// pipes is a listener whose clients come over pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l pipes) Close() error { close(l.done); return nil }

func (l pipes) Addr() net.Addr { return &net.TCPAddr{} }

// connect sends a text as a new client.
func (l pipes) connect(t *testing.T, text string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	l.conns <- server
	if _, err := io.WriteString(client, text); err != nil {
		t.Fatal(err)
	}
	return client
}

// Who says nothing costs its own time only, and is let go by a stop.
func TestSlowProxyHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := pipes{make(chan net.Conn), make(chan struct{})}
		l := newProxyListener(below, 10*time.Second, zap.NewNop())
		slow := below.connect(t, "PROX")
		began := time.Now()
		quick := below.connect(t, "PROXY UNKNOWN\r\n")
		defer quick.Close()
		c, err := l.Accept()
		if took := time.Since(began); err != nil || took > 0 {
			t.Fatalf("the second client waited %s, error %v", took, err)
		}
		_ = c.Close() // nothing was said on it
		if _, err := slow.Read(make([]byte, 1)); err != io.EOF || time.Since(began) != 10*time.Second {
			t.Errorf("a header that does not end: %v after %s, want the end after 10s", err, time.Since(began))
		}
		last := below.connect(t, "P")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := last.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a header that has not come by the stop: %v, want the end", err)
		}
	})
}
