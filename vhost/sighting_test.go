package vhost

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A pickyQueue refuses what comes while it is full.
type pickyQueue struct {
	slowQueue
	full bool
}

func (q *pickyQueue) Enqueue(batch []queue.Entry) queue.Writes {
	if !q.full {
		return q.slowQueue.Enqueue(batch)
	}
	var last *message.Receipt
	for _, e := range batch {
		if e.Receipt != nil {
			e.Receipt.Refuse(e.Seq)
		}
	}
	for _, e := range batch {
		if e.Receipt != nil && e.Receipt != last {
			e.Receipt.Release()
		}
		last = e.Receipt
	}
	return 0
}

func pickyFactory(env queue.Env, spec queue.Spec) (queue.Queue, error) {
	q, err := fakeFactory(env, spec)
	return &pickyQueue{slowQueue: slowQueue{fakeQueue: q.(*fakeQueue)}}, err
}

// openPicky returns a vhost with the picky queue q, bound to the exchange x. Both
// have these arguments.
func openPicky(t *testing.T, onExchange, onQueue []any) (*VHost, *pickyQueue) {
	t.Helper()
	s, err := Open(Config{Store: newFakeStore(), Factories: map[string]queue.Factory{queue.Classic: pickyFactory}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("/")
	q, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true, Arguments: args(onQueue...)})
	if err != nil {
		t.Fatal(err)
	}
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "fanout", Durable: true, Arguments: args(onExchange...)})
	bindQueue(t, v, "q", "x", "")
	return v, q.(*pickyQueue)
}

// places are where a filter may be, and the exchange to publish to then.
var filterPlaces = []struct {
	name                string
	onExchange, onQueue []any
	to                  string
}{
	{"exchange", []any{"x-message-deduplication", true, "x-cache-persistence", "disk"}, nil, "x"},
	{"behind an exchange", []any{"x-message-deduplication", true}, nil, "amq.fanout"},
	{"queue", nil, []any{"x-message-deduplication", true, "x-cache-size", int32(9)}, "x"},
	{"exchange and queue", []any{"x-message-deduplication", true}, []any{"x-message-deduplication", true, "x-cache-size", int32(9)}, "x"},
}

// A fate is what became of a batch.
type fate struct {
	n       int
	refused []uint64
	failed  bool
}

func (o *fate) Settled(r *message.Receipt) {
	o.n++
	o.refused, o.failed = r.Outcome()
	slices.Sort(o.refused)
	o.refused = slices.Compact(o.refused)
}

// publishID publishes messages with one id as one batch with a receipt of its own.
func publishID(t *testing.T, v *VHost, to, id string, n int, headers ...any) *fate {
	t.Helper()
	o := &fate{}
	r := message.NewReceipt(o, 1, uint64(n))
	r.Hold(1)
	p := v.NewPublisher()
	for i := range n {
		m := newHeld(to, "", id, true, append(headers, "x-deduplication-header", id)...)
		if !p.Add(route(t, p, to, ""), m, r, uint64(i)+1) {
			t.Errorf("%s is not routed", id)
		}
	}
	p.Flush()
	r.Release()
	return o
}

func TestRefusedMessageIsNoDuplicate(t *testing.T) {
	for _, tt := range filterPlaces {
		t.Run(tt.name, func(t *testing.T) {
			v, q := openPicky(t, tt.onExchange, tt.onQueue)
			bindExchange(t, v, "x", "amq.fanout", "")
			for _, producer := range [][]any{nil, {"x-producer-id", "p", "x-producer-sequence", int64(7)}} {
				q.full = true
				if o := publishID(t, v, tt.to, "a", 1, producer...); o.n != 1 || !slices.Equal(o.refused, []uint64{1}) {
					t.Fatalf("the first was settled %d times, refused %v", o.n, o.refused)
				}
				if o := publishID(t, v, tt.to, "a", 2); o.n != 1 || !slices.Equal(o.refused, []uint64{1, 2}) {
					t.Errorf("two in one batch were settled %d times, refused %v; want both", o.n, o.refused)
				}
				if f := v.exchangeEntry("x").filter; f != nil && f.log != nil && f.log.(*fakeLog).len() > 0 {
					t.Error("the id of a refused message is stored")
				}
			}
			q.full = false
			o := publishID(t, v, tt.to, "a", 1, "x-producer-id", "p", "x-producer-sequence", int64(7))
			q.release()
			if o.n != 1 || len(o.refused) != 0 {
				t.Errorf("the last was settled %d times, refused %v", o.n, o.refused)
			}
			wantBodies(t, q.fakeQueue, "a")
		})
	}
}

func TestDuplicateIsConfirmedWithTheFirst(t *testing.T) {
	for _, tt := range filterPlaces {
		for _, fails := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				v, q := openPicky(t, tt.onExchange, tt.onQueue)
				bindExchange(t, v, "x", "amq.fanout", "")
				first := publishID(t, v, tt.to, "a", 1)
				again := publishID(t, v, tt.to, "a", 1)
				if first.n+again.n != 0 {
					t.Fatal("confirmed before it is stored")
				}
				if fails {
					q.held[0].Fail()
				}
				q.release()
				if first.n != 1 || again.n != 1 || first.failed != fails || again.failed != fails {
					t.Errorf("the first is %+v, the other one %+v; want failed %v", *first, *again, fails)
				}
				last := publishID(t, v, tt.to, "a", 1)
				q.release()
				if want := 1; last.n != 1 || !fails && len(q.messages()) != want || fails && len(q.messages()) != 2 {
					t.Errorf("the last is %+v, the queue has %d", *last, len(q.messages()))
				}
			})
		}
	}
}

func TestUnroutableMessageIsNoDuplicate(t *testing.T) {
	v := newVHost(t)
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "x-message-deduplication", Arguments: args("x-cache-size", int32(3))})
	bindExchange(t, v, "x", "amq.fanout", "")
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	for _, to := range []string{"x", "amq.fanout"} {
		p := v.NewPublisher()
		m := newHeld(to, "", to, false, "x-deduplication-header", to)
		if add(t, p, m, nil) {
			t.Error("there is no queue")
		}
		p.Flush()
	}
	bindQueue(t, v, "q", "x", "")
	p := v.NewPublisher()
	addID(t, p, "x", "", "x")
	addID(t, p, "amq.fanout", "", "amq.fanout")
	p.Flush()
	wantBodies(t, q, "x", "amq.fanout")
}

func TestRefusedDeadLetterIsNoDuplicate(t *testing.T) {
	v, q := openPicky(t, []any{"x-message-deduplication", true}, nil)
	work, err := v.DeclareQueue(System, QueueDeclare{Name: "work"})
	if err != nil {
		t.Fatal(err)
	}
	dead := []*message.Message{newHeld("", "work", "a", true, "x-deduplication-header", "a")}
	post := func(to string) *fate {
		o := &fate{}
		r := message.NewReceipt(o, 1, 1)
		r.Hold(1)
		v.deadLetter(work, queue.Target{Exchange: to}, queue.ReasonExpired, dead, r)
		r.Release()
		q.release()
		return o
	}
	q.full = true
	if o := post("x"); !slices.Equal(o.refused, []uint64{1}) {
		t.Errorf("a full queue: refused %v, want 1", o.refused)
	}
	q.full = false
	declareExchange(t, v, ExchangeDeclare{Name: "none", Type: "fanout", Durable: true, Arguments: args("x-message-deduplication", true)})
	for range 2 {
		if o := post("none"); !slices.Equal(o.refused, []uint64{1}) {
			t.Errorf("no queue: refused %v, want 1", o.refused)
		}
	}
	if o := post("x"); o.n != 1 || len(o.refused) != 0 || len(q.messages()) != 1 {
		t.Errorf("in the end it was settled %d times, refused %v; the queue has %d", o.n, o.refused, len(q.messages()))
	}
}

// A message may be new where it is published and a duplicate behind.
func TestDuplicateBehindWaitsForNothingOfItsOwn(t *testing.T) {
	v, q := openPicky(t, []any{"x-message-deduplication", true, "x-deduplication-header", "inner"}, nil)
	declareExchange(t, v, ExchangeDeclare{Name: "front", Type: "x-message-deduplication", Arguments: args("x-cache-size", int32(9))})
	bindExchange(t, v, "x", "front", "")
	o := &fate{}
	r := message.NewReceipt(o, 1, 2)
	r.Hold(1)
	p := v.NewPublisher()
	for i, id := range []string{"a", "b"} {
		m := newHeld("front", "", id, true, "x-deduplication-header", id, "inner", "same")
		p.Add(route(t, p, "front", ""), m, r, uint64(i)+1)
	}
	p.Flush()
	r.Release()
	if o.n != 0 {
		t.Error("confirmed before it is stored")
	}
	q.release()
	if o.n != 1 || len(o.refused) != 0 || len(q.messages()) != 1 {
		t.Errorf("settled %d times, refused %v; the queue has %d", o.n, o.refused, len(q.messages()))
	}
}

// A message that only the queue takes note of and one that its exchange does, too,
// may have one receipt.
func TestQueueWaitsForNothingOfItsExchanges(t *testing.T) {
	v, q := openPicky(t, []any{"x-message-deduplication", true, "x-deduplication-header", "inner"},
		[]any{"x-message-deduplication", true, "x-cache-size", int32(9)})
	o := &fate{}
	r := message.NewReceipt(o, 1, 2)
	r.Hold(1)
	p := v.NewPublisher()
	p.Add(route(t, p, "", "q"), newHeld("", "q", "first", true, "x-deduplication-header", "k"), r, 1)
	p.Add(route(t, p, "x", ""), newHeld("x", "", "second", true, "x-deduplication-header", "k", "inner", "z"), r, 2)
	p.Flush()
	r.Release()
	q.release()
	if o.n != 1 || len(o.refused) != 0 || len(q.messages()) != 1 {
		t.Errorf("settled %d times, refused %v; the queue has %d", o.n, o.refused, len(q.messages()))
	}
	for _, f := range []*filter{v.exchangeEntry("x").filter, v.queueEntry("q").filter} {
		if n := len(f.unsafe); n != 0 {
			t.Errorf("a filter takes %d ids for unsafe still", n)
		}
	}
}

// A transaction may be open for as long as its client likes.
func TestNobodyWaitsForAnOpenTransaction(t *testing.T) {
	for _, headers := range [][]any{{"x-deduplication-header", "k"}, {"x-producer-id", "p", "x-producer-sequence", int64(7)}} {
		v, q := openPicky(t, []any{"x-message-deduplication", true}, nil)
		publish := func(p *Publisher, o *fate) *message.Receipt {
			r := message.NewReceipt(o, 1, 1)
			r.Hold(1)
			p.Add(route(t, p, "x", ""), newHeld("x", "", "m", true, headers...), r, 1)
			return r
		}
		for _, commits := range []bool{false, true} {
			tx, first := v.NewPublisher(), &fate{}
			tx.Transactional = true
			r := publish(tx, first)
			publish(tx, first).Release() // of its own
			for _, transactional := range []bool{false, true} {
				p, o := v.NewPublisher(), &fate{}
				p.Transactional = transactional
				r := publish(p, o)
				p.Flush()
				r.Release()
				if o.n != 1 || !slices.Equal(o.refused, []uint64{1}) {
					t.Errorf("%v: while it is open another one is settled %d times, refused %v; want once, refused", headers[0], o.n, o.refused)
				}
			}
			if !commits {
				tx.Discard()
				continue
			}
			tx.Flush()
			r.Release()
			p, again := v.NewPublisher(), &fate{}
			r = publish(p, again)
			p.Flush()
			r.Release()
			if first.n+again.n != 0 {
				t.Errorf("%v: confirmed before it is stored", headers[0])
			}
			q.release()
			if first.n != 2 || again.n != 1 || len(again.refused) != 0 || len(q.messages()) != 1 {
				t.Errorf("%v: committed it is %+v, another one %+v; the queue has %d", headers[0], *first, *again, len(q.messages()))
			}
		}
	}
}
