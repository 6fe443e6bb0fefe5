package exchange

import "github.com/leveretmq/leveret/queue"

// Matches collects where a message goes; it drops duplicates. The zero value is
// ready. It belongs to one goroutine and is meant to be used again: Reset keeps
// its memory, and then most routes allocate nothing.
type Matches struct {
	queues    set[queue.Queue]
	exchanges set[*Exchange]
	routed    int // so many of exchanges were routed through

	matched     bool // the exchange being routed through had a destination
	uncacheable bool

	hashes set[*topicNode] // scratch of topicNode.matchHash
}

// Reset empties the matches.
func (t *Matches) Reset() {
	t.queues.reset()
	t.exchanges.reset()
	t.routed = 0
	t.matched = false
	t.uncacheable = false
}

// Queues returns the queues, each once, in the order they were found. The slice
// is valid until Reset.
func (t *Matches) Queues() []queue.Queue { return t.queues.list }

// Cacheable says that a message with the same routing key and no other keys
// goes to the same queues, until a binding, an exchange or an alternate
// exchange changes.
func (t *Matches) Cacheable() bool { return !t.uncacheable }

// AddQueue adds a queue found by other means than a binding.
func (t *Matches) AddQueue(q queue.Queue) { t.queues.add(q) }

// add adds the binding's destination.
func (t *Matches) add(b *Binding) {
	t.matched = true
	if b.Queue != nil {
		t.queues.add(b.Queue)
		return
	}
	t.exchanges.add(b.To)
}

func (t *Matches) addAll(l routerList) {
	for _, b := range l {
		t.add(b)
	}
}

func (t *Matches) addExchange(x *Exchange) { t.exchanges.add(x) }

// maxLinear is how many elements a set searches one by one; beyond it keeps an
// index.
const maxLinear = 16

// A set is a list without duplicates, in order of adding.
type set[T comparable] struct {
	list  []T
	index map[T]struct{} // of all elements if there are more than maxLinear, else empty
}

// add returns false if v is in the set already.
func (s *set[T]) add(v T) bool {
	if len(s.list) > maxLinear {
		return s.addIndexed(v)
	}
	for _, e := range s.list {
		if e == v {
			return false
		}
	}
	s.list = append(s.list, v)
	if len(s.list) > maxLinear {
		s.makeIndex()
	}
	return true
}

func (s *set[T]) addIndexed(v T) bool {
	before := len(s.index)
	s.index[v] = struct{}{}
	if len(s.index) == before {
		return false
	}
	s.list = append(s.list, v)
	return true
}

func (s *set[T]) makeIndex() {
	if s.index == nil {
		s.index = make(map[T]struct{}, 4*maxLinear)
	}
	for _, e := range s.list {
		s.index[e] = struct{}{}
	}
}

// reset empties the set, keeps its memory and lets go of what was in it.
func (s *set[T]) reset() {
	clear(s.list)
	s.list = s.list[:0]
	if len(s.index) > 0 {
		clear(s.index)
	}
}
