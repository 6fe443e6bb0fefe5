// Package exchange holds the exchange types and their binding structures: it
// answers which queues a message goes to.
package exchange

import (
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A Binding joins an exchange to a queue or to another exchange. Its exported
// fields are immutable. It may be given to one exchange once.
type Binding struct {
	Queue     queue.Queue // the destination, or nil if To is
	To        *Exchange
	Key       string
	Arguments frames.Table
	// Since is when it was made, in Unix nanoseconds; 0 is not known, before all
	// others. It matters only if Exchange.Ages says so.
	Since uint64

	places // guarded by the source exchange's mu
}

// A Router is one exchange's bindings. Route may run concurrently with itself,
// not with Bind or Unbind: the Exchange's lock sees to that. Bindings are told
// apart by pointer; the Exchange never binds the same twice.
type Router interface {
	// Check says whether a binding with this key and these arguments is valid,
	// as an Error for the client; q is nil if the destination is an exchange.
	Check(key string, args frames.Table, q queue.Queue) error
	Bind(b *Binding)
	Unbind(b *Binding)
	// Route adds the bindings that match the message: each once only, for each
	// of the message's keys if the type looks at the key (see keyCount).
	Route(m *message.Message, to *Matches)
	// ByKey says that Route looks at nothing but the key, so that its result
	// may be kept until a binding changes.
	ByKey() bool
}

// A Spec is what an exchange is declared with.
type Spec struct {
	Name, Type string
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  frames.Table
	VHost      string // for error texts only
	Gated      bool   // see Exchange.Gated
}

// An Exchange is a named router with its declaration. Its methods are safe for
// concurrent use.
type Exchange struct {
	Name       string       // immutable
	Type       string       // immutable
	Durable    bool         // immutable
	AutoDelete bool         // immutable
	Internal   bool         // immutable
	Arguments  frames.Table // immutable
	// Gated says that messages which come through another exchange have to pass
	// Guide.Enter; immutable.
	Gated bool

	byKey bool // router.ByKey(); immutable

	// mu guards the fields below. Held for one Bind, Unbind or this exchange's
	// own part of Route; never while another exchange's is taken.
	mu        sync.RWMutex
	router    Router // the field itself is immutable
	bindings  bindingSet
	alternate string // the alternate exchange's name, of arguments or policy
	hasAlt    bool
}

// New makes an exchange, or says as an Error for the client why its type or an
// argument is invalid. The alternate exchange is that of the arguments until
// SetAlternate says otherwise. Rules about names are not checked here.
func New(spec Spec) (*Exchange, error) {
	construct := constructorOf(spec.Type)
	if construct == nil {
		return nil, ErrUnknownType(spec.Type)
	}
	alternate, hasAlt, err := alternateArgument(&spec)
	if err != nil {
		return nil, err
	}
	router, err := construct(spec.Arguments)
	if err != nil {
		return nil, err
	}
	return &Exchange{
		Name:       spec.Name,
		Type:       spec.Type,
		Durable:    spec.Durable,
		AutoDelete: spec.AutoDelete,
		Internal:   spec.Internal,
		Arguments:  spec.Arguments,
		Gated:      spec.Gated,
		byKey:      router.ByKey(),
		router:     router,
		bindings:   newBindingSet(),
		alternate:  alternate,
		hasAlt:     hasAlt,
	}, nil
}

// Ages says whether routing depends on which of two bindings is the older one:
// Binding.Since has to be the same after a restart then.
func (x *Exchange) Ages() bool {
	router := x.router
	if d, ok := router.(*delayed); ok {
		router = d.Router
	}
	_, ok := router.(*consistentHash)
	return ok
}

// Bind adds a binding from this exchange. added is false if there is one with
// the same destination, key and arguments already, which then stays. err is an
// Error for the client: the exchange type does not take such a binding.
func (x *Exchange) Bind(b *Binding) (added bool, err error) {
	if err := x.router.Check(b.Key, b.Arguments, b.Queue); err != nil {
		return false, err
	}
	id := identityOf(b.Queue, b.To, b.Key, b.Arguments)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.bindings.add(id, b) {
		return false, nil
	}
	x.router.Bind(b)
	return true, nil
}

// Unbind removes the binding to q, or if q is nil to the exchange to, with this
// key and these arguments. It returns nil if there is none.
func (x *Exchange) Unbind(q queue.Queue, to *Exchange, key string, args frames.Table) (removed *Binding) {
	id := identityOf(q, to, key, args)
	x.mu.Lock()
	defer x.mu.Unlock()
	b := x.bindings.take(id)
	if b != nil {
		x.router.Unbind(b)
	}
	return b
}

// Has says whether there is a binding to the queue with this key and these
// arguments.
func (x *Exchange) Has(q queue.Queue, key string, args frames.Table) bool {
	id := identityOf(q, nil, key, args)
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.bindings.byID[id] != nil
}

// UnbindQueue removes all bindings to a queue and returns them.
func (x *Exchange) UnbindQueue(q queue.Queue) []*Binding {
	return x.unbindAll(destination{queue: q})
}

// UnbindExchange removes all bindings to an exchange and returns them.
func (x *Exchange) UnbindExchange(to *Exchange) []*Binding {
	return x.unbindAll(destination{exchange: to})
}

func (x *Exchange) unbindAll(d destination) []*Binding {
	x.mu.Lock()
	defer x.mu.Unlock()
	removed := x.bindings.takeAll(d)
	for _, b := range removed {
		x.router.Unbind(b)
	}
	return removed
}

// Bindings returns the bindings from this exchange, in no order. The slice is
// the caller's.
func (x *Exchange) Bindings() []*Binding {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.bindings.snapshot()
}

// Empty says that there is no binding from this exchange.
func (x *Exchange) Empty() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.bindings.list) == 0
}

// SetAlternate sets the alternate exchange, or none if ok is false. Which of
// argument and policy counts is the caller's rule.
func (x *Exchange) SetAlternate(name string, ok bool) {
	x.mu.Lock()
	x.alternate, x.hasAlt = name, ok
	x.mu.Unlock()
}

// Alternate returns the alternate exchange's name; ok is false if there is none.
func (x *Exchange) Alternate() (name string, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.alternate, x.hasAlt
}

// Route adds to a Matches, which was just Reset, the queues that the message
// goes to when it is published here: under all its keys, through bound
// exchanges, each of them once, and through the alternate exchange of every
// exchange that had no destination at all (RabbitMQ 4.0: one that is bound to
// an exchange has one, even if the message gets no further there).
//
// Whether the message may be published to x itself is the caller's question;
// gated exchanges that it reaches from there are asked about.
func (x *Exchange) Route(m *message.Message, guide Guide, to *Matches) {
	to.addExchange(x)
	for to.routed < len(to.exchanges.list) {
		at := to.exchanges.list[to.routed]
		to.routed++
		if at.Gated && at != x {
			to.uncacheable = true
			if !guide.Enter(at, m) {
				continue
			}
		}
		name, ok := at.collect(m, to)
		if !ok {
			continue
		}
		if alternate := guide.Alternate(name); alternate != nil {
			to.addExchange(alternate)
		}
	}
}

// A Guide is what Route asks its caller; it is called without a lock.
type Guide interface {
	// Alternate looks up an alternate exchange: nil if there is none of this name.
	Alternate(name string) *Exchange
	// Enter says whether a message that came through a binding or as to an
	// alternate exchange goes on through this gated one now.
	Enter(x *Exchange, m *message.Message) bool
}

// collect adds the destinations of this exchange's own bindings. If there was
// none and the exchange has an alternate, it returns that one's name.
func (x *Exchange) collect(m *message.Message, to *Matches) (alternate string, ok bool) {
	to.begin(m)
	x.mu.RLock()
	x.router.Route(m, to)
	alternate, ok = x.alternate, x.hasAlt
	x.mu.RUnlock()
	if !x.byKey {
		to.uncacheable = true
	}
	return alternate, ok && !to.matched
}

// keyCount is how many routing keys the message has: its own and those of the
// CC and BCC headers.
func keyCount(m *message.Message) int {
	if m.More == nil {
		return 1
	}
	return 1 + len(m.More.CC) + len(m.More.BCC)
}

// keyAt returns the i-th of the message's routing keys; its own is the first.
func keyAt(m *message.Message, i int) string {
	if i == 0 {
		return m.RoutingKey
	}
	if i <= len(m.More.CC) {
		return m.More.CC[i-1]
	}
	return m.More.BCC[i-1-len(m.More.CC)]
}
