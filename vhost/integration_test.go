package vhost

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/classic"
)

// openClassic opens a Set of classic queues.
func openClassic(t testing.TB, store persistence.Store) *Set {
	t.Helper()
	s, err := Open(Config{Store: store, Factories: map[string]queue.Factory{queue.Classic: classic.New}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openDisk opens a store in a directory.
func openDisk(t testing.TB, dir string) *persistence.Disk {
	t.Helper()
	store, err := persistence.Open(persistence.Options{Dir: dir, DiskLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// confirmed waits until the batch of a receipt is settled.
type confirmed chan struct{}

func (c confirmed) Settled(*message.Receipt) { close(c) }

// publishConfirmed publishes a persistent message and waits until it is safe.
func publishConfirmed(t testing.TB, v *VHost, exchange, key, body string, headers frames.Table) {
	t.Helper()
	p := v.NewPublisher()
	block := header(frames.Properties{Flags: frames.FlagDeliveryMode, DeliveryMode: 2}, headers)
	m := &message.Message{
		Envelope: &message.Envelope{Exchange: exchange, RoutingKey: key, TTL: message.NoTTL, Persistent: true, Header: block},
		Body:     []byte(body),
	}
	done := make(confirmed)
	r := message.NewReceipt(done, 1, 1)
	r.Hold(1)
	p.Add(route(t, p, exchange, key), m, r, 1)
	p.Flush()
	r.Release()
	<-done
}

// drain takes all ready messages of a queue.
func drain(t testing.TB, v *VHost, name string) []*message.Message {
	t.Helper()
	q, err := v.Queue(System, name)
	if err != nil {
		t.Fatal(err)
	}
	var list []*message.Message
	for {
		d, _, ok, err := q.Get(true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return list
		}
		list = append(list, d.Msg)
	}
}

func bodiesOf(list []*message.Message) []string {
	var bodies []string
	for _, m := range list {
		bodies = append(bodies, string(m.Body))
	}
	return bodies
}

func declareClassic(t testing.TB, v *VHost, name string, durable bool, arguments frames.Table) {
	t.Helper()
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: name, Durable: durable, Arguments: arguments}); err != nil {
		t.Fatal(err)
	}
}

func TestClassicDeadLetters(t *testing.T) {
	v, _ := openClassic(t, persistence.NewMemory()).Get("/")
	declareClassic(t, v, "dead", false, nil)
	declareClassic(t, v, "work", false, args("x-max-length", int32(2), "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "dead"))
	for i := range 5 {
		publish(t, v, "", "work", fmt.Sprint(i))
	}
	if got, want := bodiesOf(drain(t, v, "work")), []string{"3", "4"}; !slices.Equal(got, want) {
		t.Errorf("work has %q, want %q", got, want)
	}
	dead := drain(t, v, "dead")
	if got, want := bodiesOf(dead), []string{"0", "1", "2"}; !slices.Equal(got, want) {
		t.Errorf("dead letters are %q, want %q", got, want)
	}
	if d := dead[0].More.Deaths; len(d) != 1 || d[0].Queue != "work" || d[0].Reason != "maxlen" {
		t.Errorf("history is %+v", d)
	}
}

// A queue that sends its own dead letters back to itself must end.
func TestClassicDeadLettersToItself(t *testing.T) {
	v, _ := openClassic(t, persistence.NewMemory()).Get("/")
	declareClassic(t, v, "q", false, args("x-max-length", int32(1), "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "q"))
	publish(t, v, "", "q", "a")
	publish(t, v, "", "q", "b")
	if got, want := bodiesOf(drain(t, v, "q")), []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("queue has %q, want %q", got, want)
	}
}

func TestClassicRestart(t *testing.T) {
	dir := t.TempDir()
	store := openDisk(t, dir)
	s := openClassic(t, store)
	v, _ := s.Get("/")
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "topic", Durable: true})
	declareExchange(t, v, ExchangeDeclare{Name: "later", Type: "x-delayed-message", Durable: true, Arguments: args("x-delayed-type", "fanout")})
	for _, name := range []string{"a", "b"} {
		declareClassic(t, v, name, true, nil)
		bindQueue(t, v, name, "x", "k.*")
	}
	bindQueue(t, v, "a", "later", "")
	declareClassic(t, v, "transient", false, nil)
	publishConfirmed(t, v, "x", "k.1", "shared", nil)
	publishConfirmed(t, v, "", "a", "one", nil)
	publishConfirmed(t, v, "later", "", "delayed", args("x-delay", int32(3_600_000)))
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store = openDisk(t, dir)
	s = openClassic(t, store)
	v, _ = s.Get("/")
	if got, want := bodiesOf(drain(t, v, "a")), []string{"shared", "one"}; !slices.Equal(got, want) {
		t.Errorf("a has %q after a restart, want %q", got, want)
	}
	if got, want := bodiesOf(drain(t, v, "b")), []string{"shared"}; !slices.Equal(got, want) {
		t.Errorf("b has %q after a restart, want %q", got, want)
	}
	if got := delayedIn(v, "later"); got != 1 {
		t.Errorf("%d messages are delayed after a restart, want 1", got)
	}
	_, err := v.Queue(System, "transient")
	wantError(t, err, 404, "no queue 'transient' in vhost '/'")
	if _, err := v.DeleteQueue(System, "a", queue.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}

	store = openDisk(t, dir)
	defer store.Close()
	v, _ = openClassic(t, store).Get("/")
	_, err = v.Queue(System, "a")
	wantError(t, err, 404, "no queue 'a' in vhost '/'")
	if !publish(t, v, "x", "k.2", "m") {
		t.Error("the binding of b is lost")
	}
}

// Everything at once, for the race detector and for locks taken in the wrong
// order.
func TestEverythingAtOnce(t *testing.T) {
	s := openClassic(t, persistence.NewMemory())
	v, _ := s.Get("/")
	declareExchange(t, v, ExchangeDeclare{Name: "dlx", Type: "fanout"})
	var wg sync.WaitGroup
	const rounds = 150
	for c := range 4 {
		by := &fakeActor{owner: c}
		wg.Go(func() { // declares, binds, deletes
			for i := range rounds {
				name := fmt.Sprintf("q%d", i%3)
				d := QueueDeclare{Name: name, Durable: true, Arguments: args("x-max-length", int32(1), "x-dead-letter-exchange", "dlx")}
				if _, err := v.DeclareQueue(System, d); err != nil {
					t.Errorf("declare: %v", err)
				}
				x := ExchangeDeclare{Name: fmt.Sprintf("x%d", i%2), Type: "topic", AutoDelete: true}
				if err := v.DeclareExchange(System, x); err != nil {
					t.Errorf("declare: %v", err)
				}
				for _, err := range []error{
					v.BindQueue(System, name, x.Name, "#", nil), v.BindQueue(System, name, "dlx", "", nil), v.BindExchange(System, "dlx", x.Name, "#", nil),
				} {
					if err != nil && !isNotFound(err) {
						t.Errorf("bind: %v", err)
					}
				}
				if _, err := v.DeclareQueue(by, QueueDeclare{Exclusive: true}); err != nil {
					t.Errorf("declare: %v", err)
				}
				switch i % 5 {
				case 0:
					v.DeleteExchange(System, x.Name, false)
				case 1:
					v.DeleteQueue(System, name, queue.Condition{})
				case 2:
					v.UnbindQueue(System, name, x.Name, "#", nil)
				case 3:
					v.ReleaseOwner(c)
				}
			}
			v.ReleaseOwner(c)
		})
	}
	wg.Go(func() {
		for i := range rounds {
			v.SetPolicy(System, Policy{Name: "p", Pattern: "^q", Definition: queue.Definition{"max-length": i % 3}}, i%2 == 0)
			for range v.Queues() {
			}
			for range v.Bindings() {
			}
			v.SetTracing(i%2 == 0)
		}
		v.SetTracing(false)
	})
	for range 2 {
		wg.Go(func() {
			p := v.NewPublisher()
			for i := range 4 * rounds {
				for _, target := range [][2]string{{"", "q0"}, {"x0", "a.b"}, {"x1", "a"}, {"dlx", ""}} {
					rt, err := p.Route([]byte(target[0]), []byte(target[1]))
					if err != nil {
						continue
					}
					p.Add(rt, newMessage(target[0], target[1]), nil, 0)
				}
				if i%3 == 0 {
					p.Flush()
				}
			}
			p.Flush()
		})
	}
	wg.Wait()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.owned) != 0 {
		t.Errorf("%d owners are left", len(v.owned))
	}
	for _, e := range v.queues {
		if e.ending != nil {
			t.Errorf("queue %s is ending for ever", e.spec.Name)
		}
	}
}

// BenchmarkDurableDeclareDelete is a durable queue declared and deleted, by 16
// clients at a time, on a disk.
func BenchmarkDurableDeclareDelete(b *testing.B) {
	store := openDisk(b, b.TempDir())
	defer store.Close()
	v, _ := openClassic(b, store).Get("/")
	var wg sync.WaitGroup
	b.ResetTimer()
	for c := range 16 {
		wg.Go(func() {
			for i := c; i < b.N; i += 16 {
				name := fmt.Sprint("q", c)
				if _, err := v.DeclareQueue(System, QueueDeclare{Name: name, Durable: true}); err != nil {
					b.Error(err)
				}
				if _, err := v.DeleteQueue(System, name, queue.Condition{}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}
