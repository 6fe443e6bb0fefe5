package management

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
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
	// A routing key of several lines is no event.
	a.do("PUT", "/exchanges/%2F/mine", `{"type":"fanout"}`, 201)
	a.do("POST", "/bindings/%2F/e/mine/e/amq.rabbitmq.event", `{}`, 201)
	for _, end := range []string{`\n`, `\r`} {
		key := strings.ReplaceAll(`x|data: {}||event: user.deleted|data: {}`, "|", end)
		equal(t, "publish", a.do("POST", "/exchanges/%2F/mine/publish", `{"properties":{},"routing_key":"`+key+`","payload":"","payload_encoding":"string"}`, 200), `{"routed":true}`)
	}
	a.do("PUT", "/queues/%2F/q", `{"durable":true}`, 201)
	for _, want := range []string{"exchange.created", "binding.created", "queue.created"} {
		if got := next("event: "); got != want {
			t.Errorf("event %q, want %s", got, want)
		}
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

// stalledClient does not read until it is told to; what is written then waits.
type stalledClient struct {
	http.ResponseWriter
	stalled chan struct{} // closed by the first write that waits
	read    chan struct{} // closed to let it go on
	once    sync.Once
}

func (c *stalledClient) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "event: ") {
		c.once.Do(func() { close(c.stalled) })
		<-c.read
	}
	return c.ResponseWriter.Write(b)
}

func (c *stalledClient) Flush() {}

// A client that does not read loses the oldest events, is told how many, and holds up
// nobody.
func TestSlowReaderOfEventsLosesTheOldest(t *testing.T) {
	a := newAPI(t, nil)
	v, _ := a.vhosts.Get("/")
	q, err := v.DeclareQueue(vhost.System, vhost.QueueDeclare{Name: "events", Arguments: frames.Table{{Name: "x-max-length", Value: int64(5)}}})
	if err != nil {
		t.Fatal(err)
	}
	in := &inbox{wake: make(chan struct{}, 1)}
	sub := &queue.Subscription{Consumer: in, Tag: "events", NoAck: true, Window: &queue.Window{}}
	if err := q.Subscribe(sub); err != nil {
		t.Fatal(err)
	}
	out := httptest.NewRecorder()
	client := &stalledClient{ResponseWriter: out, stalled: make(chan struct{}), read: make(chan struct{})}
	ctx, leave := context.WithCancel(t.Context())
	r := &request{s: a.s, w: client}
	ended := make(chan error, 1)
	go func() { ended <- r.forward(ctx, q, sub, in) }() // ends with ctx
	a.publish("events", "first")
	<-client.stalled
	for range maxEvents + 5 + 20 {
		a.publish("events", "more")
	}
	if st := q.Status(); st.Ready != 5 || st.Dropped != 20 {
		t.Errorf("%d wait and %d were dropped, want 5 and 20", st.Ready, st.Dropped)
	}
	close(client.read)
	for q.Status().Ready > 0 || len(in.wake) > 0 {
		runtime.Gosched()
	}
	leave()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.Body.String(), "event: events.lost\ndata: {\"count\":20}\n\n") {
		t.Errorf("the client is not told of the lost events:\n%s", out.Body)
	}
}

func TestListenersToEventsAreBounded(t *testing.T) {
	a := newAPI(t, nil)
	for range maxStreams {
		a.s.streams <- struct{}{}
	}
	has(t, a.do("GET", "/events", "", 503), J{"error": "too_many_streams"})
}

func TestEventsNeedTheDefaultVHost(t *testing.T) {
	a := newAPI(t, nil)
	a.do("DELETE", "/vhosts/%2F", "", 204)
	has(t, a.do("GET", "/events", "", 404), J{"reason": "events are published in the virtual host '/', which there is not; create it"})
}

// A monitor hears of no more than the lists of the API tell it.
func TestWhoHearsOfWhichEvents(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/v", "", 201)
	for _, tag := range []string{"monitoring", "administrator"} {
		a.user(tag, tag)
	}
	a.do("PUT", "/permissions/%2F/monitoring", `{"configure":"","write":"","read":""}`, 201)
	of := func(vhost string) frames.Table { return frames.Table{{Name: "vhost", Value: vhost}} }
	for _, tt := range []struct {
		key    string
		fields frames.Table
		want   bool // by the monitor
	}{
		{"queue.created", of("/"), true},
		{"queue.created", of("v"), false},
		{"binding.deleted", of("v"), false},
		{"policy.set", of("v"), false},
		{"vhost.created", frames.Table{{Name: "name", Value: "v"}}, true},
		{"connection.created", of("v"), true},
		{"consumer.created", of("v"), true},
		{"alarm.set", nil, true},
		{"permission.created", of("/"), false},
		{"user.created", nil, false},
	} {
		for tag, want := range map[string]bool{"monitoring": tt.want, "administrator": true} {
			r := &request{s: a.s}
			r.user, _ = a.s.cfg.Auth.Authenticate(tag, "secret", auth.Credentials{Loopback: true})
			if got := r.mayHear(tt.key, tt.fields); got != want {
				t.Errorf("%s %v by %s: %v, want %v", tt.key, tt.fields, tag, got, want)
			}
		}
	}
}
