package management

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestEventStream(t *testing.T) {
	a := newAPI(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- a.s.Serve(context.Background(), l) }() // ends with Shutdown
	r, err := http.NewRequest("GET", "http://"+l.Addr().String()+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("guest", "guest")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	lines := bufio.NewScanner(resp.Body)
	next := func(prefix string) string {
		for lines.Scan() {
			if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				return rest
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return ""
	}
	next(": events") // it listens
	a.do("PUT", "/queues/%2F/q", `{"durable":true}`, 201)
	if got := next("event: "); got != "queue.created" {
		t.Errorf("event %q, want queue.created", got)
	}
	has(t, decode(t, strings.NewReader(next("data: "))), J{"name": "q", "vhost": "/", "durable": true, "user_who_performed_action": "guest"})
	if err := a.s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		if lines.Text() != "" {
			t.Errorf("after the stop: %q", lines.Text())
		}
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	a.is("/queues?columns=name", `[{"name":"q"}]`)
}
