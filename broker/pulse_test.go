package broker

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/persistence"
)

// silentStore is a store whose health is what the test says.
type silentStore struct {
	persistence.Store
	health persistence.Health
}

func (s *silentStore) Health() persistence.Health { return s.health }

func TestPulseOfTheStore(t *testing.T) {
	s := &silentStore{}
	p := (&Broker{store: s}).Pulse()
	for i, tt := range []struct {
		health persistence.Health
		stuck  bool
	}{
		{persistence.Health{}, false},
		{persistence.Health{Uncommitted: 5}, false}, // has just come
		{persistence.Health{Uncommitted: 7, Commits: 1}, false},
		{persistence.Health{Uncommitted: 7, Commits: 1}, true},
		{persistence.Health{Uncommitted: 9, Commits: 1}, true},
		{persistence.Health{Uncommitted: 9, Commits: 1, DiskLow: true}, false},
		{persistence.Health{Uncommitted: 9, Commits: 1, Err: errors.New("broken")}, false}, // and the log has said so
		{persistence.Health{Commits: 2}, false},
	} {
		s.health = tt.health
		if err := p.Beat(); (err != nil) != tt.stuck {
			t.Errorf("look %d, %+v: %v, want stuck: %v", i, tt.health, err, tt.stuck)
		}
	}
}

// idleListener lets in one client after another.
type idleListener struct{ net.Listener }

func (idleListener) Accept() (net.Conn, error) { return nil, nil }
func (idleListener) Addr() net.Addr            { return &net.TCPAddr{Port: 5672} }

func TestPulseOfAcceptors(t *testing.T) {
	a := newAcceptor(idleListener{})
	p := (&Broker{store: &silentStore{}, acceptors: []*acceptor{a}}).Pulse()
	if err := p.Beat(); err != nil { // it has just been started
		t.Error(err)
	}
	if err := p.Beat(); err == nil || !strings.Contains(err.Error(), ":5672") {
		t.Errorf("nobody ever accepted: %v, want the listener", err)
	}
	for range 2 {
		_, _ = a.Accept() // a fake that always answers
		if err := p.Beat(); err != nil {
			t.Errorf("a client was accepted since: %v", err)
		}
	}
	if err := p.Beat(); err == nil {
		t.Error("whoever accepted the last client does not come back: want an error")
	}
}

func TestPulseOfARunningBroker(t *testing.T) {
	b := start(t, func(c *config.Config) { c.InMemory = false })
	p := b.Pulse()
	ch := channel(t, b)
	if _, err := ch.QueueDeclare("q", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Beat(); err != nil {
		t.Error(err)
	}
	if len(p.acceptors) != 1 || p.acceptors[0].turn.Load() < 3 {
		t.Errorf("acceptors %+v, want one that has accepted the client", p.acceptors)
	}
}
