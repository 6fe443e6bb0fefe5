package queuetest

import (
	"strings"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// A Disk is a queue in a store on disk.
type Disk struct {
	T     testing.TB
	Queue queue.Queue

	factory queue.Factory
	dir     string
	args    queue.Arguments
	store   *persistence.Disk
}

// NewDisk makes a durable queue in a store of its own.
func NewDisk(t testing.TB, factory queue.Factory, args queue.Arguments) *Disk {
	t.Helper()
	d := &Disk{T: t, factory: factory, dir: t.TempDir(), args: args}
	d.open(0)
	t.Cleanup(d.close)
	return d
}

func (d *Disk) open(id persistence.LogID) {
	d.T.Helper()
	store, err := persistence.Open(persistence.Options{Dir: d.dir, DiskLimit: 1})
	if err != nil {
		d.T.Fatal(err)
	}
	d.store = store
	q, err := d.factory(queue.Env{Store: store, LogID: id}, queue.Spec{VHost: "/", Name: "q", Durable: true, Arguments: &d.args})
	if err != nil {
		d.T.Fatal(err)
	}
	d.Queue = q
	if err := store.Recovered(); err != nil {
		d.T.Fatal(err)
	}
}

func (d *Disk) close() {
	d.T.Helper()
	if err := d.Queue.Stop(); err != nil {
		d.T.Error(err)
	}
	if err := d.store.Close(); err != nil {
		d.T.Error(err)
	}
}

// Restart ends the store in good order and opens it again.
func (d *Disk) Restart() {
	d.T.Helper()
	d.close()
	d.open(d.Queue.(queue.Logged).LogID())
	d.Queue.SetPolicy(queue.Policy{})
}

// Send publishes messages as one batch and waits until they are on disk.
func (d *Disk) Send(msgs ...*message.Message) {
	safe := make(announced)
	r := message.NewReceipt(safe, 1, uint64(len(msgs)))
	r.Hold(1)
	batch := make([]queue.Entry, len(msgs))
	for i, m := range msgs {
		batch[i] = queue.Entry{Msg: m, Receipt: r, Seq: uint64(i + 1)}
	}
	d.Queue.Enqueue(batch)
	<-safe
}

// announced is the owner of one receipt.
type announced chan struct{}

// Settled implements message.Owner.
func (a announced) Settled(*message.Receipt) { close(a) }

// Get takes one message, which must be there.
func (d *Disk) Get() queue.Delivery {
	d.T.Helper()
	v, _, ok, err := d.Queue.Get(false)
	if err != nil || !ok {
		d.T.Fatalf("Get() = ok %t, error %v, want a message", ok, err)
	}
	return v
}

// RunRetryOnDisk tests what types of queue that make messages wait owe to a store
// that knows the size of its records in sum only.
func RunRetryOnDisk(t *testing.T, factory queue.Factory) {
	for _, tt := range []struct {
		name  string
		waits int // bytes of the one that waits
		acked int // of each of those that are settled
	}{
		{"LargeWaits", 10_000, 10},
		{"SmallWaits", 10, 10_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := queue.NewArguments()
			a.RedeliveryDelay = 3_600_000
			d := NewDisk(t, factory, a)
			msgs := []*message.Message{Persistent(strings.Repeat("w", tt.waits))}
			for range 9 {
				msgs = append(msgs, Persistent(strings.Repeat("a", tt.acked)))
			}
			d.Send(msgs...)
			waits := d.Get()
			for range 9 {
				d.Queue.Settle(nil, []queue.Delivery{d.Get()}, queue.Accepted)
			}
			d.Queue.Settle(nil, []queue.Delivery{waits}, queue.Requeued)
			d.Restart()
			s := d.Queue.Status()
			Equal(t, "ready, their bytes; delayed, their bytes",
				[]int{s.Ready, int(s.ReadyBytes), s.Delayed, int(s.DelayedBytes)}, []int{0, 0, 1, tt.waits})
		})
	}
}

// RunRedeliveredOnDisk tests that an orderly stop keeps that a message was handed out
// once, although nothing else was written since.
func RunRedeliveredOnDisk(t *testing.T, factory queue.Factory) {
	d := NewDisk(t, factory, queue.NewArguments())
	d.Send(Persistent("a"), Persistent("b"), Persistent("c"))
	a := d.Get()
	d.Get() // nobody gives it back
	d.Queue.Settle(nil, []queue.Delivery{a}, queue.Requeued)
	d.Restart()
	for _, want := range []struct {
		body        string
		redelivered bool
	}{{"a", true}, {"b", true}, {"c", false}} {
		if v := d.Get(); string(v.Msg.Body) != want.body || v.Redelivered != want.redelivered {
			t.Errorf("got %s, redelivered %t, want %s, %t", v.Msg.Body, v.Redelivered, want.body, want.redelivered)
		}
	}
}
