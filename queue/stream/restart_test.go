package stream

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func TestRestart(t *testing.T) {
	h := newStream(t)
	h.Send(queuetest.Message("0"), queuetest.Persistent("1"))
	publish(h, "2")
	before := h.Queue.Status()
	h.Reopen()
	h.Queue.SetPolicy(queue.Merge(nil, nil))
	after := h.Queue.Status()
	if after.Ready != 3 || after.ReadyBytes != before.ReadyBytes || after.HeadTime != before.HeadTime {
		t.Errorf("after the restart %+v, before %+v", after, before)
	}
	publish(h, "3")
	c := from(h, "first")
	queuetest.Equal(t, "bodies", c.Bodies(), numbers(0, 4))
	for i, d := range c.Held() {
		if got := offsetOf(t, d.Msg); got != int64(i) || d.Redelivered {
			t.Errorf("offset %d, redelivered %t, want %d, false", got, d.Redelivered, i)
		}
	}
	queuetest.Equal(t, "from last", from(h, "last").Bodies(), []string{"3"})
	h.Reopen()
	queuetest.Equal(t, "from last after another restart", from(h, "last").Bodies(), []string{"3"})
}

func TestRestartOfAnEmptyStream(t *testing.T) {
	h := newStream(t)
	h.Reopen()
	c := from(h, "first")
	publish(h, "0")
	queuetest.Equal(t, "bodies", c.Bodies(), numbers(0, 1))
	wantFigures(h, 0, 1, 1)
}

func TestWhatWasNotCommittedIsNotThere(t *testing.T) {
	h := newStream(t)
	publish(h, "0")
	h.Store.Hold()
	publish(h, "lost")
	h.Reopen()
	publish(h, "1")
	h.Store.Commit()
	c := from(h, "first")
	queuetest.Equal(t, "bodies", c.Bodies(), numbers(0, 2))
}

func TestAStoppedStreamStores(t *testing.T) {
	h := newStream(t)
	c := from(h, nil)
	if err := h.Queue.Stop(); err != nil {
		t.Fatal(err)
	}
	if !h.SendConfirmed(queuetest.Persistent("0")).Done() {
		t.Error("not confirmed")
	}
	queuetest.Equal(t, "delivered", c.Bodies(), nil)
	h.Reopen()
	queuetest.Equal(t, "after the restart", from(h, "first").Bodies(), numbers(0, 1))
}

// disk is a stream on a real store.
type disk struct {
	t     *testing.T
	dir   string
	store *persistence.Disk
	spec  queue.Spec
	id    persistence.LogID
	more  persistence.LogID // of its places
	*Queue
}

func newDisk(t *testing.T, table ...frames.Field) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir(), spec: spec(t, table...)}
	d.open()
	t.Cleanup(d.close)
	return d
}

func (d *disk) open() {
	d.t.Helper()
	store, err := persistence.Open(persistence.Options{Dir: d.dir, DiskLimit: 1})
	if err != nil {
		d.t.Fatal(err)
	}
	q, err := New(queue.Env{Store: store, LogID: d.id, PlacesID: d.more}, d.spec)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := store.Recovered(); err != nil {
		d.t.Fatal(err)
	}
	d.store, d.Queue = store, q.(*Queue)
	d.id, d.more = d.LogID(), d.PlacesID()
}

func (d *disk) close() {
	if err := d.Stop(); err != nil {
		d.t.Error(err)
	}
	if err := d.store.Close(); err != nil {
		d.t.Error(err)
	}
}

func (d *disk) restart() {
	d.t.Helper()
	d.close()
	d.open()
}

func TestRestartOnDisk(t *testing.T) {
	d := newDisk(t, frames.Field{Name: "x-stream-max-segment-size-bytes", Value: int32(200_000)})
	model := newModel(t, d)
	for i := range 40 {
		model.publish(1 + 37*i%300)
		if i%10 == 9 {
			d.restart()
			model.q = d.Queue
			model.check(model.subscribe("first", 0, 1<<20))
			model.check(model.subscribe("middle", uint64(len(model.bodies)/2), 1<<20))
		}
	}
	d.SetPolicy(policy(queue.Definition{"max-length-bytes": 300e3}))
	d.SetPolicy(policy(queue.Definition{"max-length-bytes": 200e3}))
	f := d.Figures()
	if f.First == 0 || f.Bytes > 400e3 {
		t.Errorf("nothing was forgotten: %+v", f)
	}
	d.restart()
	if again := d.Figures(); again != f {
		t.Errorf("after the restart %+v, before %+v", again, f)
	}
	model.q = d.Queue
	model.check(model.subscribe("first", 0, 1<<20))
}

// A model knows what a stream must give.
type model struct {
	t      *testing.T
	q      *Queue
	rng    *rand.Rand
	bodies []string // by offset
}

// A follower is a reader of a model.
type follower struct {
	*queuetest.Consumer
	name     string
	next     uint64
	prefetch int
}

func newModel(t *testing.T, d *disk) *model {
	return &model{t: t, q: d.Queue, rng: rand.New(rand.NewPCG(1, 2))}
}

// publish publishes a batch of random messages.
func (m *model) publish(n int) {
	batch := make([]queue.Entry, n)
	for i := range batch {
		size := m.rng.IntN(200)
		if m.rng.IntN(100) == 0 {
			size = m.rng.IntN(3 * chunkSize)
		}
		body := fmt.Sprint(len(m.bodies), " ", strings.Repeat("b", size))
		msg := queuetest.Message(body)
		if m.rng.IntN(3) == 0 {
			msg = queuetest.With(body, func(p *frames.Properties) {
				p.SetTable(frames.Table{{Name: "n", Value: int64(i)}, {Name: "a", Value: body[:min(len(body), m.rng.IntN(100))]}})
			})
		}
		msg.RoutingKey = fmt.Sprint("key", m.rng.IntN(2))
		m.bodies = append(m.bodies, body)
		batch[i] = queue.Entry{Msg: msg}
	}
	commit(m.q, batch)
}

func (m *model) subscribe(name string, offset uint64, prefetch int) *follower {
	m.t.Helper()
	f := &follower{Consumer: queuetest.NewConsumer(), name: name, next: offset, prefetch: prefetch}
	f.Sub.Prefetch = prefetch
	f.Sub.Arguments = frames.Table{{Name: "x-stream-offset", Value: int64(offset)}}
	if err := m.q.Subscribe(f.Sub); err != nil {
		m.t.Fatal(err)
	}
	return f
}

// check looks at what a follower has got since the last time, and settles some.
func (m *model) check(f *follower) {
	m.t.Helper()
	f.Bodies()
	first := m.q.Figures().First
	held := f.Held()
	for i, d := range held {
		at := uint64(d.ID) - 1
		if at != f.next && (at < f.next || at > first) {
			m.t.Fatalf("%s got offset %d instead of %d; the stream begins at %d", f.name, at, f.next, first)
		}
		if offsetOf(m.t, d.Msg) != int64(at) || string(d.Msg.Body) != m.bodies[at] {
			m.t.Fatalf("%s: delivery %d is %.30q with offset %d, want %.30q", f.name, i, d.Msg.Body, offsetOf(m.t, d.Msg), m.bodies[at])
		}
		f.next = at + 1
	}
	if len(held) < f.prefetch && f.next != uint64(len(m.bodies)) {
		m.t.Fatalf("%s got %d deliveries and is at %d of %d", f.name, len(held), f.next, len(m.bodies))
	}
	m.q.Settle(f.Sub, held, queue.Accepted)
}

// TestAgainstModel does random things to a stream and looks at what its readers
// get.
func TestAgainstModel(t *testing.T) {
	d := newDisk(t, frames.Field{Name: "x-stream-max-segment-size-bytes", Value: int32(100_000)})
	d.SetPolicy(policy(queue.Definition{"max-length-bytes": 500e3}))
	m := newModel(t, d)
	var all []*follower
	for step := range 1500 {
		switch k := m.rng.IntN(100); {
		case k < 50:
			m.publish(1 + m.rng.IntN(60))
		case k < 60 && len(all) < 30:
			all = append(all, m.subscribe(fmt.Sprint("reader ", step), uint64(m.rng.IntN(len(m.bodies)+1)), 1+m.rng.IntN(300)))
		case k < 63 && len(all) > 0:
			i := m.rng.IntN(len(all))
			m.q.Cancel(all[i].Sub)
			all = append(all[:i], all[i+1:]...)
		case k == 99:
			d.restart()
			m.q = d.Queue
			d.SetPolicy(policy(queue.Definition{"max-length-bytes": 500e3}))
			all = nil
		case len(all) > 0:
			m.check(all[m.rng.IntN(len(all))])
		}
		if f := d.Figures(); f.Next != uint64(len(m.bodies)) || f.Bytes > 700e3 {
			t.Fatalf("step %d: %+v, %d messages published", step, f, len(m.bodies))
		}
	}
	if f := d.Figures(); f.First == 0 {
		t.Error("nothing was ever forgotten")
	}
}

// Messages of several publishes share the receipt's fate with the real store.
func TestConfirmOnDisk(t *testing.T) {
	d := newDisk(t)
	commit(d.Queue, []queue.Entry{{Msg: queuetest.Message("0")}, {Msg: queuetest.Message("1")}})
	if got := d.log.Durable(); got != 2 {
		t.Errorf("confirmed, and durable up to %d", got)
	}
}

// commit publishes a batch and waits until it is on disk, and with readers that wait
// for it.
func commit(q *Queue, batch []queue.Entry) {
	done := make(settled, 1)
	r := message.NewReceipt(done, 1, uint64(len(batch)))
	r.Hold(1)
	for i := range batch {
		batch[i].Receipt, batch[i].Seq = r, uint64(i+1)
	}
	q.Enqueue(batch)
	<-done
	q.announce()
}

type settled chan struct{}

func (s settled) Settled(*message.Receipt) { s <- struct{}{} }
