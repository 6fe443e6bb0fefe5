package vhost

import (
	"bytes"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// header encodes properties.
func header(p frames.Properties, t frames.Table) []byte {
	if t != nil {
		p.SetTable(t)
	}
	return p.Append(nil)
}

func headersOf(t testing.TB, m *message.Message) frames.Table {
	t.Helper()
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		t.Fatal(err)
	}
	h, err := p.Table()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestDeadLetterBytes(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	block := header(frames.Properties{
		Flags:       frames.FlagContentType | frames.FlagDeliveryMode | frames.FlagPriority | frames.FlagExpiration | frames.FlagMessageID,
		ContentType: []byte("text/plain"), DeliveryMode: 2, Priority: 3, Expiration: []byte("500"), MessageID: []byte("id"),
	}, args("z", "last", "x-death", "a client's own", "CC", []any{"b"}, "a", int32(1)))
	m := &message.Message{
		Envelope: &message.Envelope{Exchange: "orders", RoutingKey: "k", Priority: 3, Persistent: true, TTL: 500, Mandatory: true, Header: block},
		Body:     []byte("body"), More: &message.More{CC: []string{"b"}, BCC: []string{"secret"}},
	}
	before := slices.Clone(m.Header)
	d := deadLettered(m, "work", queue.Target{Exchange: "dlx"}, queue.ReasonExpired, now)
	entry := args("original-expiration", "500", "count", int64(1), "reason", "expired", "queue", "work",
		"time", frames.Timestamp(1_700_000_000), "exchange", "orders", "routing-keys", []any{"k", "b"})
	want := header(frames.Properties{
		Flags:       frames.FlagContentType | frames.FlagDeliveryMode | frames.FlagPriority | frames.FlagMessageID,
		ContentType: []byte("text/plain"), DeliveryMode: 2, Priority: 3, MessageID: []byte("id"),
	}, args("CC", []any{"b"}, "a", int32(1), "x-death", []any{entry},
		"x-first-death-exchange", "orders", "x-first-death-queue", "work", "x-first-death-reason", "expired",
		"x-last-death-exchange", "orders", "x-last-death-queue", "work", "x-last-death-reason", "expired", "z", "last"))
	if !bytes.Equal(d.Header, want) {
		t.Errorf("header is\n%q\nwant\n%q", d.Header, want)
	}
	if !bytes.Equal(m.Header, before) {
		t.Error("the dead message's own header has changed")
	}
	if &d.Body[0] == &m.Body[0] {
		t.Error("the dead letter keeps the memory that the dead message came with")
	}
	if d.Exchange != "dlx" || d.RoutingKey != "k" || string(d.Body) != "body" || d.TTL != message.NoTTL || d.Time != now.UnixMilli() ||
		d.Priority != 3 || !d.Persistent || d.Mandatory {
		t.Errorf("dead letter is %+v", d)
	}
	if !slices.Equal(d.More.CC, []string{"b"}) || !slices.Equal(d.More.BCC, []string{"secret"}) {
		t.Errorf("further keys are %q and %q", d.More.CC, d.More.BCC)
	}
}

func TestDeadLetterKeyReplacesAllKeys(t *testing.T) {
	m := &message.Message{
		Envelope: &message.Envelope{Exchange: "x", RoutingKey: "a", Header: header(frames.Properties{}, args("CC", []any{"b"}))},
		More:     &message.More{CC: []string{"b"}, BCC: []string{"c"}},
	}
	d := deadLettered(m, "q", queue.Target{Exchange: "dlx", Key: "new", HasKey: true}, queue.ReasonRejected, time.Unix(1, 0))
	if d.RoutingKey != "new" || len(d.More.CC)+len(d.More.BCC) != 0 {
		t.Errorf("keys are %q, %q, %q; want new alone", d.RoutingKey, d.More.CC, d.More.BCC)
	}
	h := headersOf(t, d)
	if cc, _ := h.Lookup("CC"); !slices.Equal(cc.([]any), []any{"b"}) {
		t.Errorf("CC header is %v, want [b]", cc)
	}
	if keys := d.More.Deaths[0].Keys; !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("x-death routing-keys are %q, want a and b", keys)
	}
}

func TestDeathHistory(t *testing.T) {
	die := func(m *message.Message, from string, reason queue.Reason, sec int64) *message.Message {
		return deadLettered(m, from, queue.Target{Exchange: "dlx-" + from}, reason, time.Unix(sec, 0))
	}
	m := &message.Message{Envelope: &message.Envelope{Exchange: "start", RoutingKey: "k", Header: header(frames.Properties{}, nil)}}
	m = die(m, "a", queue.ReasonExpired, 10)
	m = die(m, "b", queue.ReasonRejected, 20)
	m = die(m, "a", queue.ReasonExpired, 30)
	want := []message.Death{
		{Queue: "a", Reason: "expired", Exchange: "start", Keys: []string{"k"}, Count: 2, Time: 10},
		{Queue: "b", Reason: "rejected", Exchange: "dlx-a", Keys: []string{"k"}, Count: 1, Time: 20},
	}
	if !slices.EqualFunc(m.More.Deaths, want, sameDeath) {
		t.Errorf("history is %+v\nwant %+v", m.More.Deaths, want)
	}
	if x, _ := headersOf(t, m).Lookup("x-last-death-exchange"); x != "dlx-b" {
		t.Errorf("x-last-death-exchange is %v, want dlx-b, through which it came this time", x)
	}
	m = die(m, "a", queue.ReasonMaxlen, 40)
	h := headersOf(t, m)
	for name, want := range map[string]string{
		"x-first-death-queue": "a", "x-first-death-reason": "expired", "x-first-death-exchange": "start",
		"x-last-death-queue": "a", "x-last-death-reason": "maxlen", "x-last-death-exchange": "dlx-a",
	} {
		if got, _ := h.Lookup(name); got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
	if list, _ := h.Lookup("x-death"); len(list.([]any)) != 3 {
		t.Errorf("x-death has %d entries, want 3", len(list.([]any)))
	}
}

func sameDeath(a, b message.Death) bool {
	return a.Queue == b.Queue && a.Reason == b.Reason && a.Exchange == b.Exchange && a.Count == b.Count && a.Time == b.Time &&
		a.Expiration == b.Expiration && slices.Equal(a.Keys, b.Keys)
}

func TestDeathCycles(t *testing.T) {
	death := func(q, reason string) message.Death { return message.Death{Queue: q, Reason: reason} }
	for _, tt := range []struct {
		name   string
		deaths []message.Death // newest first
		want   bool
	}{
		{"never there", []message.Death{death("a", "expired")}, false},
		{"was there", []message.Death{death("a", "expired"), death("q", "expired")}, true},
		{"rejected since", []message.Death{death("a", "rejected"), death("q", "expired")}, false},
		{"rejected there", []message.Death{death("a", "expired"), death("q", "rejected")}, false},
		{"rejected before", []message.Death{death("q", "maxlen"), death("a", "rejected")}, true},
	} {
		if got := closesCycle(tt.deaths, "q"); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// die lets messages of a queue die as the queue itself would.
func (q *fakeQueue) die(to queue.Target, reason queue.Reason) {
	dead := q.messages()
	q.Purge()
	q.env.DeadLetter(q, to, reason, dead, nil)
}

func TestDeadLettersKeepTheirOrder(t *testing.T) {
	v := newVHost(t)
	work := declareQueue(t, v, QueueDeclare{Name: "work"})
	dead := declareQueue(t, v, QueueDeclare{Name: "dead"})
	declareExchange(t, v, ExchangeDeclare{Name: "dlx", Type: "fanout", Internal: true})
	bindQueue(t, v, "dead", "dlx", "")
	for _, body := range []string{"a", "b", "c"} {
		publish(t, v, "", "work", body)
	}
	work.die(queue.Target{Exchange: "dlx"}, queue.ReasonRejected)
	if got, want := dead.bodies(), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("dead letters are %q, want %q", got, want)
	}
	if dead.batches != 1 {
		t.Errorf("they came in %d batches, want 1", dead.batches)
	}
	if m := dead.messages()[0]; m.Exchange != "dlx" || m.RoutingKey != "work" {
		t.Errorf("dead letter is of exchange %q with key %q", m.Exchange, m.RoutingKey)
	}
}

func TestDeadLetterTargets(t *testing.T) {
	v := newVHost(t)
	work := declareQueue(t, v, QueueDeclare{Name: "work"})
	retry := declareQueue(t, v, QueueDeclare{Name: "retry"})

	publish(t, v, "", "work", "missing exchange: dropped")
	work.die(queue.Target{Exchange: "none"}, queue.ReasonExpired)

	publish(t, v, "", "work", "default exchange")
	work.die(queue.Target{Key: "retry", HasKey: true}, queue.ReasonExpired)
	if got := retry.bodies(); !slices.Equal(got, []string{"default exchange"}) {
		t.Fatalf("retry has %q", got)
	}

	retry.die(queue.Target{Key: "work", HasKey: true}, queue.ReasonExpired)
	if got := work.bodies(); len(got) != 0 {
		t.Errorf("work has %q, want none: nobody rejected it", got)
	}

	publish(t, v, "", "work", "rejected")
	work.die(queue.Target{Key: "retry", HasKey: true}, queue.ReasonRejected)
	retry.die(queue.Target{Key: "work", HasKey: true}, queue.ReasonExpired)
	if got := work.bodies(); !slices.Equal(got, []string{"rejected"}) {
		t.Errorf("work has %q, want the rejected message back", got)
	}
}

func TestDeadLettersWaitForRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		work, dead := declareQueue(t, v, QueueDeclare{Name: "work"}), declareQueue(t, v, QueueDeclare{Name: "dead"})
		v.set.recovered = make(chan struct{})
		publish(t, v, "", "work", "m")
		done := make(chan struct{})
		go func() {
			work.die(queue.Target{Key: "dead", HasKey: true}, queue.ReasonExpired)
			close(done)
		}()
		synctest.Wait()
		if len(dead.messages()) != 0 {
			t.Error("dead-lettered before the bindings are back")
		}
		close(v.set.recovered)
		<-done
		if len(dead.messages()) != 1 {
			t.Error("not dead-lettered afterwards")
		}
	})
}

func BenchmarkDeadLetter(b *testing.B) {
	v := newBenchVHost(b, 1)
	from, _ := v.Queue(System, "a")
	m := &message.Message{Envelope: &message.Envelope{Exchange: "x", RoutingKey: "k", Header: header(frames.Properties{
		Flags: frames.FlagDeliveryMode, DeliveryMode: 2}, args("a", "b"))}, Body: []byte("body")}
	dead := []*message.Message{m}
	b.ReportAllocs()
	for b.Loop() {
		v.deadLetter(from, queue.Target{Exchange: "amq.direct", Key: "k", HasKey: true}, queue.ReasonRejected, dead, nil)
	}
}
