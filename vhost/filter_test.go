package vhost

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/dedup"
)

// addID publishes a message whose body is the id, in the header that deduplication
// looks at unless headers say otherwise.
func addID(t *testing.T, p *Publisher, exchange, key string, id any, headers ...any) {
	t.Helper()
	headers = append([]any{"x-deduplication-header", id}, headers...)
	if !add(t, p, newHeld(exchange, key, fmt.Sprint(id), false, headers...), nil) {
		t.Errorf("%v counts as unroutable", id)
	}
}

func TestFilterArguments(t *testing.T) {
	v := newVHost(t)
	for _, tt := range []struct {
		typ  string
		args frames.Table
		text string
	}{
		{"x-message-deduplication", args("x-cache-size", int32(5), "x-cache-ttl", "1000", "x-cache-persistence", "disk"), ""},
		{"x-message-deduplication", nil, "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"},
		{"x-message-deduplication", args("x-cache-size", int32(0)), "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"},
		{"x-message-deduplication", args("x-cache-size", int32(1<<24+1)), "Invalid argument, 'x-cache-size' must be at most 16777216"},
		{"x-message-deduplication", args("x-cache-size", "5", "x-cache-ttl", int32(-1)), "Invalid argument, 'x-cache-ttl' must be an integer greater than 0"},
		{"x-message-deduplication", args("x-cache-size", "5", "x-cache-persistence", "ram"),
			"Invalid argument, 'x-cache-persistence' must be either 'disk' or 'memory'"},
		{"topic", args("x-message-deduplication", true, "x-deduplication-header", ""), "Invalid argument, 'x-deduplication-header' must be the name of a header"},
		{"topic", args("x-message-deduplication", true), ""},
		{"topic", args("x-cache-size", "many"), ""}, // not looked at
	} {
		err := v.DeclareExchange(System, ExchangeDeclare{Name: "x", Type: tt.typ, Durable: true, Arguments: tt.args})
		if tt.text == "" && err != nil {
			t.Errorf("%s %v: %v", tt.typ, tt.args, err)
		}
		if tt.text != "" {
			wantError(t, err, 406, tt.text)
		}
		if err := v.DeleteExchange(System, "x", false); err != nil {
			t.Fatal(err)
		}
	}
	_, err := queueFilter(queue.Spec{Name: "s", VHost: "/", Arguments: &queue.Arguments{Type: queue.Stream, Table: args("x-message-deduplication", true)}})
	wantError(t, err, 406, "invalid arg 'x-message-deduplication' for queue 's' in vhost '/' of queue type rabbit_stream_queue")
}

func TestRedeclareDeduplicatingExchange(t *testing.T) {
	v := newVHost(t)
	d := ExchangeDeclare{Name: "x", Type: "x-message-deduplication", Durable: true, Arguments: args("x-cache-size", int32(5))}
	declareExchange(t, v, d)
	declareExchange(t, v, d)
	if x, _ := v.Exchange("x"); x.Type != "x-message-deduplication" {
		t.Errorf("its type is %q", x.Type)
	}
	d.Type = "fanout"
	wantError(t, v.DeclareExchange(System, d), 406, "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is ''x-message-deduplication''")
	d.Type, d.Durable = "x-message-deduplication", false
	wantError(t, v.DeclareExchange(System, d), 406, "inequivalent arg 'durable' for exchange 'x' in vhost '/': received 'false' but current is 'true'")
	d.Name, d.Durable = "amq.fanout", true
	wantError(t, v.DeclareExchange(System, d), 406,
		"inequivalent arg 'type' for exchange 'amq.fanout' in vhost '/': received 'x-message-deduplication' but current is 'fanout'")
}

func TestExchangeDropsDuplicates(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "x-message-deduplication", Arguments: args("x-cache-size", int32(3))})
	bindQueue(t, v, "q", "x", "whatever")
	p := v.NewPublisher()
	for _, id := range []any{"a", "a", int32(1), int64(1), "1", "a", "b", "a"} { // four ids: the first is forgotten
		addID(t, p, "x", "k", id)
	}
	add(t, p, newHeld("x", "k", "without", false), nil)
	add(t, p, newHeld("x", "k", "without", false), nil)
	p.Flush()
	wantBodies(t, q, "a", "1", "1", "b", "a", "without", "without")
	if info, _ := v.ExchangeInfo("x"); info.Duplicates != 3 {
		t.Errorf("%d duplicates, want 3", info.Duplicates)
	}
}

func TestRolledBackMessageIsNoDuplicate(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q", Arguments: args("x-message-deduplication", true)})
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct", Arguments: args("x-message-deduplication", true)})
	bindQueue(t, v, "q", "x", "k")
	p := v.NewPublisher()
	addID(t, p, "x", "k", "a")
	p.Discard()
	addID(t, p, "x", "k", "a")
	p.Flush()
	wantBodies(t, q, "a")
}

func TestIDsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		q := declareQueue(t, v, QueueDeclare{Name: "q"})
		declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "fanout",
			Arguments: args("x-message-deduplication", true, "x-cache-ttl", int32(1000), "x-deduplication-header", "id")})
		bindQueue(t, v, "q", "x", "")
		p := v.NewPublisher()
		publish := func() {
			add(t, p, newHeld("x", "", "short", false, "id", "a"), nil)
			add(t, p, newHeld("x", "", "long", false, "id", "b", "x-cache-ttl", int32(5000)), nil)
			p.Flush()
		}
		publish()
		time.Sleep(999 * time.Millisecond)
		publish()
		wantBodies(t, q, "short", "long")
		time.Sleep(time.Millisecond)
		publish()
		wantBodies(t, q, "short", "long", "short")
	})
}

func TestQueueDropsDuplicates(t *testing.T) {
	v := newVHost(t)
	q := declareQueue(t, v, QueueDeclare{Name: "q", Arguments: args("x-message-deduplication", true, "x-cache-size", int32(100))})
	other := declareQueue(t, v, QueueDeclare{Name: "other"})
	bindQueue(t, v, "q", "amq.fanout", "")
	bindQueue(t, v, "other", "amq.fanout", "")
	p := v.NewPublisher()
	var owner settled
	r := message.NewReceipt(&owner, 1, 3)
	r.Hold(1)
	addID(t, p, "amq.fanout", "", "a")
	addID(t, p, "", "q", "a")
	for range 2 {
		add(t, p, newHeld("amq.fanout", "", "b", false, "x-deduplication-header", "b"), r)
		p.Flush()
	}
	r.Release()
	wantBodies(t, q, "a", "b")
	wantBodies(t, other, "a", "b", "b")
	if owner.n != 1 {
		t.Errorf("settled %d times, want once", owner.n)
	}
	if info, _ := v.QueueInfo("q"); info.Duplicates != 2 {
		t.Errorf("%d duplicates, want 2", info.Duplicates)
	}
}

func TestIDsOnDiskSurviveARestart(t *testing.T) {
	store := newFakeStore()
	s := open(t, store)
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	for _, where := range []string{"disk", "memory"} {
		declareExchange(t, v, ExchangeDeclare{Name: where, Type: "x-message-deduplication", Durable: true,
			Arguments: args("x-cache-size", int32(2), "x-cache-persistence", where)})
		bindQueue(t, v, "q", where, "")
	}
	p := v.NewPublisher()
	for _, id := range []string{"a", "b", "c"} {
		addID(t, p, "disk", "", id)
		addID(t, p, "memory", "", id)
		p.Flush()
	}
	if got := store.logs[v.exchangeEntry("disk").filter.logID()].len(); got != 2 {
		t.Errorf("the log has %d ids, want 2", got)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	v, _ = open(t, store).Get("/")
	q, _ := v.Queue(System, "q")
	p = v.NewPublisher()
	for _, id := range []string{"c", "b", "a", "c", "b"} { // a pushes b out
		addID(t, p, "disk", "", id)
	}
	addID(t, p, "memory", "", "c")
	p.Flush()
	wantBodies(t, q.(*fakeQueue), "a", "b", "c")
	if err := v.DeleteExchange(System, "disk", false); err != nil {
		t.Fatal(err)
	}
	for _, l := range store.logs {
		if l.len() > 0 {
			t.Errorf("log %d has %d records left", l.id, l.len())
		}
	}
}

func TestFilterIsBounded(t *testing.T) {
	f, err := newFilter(args("x-cache-size", int32(100)), true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		headers := headerFields(newHeld("", "", "", false, "x-deduplication-header", fmt.Sprint(i)))
		if _, duplicate := f.see(headers, 0, waiter{}); duplicate {
			t.Fatalf("id %d is a duplicate", i)
		}
		f.see(headers, 0, waiter{})
	}
	if len(f.list) != 100 || len(f.seen) != 100 || cap(f.list) > 400 {
		t.Errorf("%d ids in a list of %d (capacity %d), want 100", len(f.seen), len(f.list), cap(f.list))
	}
}

func TestQueueThatDeduplicatesHasNoFilterAfterARestart(t *testing.T) {
	store := newFakeStore()
	s := open(t, store)
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "itself", Durable: true, Arguments: args("x-message-deduplication", true)})
	declareQueue(t, v, QueueDeclare{Name: "filtered", Durable: true, Arguments: args("x-message-deduplication", true, "x-cache-size", int32(5))})
	v, _ = open(t, store).Get("/")
	for name, want := range map[string]int{"itself": 2, "filtered": 1} {
		q, _ := v.Queue(System, name)
		p := v.NewPublisher()
		for range 2 {
			addID(t, p, "", name, "a")
			p.Flush()
		}
		if got := len(q.(*fakeQueue).messages()); got != want {
			t.Errorf("queue %s was given %d of two messages with one id, want %d", name, got, want)
		}
	}
}

// A longerLog has had records up to last.
type longerLog struct {
	*fakeLog
	last uint64
}

func (l longerLog) LastID() uint64 { return l.last }

// The youngest ids may have been forgotten, as their messages were refused.
func TestNumbersGoOnBehindForgottenIDs(t *testing.T) {
	for _, tt := range []struct {
		stored     []uint64
		last, next uint64
	}{{[]uint64{1, 2, 3}, 5, 6}, {[]uint64{2, 4}, 4, 5}, {nil, 5, 6}, {nil, 0, 1}} {
		f, err := newFilter(args("x-cache-size", int32(9), "x-cache-persistence", "disk"), true)
		if err != nil {
			t.Fatal(err)
		}
		see := func(id uint64) (number uint64, duplicate bool) {
			return f.see(headerFields(newHeld("", "", "", false, "x-deduplication-header", int64(id))), 0, waiter{})
		}
		l := &fakeLog{id: 1}
		for _, id := range tt.stored {
			tag, value, _ := frames.FindField(headerFields(newHeld("", "", "", false, "id", int64(id))), "id")
			digest := dedup.Digest(tag, value)
			l.records = append(l.records, persistence.Record{ID: id, Key: string(digest[:])})
		}
		if err := f.open(oneLog{newFakeStore(), longerLog{l, tt.last}}, 1); err != nil {
			t.Fatal(err)
		}
		for _, id := range tt.stored {
			if _, duplicate := see(id); !duplicate {
				t.Errorf("%v, last %d: id %d is new", tt.stored, tt.last, id)
			}
		}
		if number, duplicate := see(77); number != tt.next || duplicate {
			t.Errorf("%v, last %d: a new id has the number %d, duplicate %v; want %d", tt.stored, tt.last, number, duplicate, tt.next)
		}
	}
}

// A oneLog opens this log.
type oneLog struct {
	persistence.Store
	log persistence.Log
}

func (s oneLog) OpenLog(persistence.LogID) (persistence.Log, error) { return s.log, nil }
