// Package exchange holds the exchange types and their binding structures: it
// answers which queues a message goes to.
package exchange

import (
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A Binding joins an exchange to a queue or to another exchange. It is
// immutable.
type Binding struct {
	Queue     queue.Queue // the destination, or nil if To is
	To        *Exchange
	Key       string
	Arguments frames.Table
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
	// Route adds the destinations of the message under this key, one of its
	// routing keys.
	Route(m *message.Message, key string, to *Matches)
	// ByKey says that Route looks at nothing but the key, so that its result
	// may be kept until a binding changes.
	ByKey() bool
}

// An Exchange is a named router with its declaration.
type Exchange struct {
	Name       string       // immutable
	Type       string       // immutable
	Durable    bool         // immutable
	AutoDelete bool         // immutable
	Internal   bool         // immutable
	Arguments  frames.Table // immutable

	// mu guards the fields below. Held for one Bind, Unbind or this exchange's
	// own part of Route; never while another exchange's is taken.
	mu        sync.RWMutex
	router    Router
	bindings  []*Binding
	alternate string // the alternate exchange's name, of arguments or policy
	hasAlt    bool
}

// Matches collects where a message goes; it drops duplicates.
type Matches struct{}
