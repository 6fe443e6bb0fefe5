package exchange

import (
	"slices"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// A destination is where a binding leads; one of the fields is nil.
type destination struct {
	queue    queue.Queue
	exchange *Exchange
}

func (b *Binding) destination() destination { return destination{b.Queue, b.To} }

// An identity tells the bindings of one exchange apart (RabbitMQ 4.0: the
// arguments count as a whole, and types of values as well as values).
type identity struct {
	destination
	key  string
	args string // encoded in order of name
}

func identityOf(q queue.Queue, to *Exchange, key string, args frames.Table) identity {
	id := identity{destination: destination{q, to}, key: key}
	if len(args) > 0 {
		id.args = string(frames.AppendTable(nil, args.Sorted()))
	}
	return id
}

// places are where a binding stands in the lists it is in, so that it is taken
// out of them without a search.
type places struct {
	alone    bool // there is no other binding to the destination
	inSet    int  // in bindingSet.list
	inDest   int  // in bindingSet.byDest[destination]
	inRouter int  // in the one list of the router that has it
}

// A bindingSet is all bindings of an exchange. Every change is a few steps,
// however many there are.
type bindingSet struct {
	list   []*Binding
	byID   map[identity]*Binding
	byDest map[destination][]*Binding
}

func newBindingSet() bindingSet {
	return bindingSet{byID: make(map[identity]*Binding), byDest: make(map[destination][]*Binding)}
}

// add returns false if a binding with this identity is there already.
func (s *bindingSet) add(id identity, b *Binding) bool {
	if s.byID[id] != nil {
		return false
	}
	s.byID[id] = b
	b.inSet = len(s.list)
	s.list = append(s.list, b)
	dest := s.byDest[id.destination]
	b.inDest, b.alone = len(dest), len(dest) == 0
	if len(dest) == 1 {
		dest[0].alone = false
	}
	s.byDest[id.destination] = append(dest, b)
	return true
}

// take removes the binding with this identity; it returns nil if there is none.
func (s *bindingSet) take(id identity) *Binding {
	b := s.byID[id]
	if b == nil {
		return nil
	}
	delete(s.byID, id)
	s.removeFromList(b)
	s.removeFromDest(b)
	return b
}

// takeAll removes the bindings to a destination and returns them.
func (s *bindingSet) takeAll(d destination) []*Binding {
	all := s.byDest[d]
	delete(s.byDest, d)
	for _, b := range all {
		delete(s.byID, identityOf(b.Queue, b.To, b.Key, b.Arguments))
		s.removeFromList(b)
	}
	return all
}

func (s *bindingSet) removeFromList(b *Binding) {
	last := len(s.list) - 1
	moved := s.list[last]
	s.list[b.inSet], moved.inSet = moved, b.inSet
	s.list[last] = nil
	s.list = s.list[:last]
}

func (s *bindingSet) removeFromDest(b *Binding) {
	d := b.destination()
	dest := s.byDest[d]
	last := len(dest) - 1
	if last == 0 {
		delete(s.byDest, d)
		return
	}
	moved := dest[last]
	dest[b.inDest], moved.inDest = moved, b.inDest
	dest[last] = nil
	s.byDest[d] = dest[:last]
	if last == 1 {
		dest[0].alone = true
	}
}

func (s *bindingSet) snapshot() []*Binding { return slices.Clone(s.list) }

// A routerList is a router's bindings that are found together, in no order. A
// binding is in at most one.
type routerList []*Binding

func (l *routerList) add(b *Binding) {
	b.inRouter = len(*l)
	*l = append(*l, b)
}

func (l *routerList) remove(b *Binding) {
	last := len(*l) - 1
	moved := (*l)[last]
	(*l)[b.inRouter], moved.inRouter = moved, b.inRouter
	(*l)[last] = nil
	*l = (*l)[:last]
}
