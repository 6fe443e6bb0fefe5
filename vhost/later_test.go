package vhost

import (
	"errors"
	"fmt"
	"testing"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// A laterActor may do all and waits for its changes itself.
type laterActor struct {
	system
	changes Changes
}

func (a *laterActor) Changes() *Changes { return &a.changes }

func TestLaterChangesAreWrittenTogether(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	before := store.rounds
	var by laterActor
	if err := v.DeclareExchange(&by, ExchangeDeclare{Name: "x", Type: "topic", Durable: true}); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		name := fmt.Sprint(i)
		if _, err := v.DeclareQueue(&by, QueueDeclare{Name: name, Durable: true}); err != nil {
			t.Fatal(err)
		}
		if err := v.BindQueue(&by, name, "x", "k", nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := v.DeleteQueue(&by, "7", queue.Condition{}); err != nil {
		t.Fatal(err)
	}
	if store.rounds != before || !by.changes.Any() {
		t.Errorf("%d writes before the wait, want none", store.rounds-before)
	}
	if err := by.changes.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := store.rounds - before; n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	queues, bindings := store.count(persistence.Queues), store.count(persistence.Bindings)
	if queues != 99 || bindings != 99 || by.changes.Any() {
		t.Errorf("%d queues and %d bindings are stored, want 99 of each and nothing left", queues, bindings)
	}
}

func TestLaterChangesFail(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	store.fail = errors.New("disk full")
	var by laterActor
	for _, name := range []string{"a", "b"} {
		if _, err := v.DeclareQueue(&by, QueueDeclare{Name: name, Durable: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := by.changes.Wait(); !errors.Is(err, store.fail) {
		t.Errorf("error %v, want that of the store", err)
	}
	if by.changes.Any() {
		t.Error("there is still something to wait for")
	}
}

// What is not durable is done at once, and needs no wait.
func TestLaterWithoutDefinitions(t *testing.T) {
	v, _ := open(t, newFakeStore()).Get("/")
	var by laterActor
	if _, err := v.DeclareQueue(&by, QueueDeclare{Name: "q"}); err != nil {
		t.Fatal(err)
	}
	if by.changes.Any() {
		t.Error("a transient queue is waited for")
	}
}
