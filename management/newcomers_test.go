package management

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// served starts to serve on a free port and returns the address.
func (a *api) served() string {
	a.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.s.Serve(context.Background(), l) }()
	a.t.Cleanup(func() {
		if err := <-ended; err != nil {
			a.t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

// dial connects, and is closed in the end.
func (a *api) dial(addr string) net.Conn {
	a.t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { c.Close() })
	return c
}

// A browser opens connections that it may need, and a load balancer one to see whether
// it can.
func TestShutdownDoesNotWaitForAFirstRequest(t *testing.T) {
	a := newAPI(t, nil)
	addr := a.served()
	silent := a.dial(addr)
	response, err := http.Get("http://" + addr + "/") // answered after the other one was accepted
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than net/http waits
	defer cancel()
	if err := a.s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if ctx.Err() != nil {
		t.Error("it took until the context ended")
	}
	if n, err := silent.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read %d bytes, %v, of a connection that is closed", n, err)
	}
}

// A request that does not end in time is no failure of the stop.
func TestShutdownCutsOffRequests(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	a := newAPI(t, func(cfg *Config) { cfg.Log = zap.New(core) })
	addr := a.served()
	slow := a.dial(addr)
	request := "PUT /api/queues/%2F/q HTTP/1.1\r\nHost: x\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
	if _, err := io.WriteString(slow, request); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n")) // it waits for the body, which never comes
	if _, err := io.ReadFull(slow, answer); err != nil || string(answer) != "HTTP/1.1 100 Continue\r\n\r\n" {
		t.Fatalf("%q, %v", answer, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.s.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if n, err := slow.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes of a connection that is closed", n)
	}
	if got := logged.FilterMessage("cutting off HTTP requests that did not end in time").Len(); got != 1 {
		t.Errorf("%d warnings, want 1: %v", got, logged.All())
	}
}
