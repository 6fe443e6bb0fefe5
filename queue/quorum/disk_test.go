package quorum

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// openOnDisk opens a queue in a store of its own, or reopens it there.
func openOnDisk(t testing.TB, dir string, id persistence.LogID, sent *[]string) (*Queue, *persistence.Disk) {
	t.Helper()
	store, err := persistence.Open(persistence.Options{Dir: dir, DiskLimit: 1})
	if err != nil {
		t.Fatal(err)
	}
	take := func(_ queue.Queue, _ queue.Target, why queue.Reason, dead []*message.Message, r *message.Receipt) {
		for _, m := range dead {
			*sent = append(*sent, string(m.Body)+" "+string(why))
		}
		r.Hold(1) // never to be released
	}
	env := queue.Env{Store: store, LogID: id, DeadLetter: take}
	q, err := open(env, queue.Spec{VHost: "/", Name: "q", Durable: true, Arguments: new(atLeastOnce())})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Recovered(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Stop(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil && !errors.Is(err, persistence.ErrClosed) {
			t.Error(err)
		}
	})
	return q, store
}

type confirmed chan struct{}

func (c confirmed) Settled(*message.Receipt) { close(c) }

// publishConfirmed publishes messages and waits until they are safe, and with
// them everything that the queue has written before.
func publishConfirmed(q *Queue, bodies ...string) {
	done := make(confirmed)
	r := message.NewReceipt(done, 1, uint64(len(bodies)))
	r.Hold(1)
	var batch []queue.Entry
	for i, b := range bodies {
		batch = append(batch, queue.Entry{Msg: queuetest.Message(b), Receipt: r, Seq: uint64(i + 1)})
	}
	q.Enqueue(batch)
	<-done
}

func get(t testing.TB, q *Queue) queue.Delivery {
	t.Helper()
	d, _, ok, err := q.Get(false)
	if !ok || err != nil {
		t.Fatalf("Get() = ok %t, error %v", ok, err)
	}
	return d
}

// A copy of the files while the broker runs is what a kill leaves.
func TestKilled(t *testing.T) {
	var sent []string
	dir := t.TempDir()
	first, killed := filepath.Join(dir, "first"), filepath.Join(dir, "killed")
	q, _ := openOnDisk(t, first, 0, &sent)
	publishConfirmed(q, "a", "dead", "b", "c")
	for range 3 {
		q.Settle(nil, []queue.Delivery{get(t, q)}, queue.Requeued)
	}
	get(t, q)
	q.Settle(nil, []queue.Delivery{get(t, q)}, queue.Rejected)
	get(t, q) // b
	publishConfirmed(q, "d")
	if err := os.CopyFS(killed, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}

	sent = nil
	again, _ := openOnDisk(t, killed, q.LogID(), &sent)
	if s := again.Status(); s.Ready != 4 || len(sent) != 0 {
		t.Errorf("%d ready and %q sent before the queue is used, want 4 and nothing", s.Ready, sent)
	}
	again.SetPolicy(queue.Merge(nil, nil))
	if !slices.Equal(sent, []string{"dead rejected"}) {
		t.Errorf("sent %q, want the dead letter whose target has not confirmed", sent)
	}
	for _, want := range []string{"a 4 true 4", "b 1 true 1", "c 0 false -", "d 0 false -"} {
		wantDelivery(t, get(t, again), want)
	}
	if _, _, ok, err := again.Get(false); ok || err != nil {
		t.Errorf("Get() = ok %t, error %v, want no more", ok, err)
	}
}

func TestDiskOrder(t *testing.T) {
	var sent []string
	dir := t.TempDir()
	q, store := openOnDisk(t, filepath.Join(dir, "s"), 0, &sent)
	for i := range 200 {
		m := queuetest.Message(fmt.Sprint(i))
		if i%4 == 0 {
			m = queuetest.Priority(fmt.Sprint(i), 9)
		}
		q.Enqueue([]queue.Entry{{Msg: m}})
	}
	publishConfirmed(q, "last")
	var want []string
	for range 201 {
		want = append(want, string(get(t, q).Msg.Body))
	}
	if err := q.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	again, _ := openOnDisk(t, filepath.Join(dir, "s"), q.LogID(), &sent)
	var got []string
	for range 201 {
		got = append(got, string(get(t, again).Msg.Body))
	}
	if !slices.Equal(got, want) {
		t.Errorf("after the restart %v\nwant %v", got, want)
	}
}
