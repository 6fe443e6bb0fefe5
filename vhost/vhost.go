package vhost

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// A VHost is one namespace of exchanges and queues. Its methods are safe for
// concurrent use.
type VHost struct {
	name      string      // immutable
	id        uint64      // immutable; the incarnation: a vhost made again has another
	set       *Set        // immutable
	held      *delayer    // immutable; messages with a delivery delay
	producers *producers  // immutable; of idempotent publishing
	log       *zap.Logger // immutable
	env       queue.Env   // immutable; of queues, but for their logs

	// generation changes whenever messages may be routed otherwise than
	// before; it changes after the topology did. Atomic.
	generation atomic.Uint64
	// refs is what QueueRefs returned last, nil since a queue has come or gone.
	// Written while mu is held, read without. Atomic.
	refs atomic.Pointer[[]QueueRef]
	// tracing is whether messages are traced. Atomic.
	tracing atomic.Bool

	// mu guards the fields below and those of the entries in them. It is never
	// held across a disk write, nor while a queue is called that may call back.
	// Order: VHost.mu before Exchange.mu before Queue.mu.
	mu        sync.RWMutex
	options   Options
	exchanges map[string]*exchangeEntry
	queues    map[string]*queueEntry
	owned     map[any]map[*queueEntry]struct{} // exclusive queues by owner
	policies  policies
	limits    Limits
	// parameters are those of components that the broker does not know.
	parameters map[parameterID]json.RawMessage
	deleted    bool

	// policyMu lets one policy change at a time reach the queues, so that they
	// end with the last one. Order: policyMu before VHost.mu.
	policyMu sync.Mutex

	connections atomic.Int64 // open connections, for the limit

	idleMu sync.Mutex   // guards idle; a leaf
	idle   []*Publisher // see borrow
}

// An exchangeEntry is an exchange with what the topology knows of it.
type exchangeEntry struct {
	x       *exchange.Exchange // immutable
	id      uint64             // immutable; the incarnation
	user    string             // immutable; who declared it
	delayed *delayer           // immutable; nil unless messages can wait here
	filter  *filter            // immutable; nil unless duplicates are dropped
	builtin bool               // immutable; predeclared: not stored

	published atomic.Uint64 // messages published here
	routed    atomic.Uint64 // copies of them that went into queues

	sources []source // guarded by VHost.mu: the exchanges with bindings to this one
	removed bool     // guarded by VHost.mu: it is being deleted
	policy  *Policy  // guarded by VHost.mu: the one that applies; nil if none
}

// A queueEntry is a queue with what the topology knows of it.
type queueEntry struct {
	log    persistence.Log // immutable; of its messages; nil if it is not durable
	q      queue.Queue     // immutable
	spec   queue.Spec      // immutable
	id     uint64          // immutable; the incarnation
	owner  any             // immutable; of an exclusive queue
	filter *filter         // immutable; nil unless duplicates are dropped
	user   string          // immutable; who declared it

	gone   atomic.Bool // the queue was taken out of the topology
	warned atomic.Bool // the log has a warning of a dead-letter cycle here

	sources  []source      // guarded by VHost.mu: the exchanges with bindings to it
	ending   chan struct{} // guarded by VHost.mu: closed when a deletion that is under way was done or refused
	policy   *Policy       // guarded by VHost.mu: the one that applies; nil if none
	operator *Policy       // guarded by VHost.mu
}

// A source counts the bindings from one exchange to one destination.
type source struct {
	from *exchangeEntry
	n    int
}

// addSource counts one more binding from e.
func addSource(list []source, e *exchangeEntry) []source {
	for i := range list {
		if list[i].from == e {
			list[i].n++
			return list
		}
	}
	return append(list, source{e, 1})
}

// dropSource counts n bindings from e less.
func dropSource(list []source, e *exchangeEntry, n int) []source {
	for i := range list {
		if list[i].from != e {
			continue
		}
		if list[i].n -= n; list[i].n > 0 {
			return list
		}
		last := len(list) - 1
		list[i], list[last] = list[last], source{}
		return list[:last]
	}
	return list
}

// Name is the vhost's name.
func (v *VHost) Name() string { return v.name }

// Exchange finds an exchange; the Error for the client is 404.
func (v *VHost) Exchange(name string) (*exchange.Exchange, error) {
	e := v.exchangeEntry(name)
	if e == nil {
		return nil, v.errNoExchange(name)
	}
	return e.x, nil
}

func (v *VHost) exchangeEntry(name string) *exchangeEntry {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.exchanges[name]
}

// queueEntry finds a queue. While its deletion is under way it waits for the
// outcome; nobody must get hold of a queue that is about to go.
func (v *VHost) queueEntry(name string) *queueEntry {
	for {
		v.mu.RLock()
		e := v.queues[name]
		var ending chan struct{}
		if e != nil {
			ending = e.ending
		}
		v.mu.RUnlock()
		if ending == nil {
			return e
		}
		<-ending
	}
}

// Queue finds a queue for an operation of this actor: 404 if there is none, 405
// if another connection has it exclusively. It checks no permission.
func (v *VHost) Queue(by Actor, name string) (queue.Queue, error) {
	e, err := v.accessible(by, name)
	if err != nil {
		return nil, err
	}
	return e.q, nil
}

func (v *VHost) accessible(by Actor, name string) (*queueEntry, error) {
	e := v.queueEntry(name)
	if e == nil {
		return nil, v.errNoQueue(name)
	}
	if e.spec.Exclusive && e.owner != by.Owner() {
		return nil, v.errLocked(name)
	}
	return e, nil
}

func (v *VHost) errNoExchange(name string) error {
	return frames.Errorf(frames.NotFound, "no %s", v.exchangeName(name))
}

func (v *VHost) errNoQueue(name string) error {
	return frames.Errorf(frames.NotFound, "no %s", v.queueName(name))
}

func (v *VHost) errLocked(name string) error {
	return frames.Errorf(frames.ResourceLocked, "cannot obtain exclusive access to locked %s. It could be originally declared "+
		"on another connection or the exclusive property value does not match that of the original declaration.", v.queueName(name))
}

// exchangeName and queueName are the names of a resource in texts (RabbitMQ 4.0).
func (v *VHost) exchangeName(name string) string {
	return fmt.Sprintf("exchange '%s' in vhost '%s'", name, v.name)
}

func (v *VHost) queueName(name string) string {
	return fmt.Sprintf("queue '%s' in vhost '%s'", name, v.name)
}

// errGone is for operations that come too late: the vhost was deleted.
func (v *VHost) errGone() error {
	return frames.Errorf(frames.ConnectionForced, "vhost '%s' is deleted", v.name)
}

// stripCRLF takes CR and LF out of a name, as RabbitMQ does in declare, delete,
// bind and unbind.
func stripCRLF(name string) string {
	if !strings.ContainsAny(name, "\r\n") {
		return name
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(name)
}

// reserved says whether a name is the broker's.
func reserved(name string) bool { return strings.HasPrefix(name, "amq.") }

// A change collects under VHost.mu what an operation causes besides, and what
// is done after the lock was released: definitions to write, events.
type change struct {
	v        *VHost
	pending  []pending
	events   []event
	dropped  []*exchangeEntry // deleted exchanges
	rerouted bool             // messages may be routed otherwise
}

// put decides on a definition.
func (c *change) put(kind persistence.Kind, key string, value []byte) {
	c.pending = append(c.pending, c.v.set.definitions.set(kind, key, value))
}

// delete decides that a definition goes.
func (c *change) delete(kind persistence.Kind, key string) { c.put(kind, key, nil) }

// after makes the operation wait for a definition that another one has decided
// on and that may not be durable yet: what is acknowledged here builds on it.
func (c *change) after(kind persistence.Kind, key string) {
	if p, ok := c.v.set.definitions.last(kind, key); ok {
		c.pending = append(c.pending, p)
	}
}

// finish does what is left to do after the lock was released. When it returns
// nil, the change is durable, unless the actor sees to that itself.
func (c *change) finish(by Actor) error {
	for _, e := range c.dropped {
		e.drop()
	}
	c.dropped = nil
	if l, ok := by.(Later); ok && l.Changes().take(c) {
		return nil
	}
	return c.settle()
}

// settle waits until the change is durable, and tells of it.
func (c *change) settle() error {
	var err error
	if len(c.pending) > 0 {
		err = c.v.set.definitions.wait(c.pending...)
	}
	for _, e := range c.events {
		c.v.set.Event(e.key, e.fields)
	}
	return err
}

// unlock ends the part of the operation that is done under VHost.mu.
func (c *change) unlock() {
	if c.rerouted {
		c.v.generation.Add(1)
	}
	c.v.mu.Unlock()
}

// change takes VHost.mu and begins an operation.
func (v *VHost) change() *change {
	v.mu.Lock()
	return &change{v: v}
}

// changeLive is change, unless the vhost is deleted: parameters have keys that are
// those of a later vhost of the name, too.
func (v *VHost) changeLive() (*change, error) {
	c := v.change()
	if v.deleted {
		c.unlock()
		return nil, v.errGone()
	}
	return c, nil
}

// allKeysOf returns all routing keys of a message.
func allKeysOf(m *message.Message) []string {
	keys := keysOf(m)
	if m.More != nil {
		keys = append(keys, m.More.BCC...)
	}
	return keys
}

// keysOf returns the routing keys of a message that deliveries and dead letters
// show: without BCC.
func keysOf(m *message.Message) []string {
	keys := []string{m.RoutingKey}
	if m.More != nil {
		keys = append(keys, m.More.CC...)
	}
	return keys
}
