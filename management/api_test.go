package management

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/classic"
	"github.com/leveretmq/leveret/queue/quorum"
	"github.com/leveretmq/leveret/queue/stream"
	"github.com/leveretmq/leveret/vhost"
)

// J is a decoded JSON object.
type J = map[string]any

// fakeConnections are what a test says is open.
type fakeConnections struct {
	mu          sync.Mutex // guards the fields below
	connections []Connection
	channels    []Channel
	consumers   []Consumer
	closed      []string // "name: reason"
	churn       Churn
	past        map[string]Past      // by vhost
	unacked     map[string][]Unacked // by vhost/queue
}

func (f *fakeConnections) Connections() []Connection {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.connections)
}

func (f *fakeConnections) Channels() []Channel {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.channels)
}

func (f *fakeConnections) Consumers() []Consumer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.consumers)
}

func (f *fakeConnections) CloseConnection(name, reason string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = append(f.closed, name+": "+reason)
	return slices.ContainsFunc(f.connections, func(c Connection) bool { return c.Name == name })
}

func (f *fakeConnections) Unacked(vhost, queue string, offset, limit int) (page []Unacked, total int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.unacked[vhost+"/"+queue] {
		if total >= offset && total < offset+limit {
			page = append(page, u)
		}
		total++
	}
	return page, total
}

func (f *fakeConnections) Churn() Churn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.churn
}

func (f *fakeConnections) Past() map[string]Past {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.past)
}

func (f *fakeConnections) ConfirmLatency() message.Distribution {
	var l message.Latencies
	l.Add(2 * time.Millisecond)
	return l.Snapshot()
}

// closeAll is what happens when all clients leave.
func (f *fakeConnections) closeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.churn.ConnectionsClosed += uint64(len(f.connections))
	f.churn.ChannelsClosed += uint64(len(f.channels))
	f.past = make(map[string]Past)
	for _, c := range f.connections {
		n := f.past[c.VHost]
		n.Received, n.Sent = n.Received+c.Received, n.Sent+c.Sent
		f.past[c.VHost] = n
	}
	for _, c := range f.channels {
		n := f.past[c.VHost]
		n.Published, n.Confirmed, n.Confirmable = n.Published+c.Published, n.Confirmed+c.Confirmed, n.Confirmable+c.Confirmable
		f.past[c.VHost] = n
	}
	f.connections, f.channels, f.consumers = nil, nil, nil
}

// api is a server over an empty broker, called without a network.
type api struct {
	t      *testing.T
	s      *Server
	vhosts *vhost.Set
	auth   *auth.Authority
	conns  *fakeConnections
}

// newAPI makes one; change may change its configuration, or be nil.
func newAPI(t *testing.T, change func(*Config)) *api {
	t.Helper()
	store := persistence.NewMemory()
	authority, err := auth.New(auth.Config{}, store)
	if err != nil {
		t.Fatal(err)
	}
	vhosts, err := vhost.Open(vhost.Config{Store: store, Node: "rabbit@test", Memory: queue.NewBudget(1 << 20),
		Factories: map[string]queue.Factory{"classic": classic.New, "quorum": quorum.New, "stream": stream.New}})
	if err != nil {
		t.Fatal(err)
	}
	conns := &fakeConnections{}
	cfg := Config{VHosts: vhosts, Auth: authority, Store: store, Connections: conns, Node: "rabbit@test"}
	if change != nil {
		change(&cfg)
	}
	a := &api{t: t, s: New(cfg), vhosts: vhosts, auth: authority, conns: conns}
	t.Cleanup(func() {
		if err := a.s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if err := vhosts.Stop(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// request calls the API as guest from this host; edit may change the request.
func (a *api) request(method, path, body string, edit func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(a.t.Context(), method, "/api"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:40000"
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("guest", "guest")
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	a.s.ServeHTTP(w, r)
	return w
}

// through sends the answer to a GET through another writer.
func (a *api) through(pipe *brokenPipe, path string) {
	r := httptest.NewRequestWithContext(a.t.Context(), "GET", "/api"+path, nil)
	r.RemoteAddr = "127.0.0.1:40000"
	r.SetBasicAuth("guest", "guest")
	pipe.ResponseWriter = httptest.NewRecorder()
	a.s.ServeHTTP(pipe, r)
}

// as is an edit that logs in as somebody else, with the password "secret".
func as(user string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(user, "secret") }
}

// do calls the API and wants a status; it returns the decoded body, nil for none.
func (a *api) do(method, path, body string, status int) any {
	a.t.Helper()
	w := a.request(method, path, body, nil)
	if w.Code != status {
		a.t.Fatalf("%s %s = %d %s, want %d", method, path, w.Code, w.Body, status)
	}
	return decode(a.t, w.Body)
}

func decode(t *testing.T, r io.Reader) any {
	t.Helper()
	raw, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

// is wants the answer of a GET to be exactly this JSON.
func (a *api) is(path, want string) {
	a.t.Helper()
	equal(a.t, path, a.do("GET", path, "", 200), want)
}

func equal(t *testing.T, what string, got any, want string) {
	t.Helper()
	if !reflect.DeepEqual(got, decode(t, strings.NewReader(want))) {
		b, _ := json.Marshal(got)
		t.Errorf("%s = %s, want %s", what, b, want)
	}
}

// has wants an object to have at least these members.
func has(t *testing.T, got any, want J) {
	t.Helper()
	o, ok := got.(J)
	if !ok {
		t.Fatalf("got %v, want an object", got)
	}
	for name, v := range want {
		if !reflect.DeepEqual(o[name], v) {
			t.Errorf("%s = %v, want %v", name, o[name], v)
		}
	}
}

// names collects a member of a list of objects.
func names(t *testing.T, list any, member string) []string {
	t.Helper()
	l, ok := list.([]any)
	if !ok {
		t.Fatalf("got %v, want a list", list)
	}
	out := []string{}
	for _, o := range l {
		s, _ := o.(J)[member].(string)
		out = append(out, s)
	}
	return out
}

// user makes a user with the password "secret".
func (a *api) user(name, tags string) {
	a.t.Helper()
	a.do("PUT", "/users/"+name, `{"password":"secret","tags":"`+tags+`"}`, 201)
}

// aConn is an open connection of a user with one channel and one consumer.
func (a *api) aConn(name, user, vhost, queue string) {
	a.conns.mu.Lock()
	defer a.conns.mu.Unlock()
	peer := netip.MustParseAddrPort("10.0.0.7:4711")
	a.conns.churn.ConnectionsOpened++
	a.conns.churn.ChannelsOpened++
	a.conns.connections = append(a.conns.connections, Connection{
		Name: name, UserProvidedName: "app", User: user, VHost: vhost, Mechanism: "PLAIN", Peer: peer, Host: netip.MustParseAddrPort("10.0.0.1:5672"),
		ConnectedAt: time.UnixMilli(1700000000000), ChannelMax: 2047, FrameMax: 131072, Heartbeat: 30 * time.Second, Received: 100, Sent: 200, Reads: 3, Writes: 4, Pending: 5, Channels: 1,
		ClientProperties: frames.Table{{Name: "product", Value: "test"}, {Name: "capabilities", Value: frames.Table{{Name: "basic.nack", Value: true}}}},
	})
	a.conns.channels = append(a.conns.channels, Channel{Connection: name, Number: 1, User: user, VHost: vhost, Prefetch: 7, Confirm: true, Consumers: 1,
		Unacked: 2, Published: 5, Confirmable: 5, Confirmed: 5, Dropped: 1, Delivered: 4, Acked: 2})
	a.conns.consumers = append(a.conns.consumers, Consumer{Connection: name, User: user, VHost: vhost, Queue: queue, Channel: 1, Tag: "tag-" + name,
		AckRequired: true, Prefetch: 7, Arguments: frames.Table{{Name: "x-priority", Value: int32(3)}}})
}
