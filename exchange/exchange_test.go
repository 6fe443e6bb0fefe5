package exchange

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A fakeQueue has a name and a type and can do nothing else.
type fakeQueue struct {
	queue.Queue
	name string
	kind string
}

func (q *fakeQueue) Name() string { return q.name }
func (q *fakeQueue) Type() string { return q.kind }

func newQueue(name string) *fakeQueue { return &fakeQueue{name: name, kind: "classic"} }

// newExchange makes an exchange named after its type.
func newExchange(t testing.TB, kind string, args ...frames.Field) *Exchange {
	t.Helper()
	x, err := New(Spec{Name: kind, Type: kind, Arguments: args, VHost: "/"})
	if err != nil {
		t.Fatalf("New(%s): %v", kind, err)
	}
	return x
}

func bind(t testing.TB, x *Exchange, q queue.Queue, key string, args ...frames.Field) {
	t.Helper()
	added, err := x.Bind(&Binding{Queue: q, Key: key, Arguments: args})
	if err != nil || !added {
		t.Fatalf("Bind(%s, %q, %v) = %v, %v", q.Name(), key, args, added, err)
	}
}

func bindExchange(t testing.TB, x, to *Exchange, key string) {
	t.Helper()
	if added, err := x.Bind(&Binding{To: to, Key: key}); err != nil || !added {
		t.Fatalf("Bind(%s, %q) = %v, %v", to.Name, key, added, err)
	}
}

func keyed(key string) *message.Message {
	return &message.Message{Envelope: &message.Envelope{RoutingKey: key}}
}

// withHeaders makes a message with a header table.
func withHeaders(table ...frames.Field) *message.Message {
	p := frames.Properties{Flags: frames.FlagHeaders, Headers: frames.AppendTable(nil, table)[4:]}
	return &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}}
}

// routed returns the names of the queues that the message reaches, sorted.
func routed(x *Exchange, m *message.Message, others ...*Exchange) []string {
	var to Matches
	x.Route(m, finder(others...), &to)
	return names(&to)
}

func finder(known ...*Exchange) Guide { return fakeGuide{known: known} }

// A fakeGuide knows some exchanges, and closes those in shut.
type fakeGuide struct{ known, shut []*Exchange }

func (g fakeGuide) Alternate(name string) *Exchange {
	for _, x := range g.known {
		if x.Name == name {
			return x
		}
	}
	return nil
}

func (g fakeGuide) Enter(x *Exchange, _ *message.Message) bool { return !slices.Contains(g.shut, x) }

func names(to *Matches) []string {
	list := []string{}
	for _, q := range to.Queues() {
		list = append(list, q.Name())
	}
	slices.Sort(list)
	return list
}

func wantRouted(t *testing.T, x *Exchange, m *message.Message, want ...string) {
	t.Helper()
	if got := routed(x, m); !slices.Equal(got, want) {
		t.Errorf("%s routes key %q to %v, want %v", x.Name, m.RoutingKey, got, want)
	}
}

// wantText checks the reply text of a refusal.
func wantText(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("got error %v\nwant %s", err, want)
	}
}

func TestBindIsOncePerDestinationKeyAndArguments(t *testing.T) {
	x, other := newExchange(t, "direct"), newExchange(t, "fanout")
	q, r := newQueue("q"), newQueue("r")
	one, long := frames.Field{Name: "n", Value: int32(1)}, frames.Field{Name: "n", Value: int64(1)}
	two := frames.Field{Name: "m", Value: int32(2)}
	for _, tt := range []struct {
		b    Binding
		want bool
	}{
		{Binding{Queue: q, Key: "k"}, true},
		{Binding{Queue: q, Key: "k"}, false},
		{Binding{Queue: q, Key: "k", Arguments: frames.Table{}}, false},
		{Binding{Queue: q, Key: "l"}, true},
		{Binding{Queue: r, Key: "k"}, true},
		{Binding{To: other, Key: "k"}, true},
		{Binding{To: other, Key: "k"}, false},
		{Binding{Queue: q, Key: "k", Arguments: frames.Table{one}}, true},
		{Binding{Queue: q, Key: "k", Arguments: frames.Table{long}}, true},
		{Binding{Queue: q, Key: "k", Arguments: frames.Table{one, two}}, true},
		{Binding{Queue: q, Key: "k", Arguments: frames.Table{two, one}}, false},
	} {
		if added, err := x.Bind(&tt.b); added != tt.want || err != nil {
			t.Errorf("Bind(%q, %v) = %v, %v, want %v", tt.b.Key, tt.b.Arguments, added, err, tt.want)
		}
	}
	if got := len(x.Bindings()); got != 7 {
		t.Errorf("%d bindings, want 7", got)
	}
	if b := x.Unbind(q, nil, "k", frames.Table{two, one}); b == nil || len(b.Arguments) != 2 {
		t.Errorf("Unbind in another order of arguments = %v", b)
	}
	if b := x.Unbind(q, nil, "k", frames.Table{two, one}); b != nil {
		t.Errorf("second Unbind = %v, want nil", b)
	}
}

func TestUnbindRemovesOneDestination(t *testing.T) {
	for _, kind := range []string{"direct", "fanout", "topic", "headers", "x-random", "x-modulus-hash", "x-recent-history"} {
		x, a, b := newExchange(t, kind), newExchange(t, "fanout"), newQueue("b")
		q := newQueue("q")
		for i := range 20 {
			bind(t, x, q, fmt.Sprintf("k.%d", i))
			bind(t, x, b, fmt.Sprintf("k.%d", i))
			bindExchange(t, x, a, fmt.Sprintf("k.%d", i))
		}
		if got := x.Unbind(q, nil, "k.7", nil); got == nil || got.Key != "k.7" || got.Queue != queue.Queue(q) {
			t.Errorf("%s: Unbind(k.7) = %v", kind, got)
		}
		if got := len(x.UnbindQueue(q)); got != 19 {
			t.Errorf("%s: UnbindQueue removed %d, want 19", kind, got)
		}
		if got := len(x.UnbindQueue(q)); got != 0 {
			t.Errorf("%s: second UnbindQueue removed %d, want 0", kind, got)
		}
		if got := len(x.UnbindExchange(a)); got != 20 {
			t.Errorf("%s: UnbindExchange removed %d, want 20", kind, got)
		}
		if x.Empty() || len(x.Bindings()) != 20 {
			t.Errorf("%s: %d bindings left, want 20", kind, len(x.Bindings()))
		}
		for _, left := range x.Bindings() {
			x.Unbind(left.Queue, left.To, left.Key, left.Arguments)
		}
		if !x.Empty() {
			t.Errorf("%s: not empty after the last unbind", kind)
		}
		wantRouted(t, x, keyed("k.1"))
	}
}

func TestRouteByAllKeysOnce(t *testing.T) {
	for _, kind := range []string{"direct", "topic"} {
		x := newExchange(t, kind)
		for _, n := range []string{"a", "b", "c", "d"} {
			bind(t, x, newQueue(n), n)
		}
		both := newQueue("both")
		bind(t, x, both, "a")
		bind(t, x, both, "b")
		m := keyed("a")
		m.More = &message.More{CC: []string{"b", "a"}, BCC: []string{"c"}}
		wantRouted(t, x, m, "a", "b", "both", "c")
	}
}

func TestKeysBesidesTheFirstDoNotMultiply(t *testing.T) {
	for _, kind := range []string{"x-random", "x-modulus-hash", "x-consistent-hash", "x-local-random"} {
		x := newExchange(t, kind)
		for i := range 30 {
			key := ""
			if kind == "x-consistent-hash" {
				key = "1"
			}
			bind(t, x, newQueue(fmt.Sprint(i)), key)
		}
		m := keyed("a")
		m.More = &message.More{CC: []string{"b", "c"}, BCC: []string{"d", "e", "f"}}
		if got := routed(x, m); len(got) != 1 {
			t.Errorf("%s routes to %v, want one queue", kind, got)
		}
	}
}

func TestRouteThroughExchanges(t *testing.T) {
	a, b, c := newExchange(t, "direct"), newExchange(t, "topic"), newExchange(t, "fanout")
	bindExchange(t, a, b, "k.1")
	bindExchange(t, b, c, "k.*")
	bindExchange(t, c, a, "") // a cycle
	bindExchange(t, c, c, "") // itself
	bind(t, a, newQueue("qa"), "k.1")
	bind(t, b, newQueue("qb"), "#")
	qc := newQueue("qc")
	bind(t, c, qc, "x")
	bind(t, a, qc, "k.1")
	wantRouted(t, a, keyed("k.1"), "qa", "qb", "qc")
	wantRouted(t, a, keyed("k.2"))
	wantRouted(t, b, keyed("k.2"), "qb", "qc")
	wantRouted(t, c, keyed("k.1"), "qa", "qb", "qc")
}

func TestEmptyKeyStaysInItsExchange(t *testing.T) {
	a, b := newExchange(t, "topic"), newExchange(t, "topic")
	bind(t, a, newQueue("qa"), "")
	bind(t, b, newQueue("qb"), "")
	wantRouted(t, a, keyed(""), "qa")
}

func TestAlternate(t *testing.T) {
	named := func(name, kind, alternate string) *Exchange {
		x, err := New(Spec{Name: name, Type: kind, VHost: "/", Arguments: frames.Table{{Name: "alternate-exchange", Value: alternate}}})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	a, b, c := named("a", "direct", "b"), named("b", "direct", "c"), named("c", "direct", "a")
	empty := newExchange(t, "fanout")
	bind(t, a, newQueue("qa"), "a")
	bind(t, b, newQueue("qb"), "b")
	bind(t, c, newQueue("qc"), "c")
	bindExchange(t, a, empty, "e")
	bindExchange(t, a, b, "ab")
	all := []*Exchange{a, b, c}
	for _, tt := range []struct {
		key  string
		want []string
	}{
		{"a", []string{"qa"}},
		{"b", []string{"qb"}},
		{"c", []string{"qc"}},
		{"none", nil}, // a, b, c, and not a again
		{"e", nil},    // the bound exchange is a destination, if a dead end
		{"ab", nil},   // b's own alternate: c, whose alternate was visited
	} {
		if got := routed(a, keyed(tt.key), all...); !slices.Equal(got, tt.want) {
			t.Errorf("key %q: routed to %v, want %v", tt.key, got, tt.want)
		}
	}
	if got := routed(a, keyed("c"), a, b); len(got) != 0 {
		t.Errorf("with c missing: routed to %v, want nowhere", got)
	}
	a.SetAlternate("c", true)
	if got := routed(a, keyed("b"), all...); len(got) != 0 {
		t.Errorf("by way of a, c and a again: routed to %v, want nowhere", got)
	}
}

func TestSetAlternate(t *testing.T) {
	x := newExchange(t, "direct", frames.Field{Name: "alternate-exchange", Value: "arg"})
	if name, ok := x.Alternate(); name != "arg" || !ok {
		t.Errorf("Alternate() = %q, %v, want that of the arguments", name, ok)
	}
	x.SetAlternate("policy", true)
	if name, ok := x.Alternate(); name != "policy" || !ok {
		t.Errorf("Alternate() = %q, %v, want policy", name, ok)
	}
	x.SetAlternate("", false)
	if _, ok := x.Alternate(); ok {
		t.Error("there is an alternate after it was removed")
	}
}

func TestCacheable(t *testing.T) {
	direct, topic, fanout, byHeader := newExchange(t, "direct"), newExchange(t, "topic"), newExchange(t, "fanout"), newExchange(t, "headers")
	bindExchange(t, direct, topic, "t")
	bindExchange(t, topic, fanout, "#")
	bindExchange(t, direct, byHeader, "h")
	direct.SetAlternate("headers", true)
	cc := keyed("t")
	cc.More = &message.More{CC: []string{"t"}}
	deaths := keyed("t")
	deaths.More = &message.More{}
	for _, tt := range []struct {
		name string
		m    *message.Message
		want bool
	}{
		{"by key only", keyed("t"), true},
		{"to a headers exchange", keyed("h"), false},
		{"alternate is a headers exchange", keyed("none"), false},
		{"more keys", cc, false},
		{"more, but no more keys", deaths, true},
	} {
		var to Matches
		direct.Route(tt.m, finder(byHeader), &to)
		if got := to.Cacheable(); got != tt.want {
			t.Errorf("%s: Cacheable() = %v, want %v", tt.name, got, tt.want)
		}
	}
	for kind, want := range map[string]bool{
		"direct": true, "fanout": true, "topic": true, "headers": false, "x-consistent-hash": true, "x-modulus-hash": true,
		"x-random": false, "x-local-random": false, "x-recent-history": false,
	} {
		if got := newExchange(t, kind).router.ByKey(); got != want {
			t.Errorf("%s: ByKey() = %v, want %v", kind, got, want)
		}
	}
}

func TestConcurrentBindUnbindRoute(t *testing.T) {
	for _, kind := range []string{"direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random", "x-modulus-hash", "x-recent-history"} {
		a, b := newExchange(t, kind), newExchange(t, kind)
		for _, pair := range [][2]*Exchange{{a, b}, {b, a}} { // routing locks both ways round
			bindExchange(t, pair[0], pair[1], "1")
		}
		a.SetAlternate(kind, true)
		keep := newQueue("keep")
		bind(t, a, keep, "1")
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				q := newQueue(fmt.Sprint("q", i))
				for n := range 100 {
					x := []*Exchange{a, b}[n%2]
					key := fmt.Sprint(n%5 + 1)
					if _, err := x.Bind(&Binding{Queue: q, Key: key}); err != nil {
						t.Error(err)
					}
					if n%3 == 0 {
						x.Unbind(q, nil, key, nil)
					}
				}
				a.UnbindQueue(q)
				b.UnbindQueue(q)
			})
			wg.Go(func() {
				var to Matches
				for range 200 {
					to.Reset()
					[]*Exchange{a, b}[i].Route(keyed("1"), finder(b), &to)
					a.History()
				}
			})
		}
		wg.Wait()
		if got := len(a.Bindings()) + len(b.Bindings()); got != 3 {
			t.Errorf("%s: %d bindings left, want 3", kind, got)
		}
	}
}

func TestGatedExchange(t *testing.T) {
	gate, err := New(Spec{Name: "gate", Type: "fanout", Gated: true})
	if err != nil {
		t.Fatal(err)
	}
	bind(t, gate, &fakeQueue{name: "q"}, "")
	front := newExchange(t, "fanout")
	bindExchange(t, front, gate, "")
	spare := newExchange(t, "direct")
	spare.SetAlternate("gate", true)
	for _, tt := range []struct {
		from      *Exchange
		shut      bool
		want      []string
		cacheable bool
	}{
		{front, false, []string{"q"}, false},
		{front, true, []string{}, false}, // the next message may be let through
		{spare, false, []string{"q"}, false},
		{spare, true, []string{}, false},
		{gate, true, []string{"q"}, true}, // where it is published is the caller's question
	} {
		g := fakeGuide{known: []*Exchange{gate}}
		if tt.shut {
			g.shut = g.known
		}
		var to Matches
		tt.from.Route(keyed("k"), g, &to)
		if got := names(&to); !slices.Equal(got, tt.want) || to.Cacheable() != tt.cacheable {
			t.Errorf("from %q, shut %v: %v, cacheable %v", tt.from.Name, tt.shut, got, to.Cacheable())
		}
	}
}
