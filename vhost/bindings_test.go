package vhost

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

func TestBind(t *testing.T) {
	v := newVHost(t)
	declareQueue(t, v, QueueDeclare{Name: "q"})
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct"})
	const atDefault = "operation not permitted on the default exchange"
	for _, tt := range []struct {
		name string
		err  error
		code frames.Code
		text string
	}{
		{"queue", v.BindQueue(System, "q", "x", "k", nil), 0, ""},
		{"again", v.BindQueue(System, "q", "x", "k", nil), 0, ""},
		{"no queue", v.BindQueue(System, "none", "x", "k", nil), 404, "no queue 'none' in vhost '/'"},
		{"no exchange", v.BindQueue(System, "q", "none", "k", nil), 404, "no exchange 'none' in vhost '/'"},
		{"neither", v.BindQueue(System, "no", "none", "k", nil), 404, "no exchange 'none' in vhost '/'"},
		{"default exchange", v.BindQueue(System, "q", "", "k", nil), 403, atDefault},
		{"line breaks", v.BindQueue(System, "q\r\n", "x\n", "k2", nil), 0, ""},
		{"invalid for the type", v.BindQueue(System, "q", "amq.headers", "", args("x-match", "foo")), 406,
			"Invalid x-match field value <<\"foo\">>; expected all, any, all-with-x, or any-with-x"},
		{"unbind", v.UnbindQueue(System, "q", "x", "k2", nil), 0, ""},
		{"unbind missing", v.UnbindQueue(System, "q", "x", "k2", nil), 0, ""},
		{"unbind missing queue", v.UnbindQueue(System, "none", "x", "k", nil), 0, ""},
		{"unbind missing exchange", v.UnbindQueue(System, "q", "none", "k", nil), 0, ""},
		{"unbind default exchange", v.UnbindQueue(System, "q", "", "k", nil), 403, atDefault},
		{"exchanges", v.BindExchange(System, "x", "amq.fanout", "", nil), 0, ""},
		{"exchange to itself", v.BindExchange(System, "x", "x", "", nil), 0, ""},
		{"exchange, no source", v.BindExchange(System, "x", "none", "", nil), 404, "no exchange 'none' in vhost '/'"},
		{"exchange, no destination", v.BindExchange(System, "none", "x", "", nil), 404, "no exchange 'none' in vhost '/'"},
		{"exchange, default source", v.BindExchange(System, "x", "", "", nil), 403, atDefault},
		{"exchange, default destination", v.BindExchange(System, "", "x", "", nil), 403, atDefault},
		{"exchange, unbind", v.UnbindExchange(System, "x", "x", "", nil), 0, ""},
		{"exchange, unbind missing", v.UnbindExchange(System, "none", "x", "", nil), 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) { wantError(t, tt.err, tt.code, tt.text) })
	}
	var got []BindingInfo
	for b := range v.Bindings() {
		got = append(got, b)
	}
	want := []BindingInfo{
		{Source: "amq.fanout", Destination: "x", ToExchange: true},
		{Source: "x", Destination: "q", Key: "k"},
	}
	if !slices.EqualFunc(got, want, func(a, b BindingInfo) bool {
		return a.Source == b.Source && a.Destination == b.Destination && a.ToExchange == b.ToExchange && a.Key == b.Key
	}) {
		t.Errorf("bindings are %+v, want %+v", got, want)
	}
}

func TestAutoDeleteExchange(t *testing.T) {
	gone := func(v *VHost, name string) bool {
		_, err := v.Exchange(name)
		return err != nil
	}
	setUp := func(t *testing.T) *VHost {
		v := newVHost(t)
		declareExchange(t, v, ExchangeDeclare{Name: "a", Type: "fanout", AutoDelete: true})
		declareExchange(t, v, ExchangeDeclare{Name: "b", Type: "fanout", AutoDelete: true})
		declareQueue(t, v, QueueDeclare{Name: "q"})
		if gone(v, "a") {
			t.Fatal("gone before its first binding")
		}
		if err := v.BindExchange(System, "b", "a", "", nil); err != nil { // a → b → q
			t.Fatal(err)
		}
		bindQueue(t, v, "q", "b", "")
		return v
	}
	t.Run("last unbind", func(t *testing.T) {
		v := setUp(t)
		bindQueue(t, v, "q", "b", "second")
		v.UnbindQueue(System, "q", "b", "", nil)
		if gone(v, "b") {
			t.Fatal("gone with a binding left")
		}
		v.UnbindQueue(System, "q", "b", "second", nil)
		if !gone(v, "b") || !gone(v, "a") {
			t.Error("exchanges are there still: b lost its last binding, and with b went a's")
		}
	})
	t.Run("queue deleted", func(t *testing.T) {
		v := setUp(t)
		v.DeleteQueue(System, "q", queue.Condition{})
		if !gone(v, "b") || !gone(v, "a") {
			t.Error("exchanges are there still")
		}
	})
	t.Run("queue ended itself", func(t *testing.T) {
		v := setUp(t)
		q, _ := v.Queue(System, "q")
		q.(*fakeQueue).end()
		if !gone(v, "b") || !gone(v, "a") {
			t.Error("exchanges are there still")
		}
		if _, err := v.Queue(System, "q"); err == nil {
			t.Error("the queue is there still")
		}
	})
	t.Run("bound to each other", func(t *testing.T) {
		v := setUp(t)
		if err := v.BindExchange(System, "a", "b", "", nil); err != nil {
			t.Fatal(err)
		}
		if err := v.DeleteExchange(System, "a", false); err != nil {
			t.Fatal(err)
		}
		if gone(v, "b") {
			t.Error("b is gone, but has a binding to q")
		}
		v.DeleteQueue(System, "q", queue.Condition{})
		if !gone(v, "b") {
			t.Error("b is there still")
		}
	})
}

func TestDeletedQueueGetsNothing(t *testing.T) {
	v := newVHost(t)
	declareQueue(t, v, QueueDeclare{Name: "q"})
	bindQueue(t, v, "q", "amq.fanout", "")
	p := v.NewPublisher()
	add := func() bool {
		rt, err := p.Route([]byte("amq.fanout"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return p.Add(rt, message.New(2, 0), nil, 0)
	}
	if !add() {
		t.Fatal("not routed")
	}
	v.DeleteQueue(System, "q", queue.Condition{})
	p.Flush()
	if add() {
		t.Error("routed to a deleted queue")
	}
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	if add() {
		t.Error("the new queue has the old one's binding")
	}
	p.Flush()
	if got := q.messages(); len(got) != 0 {
		t.Errorf("the new queue has %d messages", len(got))
	}
}

func TestDeleteQueueConditions(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	publish(t, v, "", "q", "m")
	q.inUse = true
	if _, err := v.DeleteQueue(System, "q", queue.Condition{IfUnused: true}); err != errInUse {
		t.Errorf("deletion of a used queue: %v", err)
	}
	if _, err := v.Queue(System, "q"); err != nil {
		t.Errorf("after a refused deletion: %v", err)
	}
	n, err := v.DeleteQueue(System, "q", queue.Condition{})
	if n != 1 || err != nil {
		t.Errorf("deleted %d messages, error %v; want 1 and none", n, err)
	}
	n, err = v.DeleteQueue(System, "q", queue.Condition{})
	if n != 0 || err != nil {
		t.Errorf("deleting again: %d messages, error %v; want 0 and none", n, err)
	}
}

func TestRecentHistoryGoesToTheNewQueueOnly(t *testing.T) {
	v := newVHost(t)
	declareExchange(t, v, ExchangeDeclare{Name: "h", Type: "x-recent-history", Arguments: args("x-recent-history-length", int32(2))})
	first := declareQueue(t, v, QueueDeclare{Name: "first"})
	bindQueue(t, v, "first", "h", "")
	for _, body := range []string{"a", "b", "c"} {
		publish(t, v, "h", "k", body)
	}
	second := declareQueue(t, v, QueueDeclare{Name: "second"})
	bindQueue(t, v, "second", "h", "")
	if got, want := second.bodies(), []string{"b", "c"}; !slices.Equal(got, want) {
		t.Errorf("new queue got %q, want %q", got, want)
	}
	if got, want := first.bodies(), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("old queue got %q, want %q", got, want)
	}
	bindQueue(t, v, "second", "h", "")
	if got := second.bodies(); len(got) != 2 {
		t.Errorf("binding again brought %q", got)
	}
}

func TestPredeclaredExchanges(t *testing.T) {
	s := open(t, newFakeStore())
	if err := s.Create("other", Options{}); err != nil {
		t.Fatal(err)
	}
	names := func(vhost string) []string {
		v, _ := s.Get(vhost)
		var list []string
		for e := range v.Exchanges() {
			if !e.X.Durable || e.X.Internal != slices.Contains([]string{traceExchange, eventExchange, logExchange}, e.X.Name) {
				t.Errorf("%s is durable %v, internal %v", e.X.Name, e.X.Durable, e.X.Internal)
			}
			list = append(list, e.X.Name+" "+e.X.Type)
		}
		return list
	}
	want := []string{" direct", "amq.direct direct", "amq.fanout fanout", "amq.headers headers", "amq.match headers",
		"amq.rabbitmq.event topic", "amq.rabbitmq.log topic", "amq.rabbitmq.trace topic", "amq.topic topic"}
	if got := names("/"); !slices.Equal(got, want) {
		t.Errorf("exchanges of / are %q, want %q", got, want)
	}
	if got := names("other"); !slices.Equal(got, slices.Delete(slices.Clone(want), 5, 7)) {
		t.Errorf("exchanges of another vhost are %q", got)
	}
}

func TestAlternateExchangeMadeLater(t *testing.T) {
	v := newVHost(t)
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct", Arguments: args("alternate-exchange", "ae")})
	p := v.NewPublisher()
	route := func() bool {
		rt, err := p.Route([]byte("x"), []byte("k"))
		if err != nil {
			t.Fatal(err)
		}
		return p.Add(rt, &message.Message{Envelope: &message.Envelope{Exchange: "x", RoutingKey: "k"}}, nil, 0)
	}
	if route() {
		t.Fatal("routed without an alternate exchange")
	}
	declareExchange(t, v, ExchangeDeclare{Name: "ae", Type: "fanout"})
	declareQueue(t, v, QueueDeclare{Name: "q"})
	bindQueue(t, v, "q", "ae", "")
	if !route() {
		t.Error("not routed by the alternate exchange")
	}
}

// The oldest weight counts, "10" is before "9" in the store.
func TestAgeOfABindingSurvivesARestart(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	for _, x := range []string{"hash", "later"} {
		declareExchange(t, v, ExchangeDeclare{Name: x, Type: map[string]string{"hash": "x-consistent-hash", "later": "x-delayed-message"}[x],
			Durable: true, Arguments: args("x-delayed-type", "x-consistent-hash")})
		bindQueue(t, v, "q", x, "9")
		bindQueue(t, v, "q", x, "10")
	}
	bindQueue(t, v, "q", "amq.direct", "9")
	v, _ = open(t, store).Get("/")
	for _, x := range []string{"hash", "later"} {
		since := make(map[string]uint64)
		for _, b := range v.exchangeEntry(x).x.Bindings() {
			since[b.Key] = b.Since
		}
		if since["9"] == 0 || since["9"] > since["10"] {
			t.Errorf("%s: the bindings are since %v", x, since)
		}
	}
	if b := v.exchangeEntry("amq.direct").x.Bindings()[0]; b.Since != 0 {
		t.Errorf("the binding of a direct exchange is since %d", b.Since)
	}
}
