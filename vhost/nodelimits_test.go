package vhost

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

func TestNodeLimits(t *testing.T) {
	var created []string
	s, err := Open(Config{Store: newFakeStore(), Factories: map[string]queue.Factory{queue.Classic: fakeFactory},
		Limits:         NodeLimits{VHosts: 2, Queues: 2, Exchanges: 16}, // every vhost has seven exchanges and the default one
		OnVHostCreated: func(v *VHost) error { created = append(created, v.Name()); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create("a", Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Create("a", Options{Description: "again"}); err != nil {
		t.Errorf("a vhost that is there: %v", err)
	}
	wantError(t, s.Create("b", Options{}), 406, "cannot create vhost 'b': vhost limit of 2 is reached")
	if !slices.Equal(created, []string{"/", "a"}) {
		t.Errorf("told of %q, want / and a", created)
	}
	root, _ := s.Get("/")
	other, _ := s.Get("a")
	declareQueue(t, root, QueueDeclare{Name: "q1"})
	declareQueue(t, other, QueueDeclare{Name: "q2"})
	declareQueue(t, other, QueueDeclare{Name: "q2"})
	_, err = root.DeclareQueue(System, QueueDeclare{Name: "q3"})
	wantError(t, err, 406, "cannot declare queue 'q3': queue limit in cluster (2) is reached")
	before := s.sum(func(v *VHost) int { return len(v.exchanges) })
	for n := before; n < 16; n++ {
		if err := root.DeclareExchange(System, ExchangeDeclare{Name: "x" + string(rune('a'+n)), Type: "direct"}); err != nil {
			t.Fatal(err)
		}
	}
	err = other.DeclareExchange(System, ExchangeDeclare{Name: "y", Type: "direct"})
	wantError(t, err, 406, "cannot declare exchange 'y': exchange limit in cluster (16) is reached")
}

func TestMasterLocatorThatIsNotPermitted(t *testing.T) {
	s, err := Open(Config{Store: newFakeStore(), Factories: map[string]queue.Factory{queue.Classic: fakeFactory}, RefuseMasterLocator: true})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "without", Durable: true})
	_, err = v.DeclareQueue(System, QueueDeclare{Name: "with", Durable: true, Arguments: frames.Table{{Name: "x-queue-master-locator", Value: "random"}}})
	wantError(t, err, 541, "Feature `queue_master_locator` is deprecated.\nIts use is not permitted per the configuration (overriding the default, which is permitted):\n"+
		"    \"deprecated_features.permit.queue_master_locator = false\"")
	err = v.SetPolicy(System, Policy{Name: "p", Pattern: ".*", ApplyTo: "all", Definition: queue.Definition{"queue-master-locator": "random"}}, false)
	wantError(t, err, 406, "Validation failed\n\nuse of deprecated queue-master-locator argument is not permitted")
}

func TestTransientQueuesThatAreNotPermitted(t *testing.T) {
	s, err := Open(Config{Store: newFakeStore(), Factories: map[string]queue.Factory{queue.Classic: fakeFactory}, RefuseTransientQueues: true})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("/")
	declareQueue(t, v, QueueDeclare{Name: "durable", Durable: true})
	declareQueue(t, v, QueueDeclare{Name: "exclusive", Exclusive: true})
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: "neither"}); err == nil || v.queueEntry("neither") != nil {
		t.Errorf("a queue that is neither durable nor exclusive: %v, want an error", err)
	}
}
