package vhost

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// newHeld returns a message with headers, to any exchange.
func newHeld(exchange, key, body string, persistent bool, headers ...any) *message.Message {
	block := header(frames.Properties{Flags: frames.FlagContentType, ContentType: []byte("text/plain")}, args(headers...))
	return &message.Message{
		Envelope: &message.Envelope{Exchange: exchange, RoutingKey: key, TTL: message.NoTTL, Persistent: persistent, Header: block},
		Body:     []byte(body), Time: time.Now().UnixMilli(),
	}
}

func wantBodies(t testing.TB, q *fakeQueue, want ...string) {
	t.Helper()
	if got := q.bodies(); !slices.Equal(got, want) {
		t.Errorf("queue has %q, want %q", got, want)
	}
}

func TestDeliveryDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		q := declareQueue(t, v, QueueDeclare{Name: "q"})
		declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "topic"})
		bindQueue(t, v, "q", "x", "a.#")
		p := v.NewPublisher()
		for _, m := range []*message.Message{
			newHeld("x", "a.b", "topic", false, "n", int32(1), "x-delivery-delay", int32(2000)),
			newHeld("", "q", "default", false, "x-delivery-delay", "1000"),
			newHeld("", "q", "zero", false, "x-delivery-delay", int64(0)),
			newHeld("", "q", "negative", false, "x-delivery-delay", int64(-1000)),
			newHeld("", "q", "no number", false, "x-delivery-delay", "soon"),
			newHeld("", "q", "no integer", false, "x-delivery-delay", 1000.0),
			newHeld("x", "late", "bound later", false, "x-delivery-delay", int8(50)),
			newHeld("x", "none", "unroutable", false, "x-delivery-delay", int8(50)),
		} {
			if !add(t, p, m, nil) {
				t.Errorf("%q is not routed", m.Body)
			}
		}
		p.Flush()
		bindQueue(t, v, "q", "x", "late")
		wantBodies(t, q, "zero", "negative", "no number", "no integer")
		if got := v.held.len(); got != 4 {
			t.Errorf("%d messages are held, want 4", got)
		}
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		wantBodies(t, q, "zero", "negative", "no number", "no integer", "bound later")
		time.Sleep(1001 * time.Millisecond)
		synctest.Wait()
		wantBodies(t, q, "zero", "negative", "no number", "no integer", "bound later", "default", "topic")
		last := q.messages()[6]
		if got, _ := headersOf(t, last).Lookup("x-delivery-delay"); got != int32(-2000) {
			t.Errorf("x-delivery-delay is %v after the delay, want -2000", got)
		}
		if last.Exchange != "x" || last.RoutingKey != "a.b" {
			t.Errorf("it is of exchange %q with key %q", last.Exchange, last.RoutingKey)
		}
	})
}

func TestDeliveryDelayThenDelayedExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		q := declareDelayed(t, v, false)
		p := v.NewPublisher()
		add(t, p, newHeld("d", "k", "m", true, "x-delivery-delay", int32(1000), "x-delay", int32(500)), nil)
		p.Flush()
		time.Sleep(1499 * time.Millisecond)
		synctest.Wait()
		wantBodies(t, q)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		wantBodies(t, q, "m")
	})
}

func TestHeldMessagesAreStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := open(t, store)
		v, _ := s.Get("/")
		declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
		log := store.logs[v.held.logID()]
		log.manual = true
		p := v.NewPublisher()
		var owner settled
		r := message.NewReceipt(&owner, 1, 1)
		r.Hold(1)
		add(t, p, newHeld("", "q", "stored", true, "x-delivery-delay", int32(5000)), r)
		p.Flush()
		r.Release()
		if owner.n != 0 {
			t.Error("confirmed before it was stored")
		}
		log.commit()
		if owner.n != 1 {
			t.Error("not confirmed when it was stored")
		}
		add(t, p, newHeld("", "q", "transient", false, "x-delivery-delay", int32(5000)), nil)
		p.Flush()
		time.Sleep(2 * time.Second)
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}

		again := open(t, store)
		v, _ = again.Get("/")
		q, _ := v.Queue(System, "q")
		time.Sleep(3*time.Second - time.Millisecond)
		synctest.Wait()
		wantBodies(t, q.(*fakeQueue))
		time.Sleep(time.Millisecond)
		synctest.Wait()
		wantBodies(t, q.(*fakeQueue), "stored")
		if got := log.len(); got != 0 {
			t.Errorf("%d records are left", got)
		}
	})
}

func TestVHostOfAnOlderBrokerGetsItsLogs(t *testing.T) {
	store := newFakeStore()
	id := definitionID{persistence.VHosts, definitionKey("a\x00b")}
	store.values[id] = []byte(`{"v":1,"name":"a\u0000b","id":7}`)
	v, ok := open(t, store).Get("a\x00b")
	if !ok || v.held.logID() == 0 {
		t.Fatalf("no vhost, or no log of held messages")
	}
	again, _ := open(t, store).Get("a\x00b")
	if got, want := again.held.logID(), v.held.logID(); got != want {
		t.Errorf("log of held messages is %d after a restart, was %d", got, want)
	}
}

func TestAlternateExchangeDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		q := declareDelayed(t, v, false)
		declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct", Arguments: args("alternate-exchange", "d")})
		p := v.NewPublisher()
		for i, delay := range []int32{1000, 0, 500} {
			if !add(t, p, newHeld("x", "k", fmt.Sprint(i), true, "x-delay", delay), nil) {
				t.Errorf("message %d is not routed", i)
			}
		}
		add(t, p, newMessage("x", "k"), nil) // without headers
		p.Flush()
		wantBodies(t, q, "1", "")
		if got := delayedIn(v, "d"); got != 2 {
			t.Errorf("%d messages wait in the alternate exchange, want 2", got)
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		wantBodies(t, q, "1", "", "2")
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		wantBodies(t, q, "1", "", "2", "0")
		if got := q.messages()[3].Exchange; got != "x" {
			t.Errorf("the message is of exchange %q, want x", got)
		}
	})
}

// listed is a page of delayed messages, each "exchange key size".
func listed(t *testing.T, v *VHost, exchange string, offset, limit int) (page []string, ids []string, total int) {
	t.Helper()
	list, total, err := v.DelayedMessages(System, exchange, offset, limit)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		page = append(page, fmt.Sprintf("%s %s %d +%d", m.Exchange, m.RoutingKey, m.Size, m.Due-time.Now().UnixMilli()))
		ids = append(ids, m.ID)
	}
	return page, ids, total
}

func TestListAndCancelDelayedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := open(t, store)
		v, _ := s.Get("/")
		declareDelayed(t, v, true)
		p := v.NewPublisher()
		add(t, p, newHeld("d", "k", "333", true, "x-delay", int32(3000)), nil)
		add(t, p, newHeld("d", "k", "1", true, "x-delay", int32(1000)), nil)
		add(t, p, newHeld("d", "h", "22", true, "x-delivery-delay", int32(2000)), nil)
		add(t, p, newHeld("", "q", "other", true, "x-delivery-delay", int32(2000)), nil)
		p.Flush()
		own, held := store.logs[v.exchangeEntry("d").delayed.logID()], store.logs[v.held.logID()]

		all := []string{"d k 1 +1000", "d h 2 +2000", "d k 3 +3000"}
		page, ids, total := listed(t, v, "d", 0, 10)
		if !slices.Equal(page, all) || total != 3 {
			t.Fatalf("listed %q of %d, want %q", page, total, all)
		}
		if page, _, total := listed(t, v, "d", 1, 1); !slices.Equal(page, all[1:2]) || total != 3 {
			t.Errorf("second page is %q of %d", page, total)
		}
		if page, _, total := listed(t, v, "d", 5, 1); len(page) != 0 || total != 3 {
			t.Errorf("beyond the end is %q of %d", page, total)
		}
		v.held.waiting[0].msg, v.held.waiting[1].msg = nil, nil // as if memory had been short
		if page, _, _ := listed(t, v, "", 0, 10); !slices.Equal(page, []string{" q 5 +2000"}) {
			t.Errorf("the default exchange has %q", page)
		}

		wantError(t, v.CancelDelayed(System, "", ids[1]), 404,
			"no delayed message 'held-1' in exchange '' in vhost '/': it was routed or cancelled, or never was there")
		wantError(t, v.CancelDelayed(System, "none", ids[1]), 404, "no exchange 'none' in vhost '/'")
		for _, id := range ids[:2] {
			if err := v.CancelDelayed(System, "d", id); err != nil {
				t.Errorf("cancel %s: %v", id, err)
			}
			if v.CancelDelayed(System, "d", id) == nil {
				t.Errorf("%s was cancelled twice", id)
			}
		}
		if own.len() != 1 || held.len() != 1 {
			t.Errorf("logs have %d and %d records, want 1 each", own.len(), held.len())
		}
		if n, err := v.CancelAllDelayed(System, "d"); n != 1 || err != nil {
			t.Errorf("cancelled %d, error %v; want the last one", n, err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		q, _ := v.Queue(System, "q")
		wantBodies(t, q.(*fakeQueue), "other")
		for _, tt := range []struct {
			refused            string
			mayList, mayCancel bool
		}{{"write exchange d", true, false}, {"read exchange d", false, false}, {"configure exchange d", true, true}} {
			by := &fakeActor{refuse: map[string]bool{tt.refused: true}}
			if _, _, err := v.DelayedMessages(by, "d", 0, 1); (err == nil) != tt.mayList {
				t.Errorf("list without %q: %v", tt.refused, err)
			}
			if _, err := v.DelayedMessage(by, "d", "7"); strings.Contains(err.Error(), "no delayed message") != tt.mayList {
				t.Errorf("show without %q: %v", tt.refused, err)
			}
			if err := v.CancelDelayed(by, "d", "7"); strings.Contains(err.Error(), "no delayed message") != tt.mayCancel {
				t.Errorf("cancel one without %q: %v", tt.refused, err)
			}
			if _, err := v.CancelAllDelayed(by, "d"); (err == nil) != tt.mayCancel {
				t.Errorf("cancel all without %q: %v", tt.refused, err)
			}
		}
	})
}

func TestMarks(t *testing.T) {
	values := []any{true, int8(-1), uint8(200), int16(-1), uint16(65535), int32(-1), uint32(1 << 31), int64(-1), float32(1), 1.5, "text", "",
		[]byte{1, 2}, nil, frames.Timestamp(1), frames.Decimal{Scale: 1, Value: 5}, args("x-producer-id", "inside"), []any{"x-delivery-delay", int8(1)}}
	for _, v := range values {
		for _, tt := range []struct {
			names []string
			want  int
		}{
			{[]string{"a", "x-producer", "x-delivery-delay2"}, 0},
			{[]string{"a", "x-producer-id", "b"}, markProducer},
			{[]string{"a", "b", "x-delivery-delay"}, markDelay},
			{[]string{"x-delivery-delay", "", "x-producer-id"}, markDelay | markProducer},
		} {
			var table frames.Table
			for _, name := range tt.names {
				table = append(table, frames.Field{Name: name, Value: v})
			}
			if got := marksOf(frames.AppendTable(nil, table)[4:]); got != tt.want {
				t.Errorf("marks of %q with values %T are %b, want %b", tt.names, v, got, tt.want)
			}
		}
	}
	if got := marksOf(nil); got != 0 {
		t.Errorf("marks of no headers are %b", got)
	}
}

func BenchmarkPublishWithHeaders(b *testing.B) {
	m := newHeld("amq.direct", "k", "m", false, "trace-id", "0123456789abcdef", "attempt", int32(1), "tenant", "acme")
	benchmarkPublishOf(b, m)
}

func BenchmarkListDelayed(b *testing.B) {
	v := newVHost(b)
	for i := range 1_000_000 {
		v.held.push(delayedMessage{due: int64(i*7919%1_000_003) + 1<<50, id: uint64(i) + 1, of: v.held.handle("x")})
	}
	declareExchange(b, v, ExchangeDeclare{Name: "x", Type: "direct"})
	for b.Loop() {
		if _, total, err := v.DelayedMessages(System, "x", 0, 100); total != 1_000_000 || err != nil {
			b.Fatal(total, err)
		}
	}
}
