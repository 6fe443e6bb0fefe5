package vhost

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// describe lists what a vhost has, but for what is predeclared.
func describe(v *VHost) []string {
	var list []string
	for e := range v.Exchanges() {
		if !e.Builtin {
			list = append(list, fmt.Sprintf("exchange %s %s durable=%v auto=%v internal=%v %v", e.X.Name, e.X.Type, e.X.Durable, e.X.AutoDelete, e.X.Internal, e.X.Arguments))
		}
	}
	for q := range v.Queues() {
		list = append(list, fmt.Sprintf("queue %s durable=%v auto=%v log=%d policy=%q %v", q.Spec.Name, q.Spec.Durable, q.Spec.AutoDelete,
			q.Queue.(*fakeQueue).logID, q.Policy, q.Spec.Arguments.Table))
	}
	for b := range v.Bindings() {
		list = append(list, fmt.Sprintf("binding %s to %s (exchange %v) key %q %v", b.Source, b.Destination, b.ToExchange, b.Key, b.Arguments))
	}
	return list
}

func TestRestart(t *testing.T) {
	store := newFakeStore()
	s := open(t, store)
	v, _ := s.Get("/")
	declareExchange(t, v, ExchangeDeclare{Name: "d", Type: "direct", Durable: true, Internal: true, Arguments: args("alternate-exchange", "ae", "n", int16(3))})
	declareExchange(t, v, ExchangeDeclare{Name: "transient", Type: "direct"})
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true, Arguments: args("x-max-length", int8(5), "x-dead-letter-exchange", "\xff")})
	declareQueue(t, v, QueueDeclare{Name: "t"})
	if _, err := v.DeclareQueue(&fakeActor{owner: "c"}, QueueDeclare{Name: "ex", Durable: true, Exclusive: true}); err != nil {
		t.Fatal(err)
	}
	for _, b := range [][3]string{{"q", "d", "k"}, {"q", "amq.topic", "a.#"}, {"q", "transient", "k"}, {"t", "d", "k"}} {
		bindQueue(t, v, b[0], b[1], b[2])
	}
	if err := v.BindQueue(System, "q", "amq.headers", "", args("x-match", "any", "n", int64(1))); err != nil {
		t.Fatal(err)
	}
	if err := v.BindExchange(System, "amq.direct", "d", "e2e", nil); err != nil {
		t.Fatal(err)
	}
	if err := v.SetPolicy(System, Policy{Name: "p", Pattern: "^q", Definition: queue.Definition{"max-length": 3}}, false); err != nil {
		t.Fatal(err)
	}
	if err := v.SetLimit(System, "max-queues", 9); err != nil {
		t.Fatal(err)
	}
	if err := v.SetParameter(System, Parameter{"shovel", "s", []byte(`{"src":1}`)}); err != nil {
		t.Fatal(err)
	}
	if err := s.SetGlobal("cluster_name", []byte(`"hare"`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Create("other", Options{Description: "d", Tags: []string{"a"}, DefaultQueueType: "quorum"}); err != nil {
		t.Fatal(err)
	}

	again := open(t, store)
	if got, want := again.Names(), []string{"/", "other"}; !slices.Equal(got, want) {
		t.Fatalf("vhosts are %q, want %q", got, want)
	}
	o, _ := again.Get("other")
	if got := o.Options(); !reflect.DeepEqual(got, Options{Description: "d", Tags: []string{"a"}, DefaultQueueType: "quorum"}) {
		t.Errorf("options are %+v", got)
	}
	v, _ = again.Get("/")
	want := []string{
		"exchange d direct durable=true auto=false internal=true [{alternate-exchange ae} {n 3}]",
		`queue q durable=true auto=false log=3 policy="p" [{x-dead-letter-exchange ` + "\xff" + `} {x-max-length 5} {x-queue-type classic}]`,
		`binding amq.headers to q (exchange false) key "" [{x-match any} {n 1}]`,
		`binding amq.topic to q (exchange false) key "a.#" []`,
		`binding d to amq.direct (exchange true) key "e2e" []`,
		`binding d to q (exchange false) key "k" []`,
	}
	if got := describe(v); !slices.Equal(got, want) {
		t.Errorf("after the restart:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	x, _ := v.Exchange("d")
	if n, _ := x.Arguments.Lookup("n"); n != int16(3) {
		t.Errorf("argument n is %T %v, want int16 3", n, n)
	}
	q, _ := v.Queue(System, "q")
	if p := q.(*fakeQueue).policies; len(p) != 1 || p[0].MaxLength != 3 {
		t.Errorf("queue was told of the policies %+v, want one with max-length 3", p)
	}
	if got := v.Limits().MaxQueues; got != 9 {
		t.Errorf("queue limit is %d, want 9", got)
	}
	if p := v.Parameters(); len(p) != 1 || p[0].Component != "shovel" || string(p[0].Value) != `{"src":1}` {
		t.Errorf("parameters are %+v", p)
	}
	if got := string(again.Globals()["cluster_name"]); got != `"hare"` {
		t.Errorf("cluster_name is %s", got)
	}
	if !store.recovered {
		t.Error("the store was not told that everything is recovered")
	}
	if !publish(t, v, "d", "k", "m") {
		t.Error("a recovered binding does not route")
	}
}

func TestQueuesWithoutPolicyAreStarted(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	v, _ = open(t, store).Get("/")
	q, _ := v.Queue(System, "q")
	if p := q.(*fakeQueue).policies; len(p) != 1 || p[0].MessageTTL != queue.None {
		t.Errorf("queue was told of the policies %+v, want an empty one", p)
	}
}

func TestNewerDefinition(t *testing.T) {
	store := newFakeStore()
	open(t, store)
	store.recovered = false
	store.Put(persistence.Queues, "/\x00q", []byte(`{"v":2,"name":"q","vhost":"/"}`))
	_, err := Open(Config{Store: store})
	const want = `recover definitions: queue "/\x00q": version 2 was written by a newer broker, this one knows versions up to 1: start the newer one again, or restore a backup`
	if err == nil || err.Error() != want {
		t.Errorf("got error %v\nwant %s", err, want)
	}
	if store.recovered {
		t.Error("the store was told to drop what was not recovered")
	}
}

// nested is a table that can be written but not read.
func nested() frames.Table {
	t := args("a", int64(1))
	for range 130 {
		t = args("a", t)
	}
	return t
}

func TestUnreadableDefinitionsAreLeftOutOfTheStart(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	declareExchange(t, v, ExchangeDeclare{Name: "deep", Type: "direct", Durable: true, Arguments: nested()})
	declareQueue(t, v, QueueDeclare{Name: "deep", Durable: true, Arguments: nested()})
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	bindQueue(t, v, "deep", "amq.direct", "k") // is not left over
	bindQueue(t, v, "q", "deep", "k")          // likewise
	if err := v.BindQueue(System, "q", "amq.topic", "k", nested()); err != nil {
		t.Fatal(err)
	}
	store.Put(persistence.Parameters, "/\x00broken", []byte(`{"v":1,`))
	before := maps.Clone(store.values)

	store.recovered = false
	v, _ = open(t, store).Get("/")
	if got, want := describe(v), []string{`queue q durable=true auto=false log=4 policy="" [{x-queue-type classic}]`}; !slices.Equal(got, want) {
		t.Errorf("after the restart there is %q, want %q", got, want)
	}
	if store.recovered {
		t.Error("the store was told to drop what was not recovered")
	}
	if !reflect.DeepEqual(store.values, before) {
		t.Errorf("the start has changed the definitions: %d, want %d", len(store.values), len(before))
	}

	// Declared again, and with another in the place of what has the binding, all is well.
	declareExchange(t, v, ExchangeDeclare{Name: "deep", Type: "direct", Durable: true})
	declareQueue(t, v, QueueDeclare{Name: "deep", Durable: true})
	if _, err := v.DeleteQueue(System, "q", queue.Condition{}); err != nil {
		t.Fatal(err)
	}
	store.Delete(persistence.Parameters, "/\x00broken")
	v, _ = open(t, store).Get("/")
	if got := len(describe(v)); got != 2 || !store.recovered || store.count(persistence.Bindings) != 0 {
		t.Errorf("in the end there is %q, recovered %v, %d bindings", describe(v), store.recovered, store.count(persistence.Bindings))
	}
}

// Another version may have taken what this one does not.
func TestUnknownDefinitionsAreLeftOutOfTheStart(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	one, bad := versioned{1}, encodeArguments(args("x-message-ttl", "soon", "x-message-deduplication", true, "x-cache-size", "many"))
	store.Put(persistence.Exchanges, "type", encode(&storedExchange{versioned: one, VHost: "/", VHostID: v.id, Name: "x", Type: "x-new"}))
	store.Put(persistence.Exchanges, "filter", encode(&storedExchange{versioned: one, VHost: "/", VHostID: v.id, Name: "f", Type: "direct", Arguments: bad}))
	store.Put(persistence.Queues, "queue", encode(&storedQueue{versioned: one, VHost: "/", VHostID: v.id, Name: "new", Arguments: bad}))
	for component, value := range map[string]string{policyComponent: `{"pattern":"("}`, limitsComponent: `{"max-hares":1}`} {
		store.Put(persistence.Parameters, component, encode(&storedParameter{one, component, "/", v.id, "new", []byte(value)}))
	}
	before := maps.Clone(store.values)
	store.recovered = false
	v, _ = open(t, store).Get("/")
	if got := describe(v); len(got) != 1 || len(v.Policies(false)) != 0 || v.Limits() != noLimits {
		t.Errorf("after the restart there is %q, policies %v, limits %v", got, v.Policies(false), v.Limits())
	}
	if store.recovered || !reflect.DeepEqual(store.values, before) {
		t.Errorf("what was left out is lost: recovered %v, %d definitions of %d", store.recovered, len(store.values), len(before))
	}
}

func TestDeletedVHostLeavesNothing(t *testing.T) {
	store := newFakeStore()
	var closed []string
	s, err := Open(Config{Store: store, Factories: map[string]queue.Factory{queue.Classic: fakeFactory},
		OnVHostDeleted: func(name string) { closed = append(closed, name) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create("v", Options{}); err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("v")
	q := declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct", Durable: true})
	bindQueue(t, v, "q", "x", "k")
	if err := v.SetPolicy(System, Policy{Name: "p", Definition: queue.Definition{"max-length": 3}}, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete("v"); err != nil {
		t.Fatal(err)
	}
	if !q.gone || !slices.Equal(closed, []string{"v"}) {
		t.Errorf("queue gone %v, connections closed of %q", q.gone, closed)
	}
	if len(store.values) != 1 { // the vhost /
		t.Errorf("the store has %d definitions left: %v", len(store.values), store.values)
	}
	wantError(t, s.Delete("v"), frames.NotFound, "no vhost 'v'")
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: "late"}); err == nil {
		t.Error("a queue was declared in a deleted vhost")
	}
}

func TestWhatADeletedVHostLeftIsNotItsSuccessors(t *testing.T) {
	store := newFakeStore()
	s := open(t, store)
	if err := s.Create("v", Options{}); err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("v")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	bindQueue(t, v, "q", "amq.direct", "k")
	left := make(map[definitionID][]byte)
	for id, value := range store.values {
		if id.kind != persistence.VHosts {
			left[id] = value
		}
	}
	if err := s.Delete("v"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create("v", Options{}); err != nil {
		t.Fatal(err)
	}
	for id, value := range left { // as if the deletion had been cut short
		store.values[id] = value
	}
	v, _ = open(t, store).Get("v")
	if got := describe(v); len(got) != 0 {
		t.Errorf("the new vhost has %q", got)
	}
}

func TestFailedWriteIsAnError(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	store.fail = errors.New("disk full")
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true}); !errors.Is(err, store.fail) {
		t.Errorf("declare: %v, want the store's error", err)
	}
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: "t"}); err != nil {
		t.Errorf("a transient queue needs no disk: %v", err)
	}
}

func TestStop(t *testing.T) {
	s := open(t, newFakeStore())
	v, _ := s.Get("/")
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	if err := s.Stop(); err != nil || !q.stopped {
		t.Errorf("stopped %v, error %v", q.stopped, err)
	}
}
