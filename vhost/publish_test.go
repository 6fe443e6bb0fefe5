package vhost

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

func declareQueue(t testing.TB, v *VHost, d QueueDeclare) *fakeQueue {
	t.Helper()
	q, err := v.DeclareQueue(System, d)
	if err != nil {
		t.Fatal(err)
	}
	return q.(*fakeQueue)
}

func declareExchange(t testing.TB, v *VHost, d ExchangeDeclare) {
	t.Helper()
	if err := v.DeclareExchange(System, d); err != nil {
		t.Fatal(err)
	}
}

func bindQueue(t testing.TB, v *VHost, queue, exchange, key string) {
	t.Helper()
	if err := v.BindQueue(System, queue, exchange, key, nil); err != nil {
		t.Fatal(err)
	}
}

// publish publishes one message and says whether it was routed.
func publish(t testing.TB, v *VHost, exchange, key, body string) bool {
	t.Helper()
	p := v.NewPublisher()
	rt, err := p.Route([]byte(exchange), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	m := message.New(2, len(body))
	copy(m.Body, body)
	m.Exchange, m.RoutingKey = rt.Exchange, rt.Key
	routed := p.Add(rt, m, nil, 0)
	p.Flush()
	return routed
}

func TestPublish(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct"})
	bindQueue(t, v, "q", "x", "k")
	for _, tt := range []struct {
		exchange, key, body string
		routed              bool
	}{
		{"", "q", "a", true},
		{"", "none", "b", false},
		{"x", "k", "c", true},
		{"x", "other", "d", false},
	} {
		if got := publish(t, v, tt.exchange, tt.key, tt.body); got != tt.routed {
			t.Errorf("publish to %q key %q: routed %v, want %v", tt.exchange, tt.key, got, tt.routed)
		}
	}
	if got, want := q.bodies(), []string{"a", "c"}; !slices.Equal(got, want) {
		t.Errorf("queue has %q, want %q", got, want)
	}
}

// settled counts the receipts it was told of.
type settled struct{ n int }

func (s *settled) Settled(*message.Receipt) { s.n++ }

func newMessage(exchange, key string) *message.Message {
	m := message.New(2, 0)
	m.Exchange, m.RoutingKey = exchange, key
	return m
}

func route(t testing.TB, p *Publisher, exchange, key string) *Route {
	t.Helper()
	rt, err := p.Route([]byte(exchange), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func TestUnroutablePublishesAreCounted(t *testing.T) {
	v := newVHost(t)
	declareQueue(t, v, QueueDeclare{Name: "q"})
	p := v.NewPublisher()
	for _, key := range []string{"q", "nowhere"} {
		p.Add(route(t, p, "", key), newMessage("", key), nil, 0)
	}
	p.Flush()
	p.Add(route(t, p, "", "nowhere"), newMessage("", "nowhere"), nil, 0)
	p.Discard()
	if n := v.set.Unroutable(); n != 1 {
		t.Errorf("%d unroutable, want 1", n)
	}
}

func TestRouteToAMissingExchange(t *testing.T) {
	v := newVHost(t)
	_, err := v.NewPublisher().Route([]byte("none"), []byte("k"))
	wantError(t, err, 404, "no exchange 'none' in vhost '/'")
}

func TestFurtherKeys(t *testing.T) {
	v := newVHost(t)
	a, b := declareQueue(t, v, QueueDeclare{Name: "a"}), declareQueue(t, v, QueueDeclare{Name: "b"})
	bindQueue(t, v, "a", "amq.direct", "a")
	bindQueue(t, v, "a", "amq.direct", "b")
	bindQueue(t, v, "b", "amq.direct", "b")
	p := v.NewPublisher()
	for _, x := range []string{"amq.direct", ""} {
		rt := route(t, p, x, "a")
		p.Add(rt, newMessage(x, "a"), nil, 0) // now the route is known
		m := newMessage(x, "a")
		m.More = &message.More{CC: []string{"b"}, BCC: []string{"a", "none"}}
		if !p.Add(rt, m, nil, 0) {
			t.Error("not routed")
		}
		p.Add(rt, newMessage(x, "a"), nil, 0) // and still of one key
		p.Flush()
	}
	if got := len(a.messages()); got != 6 {
		t.Errorf("a has %d messages, want 6: one copy of each", got)
	}
	if got := len(b.messages()); got != 2 {
		t.Errorf("b has %d messages, want 2", got)
	}
}

func TestReceiptIsHeldForEachQueue(t *testing.T) {
	v := newVHost(t)
	a, b := declareQueue(t, v, QueueDeclare{Name: "a"}), declareQueue(t, v, QueueDeclare{Name: "b"})
	bindQueue(t, v, "a", "amq.fanout", "")
	bindQueue(t, v, "b", "amq.fanout", "")
	p := v.NewPublisher()
	var owner settled
	first, second := message.NewReceipt(&owner, 1, 2), message.NewReceipt(&owner, 3, 4)
	first.Hold(1)
	second.Hold(1)
	fanout := route(t, p, "amq.fanout", "")
	p.Add(fanout, newMessage("amq.fanout", ""), first, 1)
	p.Add(fanout, newMessage("amq.fanout", ""), first, 2)
	p.Add(fanout, newMessage("amq.fanout", ""), second, 3)
	p.Add(route(t, p, "", "none"), newMessage("", "none"), second, 4)
	if got := p.Len(); got != 4 {
		t.Errorf("Len() = %d, want 4", got)
	}
	p.Flush()
	if owner.n != 0 {
		t.Errorf("%d receipts are settled before their publisher's part is done", owner.n)
	}
	first.Release()
	second.Release()
	if owner.n != 2 {
		t.Errorf("%d receipts are settled, want 2", owner.n)
	}
	if a.batches != 1 || b.batches != 1 || len(a.got) != 3 {
		t.Errorf("a took %d batches with %d messages, b %d batches; want one each, with 3 messages", a.batches, len(a.got), b.batches)
	}
	if got := p.Len(); got != 0 {
		t.Errorf("Len() = %d after Flush", got)
	}
}

// TestFlushSaysWhatIsWritten: what the queues say, of this batch only, and besides
// what is traced or waits, and what is remembered of producers.
func TestFlushSaysWhatIsWritten(t *testing.T) {
	v := newVHost(t)
	declareQueue(t, v, QueueDeclare{Name: "none"})
	declareQueue(t, v, QueueDeclare{Name: "store"}).writes = queue.ToStore
	declareQueue(t, v, QueueDeclare{Name: "spill"}).writes = queue.ToSpill
	declareExchange(t, v, ExchangeDeclare{Name: "d", Type: "x-delayed-message", Arguments: args("x-delayed-type", "direct")})
	p := v.NewPublisher()
	wants := func(name string, want queue.Writes, keys ...string) {
		t.Helper()
		for _, key := range keys {
			p.Add(route(t, p, "", key), newMessage("", key), nil, 0)
		}
		if got := p.Flush(); got != want {
			t.Errorf("%s: %b, want %b", name, got, want)
		}
	}
	wants("memory", 0, "none")
	wants("both", queue.Anywhere, "none", "store", "spill")
	wants("one", queue.ToSpill, "spill")
	wants("nothing", 0)
	p.Add(route(t, p, "d", ""), newDelayed("m", int32(3_600_000), false), nil, 0)
	wants("a delay", queue.Anywhere)
	p.Add(route(t, p, "", "none"), newSequenced("none", "p", 1), nil, 0)
	wants("a producer", queue.ToStore)
	v.SetTracing(true)
	wants("tracing", queue.Anywhere, "none")
}

func TestDiscard(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	p := v.NewPublisher()
	var owner settled
	r := message.NewReceipt(&owner, 1, 1)
	r.Hold(1)
	p.Add(route(t, p, "", "q"), newMessage("", "q"), r, 1)
	p.Discard()
	p.Flush()
	r.Release()
	if len(q.messages()) != 0 || q.batches != 0 || owner.n != 1 {
		t.Errorf("queue has %d messages in %d batches, receipt settled %d times; want 0, 0, 1", len(q.got), q.batches, owner.n)
	}
	info, _ := v.ExchangeInfo("")
	if info.Published != 0 {
		t.Errorf("%d messages are counted as published", info.Published)
	}
}

func TestSharedBody(t *testing.T) {
	v := newVHost(t)
	d1 := declareQueue(t, v, QueueDeclare{Name: "d1", Durable: true})
	bindQueue(t, v, "d1", "amq.fanout", "")
	transient := declareQueue(t, v, QueueDeclare{Name: "t"})
	bindQueue(t, v, "t", "amq.fanout", "")
	p := v.NewPublisher()
	persistent := func() *message.Message {
		m := newMessage("amq.fanout", "")
		m.Persistent = true
		return m
	}
	p.Add(route(t, p, "amq.fanout", ""), persistent(), nil, 0)
	p.Flush()
	d2 := declareQueue(t, v, QueueDeclare{Name: "d2", Durable: true})
	bindQueue(t, v, "d2", "amq.fanout", "")
	p.Add(route(t, p, "amq.fanout", ""), persistent(), nil, 0)
	p.Add(route(t, p, "amq.fanout", ""), newMessage("amq.fanout", ""), nil, 0)
	p.Flush()
	if d1.got[0].Shared != nil || transient.got[0].Shared != nil {
		t.Error("the body for one durable queue is shared")
	}
	if s := d1.got[1].Shared; s == nil || s != d2.got[0].Shared {
		t.Error("the body for two durable queues is not shared")
	}
	if d1.got[2].Shared != nil {
		t.Error("the body of a transient message is shared")
	}
}

func TestRoutesAreBounded(t *testing.T) {
	v := newVHost(t)
	p := v.NewPublisher()
	for i := range 3 * maxRoutes {
		rt := route(t, p, "amq.direct", string(rune('a'+i%26))+string(rune(i)))
		if p.Add(rt, newMessage("amq.direct", rt.Key), nil, 0) {
			t.Fatal("routed without a binding")
		}
		if len(p.routes) > maxRoutes {
			t.Fatalf("%d routes are kept", len(p.routes))
		}
	}
	p.Flush()
}

func TestCheckedEndsWithTheRoute(t *testing.T) {
	v := newVHost(t)
	p := v.NewPublisher()
	rt := route(t, p, "amq.direct", "k")
	if rt.Checked != 0 {
		t.Errorf("Checked of a new route is %d", rt.Checked)
	}
	rt.Checked = 7
	if rt := route(t, p, "amq.direct", "k"); rt.Checked != 7 {
		t.Errorf("Checked is %d, want 7", rt.Checked)
	}
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct"})
	if rt := route(t, p, "amq.direct", "k"); rt.Checked != 0 {
		t.Errorf("Checked is %d after the topology changed, want 0", rt.Checked)
	}
}

func TestExchangeCounters(t *testing.T) {
	v := newVHost(t)
	for _, name := range []string{"a", "b"} {
		declareQueue(t, v, QueueDeclare{Name: name})
		bindQueue(t, v, name, "amq.fanout", "")
	}
	p := v.NewPublisher()
	for range 3 {
		p.Add(route(t, p, "amq.fanout", ""), newMessage("amq.fanout", ""), nil, 0)
	}
	p.Flush()
	info, err := v.ExchangeInfo("amq.fanout")
	if err != nil || info.Published != 3 || info.Routed != 6 {
		t.Errorf("published %d, routed %d, error %v; want 3 and 6", info.Published, info.Routed, err)
	}
}

// discardQueue takes batches and forgets them.
type discardQueue struct{ fakeQueue }

func (q *discardQueue) Enqueue(batch []queue.Entry) queue.Writes {
	for i := range batch {
		if r := batch[i].Receipt; r != nil && (i == 0 || batch[i-1].Receipt != r) {
			r.Release()
		}
	}
	return 0
}

// newBenchVHost returns a vhost with n queues that forget what they get, bound
// to amq.fanout, and the first one to amq.direct and amq.topic.
func newBenchVHost(t testing.TB, n int) *VHost {
	s, err := Open(Config{Store: newFakeStore(), Factories: map[string]queue.Factory{
		queue.Classic: func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
			return &discardQueue{fakeQueue{name: spec.Name, spec: spec}}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("/")
	for i := range n {
		name := string(rune('a' + i))
		if _, err := v.DeclareQueue(System, QueueDeclare{Name: name}); err != nil {
			t.Fatal(err)
		}
		bindQueue(t, v, name, "amq.fanout", "")
	}
	bindQueue(t, v, "a", "amq.direct", "k")
	bindQueue(t, v, "a", "amq.topic", "k.#")
	return v
}

// leastAllocs is the least of some counts of testing.AllocsPerRun: that counts what
// other goroutines allocate, too, and those of an earlier test may be ending.
func leastAllocs(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}

func TestPublishAllocatesNothing(t *testing.T) {
	v := newBenchVHost(t, 10)
	for _, tt := range []struct{ exchange, key string }{
		{"", "a"}, {"amq.direct", "k"}, {"amq.topic", "k.x"}, {"amq.fanout", "k"},
	} {
		p := v.NewPublisher()
		exchange, key := []byte(tt.exchange), []byte(tt.key)
		m := newMessage(tt.exchange, tt.key)
		r := message.NewReceipt(nil, 1, 16)
		batch := func() {
			for seq := range uint64(16) {
				rt, err := p.Route(exchange, key)
				if err != nil || !p.Add(rt, m, r, seq) {
					t.Fatal("not routed", err)
				}
			}
			p.Flush()
		}
		if n := leastAllocs(100, batch); n != 0 {
			t.Errorf("16 messages to %q: %v allocations, want none", tt.exchange, n)
		}
	}
}

func benchmarkPublish(b *testing.B, exchange, key string) {
	benchmarkPublishOf(b, newMessage(exchange, key))
}

func benchmarkPublishOf(b *testing.B, m *message.Message) {
	v := newBenchVHost(b, 10)
	p := v.NewPublisher()
	x, k := []byte(m.Exchange), []byte(m.RoutingKey)
	r := message.NewReceipt(nil, 1, 64)
	b.ReportAllocs()
	for b.Loop() {
		for seq := range uint64(64) {
			rt, err := p.Route(x, k)
			if err != nil {
				b.Fatal(err)
			}
			p.Add(rt, m, r, seq)
		}
		p.Flush()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*64), "ns/msg")
}

func BenchmarkPublishRoute(b *testing.B)    { benchmarkPublish(b, "amq.direct", "k") }
func BenchmarkPublishDefault(b *testing.B)  { benchmarkPublish(b, "", "a") }
func BenchmarkPublishFanout10(b *testing.B) { benchmarkPublish(b, "amq.fanout", "k") }

func BenchmarkPublishManyKeys(b *testing.B) {
	v := newBenchVHost(b, 10)
	p := v.NewPublisher()
	var keys [512][]byte
	for i := range keys {
		keys[i] = []byte{'k', '.', byte('a' + i%26), byte('a' + i/26)}
	}
	x, m, i := []byte("amq.topic"), newMessage("amq.topic", "k"), 0
	b.ReportAllocs()
	for b.Loop() {
		rt, err := p.Route(x, keys[i%len(keys)])
		if err != nil {
			b.Fatal(err)
		}
		p.Add(rt, m, nil, 0)
		if i++; i%64 == 0 {
			p.Flush()
		}
	}
}
