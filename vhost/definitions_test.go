package vhost

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

func TestDefinitionsLastDecisionWins(t *testing.T) {
	store := newFakeStore()
	store.hold, store.holding = make(chan struct{}), make(chan definitionID, 10)
	d := newDefinitions(store)
	first := d.set(persistence.Queues, "q", []byte("1"))
	done := make(chan error, 3)
	go func() { done <- d.wait(first) }()
	<-store.holding // the first write is under way
	second := d.set(persistence.Queues, "q", nil)
	third := d.set(persistence.Queues, "q", []byte("3"))
	go func() { done <- d.wait(second) }()
	go func() { done <- d.wait(third) }()
	close(store.hold)
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := string(store.values[definitionID{persistence.Queues, "q"}]); got != "3" {
		t.Errorf("store has %q, want the last decision", got)
	}
	if store.writes != 2 {
		t.Errorf("%d writes, want 2: the deletion was overtaken", store.writes)
	}
	if len(d.slots) != 0 {
		t.Errorf("%d slots are left", len(d.slots))
	}
}

func TestDefinitionsTellOfAFailedWrite(t *testing.T) {
	store := newFakeStore()
	store.fail = errors.New("disk full")
	d := newDefinitions(store)
	p := d.set(persistence.Queues, "q", []byte("1"))
	if err := d.wait(p); !errors.Is(err, store.fail) {
		t.Errorf("got error %v, want that of the store", err)
	}
	store.fail = nil
	if err := d.wait(d.set(persistence.Queues, "q", []byte("2"))); err != nil {
		t.Errorf("after the failure: %v", err)
	}
}

// A deletion whose write is slow must not delete what was declared after it.
func TestRedeclareDuringSlowDeletion(t *testing.T) {
	store := newFakeStore()
	s := open(t, store)
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	bindQueue(t, v, "q", "amq.fanout", "")

	store.mu.Lock()
	store.hold, store.holding = make(chan struct{}), make(chan definitionID, 10)
	store.mu.Unlock()
	deleted := make(chan error, 1)
	go func() {
		_, err := v.DeleteQueue(System, "q", queue.Condition{})
		deleted <- err
	}()
	<-store.holding // both definitions, queue and binding, are being deleted
	<-store.holding
	declared := make(chan queue.Queue, 1)
	go func() {
		q, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true})
		if err != nil {
			t.Error(err)
		}
		declared <- q
	}()
	close(store.hold)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	<-declared
	store.mu.Lock()
	store.hold = nil
	store.mu.Unlock()

	again := open(t, store)
	v, _ = again.Get("/")
	if _, err := v.Queue(System, "q"); err != nil {
		t.Errorf("the queue declared last is not there after a restart: %v", err)
	}
	for b := range v.Bindings() {
		t.Errorf("the new queue has a binding of the old one: %+v", b)
	}
}

// What is left of a deletion that a crash cut short does not come back.
func TestBindingOfAnEarlierQueueIsDropped(t *testing.T) {
	store := newFakeStore()
	s := open(t, store)
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	bindQueue(t, v, "q", "amq.fanout", "")
	var key string
	var value []byte
	for k, b := range store.All(persistence.Bindings) {
		key, value = k, b
	}
	v.DeleteQueue(System, "q", queue.Condition{})
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	store.Put(persistence.Bindings, key, value) // as if it had not been deleted

	again := open(t, store)
	v, _ = again.Get("/")
	for b := range v.Bindings() {
		t.Errorf("binding came back: %+v", b)
	}
	if n := store.count(persistence.Bindings); n != 0 {
		t.Errorf("%d bindings are left in the store", n)
	}
}

func TestDefinitionKeysDiffer(t *testing.T) {
	seen := make(map[string][]string)
	for _, parts := range [][]string{
		{"a", "b"}, {"a\x00b"}, {"a\x00", "b"}, {"a", "\x00b"}, {"a\x01", "b"}, {"a\x01\x01b"}, {"ab"}, {"a", "b", ""},
	} {
		key := definitionKey(append([]string(nil), parts...)...)
		if other, ok := seen[key]; ok {
			t.Errorf("%q and %q have the same key", parts, other)
		}
		seen[key] = parts
	}
}

func TestConcurrentDeclareAndDelete(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("q%d", (i+c)%4)
				q, err := v.DeclareQueue(System, QueueDeclare{Name: name, Durable: true})
				if err != nil {
					t.Errorf("declare: %v", err)
				}
				if err := v.BindQueue(System, name, "amq.direct", "k", nil); err != nil && !isNotFound(err) {
					t.Errorf("bind: %v", err)
				}
				publish(t, v, "amq.direct", "k", "m")
				publish(t, v, "", name, "m")
				if i%7 == 0 {
					q.(*fakeQueue).end()
				}
				if _, err := v.DeleteQueue(System, name, queue.Condition{}); err != nil {
					t.Errorf("delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if n := store.count(persistence.Queues) + store.count(persistence.Bindings); n != 0 {
		t.Errorf("%d definitions are left", n)
	}
	for b := range v.Bindings() {
		t.Errorf("binding %+v is left", b)
	}
}

func isNotFound(err error) bool {
	return err != nil && len(err.Error()) > 9 && err.Error()[:9] == "NOT_FOUND"
}

func TestFailedDefinitionIsNotTakenForDurable(t *testing.T) {
	store := newFakeStore()
	s := open(t, store)
	v, _ := s.Get("/")
	store.limit = 1
	declare := func() error {
		_, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true})
		return err
	}
	for what, try := range map[string]func() error{
		"declare":         declare,
		"passive declare": func() error { _, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Passive: true}); return err },
	} {
		declare()
		if err := try(); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v, want the store's error", what, err)
		}
	}
	store.limit = 0
	if err := declare(); err != nil {
		t.Error(err)
	}
	if len(v.set.definitions.slots) != 0 {
		t.Errorf("%d slots are left", len(v.set.definitions.slots))
	}
	v, _ = open(t, store).Get("/")
	if _, err := v.Queue(System, "q"); err != nil {
		t.Error(err)
	}
}

func TestTooLargeDefinitionKeepsNoOtherOut(t *testing.T) {
	store := newFakeStore()
	store.limit = 10
	d := newDefinitions(store)
	small := d.set(persistence.Queues, "small", []byte("1"))
	large := d.set(persistence.Queues, "large", make([]byte, 11))
	if err := d.wait(small, large); !errors.Is(err, errTooLarge) {
		t.Errorf("got error %v, want that of the large one", err)
	}
	if err := d.wait(small); err != nil {
		t.Errorf("the small one: %v", err)
	}
	if n := store.count(persistence.Queues); n != 1 {
		t.Errorf("%d definitions are stored, want 1", n)
	}
	if store.rounds != 1 {
		t.Errorf("written in %d rounds, want one", store.rounds)
	}
}

func TestWhatCannotBeStoredIsNotMade(t *testing.T) {
	s := open(t, newFakeStore())
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "q", Durable: true})
	large, long := strings.Repeat("x", maxStored), strings.Repeat("n", persistence.MaxKey+1)
	escaped := strings.Repeat("<", maxStored/4) // six bytes each on disk
	value := []byte(`"` + large + `"`)
	_, err := v.DeclareQueue(System, QueueDeclare{Name: "large", Durable: true, Arguments: args("a", large)})
	for what, err := range map[string]error{
		"queue":     err,
		"exchange":  v.DeclareExchange(System, ExchangeDeclare{Name: "large", Type: "direct", Durable: true, Arguments: args("a", large)}),
		"binding":   v.BindQueue(System, "q", "amq.direct", "k", args("a", large)),
		"policy":    v.SetPolicy(System, Policy{Name: "p", Pattern: large, Definition: queue.Definition{"max-length": 3}}, false),
		"parameter": v.SetParameter(System, Parameter{"shovel", "s", value}),
		"global":    s.SetGlobal("g", value),
		"vhost":     s.Create("v", Options{Description: large, Tags: []string{"x"}}),

		"escaped parameter": v.SetParameter(System, Parameter{"shovel", "s", []byte(`"` + escaped + `"`)}),
		"escaped global":    s.SetGlobal("g", []byte(`"`+escaped+`"`)),
		"escaped vhost":     s.Create("v", Options{Description: escaped}),

		"policy's name":    v.SetPolicy(System, Policy{Name: long, Pattern: "p", Definition: queue.Definition{"max-length": 3}}, true),
		"parameter's name": v.SetParameter(System, Parameter{"shovel", long, []byte("1")}),
		"component":        v.SetParameter(System, Parameter{long, "s", []byte("1")}),
		"global's name":    s.SetGlobal(long, []byte("1")),
		"vhost's name":     s.Create(long, Options{}),
	} {
		if e, ok := errors.AsType[*frames.Error](err); !ok || e.Code != frames.PreconditionFailed {
			t.Errorf("%s: %.200v, want 406", what, err)
		}
	}
	if got := describe(v); len(got) != 1 || len(v.Policies(false))+len(v.Policies(true))+len(v.Parameters())+len(s.Globals()) != 0 || len(s.Names()) != 1 {
		t.Errorf("something was made: %.500q", got)
	}
}
