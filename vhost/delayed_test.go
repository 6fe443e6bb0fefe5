package vhost

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// newDelayed returns a message for exchange d with an x-delay header.
func newDelayed(body string, delay any, persistent bool) *message.Message {
	block := header(frames.Properties{}, args("a", "x", "x-delay", delay))
	return &message.Message{
		Envelope: &message.Envelope{Exchange: "d", RoutingKey: "k", TTL: message.NoTTL, Persistent: persistent, Header: block},
		Body:     []byte(body), Time: time.Now().UnixMilli(),
	}
}

// declareDelayed makes exchange d, of type x-delayed-message, and queue q bound to it.
func declareDelayed(t testing.TB, v *VHost, durable bool) *fakeQueue {
	t.Helper()
	declareExchange(t, v, ExchangeDeclare{Name: "d", Type: "x-delayed-message", Durable: durable, Arguments: args("x-delayed-type", "direct")})
	q := declareQueue(t, v, QueueDeclare{Name: "q", Durable: durable})
	bindQueue(t, v, "q", "d", "k")
	return q
}

func add(t testing.TB, p *Publisher, m *message.Message, r *message.Receipt) bool {
	t.Helper()
	return p.Add(route(t, p, m.Exchange, m.RoutingKey), m, r, 1)
}

// delayedIn is how many messages wait in an exchange for their time.
func delayedIn(v *VHost, exchange string) int { return v.exchangeEntry(exchange).delayed.len() }

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		q := declareDelayed(t, v, false)
		p := v.NewPublisher()
		add(t, p, newDelayed("third", int32(3000), true), nil)
		add(t, p, newDelayed("first", int64(1000), true), nil)
		add(t, p, newDelayed("second", "1000", true), nil)
		add(t, p, newDelayed("now", int32(0), true), nil)
		p.Flush()
		if got := delayedIn(v, "d"); got != 3 {
			t.Errorf("%d messages wait, want 3", got)
		}
		wantBodies := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if got := q.bodies(); !slices.Equal(got, want) {
				t.Errorf("queue has %q, want %q", got, want)
			}
		}
		wantBodies("now")
		time.Sleep(999 * time.Millisecond)
		wantBodies("now")
		time.Sleep(time.Millisecond)
		wantBodies("now", "first", "second")
		time.Sleep(2 * time.Second)
		wantBodies("now", "first", "second", "third")
		for i, want := range []any{int32(0), int64(-1000), "-1000", int32(-3000)} {
			m := q.messages()[i]
			if got, _ := headersOf(t, m).Lookup("x-delay"); got != want {
				t.Errorf("message %d has x-delay %v, want %v", i, got, want)
			}
			if m.Exchange != "d" || m.RoutingKey != "k" {
				t.Errorf("message %d is of exchange %q with key %q", i, m.Exchange, m.RoutingKey)
			}
		}
		if now := time.Now().UnixMilli(); q.messages()[3].Time != now {
			t.Errorf("its TTL counts from %d, want from now, %d", q.messages()[3].Time, now)
		}
		if got := delayedIn(v, "d"); got != 0 {
			t.Errorf("%d messages wait still", got)
		}
	})
}

func TestAnEarlierMessageSetsTheTimerBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		q := declareDelayed(t, v, false)
		p := v.NewPublisher()
		add(t, p, newDelayed("late", int32(10000), false), nil)
		p.Flush()
		add(t, p, newDelayed("early", int32(10), false), nil)
		p.Flush()
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if got := q.bodies(); !slices.Equal(got, []string{"early"}) {
			t.Errorf("queue has %q, want early", got)
		}
		if err := v.DeleteExchange(System, "d", false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := q.bodies(); len(got) != 1 {
			t.Errorf("queue got %q of a deleted exchange", got)
		}
	})
}

func TestDelayedMessageIsConfirmedWhenStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		v, _ := open(t, store).Get("/")
		declareDelayed(t, v, true)
		log := v.exchangeEntry("d").delayed.log.(*fakeLog)
		log.manual = true
		p := v.NewPublisher()
		var owner settled
		publish := func(persistent bool) {
			r := message.NewReceipt(&owner, 1, 1)
			r.Hold(1)
			if !add(t, p, newDelayed("m", int32(1000), persistent), r) {
				t.Error("does not count as routed")
			}
			p.Flush()
			r.Release()
		}
		publish(false)
		if owner.n != 1 {
			t.Error("a transient message is not confirmed at once")
		}
		publish(true)
		if owner.n != 1 {
			t.Error("a persistent message is confirmed before it is stored")
		}
		log.commit()
		if owner.n != 2 {
			t.Error("a persistent message is not confirmed after it was stored")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := log.len(); got != 0 {
			t.Errorf("the log has %d records after the release", got)
		}
	})
}

func TestDelayedMessagesSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := open(t, store)
		v, _ := s.Get("/")
		declareDelayed(t, v, true)
		p := v.NewPublisher()
		m := newDelayed("stored", int32(5000), true)
		m.More = &message.More{CC: []string{"cc\xff"}, Deaths: []message.Death{{Queue: "a", Reason: "expired", Exchange: "x", Keys: []string{"k"}, Count: 2, Time: 3}}}
		m.More.FirstDeath = m.More.Deaths[0]
		add(t, p, m, nil)
		add(t, p, newDelayed("transient", int32(5000), false), nil)
		p.Flush()
		time.Sleep(2 * time.Second)
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}

		again := open(t, store)
		v, _ = again.Get("/")
		q, _ := v.Queue(System, "q")
		if got := delayedIn(v, "d"); got != 1 {
			t.Fatalf("%d messages wait after the restart, want 1", got)
		}
		time.Sleep(3*time.Second - time.Millisecond)
		synctest.Wait()
		if got := q.(*fakeQueue).bodies(); len(got) != 0 {
			t.Errorf("released early: %q", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := q.(*fakeQueue).bodies(); !slices.Equal(got, []string{"stored"}) {
			t.Fatalf("queue has %q, want the stored message", got)
		}
		got := q.(*fakeQueue).messages()[0]
		if !slices.Equal(got.More.CC, m.More.CC) || !sameDeath(got.More.Deaths[0], m.More.Deaths[0]) || !sameDeath(got.More.FirstDeath, m.More.FirstDeath) {
			t.Errorf("history is %+v, want %+v", got.More, m.More)
		}
		want := header(frames.Properties{}, args("a", "x", "x-delay", int32(-5000)))
		if !bytes.Equal(got.Header, want) {
			t.Errorf("header is %q, want %q", got.Header, want)
		}
	})
}

func TestDelayedMessagesLeaveMemoryWhenItIsShort(t *testing.T) {
	for _, tt := range []struct {
		name      string
		lanes     bool
		delays    int // different ones, from the first message to the last and again
		mostReads int // reads of the log
	}{
		{"one by one", false, 1, 20},
		{"in a sweep", true, 10, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testDelayedWithoutMemory(t, tt.lanes, tt.delays, tt.mostReads) })
		})
	}
}

func testDelayedWithoutMemory(t *testing.T, lanes bool, delays, mostReads int) {
	budget := queue.NewBudget(1000)
	s, err := Open(Config{Store: newFakeStore(), Memory: budget, Factories: map[string]queue.Factory{queue.Classic: fakeFactory}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("/")
	q := declareDelayed(t, v, true)
	log := v.exchangeEntry("d").delayed.log.(*fakeLog)
	log.lanes = lanes
	p := v.NewPublisher()
	want := make([]string, 0, 1000)
	for i := range delays {
		for j := i; j < cap(want); j += delays {
			want = append(want, fmt.Sprint(j))
		}
	}
	for i := range cap(want) {
		add(t, p, newDelayed(fmt.Sprint(i), int32(1000+i%delays), true), nil)
	}
	p.Flush()
	if used := budget.Used(); used > 2000 {
		t.Errorf("%d bytes are in memory, with a budget of 1000", used)
	}
	time.Sleep(2 * time.Second)
	synctest.Wait()
	if got := q.bodies(); !slices.Equal(got, want) {
		t.Errorf("queue has %d messages: %q", len(got), got)
	}
	if used := budget.Used(); used != 0 {
		t.Errorf("%d bytes are counted at the end", used)
	}
	if log.loads > mostReads {
		t.Errorf("the log was read %d times, want at most %d", log.loads, mostReads)
	}
}

func TestDeletedDelayedExchangeDropsItsLog(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	declareDelayed(t, v, true)
	log := v.exchangeEntry("d").delayed.log.(*fakeLog)
	p := v.NewPublisher()
	var owner settled
	r := message.NewReceipt(&owner, 1, 1)
	r.Hold(1)
	add(t, p, newDelayed("m", int32(1000), true), r)
	if err := v.DeleteExchange(System, "d", false); err != nil {
		t.Fatal(err)
	}
	p.Flush() // too late
	r.Release()
	if !log.dropped || log.len() != 0 || owner.n != 1 {
		t.Errorf("dropped %v, %d records, receipt settled %d times; want true, 0, 1", log.dropped, log.len(), owner.n)
	}
}

func TestDelayHeap(t *testing.T) {
	var h delayHeap
	for id := range uint64(1000) {
		h.push(delayedMessage{due: rand.Int64N(50), id: id})
	}
	last := delayedMessage{due: -1}
	for len(h) > 0 {
		m := h.pop()
		if m.due < last.due || m.due == last.due && m.id < last.id {
			t.Fatalf("%d of time %d came after %d of time %d", m.id, m.due, last.id, last.due)
		}
		last = m
	}
}

func TestNegatedDelay(t *testing.T) {
	for _, tt := range []struct{ delay, want any }{
		{int8(5), int8(-5)}, {int16(5), int16(-5)}, {int32(5), int32(-5)}, {int64(5), int64(-5)},
		{uint8(200), int64(-200)}, {uint32(1 << 31), int64(-1 << 31)}, {"5", "-5"},
	} {
		if got := negated(tt.delay); got != tt.want {
			t.Errorf("negated(%T %v) = %T %v, want %T %v", tt.delay, tt.delay, got, got, tt.want, tt.want)
		}
	}
}

func BenchmarkDelayedEnqueue(b *testing.B) {
	v := newVHost(b)
	declareDelayed(b, v, false)
	p := v.NewPublisher()
	m := newDelayed("m", int32(3_600_000), false)
	rt := route(b, p, "d", "k")
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		p.Add(rt, m, nil, 0)
		if i++; i%64 == 0 {
			p.Flush()
		}
	}
	p.Discard()
	if err := v.DeleteExchange(System, "d", false); err != nil {
		b.Fatal(err)
	}
}

func TestFewDelayedMessagesAreKeptInMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newFakeStore())
		v, _ := s.Get("/")
		q := declareDelayed(t, v, true)
		d := v.exchangeEntry("d").delayed
		p := v.NewPublisher()
		publish := func(n int, delay int32, persistent bool) {
			for range n {
				m := newDelayed("", delay, persistent)
				m.Body = make([]byte, 64<<10)
				add(t, p, m, nil)
			}
			p.Flush()
		}
		wantKept := func(least, most int64) {
			t.Helper()
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.kept < least || d.kept > most {
				t.Errorf("%d bytes are in memory, want %d to %d", d.kept, least, most)
			}
		}
		publish(100, keepSoon+1, true)
		wantKept(keepLate, keepLate+66<<10)
		publish(100, keepSoon, true) // they are due earlier
		wantKept(keepLate+6<<20, keepLate+7<<20)
		publish(1000, keepSoon, true)
		wantKept(keepBytes, keepBytes+66<<10)
		publish(10, keepSoon, false) // they are nowhere else
		wantKept(keepBytes+10*64<<10, keepBytes+11*66<<10)
		time.Sleep((keepSoon + 1) * time.Millisecond)
		synctest.Wait()
		wantKept(0, 0)
		if got := len(q.messages()); got != 1210 {
			t.Errorf("%d messages came, want 1210", got)
		}
	})
}

// A slowQueue keeps the receipts of what it was given until it is told to
// release them, as a queue does whose store is slow.
type slowQueue struct {
	*fakeQueue
	held []*message.Receipt
	gate chan struct{} // if not nil, Enqueue waits until it is closed
}

func (q *slowQueue) Enqueue(batch []queue.Entry) queue.Writes {
	if q.gate != nil {
		<-q.gate
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.got = append(q.got, batch...)
	var last *message.Receipt
	for _, e := range batch {
		if e.Receipt != nil && e.Receipt != last {
			q.held = append(q.held, e.Receipt)
		}
		last = e.Receipt
	}
	return queue.ToStore
}

func (q *slowQueue) release() {
	q.mu.Lock()
	held := q.held
	q.held = nil
	q.mu.Unlock()
	for _, r := range held {
		r.Release()
	}
}

func slowFactory(env queue.Env, spec queue.Spec) (queue.Queue, error) {
	q, err := fakeFactory(env, spec)
	return &slowQueue{fakeQueue: q.(*fakeQueue)}, err
}

// openSlow is open with queues that are slow.
func openSlow(t testing.TB, store *fakeStore) *Set {
	t.Helper()
	s, err := Open(Config{Store: store, Factories: map[string]queue.Factory{queue.Classic: slowFactory}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A promptLog releases the receipts of records that are settled before their
// commit, as a real log does.
type promptLog struct{ *fakeLog }

func (l promptLog) Settle(ids []uint64) {
	l.fakeLog.Settle(ids)
	l.commit()
}

func TestReleasedMessageIsConfirmedWithItsCopy(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprint("held=", held), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, _ := openSlow(t, newFakeStore()).Get("/")
				declareExchange(t, v, ExchangeDeclare{Name: "d", Type: "x-delayed-message", Durable: true, Arguments: args("x-delayed-type", "direct")})
				q, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true})
				if err != nil {
					t.Fatal(err)
				}
				bindQueue(t, v, "q", "d", "k")
				d, m := v.exchangeEntry("d").delayed, newDelayed("m", int32(1), true)
				if held {
					d, m = v.held, newHeld("", "q", "m", true, "x-delivery-delay", int32(1))
				}
				log := promptLog{d.log.(*fakeLog)}
				log.manual = true
				d.log = log
				var owner settled
				r := message.NewReceipt(&owner, 1, 1)
				r.Hold(1)
				p := v.NewPublisher()
				add(t, p, m, r)
				p.Flush()
				r.Release()
				time.Sleep(2 * time.Millisecond)
				synctest.Wait()
				if got := len(q.(*slowQueue).messages()); got != 1 {
					t.Fatalf("the queue has %d messages, want 1", got)
				}
				if owner.n != 0 || log.len() != 1 {
					t.Errorf("before the copy is stored: confirmed %d times, %d records; want 0 and 1", owner.n, log.len())
				}
				q.(*slowQueue).release()
				if owner.n != 1 || log.len() != 0 {
					t.Errorf("after the copy is stored: confirmed %d times, %d records; want 1 and 0", owner.n, log.len())
				}
			})
		})
	}
}

func TestDelayedMessageStaysWhenItsCopyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := openSlow(t, newFakeStore()).Get("/")
		q, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		p := v.NewPublisher()
		add(t, p, newHeld("", "q", "m", true, "x-delivery-delay", int32(1)), nil)
		p.Flush()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		slow := q.(*slowQueue)
		for _, r := range slow.held {
			r.Fail()
		}
		slow.release()
		if got := v.held.log.(*fakeLog).len(); got != 1 {
			t.Errorf("%d records are left, want 1", got)
		}
	})
}

func TestStopSettlesWhatIsBeingReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openSlow(t, newFakeStore())
		v, _ := s.Get("/")
		slow, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true})
		if err != nil {
			t.Fatal(err)
		}
		q := slow.(*slowQueue)
		q.gate = make(chan struct{})
		p := v.NewPublisher()
		add(t, p, newHeld("", "q", "due", true, "x-delivery-delay", int32(1)), nil)
		add(t, p, newHeld("", "q", "later", true, "x-delivery-delay", int32(1000)), nil)
		p.Flush()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		stopped := make(chan struct{})
		go func() {
			s.Stop()
			close(stopped)
		}()
		time.Sleep(time.Millisecond)
		select {
		case <-stopped:
			t.Error("stopped while a message was on its way")
		default:
		}
		close(q.gate)
		<-stopped
		q.release()
		wantBodies(t, q.fakeQueue, "due")
		if got := v.held.log.(*fakeLog).len(); got != 1 {
			t.Errorf("%d records are left, want that of the later message only", got)
		}
	})
}

func TestStoppedDelayerStoresWhatComes(t *testing.T) {
	s := open(t, newFakeStore())
	v, _ := s.Get("/")
	declareDelayed(t, v, true)
	log := v.exchangeEntry("d").delayed.log.(*fakeLog)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	p := v.NewPublisher()
	add(t, p, newDelayed("a dead letter", int32(1000), true), nil)
	p.Flush()
	if got := log.len(); got != 1 {
		t.Errorf("%d records, want 1", got)
	}
}

func TestDelaysKeepTheOrderOfDifferentKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVHost(t)
		q := declareDelayed(t, v, false)
		bindQueue(t, v, "q", "d", "other")
		p := v.NewPublisher()
		for i, key := range []string{"k", "other", "k"} {
			m := newDelayed(fmt.Sprint(i), int32(5), false)
			m.RoutingKey = key
			add(t, p, m, nil)
		}
		p.Flush()
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		wantBodies(t, q, "0", "1", "2")
	})
}
