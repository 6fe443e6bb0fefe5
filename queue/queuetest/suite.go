// Package queuetest is the contract of queues as a test suite, and the fakes
// that queues are tested with: a store in memory and a consumer that records.
package queuetest

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A Harness is a queue under test with its surroundings.
type Harness struct {
	T     testing.TB
	Queue queue.Queue
	Store *Store
	Env   queue.Env
	Spec  queue.Spec

	factory queue.Factory

	mu    sync.Mutex // guards the fields below
	dead  []Dead
	ended []string
}

// A Dead is a message that the queue has dead-lettered.
type Dead struct {
	Body   string
	Reason queue.Reason
	Target queue.Target
	Msg    *message.Message
}

// New makes a queue. The name and the vhost of the spec may be left out.
func New(t testing.TB, factory queue.Factory, spec queue.Spec) *Harness {
	t.Helper()
	return NewWith(t, factory, spec, queue.Env{})
}

// NewWith makes a queue; what env leaves out is filled in.
func NewWith(t testing.TB, factory queue.Factory, spec queue.Spec, env queue.Env) *Harness {
	t.Helper()
	h := &Harness{T: t, Store: NewStore(), factory: factory}
	if spec.Name == "" {
		spec.VHost, spec.Name = "/", "q"
	}
	h.Spec = spec
	h.Env = env
	h.Env.Store = h.Store
	h.Env.DeadLetter = h.deadLetter
	h.Env.Ended = func(_ queue.Queue, why string) {
		h.mu.Lock()
		h.ended = append(h.ended, why)
		h.mu.Unlock()
	}
	h.open()
	return h
}

func (h *Harness) open() {
	h.T.Helper()
	q, err := h.factory(h.Env, h.Spec)
	if err != nil {
		h.T.Fatalf("cannot make the queue: %v", err)
	}
	h.Queue = q
	h.T.Cleanup(func() {
		if err := q.Stop(); err != nil {
			h.T.Errorf("Stop() = %v", err)
		}
	})
}

// Reopen is a restart: what is not durable is lost.
func (h *Harness) Reopen() {
	h.T.Helper()
	if err := h.Queue.Stop(); err != nil {
		h.T.Fatalf("Stop() = %v", err)
	}
	h.Store.Crash()
	h.Env.LogID = h.Queue.(queue.Logged).LogID()
	h.open()
}

func (h *Harness) deadLetter(_ queue.Queue, to queue.Target, why queue.Reason, msgs []*message.Message, _ *message.Receipt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range msgs {
		h.dead = append(h.dead, Dead{string(m.Body), why, to, m})
	}
}

// Dead returns what was dead-lettered since the last call, as "body reason".
func (h *Harness) Dead() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []string
	for _, d := range h.dead {
		list = append(list, d.Body+" "+string(d.Reason))
	}
	h.dead = nil
	return list
}

// DeadMessages returns what was dead-lettered since the last call.
func (h *Harness) DeadMessages() []*message.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []*message.Message
	for _, d := range h.dead {
		list = append(list, d.Msg)
	}
	h.dead = nil
	return list
}

// DeadTargets returns where the dead letters since the last call went.
func (h *Harness) DeadTargets() []queue.Target {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []queue.Target
	for _, d := range h.dead {
		list = append(list, d.Target)
	}
	h.dead = nil
	return list
}

// Ended returns why the queue has ended itself.
func (h *Harness) Ended() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.ended)
}

// Message makes a transient message.
func Message(body string) *message.Message {
	m := message.New(2, len(body)) // no properties
	copy(m.Body, body)
	m.RoutingKey = "k"
	m.Time = time.Now().UnixMilli()
	return m
}

// Persistent makes a persistent message.
func Persistent(body string) *message.Message { return With(body, func(*frames.Properties) {}) }

// With makes a persistent message with properties.
func With(body string, set func(p *frames.Properties)) *message.Message {
	p := frames.Properties{Flags: frames.FlagDeliveryMode, DeliveryMode: 2}
	set(&p)
	m := Message(body)
	m.Header = p.Append(nil)
	m.Persistent = p.DeliveryMode == 2
	m.Priority = p.Priority
	if p.Has(frames.FlagExpiration) {
		if _, err := fmt.Sscan(string(p.Expiration), &m.TTL); err != nil {
			panic(err)
		}
	}
	return m
}

// TTL makes a transient message with an expiration in milliseconds.
func TTL(body string, ms int) *message.Message {
	return With(body, func(p *frames.Properties) {
		p.Flags |= frames.FlagExpiration
		p.DeliveryMode = 1
		p.Expiration = fmt.Append(nil, ms)
	})
}

// Priority makes a persistent message with a priority.
func Priority(body string, n byte) *message.Message {
	return With(body, func(p *frames.Properties) {
		p.Flags |= frames.FlagPriority
		p.Priority = n
	})
}

// Publish publishes transient messages one by one.
func (h *Harness) Publish(bodies ...string) {
	for _, b := range bodies {
		h.Send(Message(b))
	}
}

// Send publishes messages as one batch.
func (h *Harness) Send(msgs ...*message.Message) queue.Writes {
	batch := make([]queue.Entry, len(msgs))
	for i, m := range msgs {
		batch[i] = queue.Entry{Msg: m}
	}
	return h.Queue.Enqueue(batch)
}

// A Confirm is the fate of a batch that was published with a receipt.
type Confirm struct {
	mu      sync.Mutex
	settled int
	refused []uint64
	failed  bool
}

// Settled implements message.Owner.
func (c *Confirm) Settled(r *message.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled++
	refused, failed := r.Outcome()
	c.refused = append(c.refused, refused...)
	c.failed = failed
}

// Done says whether the batch is settled; twice is as wrong as never.
func (c *Confirm) Done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled == 1
}

// Refused returns the numbers of refused messages, and whether all failed.
func (c *Confirm) Refused() ([]uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.refused)
	return c.refused, c.failed
}

// SendConfirmed publishes messages as one batch with a receipt; they are
// numbered from 1.
func (h *Harness) SendConfirmed(msgs ...*message.Message) *Confirm {
	c := &Confirm{}
	r := message.NewReceipt(c, 1, uint64(len(msgs)))
	r.Hold(1)
	batch := make([]queue.Entry, len(msgs))
	for i, m := range msgs {
		batch[i] = queue.Entry{Msg: m, Receipt: r, Seq: uint64(i + 1)}
	}
	h.Queue.Enqueue(batch)
	return c
}

// Consume subscribes a consumer after set has changed its subscription.
func (h *Harness) Consume(set func(s *queue.Subscription)) *Consumer {
	h.T.Helper()
	c := NewConsumer()
	if set != nil {
		set(c.Sub)
	}
	if err := h.Queue.Subscribe(c.Sub); err != nil {
		h.T.Fatalf("Subscribe() = %v", err)
	}
	return c
}

// Get takes one message, which must be there.
func (h *Harness) Get() queue.Delivery {
	h.T.Helper()
	d, _, ok, err := h.Queue.Get(false)
	if err != nil || !ok {
		h.T.Fatalf("Get() = ok %t, error %v, want a message", ok, err)
	}
	return d
}

// Drain gets all messages and returns their bodies; they are settled.
func (h *Harness) Drain() []string {
	h.T.Helper()
	var bodies []string
	for {
		d, _, ok, err := h.Queue.Get(true)
		if err != nil {
			h.T.Fatalf("Get() = %v", err)
		}
		if !ok {
			return bodies
		}
		bodies = append(bodies, string(d.Msg.Body))
	}
}

// WantDrain drains the queue, which must hold these.
func (h *Harness) WantDrain(want ...string) {
	h.T.Helper()
	Equal(h.T, "messages in the queue", h.Drain(), want)
}

// WantCounts checks how many messages are ready and unacknowledged.
func (h *Harness) WantCounts(ready, unacked int) {
	h.T.Helper()
	s := h.Queue.Status()
	if s.Ready != ready || s.Unacked != unacked {
		h.T.Errorf("%d ready and %d unacknowledged, want %d and %d", s.Ready, s.Unacked, ready, unacked)
	}
}

// WantEndlessTimes checks that a policy with the longest times that can be written
// lets messages and the queue be. It needs a fake clock.
func (h *Harness) WantEndlessTimes() {
	h.T.Helper()
	h.Queue.SetPolicy(queue.Merge(&queue.NamedDefinition{Name: "p", Definition: queue.Definition{
		"expires": int64(math.MaxInt64), "message-ttl": int64(math.MaxInt64)}}, nil))
	h.Publish("a")
	time.Sleep(time.Hour)
	h.Publish("b")
	h.WantCounts(2, 0)
	Equal(h.T, "why the queue ended", h.Ended(), nil)
}

// Equal compares lists.
func Equal[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) || !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
