package vhost

import (
	"reflect"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

func TestEvents(t *testing.T) {
	s := open(t, newFakeStore())
	v, _ := s.Get("/")
	log := declareQueue(t, v, QueueDeclare{Name: "log"})
	if s.Listening() {
		t.Error("listening without a binding")
	}
	bindQueue(t, v, "log", "amq.rabbitmq.event", "#")
	log.Purge()
	by := &fakeActor{}
	steps := []func() error{
		func() error { return s.CreateBy(by, "v2", Options{Description: "d"}) },
		func() error {
			return v.DeclareExchange(by, ExchangeDeclare{Name: "x", Type: "fanout", Arguments: args("alternate-exchange", "ae")})
		},
		func() error {
			_, err := v.DeclareQueue(by, QueueDeclare{Name: "q", Durable: true, Arguments: args("x-max-length", int32(5))})
			return err
		},
		func() error { return v.BindQueue(by, "q", "x", "k", nil) },
		func() error {
			_, err := v.DeleteQueue(by, "q", queue.Condition{})
			return err
		},
		func() error { return v.DeleteExchange(by, "x", false) },
		func() error {
			return v.SetPolicy(by, Policy{Name: "p", Definition: queue.Definition{"max-length": 1}}, false)
		},
		func() error { return v.ClearPolicy(by, "p", false) },
		func() error { return v.SetLimit(by, "max-queues", 5) },
		func() error { return v.ClearLimit(by, "") },
		func() error { return s.DeleteBy(by, "v2") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	s.Event("user.created", args("name", "joe"))
	var keys []string
	for _, m := range log.messages() {
		keys = append(keys, m.RoutingKey)
	}
	want := []string{"vhost.created", "exchange.created", "queue.created", "binding.created", "binding.deleted", "queue.deleted",
		"exchange.deleted", "policy.set", "queue.policy.updated", "policy.cleared", "queue.policy.cleared", "vhost.limits.set", "vhost.limits.cleared", "vhost.deleted", "user.created"}
	if !slices.Equal(keys, want) {
		t.Fatalf("events are %q\nwant %q", keys, want)
	}
	m := log.messages()[2]
	h := headersOf(t, m)
	for name, want := range map[string]any{
		"name": "q", "vhost": "/", "durable": true, "auto_delete": false, "exclusive": false, "type": "rabbit_classic_queue",
		"leader": "leveret@test", "owner_pid": "", "user_who_performed_action": "joe", "timestamp_in_ms": m.Time,
	} {
		if got, _ := h.Lookup(name); got != want {
			t.Errorf("queue.created has %s %v, want %v", name, got, want)
		}
	}
	arguments, _ := h.Lookup("arguments")
	if got, want := texts(arguments.([]any)), []string{`{<<"x-max-length">>,signedint,5}`, `{<<"x-queue-type">>,longstr,<<"classic">>}`}; !slices.Equal(got, want) {
		t.Errorf("queue.created has the arguments %q, want %q", got, want)
	}
	for _, i := range []int{0, 13} { // of the vhost
		if got, _ := headersOf(t, log.messages()[i]).Lookup("user_who_performed_action"); got != "joe" {
			t.Errorf("%s was done by %v, want joe", keys[i], got)
		}
	}
	for name, want := range map[string]any{"name": "log", "type": "rabbit_classic_queue", "policy": "p", "operator_policy": "", "user_who_performed_action": "joe"} {
		if got, _ := headersOf(t, log.messages()[8]).Lookup(name); got != want {
			t.Errorf("queue.policy.updated has %s %v, want %v", name, got, want)
		}
	}
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil || p.DeliveryMode != 2 || p.Timestamp != uint64(m.Time/1000) || len(m.Body) != 0 {
		t.Errorf("event has properties %+v, error %v, a body of %d bytes", p, err, len(m.Body))
	}
}

// fakeConn is an owner of queues with a name.
type fakeConn struct{ name string }

func (c *fakeConn) ConnectionName() string { return c.name }

func TestEventOfAnExclusiveQueueNamesItsOwner(t *testing.T) {
	v := newVHost(t)
	log := declareQueue(t, v, QueueDeclare{Name: "log"})
	bindQueue(t, v, "log", "amq.rabbitmq.event", "queue.created")
	for _, tt := range []struct{ owner, want any }{{&fakeConn{"127.0.0.1:1 -> 127.0.0.1:2"}, "127.0.0.1:1 -> 127.0.0.1:2"}, {"nameless", ""}} {
		log.Purge()
		if _, err := v.DeclareQueue(&fakeActor{owner: tt.owner}, QueueDeclare{Exclusive: true}); err != nil {
			t.Fatal(err)
		}
		if got, _ := headersOf(t, log.messages()[0]).Lookup("owner_pid"); got != tt.want {
			t.Errorf("owner_pid of %v's queue is %v, want %v", tt.owner, got, tt.want)
		}
	}
}

func TestQueueTotals(t *testing.T) {
	s := open(t, newFakeStore())
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "a"})
	declareQueue(t, v, QueueDeclare{Name: "a"})
	declareQueue(t, v, QueueDeclare{Name: "a", Passive: true})
	declareQueue(t, v, QueueDeclare{Name: "b"})
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: "amq.a"}); err == nil {
		t.Error("a reserved name was accepted")
	}
	if _, err := v.DeleteQueue(System, "b", queue.Condition{}); err != nil {
		t.Fatal(err)
	}
	if got, want := s.QueueTotals(), (QueueTotals{Declared: 3, Created: 2, Deleted: 1}); got != want {
		t.Errorf("totals are %+v, want %+v", got, want)
	}
}

func TestTrace(t *testing.T) {
	v := newVHost(t)
	firehose := declareQueue(t, v, QueueDeclare{Name: "firehose"})
	bindQueue(t, v, "firehose", "amq.rabbitmq.trace", "#")
	declareQueue(t, v, QueueDeclare{Name: "q"})
	bindQueue(t, v, "q", "amq.topic", "a.#")
	p := v.NewPublisher()
	p.Source = TraceSource{Connection: "127.0.0.1:1 -> 127.0.0.1:5672", Channel: 3, User: "joe"}
	send := func(exchange, key string) {
		m := &message.Message{Envelope: &message.Envelope{Exchange: exchange, RoutingKey: key, Header: header(frames.Properties{
			Flags: frames.FlagContentType | frames.FlagDeliveryMode, ContentType: []byte("text/plain"), DeliveryMode: 2}, args("h", int32(1)))}, Body: []byte("body")}
		p.Add(route(t, p, exchange, key), m, nil, 0)
		p.Flush()
	}
	send("amq.topic", "a.b")
	if got := len(firehose.messages()); got != 0 {
		t.Fatalf("%d messages were traced while tracing is off", got)
	}
	v.SetTracing(true)
	send("amq.topic", "a.b") // a known route
	send("amq.topic", "a.c")
	send("", "q")
	send("", "none")
	send("amq.rabbitmq.trace", "x")
	copied := &message.Message{Envelope: &message.Envelope{RoutingKey: "q", Header: header(frames.Properties{}, nil)}, More: &message.More{CC: []string{"none", "q"}, BCC: []string{"hidden"}}}
	p.Add(route(t, p, "", "q"), copied, nil, 0)
	p.Flush()
	v.TraceDeliver(&p.Source, "q", copied, false)
	v.TraceDeliver(&p.Source, "q", &message.Message{Envelope: &message.Envelope{Exchange: "amq.topic", RoutingKey: "a.b", Header: header(frames.Properties{}, nil)}, Body: []byte("body")}, true)
	v.SetTracing(false)
	send("amq.topic", "a.b")

	type traced struct{ key, routed string }
	var got []traced
	for _, m := range firehose.messages() {
		routed, _ := headersOf(t, m).Lookup("routed_queues")
		list, _ := routed.([]any)
		name := ""
		if len(list) == 1 {
			name = list[0].(string)
		}
		got = append(got, traced{m.RoutingKey, name})
	}
	want := []traced{{"publish.amq.topic", "q"}, {"publish.amq.topic", "q"}, {"publish.", "q"}, {"publish.", "none"}, {"x", ""},
		{"publish.", ""}, {"deliver.q", ""}, {"deliver.q", ""}}
	if !slices.Equal(got, want) {
		t.Fatalf("traced %v\nwant %v", got, want)
	}
	first := firehose.messages()[0]
	wantHeader := header(frames.Properties{}, args("exchange_name", "amq.topic", "routing_keys", []any{"a.b"},
		"properties", args("content_type", "text/plain", "headers", args("h", int32(1)), "delivery_mode", int32(2)),
		"node", "leveret@test", "vhost", "/", "connection", "127.0.0.1:1 -> 127.0.0.1:5672", "channel", int32(3), "user", "joe",
		"routed_queues", []any{"q"}))
	if string(first.Header) != string(wantHeader) || string(first.Body) != "body" {
		t.Errorf("trace is %q with header\n%q\nwant\n%q", first.Body, first.Header, wantHeader)
	}
	toKeys := headersOf(t, firehose.messages()[5])
	if routed, _ := toKeys.Lookup("routed_queues"); !reflect.DeepEqual(routed, []any{"hidden", "none", "q"}) {
		t.Errorf("by CC and BCC through the default exchange: routed_queues is %v, want all keys", routed)
	}
	for i, m := range firehose.messages()[5:7] {
		if keys, _ := headersOf(t, m).Lookup("routing_keys"); !reflect.DeepEqual(keys, []any{"q", "none", "q", "hidden"}) {
			t.Errorf("trace %d by CC and BCC: routing_keys is %v, want all keys", i, keys)
		}
	}
	if again, _ := headersOf(t, firehose.messages()[7]).Lookup("redelivered"); again != int32(1) {
		t.Errorf("redelivered is %v", again)
	}
}

// texts reverses array.
func texts(l []any) []string {
	var all []string
	for _, v := range l {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
