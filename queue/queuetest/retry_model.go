package queuetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// retryModel is the stupid queue that counts deliveries and makes messages wait.
type retryModel struct {
	all  map[string]*retried // that are still there, by body
	dead []string
	told []string // dead letters of the queue that are not compared yet
}

// A retried is one message of a retryModel.
type retried struct {
	body  string
	out   bool
	count int   // how often it was handed out, but for the present time
	due   int64 // Unix milliseconds; 0 if it does not wait
	// maybe says that a restart may have counted a first delivery that did not reach
	// the client.
	returned, maybe bool
	// doomed says that a restart made one delivery too many of it: it is ready until
	// the queue comes to it, and dies then.
	doomed bool
}

// The retry settings of the random tests: two returns, after 100 and 200 ms.
const (
	modelLimit = 2
	modelDelay = 100
)

// RunRetryRandom does to queues at random what it does to a model. paging says
// that everything is dropped from memory that can be.
func RunRetryRandom(t *testing.T, factory queue.Factory, seeds int, paging bool) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runRetryRandom(t, factory, seed, paging) })
		})
	}
}

func runRetryRandom(t *testing.T, factory queue.Factory, seed uint64, paging bool) {
	rnd := rand.New(rand.NewPCG(seed, 77))
	a := queue.NewArguments()
	a.DeadLetter = &queue.Target{Exchange: "dlx"}
	a.DeliveryLimit, a.RedeliveryDelay, a.RedeliveryMultiplier = modelLimit, modelDelay, 2
	env, filler := queue.Env{}, "."
	if paging {
		env.Memory = queue.NewBudget(1)
		spills := NewStore()
		env.Spill = func() (persistence.Log, error) { return spills.NewLog() }
		filler = strings.Repeat(".", 100<<10)
	}
	h := NewWith(t, factory, queue.Spec{Durable: true, Arguments: &a}, env)
	m := &retryModel{all: map[string]*retried{}}
	held := map[string]queue.Delivery{}
	next := 0
	for step := range 300 {
		switch op := rnd.IntN(100); {
		case op < 25:
			var batch []*message.Message
			for range 1 + rnd.IntN(4) {
				next++
				body := fmt.Sprint(next, filler)
				batch = append(batch, Persistent(body))
				m.all[body] = &retried{body: body}
			}
			h.Send(batch...)
		case op < 60:
			m.get(t, h, held)
		case op < 85:
			m.settle(h, held, rnd)
		case op < 96:
			sleep(rnd.IntN(150))
		case op < 97:
			if n, err := h.Queue.Purge(); err != nil || n != m.purge() {
				t.Fatalf("step %d: Purge() = %d, %v", step, n, err)
			}
		default:
			h.Reopen()
			h.Queue.SetPolicy(queue.Policy{})
			m.restart()
			clear(held)
		}
		m.compare(t, h, step)
	}
	m.drain(t, h, held)
}

// get takes a message, which must be ready, and as often handed out as the model says.
func (m *retryModel) get(t *testing.T, h *Harness, held map[string]queue.Delivery) {
	d, left, ok, err := h.Queue.Get(false)
	m.hear(h)
	ready, _, _ := m.counts()
	if err != nil || ok != (ready > 0) || ok && left != ready-1 {
		t.Fatalf("Get() = %d left, ok %t, error %v; the model has %d ready", left, ok, err, ready)
	}
	if !ok {
		return
	}
	e := m.all[string(d.Msg.Body)]
	if e != nil && e.maybe {
		e.count, e.maybe = min(1, int(d.Count)), false
	}
	if e == nil || e.out || e.doomed || e.due > time.Now().UnixMilli() || int(d.Count) != e.count || d.Redelivered != (e.count > 0) {
		t.Fatalf("Get() = %.5s, count %d, redelivered %t; the model has %.20s", d.Msg.Body, d.Count, d.Redelivered, fmt.Sprint(e))
	}
	e.out = true
	held[e.body] = d
}

func (m *retryModel) settle(h *Harness, held map[string]queue.Delivery, rnd *rand.Rand) {
	how := []queue.Outcome{queue.Accepted, queue.Requeued, queue.Requeued, queue.Requeued, queue.Rejected, queue.Returned}[rnd.IntN(6)]
	var ds []queue.Delivery
	for body, d := range held {
		if rnd.IntN(3) == 0 {
			ds = append(ds, d)
			delete(held, body)
		}
	}
	slices.SortFunc(ds, func(a, b queue.Delivery) int { return int(a.ID) - int(b.ID) })
	for _, d := range ds {
		m.settleOne(string(d.Msg.Body), how)
	}
	h.Queue.Settle(nil, ds, how)
}

func (m *retryModel) settleOne(body string, how queue.Outcome) {
	e := m.all[body]
	e.out, e.due = false, 0
	switch how {
	case queue.Accepted:
		delete(m.all, body)
	case queue.Rejected:
		delete(m.all, body)
		m.dead = append(m.dead, body+" rejected")
	case queue.Returned:
		e.returned = e.count == 0
	case queue.Requeued:
		if e.count++; e.count > modelLimit {
			delete(m.all, body)
			m.dead = append(m.dead, body+" delivery_limit")
			return
		}
		e.due = time.Now().UnixMilli() + modelDelay<<(e.count-1)
	}
}

// purge drops what is not out and returns how many those were.
func (m *retryModel) purge() (n int) {
	for body, e := range m.all {
		if !e.out {
			delete(m.all, body)
			n++
		}
	}
	return n
}

// restart is a crash: what was out comes back, and that was a delivery.
func (m *retryModel) restart() {
	for _, e := range m.all {
		if e.out {
			e.out = false
			e.count++
		}
		e.maybe = e.returned && e.count == 0
		e.doomed = e.count > modelLimit
	}
}

// hear takes the dead letters of the queue. The doomed among them are no news.
func (m *retryModel) hear(h *Harness) {
	for _, letter := range h.Dead() {
		body, reason, _ := strings.Cut(letter, " ")
		if e := m.all[body]; e != nil && e.doomed && reason == "delivery_limit" {
			delete(m.all, body)
			continue
		}
		m.told = append(m.told, letter)
	}
}

func (m *retryModel) counts() (ready, out, waiting int) {
	for _, e := range m.all {
		switch {
		case e.out:
			out++
		case e.due > time.Now().UnixMilli():
			waiting++
		default:
			ready++
		}
	}
	return ready, out, waiting
}

func (m *retryModel) compare(t *testing.T, h *Harness, step int) {
	synctest.Wait()
	m.hear(h)
	ready, out, waiting := m.counts()
	if s := h.Queue.Status(); s.Ready != ready || s.Unacked != out || s.Delayed != waiting || s.Persistent != ready+out+waiting {
		t.Fatalf("step %d: %d ready, %d out, %d delayed, %d stored; the model has %d, %d, %d", step, s.Ready, s.Unacked, s.Delayed, s.Persistent, ready, out, waiting)
	}
	slices.Sort(m.told)
	slices.Sort(m.dead)
	if !slices.Equal(m.told, m.dead) {
		t.Fatalf("step %d: %d dead letters, the model has %d", step, len(m.told), len(m.dead))
	}
	m.told, m.dead = nil, nil
}

// drain accepts all there is: then the log must be empty.
func (m *retryModel) drain(t *testing.T, h *Harness, held map[string]queue.Delivery) {
	sleep(1000)
	for ready := 1; ready > 0; ready, _, _ = m.counts() {
		m.get(t, h, held)
	}
	for body, d := range held {
		m.settleOne(body, queue.Accepted)
		h.Queue.Settle(nil, []queue.Delivery{d}, queue.Accepted)
	}
	m.compare(t, h, -1)
	h.wantNoRecords()
}
