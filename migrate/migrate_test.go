package migrate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// TestMain is the migration itself when the test of a killed one starts it.
func TestMain(m *testing.M) {
	if raw := os.Getenv("LEVERET_TEST_MIGRATE"); raw != "" {
		var from, to Endpoint
		if err := json.Unmarshal([]byte(raw), &[]any{&from, &to}); err != nil {
			panic(err)
		}
		moved := 0
		_, err := Run(context.Background(), from, to, Options{Prefetch: 20, Watch: func(e Event) {
			if e.Moved > 0 {
				fmt.Println("moved")
			}
			if moved += e.Moved; moved > 2000 {
				select {} // until it is killed: it must not be done before
			}
		}})
		if err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startBroker starts a broker in memory.
func startBroker(t *testing.T) Endpoint {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.ManagementListen, cfg.InMemory = "127.0.0.1:0", "127.0.0.1:0", true
	core, logged := observer.New(zap.InfoLevel)
	b := broker.New(cfg, zap.New(core))
	addr, err := b.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	api := ""
	for _, line := range logged.All() {
		if at, ok := strings.CutPrefix(line.Message, "HTTP API on "); ok {
			api = at
		}
	}
	return Endpoint{AMQP: "amqp://guest:guest@" + addr.String(), API: &API{Base: api, User: "guest", Password: "guest"}}
}

func open(t *testing.T, e Endpoint, vhost string) *amqp.Channel {
	t.Helper()
	conn, err := e.dial(vhost, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return ch
}

func declare(t *testing.T, ch *amqp.Channel, name string, args amqp.Table) {
	t.Helper()
	if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
}

// publish sends messages and waits until the broker has all of them.
func publish(t *testing.T, ch *amqp.Channel, exchange, key string, list ...amqp.Publishing) {
	t.Helper()
	var last *amqp.DeferredConfirmation
	for _, p := range list {
		var err error
		if last, err = ch.PublishWithDeferredConfirmWithContext(t.Context(), exchange, key, true, false, p); err != nil {
			t.Fatal(err)
		}
	}
	if ok, err := last.WaitContext(t.Context()); !ok || err != nil {
		t.Fatalf("publish to %q %q: confirmed %v, %v", exchange, key, ok, err)
	}
}

// numbered are messages with the bodies from to to.
func numbered(from, to int) []amqp.Publishing {
	var list []amqp.Publishing
	for n := from; n <= to; n++ {
		list = append(list, amqp.Publishing{Body: fmt.Append(nil, n), DeliveryMode: 2})
	}
	return list
}

// take takes all messages out of a queue.
func take(t *testing.T, ch *amqp.Channel, queue string) []amqp.Delivery {
	t.Helper()
	var list []amqp.Delivery
	for {
		d, ok, err := ch.Get(queue, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return list
		}
		list = append(list, d)
	}
}

func bodies(list []amqp.Delivery) []string {
	var out []string
	for _, d := range list {
		out = append(out, string(d.Body))
	}
	return out
}

func run(t *testing.T, from, to Endpoint, opts Options) *Report {
	t.Helper()
	r, err := Run(t.Context(), from, to, opts)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// of is what the report says about a queue.
func (r *Report) of(t *testing.T, name string) Queue {
	t.Helper()
	i := slices.IndexFunc(r.Queues, func(q Queue) bool { return q.Name == name })
	if i < 0 {
		t.Fatalf("the report has no queue %q: %+v", name, r.Queues)
	}
	return r.Queues[i]
}

func TestMessagesArriveAsTheyWere(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	declare(t, ch, "q", nil)
	for _, err := range []error{
		ch.ExchangeDeclare("events", "topic", true, false, false, false, nil),
		ch.QueueBind("q", "order.*", "events", false, nil),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sent := amqp.Publishing{
		Headers: amqp.Table{"text": "x", "int": int32(-7), "long": int64(1) << 40, "short": int16(3), "byte": byte(200), "float": 1.5, "yes": true, "nil": nil,
			"bytes": []byte{0, 1}, "when": time.Unix(1e9, 0), "decimal": amqp.Decimal{Scale: 2, Value: 314}, "list": []any{"a", int32(1)},
			"x-death": []any{amqp.Table{"queue": "work", "reason": "rejected", "count": int64(2)}}},
		ContentType: "application/json", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 4, CorrelationId: "c", ReplyTo: "r",
		Expiration: "3600000", MessageId: "m", Timestamp: time.Unix(1.7e9, 0), Type: "t", UserId: "guest", AppId: "a", Body: []byte("one"),
	}
	transient := amqp.Publishing{DeliveryMode: 1, Body: []byte("two")}
	publish(t, ch, "events", "order.new", sent, transient)
	publish(t, ch, "", "q", amqp.Publishing{Headers: amqp.Table{"CC": []any{"other"}}, Body: []byte("three")}, amqp.Publishing{})

	report := run(t, from, to, Options{})
	if !report.Complete() || report.Moved != 4 {
		t.Fatalf("report: %+v", report)
	}
	if q := report.of(t, "q"); q.State != Moved || q.Before != 4 || q.Moved != 4 || q.After != 0 || q.TargetBefore != 0 || q.TargetAfter != 4 {
		t.Errorf("queue: %+v", q)
	}
	got := take(t, open(t, to, "/"), "q")
	if want := []string{"one", "two", "three", ""}; !slices.Equal(bodies(got), want) {
		t.Fatalf("bodies %q, want %q", bodies(got), want)
	}
	if p := publishing(&got[0], "classic"); !reflect.DeepEqual(p, sent) {
		t.Errorf("got  %#v\nwant %#v", p, sent)
	}
	if got[1].DeliveryMode != 1 {
		t.Errorf("a transient message has delivery mode %d", got[1].DeliveryMode)
	}
	for i, want := range []string{"order.new", "order.new", "q", "q"} {
		if got[i].RoutingKey != want {
			t.Errorf("message %d has routing key %q, want %q", i, got[i].RoutingKey, want)
		}
	}
	var left []item
	if err := to.API.do(t.Context(), http.MethodGet, "/exchanges/%2F", nil, &left); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(left, func(e item) bool { return strings.HasPrefix(e.text("name"), "leveret.migrate.") }) {
		t.Error("an exchange of the migration is left")
	}
}

func TestDefinitionsArrive(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	do := func(method, path string, body any) {
		t.Helper()
		if err := from.API.do(t.Context(), method, path, body, nil); err != nil {
			t.Fatal(err)
		}
	}
	do("PUT", "/vhosts/shop", nil)
	do("PUT", "/users/anna", item{"password": "secret", "tags": "monitoring"})
	do("PUT", "/users/guest", item{"password": "changed", "tags": "administrator"})
	from.API.Password = "changed"
	do("PUT", "/permissions/shop/anna", item{"configure": "", "write": "a", "read": ".*"})
	do("PUT", "/permissions/shop/guest", item{"configure": ".*", "write": ".*", "read": ".*"})
	do("PUT", "/policies/shop/limit", item{"pattern": "^jobs", "definition": item{"max-length": 1000}, "apply-to": "queues"})
	do("PUT", "/exchanges/shop/events", item{"type": "topic", "durable": true})
	do("PUT", "/queues/shop/jobs", item{"durable": true, "arguments": item{"x-queue-type": "quorum"}})
	do("POST", "/bindings/shop/e/events/q/jobs", item{"routing_key": "job.#"})
	from.AMQP = strings.Replace(from.AMQP, "guest:guest", "guest:changed", 1)
	publish(t, open(t, from, "shop"), "events", "job.1", numbered(1, 3)...)

	report := run(t, from, to, Options{})
	if !report.Complete() || report.Moved != 3 {
		t.Fatalf("report: %+v", report)
	}
	to.API.Password = "changed" // the own login comes last
	if run(t, from, to, Options{DryRun: true}); len(report.Refused) != 0 {
		t.Errorf("refused: %+v", report.Refused)
	}
	var source, target definitions
	for api, into := range map[*API]*definitions{from.API: &source, to.API: &target} {
		if err := api.do(t.Context(), "GET", "/definitions", nil, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, section := range sections() {
		if section == "global_parameters" {
			continue
		}
		if got, want := string(target[section]), string(source[section]); got != want {
			t.Errorf("%s:\n got %s\nwant %s", section, got, want)
		}
	}
	anna := Endpoint{AMQP: strings.Replace(to.AMQP, "guest:guest", "anna:secret", 1)}
	conn, err := anna.dial("shop", "")
	if err != nil {
		t.Fatalf("a user's password does not work at the target: %v", err)
	}
	_ = conn.Close()
}

// A headers binding tells integers from doubles, and takes all 64 bits.
func TestArgumentsKeepTheirNumbers(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	args := json.RawMessage(`{"f":3.0,"g":1.0e3,"n":9007199254740993}`)
	if err := from.API.do(t.Context(), "POST", "/bindings/%2F/e/amq.headers/e/amq.fanout", item{"arguments": args}, nil); err != nil {
		t.Fatal(err)
	}
	if report := run(t, from, to, Options{}); len(report.Refused) > 0 {
		t.Errorf("refused: %v", report.Refused)
	}
	var got []struct{ Arguments json.RawMessage }
	if err := to.API.do(t.Context(), "GET", "/bindings/%2F/e/amq.headers/e/amq.fanout", nil, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || string(got[0].Arguments) != `{"f":3.0,"g":1000.0,"n":9007199254740993}` {
		t.Errorf("the target has %s, the source %s", got, args)
	}
}

// Brokers write the same number differently.
func TestCanonicalNumbers(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{`{"x":1.0e3}`, `{"x":1000.0}`, true},
		{`[1.0e20]`, `[1e+20]`, true},
		{`3.0`, `3`, false},
		{`9007199254740993`, `9007199254740992`, false},
	} {
		both := definitions{"bindings": json.RawMessage(`[{"v":` + tt.a + `},{"v":` + tt.b + `}]`)}
		list, err := both.section("bindings")
		if err != nil {
			t.Fatal(err)
		}
		if a, b := canonical(list[0]["v"]), canonical(list[1]["v"]); (a == b) != tt.same {
			t.Errorf("%s is %s, %s is %s; want equal: %t", tt.a, a, tt.b, b, tt.same)
		}
	}
}

func TestRefusedDefinitionsAreReported(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	declare(t, open(t, from, "/"), "same", nil)
	declare(t, open(t, from, "/"), "other", amqp.Table{"x-max-length": int32(5)})
	declare(t, open(t, to, "/"), "same", nil)
	declare(t, open(t, to, "/"), "other", nil)
	m := &migration{from: from, to: to, opts: Options{Watch: func(Event) {}}, report: &Report{}}
	if _, err := m.moveDefinitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(m.report.Refused) != 1 || m.report.Refused[0].Item != "'other' in vhost '/'" || !strings.Contains(m.report.Refused[0].Reason, `"x-max-length":5`) {
		t.Errorf("refused: %+v", m.report.Refused)
	}
	// What the target does not accept is found among the others.
	m.report.Refused = nil
	list := []item{}
	for n := range 20 {
		list = append(list, item{"vhost": "/", "name": fmt.Sprint("e", n), "type": "topic", "durable": true, "auto_delete": false, "internal": false, "arguments": item{}})
	}
	list[13]["type"] = "x-no-such-type"
	if err := m.importSection(t.Context(), "exchanges", list); err != nil {
		t.Fatal(err)
	}
	if len(m.report.Refused) != 1 || m.report.Refused[0].Item != "'e13' in vhost '/'" {
		t.Errorf("refused: %+v", m.report.Refused)
	}
	if err := to.API.do(t.Context(), "GET", "/exchanges/%2F/e19", nil, nil); err != nil {
		t.Errorf("what comes after a refused definition is missing: %v", err)
	}
}

func TestOrderAndParallelQueues(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	const queues, messages = 9, 400
	var want []string
	for n := 1; n <= messages; n++ {
		want = append(want, fmt.Sprint(n))
	}
	for i := range queues {
		name := fmt.Sprint("q", i)
		kind := []string{"classic", "quorum"}[i%2]
		declare(t, ch, name, amqp.Table{"x-queue-type": kind})
		publish(t, ch, "", name, numbered(1, messages)...)
	}
	report := run(t, from, to, Options{})
	if !report.Complete() || report.Moved != queues*messages {
		t.Fatalf("report: %+v", report)
	}
	for i := range queues {
		if got := bodies(take(t, open(t, to, "/"), fmt.Sprint("q", i))); !slices.Equal(got, want) {
			t.Errorf("q%d is not in order: %q", i, got)
		}
	}
}

func TestWhatCannotBeMovedIsReported(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	for _, name := range []string{"busy", "skipped", "missing", "full"} {
		declare(t, ch, name, nil)
		publish(t, ch, "", name, numbered(1, 3)...)
	}
	if _, err := ch.QueueDeclare("mine", false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
	publish(t, ch, "", "mine", numbered(1, 1)...)
	if err := ch.Qos(1, 0, false); err != nil {
		t.Fatal(err)
	}
	quorum := amqp.Table{"x-queue-type": "quorum"} // which lets others consume beside an exclusive consumer
	declare(t, ch, "busyquorum", quorum)
	publish(t, ch, "", "busyquorum", numbered(1, 3)...)
	at := open(t, to, "/")
	declare(t, at, "busyquorum", quorum)
	declare(t, at, "busy", nil)
	for _, name := range []string{"busy", "busyquorum"} {
		deliveries, err := ch.Consume(name, "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-deliveries
	}
	declare(t, at, "full", amqp.Table{"x-max-length": int32(2), "x-overflow": "reject-publish"})
	report := run(t, from, to, Options{NoDefinitions: true, Skip: []string{"skip*"}})
	for name, want := range map[string]State{"busy": Busy, "busyquorum": Busy, "missing": Missing, "mine": Exclusive, "full": Failed} {
		if q := report.of(t, name); q.State != want || q.Reason == "" {
			t.Errorf("%s: state %q (%s), want %q", name, q.State, q.Reason, want)
		}
	}
	if got := len(take(t, at, "busyquorum")); got != 0 {
		t.Errorf("%d messages of a quorum queue overtook what a consumer has", got)
	}
	if len(report.Queues) != 5 || report.Complete() {
		t.Errorf("report: %+v", report)
	}
	if q := report.of(t, "full"); q.After != 1 || q.TargetAfter != 2 || !strings.Contains(q.Reason, "full") {
		t.Errorf("a target that is full: %+v", q)
	}
	if got := len(take(t, open(t, from, "/"), "missing")); got != 3 {
		t.Errorf("a queue that the target lacks has %d messages left, want 3", got)
	}
}

// The queue goes away at the target in the middle: what it returns stays at the
// source.
func TestReturnedMessagesStay(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch, at := open(t, from, "/"), open(t, to, "/")
	declare(t, ch, "q", nil)
	publish(t, ch, "", "q", numbered(1, 5)...)
	declare(t, at, "q", nil)
	m := &migration{from: from, to: to, opts: Options{Watch: func(Event) {}}}
	var l link
	defer l.close()
	if err := l.open(t.Context(), m, "/"); err != nil {
		t.Fatal(err)
	}
	q := &Queue{VHost: "/", Name: "q", Type: "classic"}
	p, err := m.newPump(&l, q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.QueueDelete("q", false, false, false); err != nil {
		t.Fatal(err)
	}
	p.empty = func() (bool, error) { return false, nil }
	if p.deliveries, err = p.source.Consume("q", "", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	err = p.finish(t.Context(), &l, p.run(t.Context()))
	if err == nil || !strings.Contains(err.Error(), "returned") || q.Moved != 0 {
		t.Errorf("error %v, %d moved", err, q.Moved)
	}
	if got, want := bodies(take(t, ch, "q")), []string{"1", "2", "3", "4", "5"}; !slices.Equal(got, want) {
		t.Errorf("the source has %q, want %q", got, want)
	}
}

// The target refuses two of the messages that are under way and takes the others:
// those must not be published again.
func TestOnlyRefusedMessagesStay(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch, at := open(t, from, "/"), open(t, to, "/")
	declare(t, ch, "q", nil)
	declare(t, at, "q", nil)
	publish(t, ch, "", "q", numbered(1, 10)...)
	m := &migration{from: from, to: to, opts: Options{Watch: func(Event) {}, Prefetch: 10}}
	var l link
	defer l.close()
	if err := l.open(t.Context(), m, "/"); err != nil {
		t.Fatal(err)
	}
	q := &Queue{VHost: "/", Name: "q", Type: "classic"}
	p, err := m.newPump(&l, q)
	if err != nil {
		t.Fatal(err)
	}
	given, changed := p.confirms, make(chan amqp.Confirmation)
	p.confirms = changed
	go func() { // ends with the target's channel
		defer close(changed)
		var held []amqp.Confirmation
		for c := range given {
			if held = append(held, c); len(held) < 10 {
				continue // all are under way
			}
			for _, c := range held {
				c.Ack = c.DeliveryTag != 3 && c.DeliveryTag != 5
				changed <- c
			}
		}
	}()
	p.empty = func() (bool, error) { return false, nil }
	if p.deliveries, err = p.source.Consume("q", "", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	err = p.finish(t.Context(), &l, p.run(t.Context()))
	if err == nil || !strings.Contains(err.Error(), "refused") || q.Moved != 8 {
		t.Errorf("error %v, %d moved, want 8", err, q.Moved)
	}
	if got, want := bodies(take(t, ch, "q")), []string{"3", "5"}; !slices.Equal(got, want) {
		t.Errorf("the source has %q, want %q", got, want)
	}
}

func TestInterruptedRunLosesNothingAndDoublesNothing(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	declare(t, ch, "q", nil)
	const messages = 5000
	publish(t, ch, "", "q", numbered(1, messages)...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := Run(ctx, from, to, Options{Prefetch: 50, Watch: func(e Event) {
		if e.Moved > 0 {
			cancel()
		}
	}})
	if err != nil || !r.Interrupted || r.Complete() {
		t.Fatalf("report %+v, error %v", r, err)
	}
	q := r.of(t, "q")
	if q.State != Interrupted || q.Moved == 0 || q.After == 0 || q.Moved+q.After != messages || q.TargetAfter != q.Moved {
		t.Errorf("queue: %+v", q)
	}
	if r = run(t, from, to, Options{}); !r.Complete() || r.of(t, "q").TargetAfter != messages {
		t.Errorf("the second run: %+v", r)
	}
	wantInOrder(t, bodies(take(t, open(t, to, "/"), "q")), messages, 0)
}

// A killed run may leave messages twice, but no more than were under way, and
// none is missing.
func TestKilledRunLosesNothing(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	declare(t, ch, "q", nil)
	const messages = 6000
	publish(t, ch, "", "q", numbered(1, messages)...)
	raw, err := json.Marshal([]any{from, to})
	if err != nil {
		t.Fatal(err)
	}
	const kills = 2
	for range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LEVERET_TEST_MIGRATE="+string(raw))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // it has moved something
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the run ended before it was killed")
		}
		awaitNoConsumer(t, ch, "q") // of the killed one
	}
	r := run(t, from, to, Options{})
	if !r.Complete() {
		t.Fatalf("report: %+v", r)
	}
	wantInOrder(t, bodies(take(t, open(t, to, "/"), "q")), messages, kills*20)
}

// awaitNoConsumer waits until the broker has noticed that a client is dead.
func awaitNoConsumer(t *testing.T, ch *amqp.Channel, queue string) {
	t.Helper()
	for {
		q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if q.Consumers == 0 {
			return
		}
	}
}

// wantInOrder checks that the numbers from 1 to n are there, each for the first
// time in its order, and at most so many twice.
func wantInOrder(t *testing.T, got []string, n, twice int) {
	t.Helper()
	seen := map[string]bool{}
	next := 1
	for _, b := range got {
		if seen[b] {
			continue
		}
		if b != fmt.Sprint(next) {
			t.Fatalf("message %s comes where %d should", b, next)
		}
		seen[b] = true
		next++
	}
	if next != n+1 || len(got)-n > twice {
		t.Errorf("%d messages, %d different ones; want %d and at most %d twice", len(got), next-1, n, twice)
	}
}

func TestStreamsAreCopiedOnce(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	declare(t, ch, "s", amqp.Table{"x-queue-type": "stream"})
	publish(t, ch, "", "s", numbered(1, 300)...)
	if r := run(t, from, to, Options{}); !r.Complete() || r.of(t, "s").State != Copied || r.Moved != 300 {
		t.Fatalf("report: %+v", r)
	}
	publish(t, ch, "", "s", numbered(301, 350)...)
	if r := run(t, from, to, Options{}); !r.Complete() || r.Moved != 50 {
		t.Fatalf("the second run: %+v", r)
	}
	if r := run(t, from, to, Options{}); !r.Complete() || r.Moved != 0 {
		t.Fatalf("the third run: %+v", r)
	}
	conn, err := to.dial("/", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	n := 0
	err = readStream(t.Context(), conn, "s", "first", longWait, func(d *amqp.Delivery) bool {
		n++
		if string(d.Body) != fmt.Sprint(n) || offset(d) != int64(n-1) {
			t.Errorf("message %s at offset %d, want %d", d.Body, offset(d), n)
		}
		return n < 350
	})
	if err != nil || n != 350 {
		t.Errorf("%d messages, error %v", n, err)
	}
	publish(t, open(t, to, "/"), "", "s", numbered(9, 9)...)
	if r := run(t, from, to, Options{}); r.Complete() || r.of(t, "s").State != Failed {
		t.Errorf("a stream with other messages: %+v", r)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	declare(t, ch, "q", nil)
	publish(t, ch, "", "q", numbered(1, 3)...)
	r := run(t, from, to, Options{DryRun: true})
	if q := r.of(t, "q"); q.State != Planned || q.Before != 3 || !r.Complete() {
		t.Errorf("report: %+v", r)
	}
	if got := len(take(t, ch, "q")); got != 3 {
		t.Errorf("the source has %d messages after a dry run, want 3", got)
	}
	if err := to.API.do(t.Context(), "GET", "/queues/%2F/q", nil, nil); !hasStatus(err, http.StatusNotFound) {
		t.Errorf("the target has the queue after a dry run: %v", err)
	}
}

func TestMatchName(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"orders", "orders", true},
		{"orders", "orders2", false},
		{"orders*", "orders.eu", true},
		{"*.dlq", "a/b.dlq", true},
		{"*a*b*", "xaxbx", true},
		{"*a*b*", "xbxax", false},
		{"q?", "q1", true},
		{"q?", "q", false},
		{"*", "", true},
		{"a**", "a", true},
	} {
		if got := matchName(tt.pattern, tt.name); got != tt.want {
			t.Errorf("matchName(%q, %q) = %v, want %v", tt.pattern, tt.name, got, tt.want)
		}
	}
}

// A message of an idempotent producer is in each of its queues once; with its
// number the target would take but one of them.
func TestCopiesOfOneMessageInTwoQueues(t *testing.T) {
	from, to := startBroker(t), startBroker(t)
	ch := open(t, from, "/")
	for _, name := range []string{"a", "b"} {
		declare(t, ch, name, nil)
		if err := ch.QueueBind(name, "", "amq.fanout", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, ch, "amq.fanout", "", amqp.Publishing{Headers: amqp.Table{"x-producer-id": "p", "x-producer-sequence": int64(1), "keep": "me"}})
	if r := run(t, from, to, Options{}); r.Moved != 2 {
		t.Fatalf("report: %+v", r)
	}
	for _, name := range []string{"a", "b"} {
		got := take(t, open(t, to, "/"), name)
		if len(got) != 1 || !reflect.DeepEqual(got[0].Headers, amqp.Table{"keep": "me"}) {
			t.Errorf("queue %s: %v", name, got)
		}
	}
}

func TestPrefetchBySize(t *testing.T) {
	for _, tt := range []struct {
		kind         string
		ready, bytes int64
		asked, want  int
	}{
		{"classic", 0, 0, 0, 100},
		{"classic", 10, 100, 0, 500},
		{"classic", 10, 10 << 20, 0, 32},
		{"classic", 1, 1 << 30, 0, 1},
		{"classic", 10, 100, 7, 7},
		{"classic", 10, 100, 7000, 500},
		{"quorum", 10, 100, 0, 500},
		{"quorum", 10, 100, 50, 50},
	} {
		m := &migration{opts: Options{Prefetch: tt.asked}}
		if got := m.prefetch(&Queue{Type: tt.kind, listed: listing{Ready: tt.ready, Bytes: tt.bytes}}); got != tt.want {
			t.Errorf("%+v: prefetch %d", tt, got)
		}
	}
}

// A broker may have several addresses: by another one it is the same broker.
func TestNoQueueIsMovedIntoItself(t *testing.T) {
	source, other := startBroker(t), startBroker(t)
	declare(t, open(t, source, "/"), "q", nil)
	publish(t, open(t, source, "/"), "", "q", amqp.Publishing{Body: []byte("m")})
	target := Endpoint{AMQP: source.AMQP, API: &API{Base: strings.Replace(source.API.Base, "127.0.0.1", "localhost", 1), User: "guest", Password: "guest"}}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	report, err := Run(ctx, source, target, Options{})
	if err != nil || len(report.Queues) != 1 || report.Queues[0].State != Failed || report.Queues[0].Reason != errOneBroker.Error() {
		t.Errorf("a queue moved into itself: error %v, queues %+v; want it failed: %v", err, report.Queues, errOneBroker)
	}
	report, err = Run(ctx, source, other, Options{})
	if err != nil || !report.Complete() || report.Moved != 1 {
		t.Errorf("to another broker: error %v, report %+v; want 1 message moved", err, report)
	}
}
