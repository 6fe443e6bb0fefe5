package classic

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// A model is the stupid queue: one sorted list.
type model struct {
	priorities int
	limit      int
	ready      []entry
	unacked    map[queue.ID]entry
	dead       []string
}

type entry struct {
	body        string
	id          int // order of publishing
	prio        int
	persistent  bool
	redelivered bool
}

// add puts an entry in its place: by priority, then by order.
func (m *model) add(e entry) {
	i, _ := slices.BinarySearchFunc(m.ready, e, func(a, b entry) int {
		if a.prio != b.prio {
			return b.prio - a.prio
		}
		return a.id - b.id
	})
	m.ready = slices.Insert(m.ready, i, e)
}

// trim drops the head while there are too many.
func (m *model) trim() {
	for m.limit > 0 && len(m.ready) > m.limit {
		m.dead = append(m.dead, m.ready[0].body+" maxlen")
		m.ready = m.ready[1:]
	}
}

// Random operations do to the queue what they do to the model.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testAgainstModel(t, seed) })
	}
}

func testAgainstModel(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	a := queue.NewArguments()
	a.DeadLetter = deadLetter
	m := &model{unacked: map[queue.ID]entry{}}
	if seed%3 == 1 {
		a.MaxPriority, m.priorities = 3, 3
	}
	if seed%4 == 2 {
		a.MaxLength, m.limit = 30, 30
	}
	env := queue.Env{}
	if seed%2 == 1 {
		env.Memory = queue.NewBudget(1)
		spills := queuetest.NewStore()
		env.Spill = func() (persistence.Log, error) { return spills.NewLog() }
	}
	h := queuetest.NewWith(t, New, queue.Spec{Durable: true, Arguments: &a}, env)
	held := map[queue.ID]queue.Delivery{}
	next := 0
	filler := strings.Repeat(".", 3000)
	for range 600 {
		switch op := rnd.IntN(100); {
		case op < 40: // publish a batch
			var batch []*message.Message
			for range 1 + rnd.IntN(6) {
				next++
				e := entry{body: fmt.Sprint(next, filler), id: next, persistent: rnd.IntN(3) > 0}
				prio := rnd.IntN(5)
				msg := queuetest.With(e.body, func(p *frames.Properties) {
					p.Flags |= frames.FlagPriority
					p.Priority = byte(prio)
					if !e.persistent {
						p.DeliveryMode = 1
					}
				})
				e.prio = min(prio, m.priorities)
				batch = append(batch, msg)
				m.add(e)
				m.trim()
			}
			h.Send(batch...)
		case op < 75: // get
			d, left, ok, err := h.Queue.Get(false)
			if err != nil || ok != (len(m.ready) > 0) {
				t.Fatalf("Get() = ok %t, error %v; the model has %d", ok, err, len(m.ready))
			}
			if !ok {
				continue
			}
			e := m.ready[0]
			m.ready = m.ready[1:]
			if string(d.Msg.Body) != e.body || d.Redelivered != e.redelivered || left != len(m.ready) || d.Stored != e.persistent {
				t.Fatalf("Get() = %.8s, redelivered %t, %d left, stored %t; the model has %.8s, %t, %d, %t",
					d.Msg.Body, d.Redelivered, left, d.Stored, e.body, e.redelivered, len(m.ready), e.persistent)
			}
			m.unacked[d.ID], held[d.ID] = e, d
		case op < 98: // settle some
			var ds []queue.Delivery
			how := queue.Outcome(rnd.IntN(4))
			for id, d := range held {
				if rnd.IntN(4) > 0 {
					continue
				}
				e := m.unacked[id]
				delete(held, id)
				delete(m.unacked, id)
				ds = append(ds, d)
				switch how {
				case queue.Requeued:
					e.redelivered = true
					m.add(e)
				case queue.Returned:
					m.add(e)
				case queue.Rejected:
					m.dead = append(m.dead, e.body+" rejected")
				}
			}
			h.Queue.Settle(nil, ds, how)
			m.trim()
		case op < 99:
			n, err := h.Queue.Purge()
			if n != len(m.ready) || err != nil {
				t.Fatalf("Purge() = %d, %v; the model has %d", n, err, len(m.ready))
			}
			m.ready = nil
		default: // restart: what was unacknowledged is back, what was not stored is gone
			h.Reopen()
			for _, e := range m.unacked {
				m.add(e)
			}
			m.ready = slices.DeleteFunc(m.ready, func(e entry) bool { return !e.persistent })
			m.unacked, held = map[queue.ID]entry{}, map[queue.ID]queue.Delivery{}
			for i := range m.ready {
				m.ready[i].redelivered = false
			}
			h.Queue.SetPolicy(queue.Merge(nil, nil))
			m.trim()
			forgetRedelivered(h, m)
		}
		if s := h.Queue.Status(); s.Ready != len(m.ready) || s.Unacked != len(m.unacked) {
			t.Fatalf("%d ready, %d unacked; the model has %d, %d", s.Ready, s.Unacked, len(m.ready), len(m.unacked))
		}
	}
	queuetest.Equal(t, "dead letters", h.Dead(), m.dead)
}

// forgetRedelivered takes the flags after a restart from the queue: it may mark
// more than was delivered.
func forgetRedelivered(h *queuetest.Harness, m *model) {
	var ds []queue.Delivery
	for i := range m.ready {
		d := h.Get()
		m.ready[i].redelivered = d.Redelivered
		ds = append(ds, d)
	}
	h.Queue.Settle(nil, ds, queue.Returned)
}

// A worker is a consumer in the stress test: it settles from a goroutine of its
// own and counts each message that it was given for good.
type worker struct {
	sub  *queue.Subscription
	wake chan struct{}

	mu   sync.Mutex
	held []queue.Delivery
	room int
}

func (w *worker) Deliver(batch []queue.Delivery) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(batch), w.room)
	w.room -= n
	w.held = append(w.held, batch[:n]...)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return n
}

func (w *worker) Cancelled(*queue.Subscription)       {}
func (w *worker) Activated(*queue.Subscription, bool) {}

func (w *worker) take() []queue.Delivery {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.held
	w.held = nil
	w.room = 100
	return h
}

// Publishers, consumers that come and go, requeues, rejects and paging at once:
// in the end each message was accepted, dead-lettered or is still there, once.
func TestStress(t *testing.T) {
	const publishers, each, workers = 4, 3000, 4
	spills := queuetest.NewStore()
	env := queue.Env{Memory: queue.NewBudget(200 << 10), Spill: func() (persistence.Log, error) { return spills.NewLog() }}
	a := queue.NewArguments()
	a.DeadLetter = deadLetter
	h := queuetest.NewWith(t, New, queue.Spec{Durable: true, Arguments: &a}, env)
	var accepted [publishers * each]atomic.Int32
	var total atomic.Int64
	done := make(chan struct{})

	var publishing, consuming sync.WaitGroup
	filler := strings.Repeat(".", 500)
	for p := range publishers {
		publishing.Go(func() {
			for i := 0; i < each; i += 5 {
				var batch []*message.Message
				for j := range 5 {
					body := fmt.Sprintf("%d%s", p*each+i+j, filler)
					if j%2 == 0 {
						batch = append(batch, queuetest.Persistent(body))
					} else {
						batch = append(batch, queuetest.Message(body))
					}
				}
				h.SendConfirmed(batch...)
			}
		})
	}
	count := func(d *queue.Delivery) {
		var n int
		if _, err := fmt.Sscanf(string(d.Msg.Body), "%d.", &n); err != nil {
			t.Error(err)
			return
		}
		accepted[n].Add(1)
		if total.Add(1) == publishers*each {
			close(done)
		}
	}
	for k := range workers {
		consuming.Go(func() { work(h, k, count, done) })
	}
	publishing.Wait()
	<-done
	consuming.Wait()
	for i := range accepted {
		if n := accepted[i].Load(); n != 1 {
			t.Errorf("message %d was accepted %d times", i, n)
		}
	}
	h.WantCounts(0, 0)
	if n := h.Store.Log(h.Queue.(*Queue).LogID()).Len(); n != 0 {
		t.Errorf("%d records are left in the log", n)
	}
}

// work consumes with one subscription after the other until done.
func work(h *queuetest.Harness, k int, count func(*queue.Delivery), done chan struct{}) {
	rnd := rand.New(rand.NewPCG(uint64(k), 2))
	for {
		w := &worker{wake: make(chan struct{}, 1), room: 100}
		w.sub = &queue.Subscription{Consumer: w, Prefetch: 50 * (k % 3), Window: &queue.Window{}, Priority: k % 2}
		if err := h.Queue.Subscribe(w.sub); err != nil {
			h.T.Error(err)
			return
		}
		for range 50 {
			select {
			case <-w.wake:
			case <-done:
				h.Queue.Cancel(w.sub)
				return
			}
			settle(h, w, rnd, count)
		}
		h.Queue.Cancel(w.sub)
		if ds := w.take(); len(ds) > 0 {
			h.Queue.Settle(w.sub, ds, queue.Requeued)
		}
	}
}

// settle accepts most of what the worker holds and gives the rest back.
func settle(h *queuetest.Harness, w *worker, rnd *rand.Rand, count func(*queue.Delivery)) {
	ds := w.take()
	keep := len(ds)
	if rnd.IntN(4) == 0 {
		keep = rnd.IntN(len(ds) + 1)
	}
	h.Queue.Settle(w.sub, ds[keep:], queue.Outcome(1+2*rnd.IntN(2))) // requeued or returned
	h.Queue.Settle(w.sub, ds[:keep], queue.Accepted)
	for i := range ds[:keep] {
		count(&ds[i])
	}
	h.Queue.Resume(w.sub)
}
