package vhost

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// A stubbornQueue is not deleted before it is let go.
type stubbornQueue struct {
	*fakeQueue
	let chan struct{}
}

func (q *stubbornQueue) Delete(cond queue.Condition) (int, error) {
	<-q.let
	return q.fakeQueue.Delete(cond)
}

// openStubborn opens a Set with vhost v, which has a queue q and a policy p. Queues
// that are made before made is closed go when let is.
func openStubborn(t *testing.T, store *fakeStore, let chan struct{}) *Set {
	t.Helper()
	s, err := Open(Config{Store: store, Factories: map[string]queue.Factory{
		queue.Classic: func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
			q, err := fakeFactory(env, spec)
			return &stubbornQueue{q.(*fakeQueue), let}, err
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create("v", Options{}); err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("v")
	fill(t, v)
	return s
}

// fill gives a vhost a queue and a policy.
func fill(t *testing.T, v *VHost) {
	t.Helper()
	if _, err := v.DeclareQueue(System, QueueDeclare{Name: "q", Durable: true}); err != nil {
		t.Fatal(err)
	}
	if err := v.SetPolicy(System, Policy{Name: "p", Definition: queue.Definition{"max-length": 3}}, false); err != nil {
		t.Fatal(err)
	}
}

func TestVHostWaitsForTheEndOfItsNamesake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, let := newFakeStore(), make(chan struct{})
		s := openStubborn(t, store, let)
		old, _ := s.Get("v")
		deleted, created := make(chan error, 1), make(chan error, 1)
		go func() { deleted <- s.Delete("v") }()
		synctest.Wait()
		go func() { created <- s.Create("v", Options{}) }()
		synctest.Wait()
		if _, there := s.Get("v"); there {
			t.Error("the new vhost is there before the old one is gone")
		}
		close(let)
		if err := errors.Join(<-deleted, <-created); err != nil {
			t.Fatal(err)
		}
		v, _ := s.Get("v")
		fill(t, v)
		for what, err := range map[string]error{
			"policy":         old.SetPolicy(System, Policy{Name: "p", Definition: queue.Definition{"max-length": 5}}, false),
			"cleared policy": old.ClearPolicy(System, "p", false),
			"limit":          old.SetLimit(System, "max-queues", 1),
			"parameter":      old.SetParameter(System, Parameter{"shovel", "s", []byte("1")}),
			"binding":        old.BindExchange(System, "amq.direct", "amq.fanout", "", nil),
		} {
			if err == nil {
				t.Errorf("the old vhost takes a %s", what)
			}
		}
		v, _ = open(t, store).Get("v")
		if got := describe(v); len(got) != 1 {
			t.Errorf("after a restart the new vhost has %q, want its queue", got)
		}
		if p := v.Policies(false); len(p) != 1 || p[0].Definition["max-length"] != float64(3) {
			t.Errorf("its policies are %+v, want its own", p)
		}
	})
}

func TestVHostDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		let := make(chan struct{})
		s := openStubborn(t, newFakeStore(), let)
		go s.Delete("v")
		synctest.Wait()
		wantError(t, s.Create("v", Options{}), 406, "vhost 'v' is still being deleted: try again later")
		close(let)
		synctest.Wait()
		if err := s.Create("v", Options{}); err != nil {
			t.Error(err)
		}
	})
}

func TestPermissionsGoBeforeTheirVHost(t *testing.T) {
	store := newFakeStore()
	var dropped []string
	s, err := Open(Config{Store: store, DropPermissions: func(by Actor, name string) error {
		if _, there := store.values[definitionID{persistence.VHosts, name}]; !there {
			t.Error("the vhost is gone from the store")
		}
		dropped = append(dropped, by.User()+" "+name)
		return errInUse
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create("v", Options{}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteBy(&fakeActor{}, "v"); !errors.Is(err, errInUse) {
		t.Errorf("the error is %v, want that of the permissions, too", err)
	}
	if !slices.Equal(dropped, []string{"joe v"}) || store.count(persistence.VHosts) != 1 {
		t.Errorf("dropped %q, %d vhosts are left; want joe v and 1", dropped, store.count(persistence.VHosts))
	}
}
