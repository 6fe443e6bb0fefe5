package exchange

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// Matches collects where a message goes; it drops duplicates. The zero value is
// ready. It belongs to one goroutine and is meant to be used again: Reset keeps
// its memory, and then most routes allocate nothing.
type Matches struct {
	queues    set[queue.Queue]
	exchanges set[*Exchange]
	routed    int // so many of exchanges were routed through

	matched     bool // the exchange being routed through had a destination
	distinct    bool // of that exchange each binding is added once, and no queue was found before
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

// begin prepares for the destinations of the message's next exchange.
func (t *Matches) begin(m *message.Message) {
	t.matched = false
	oneKey := keyCount(m) == 1
	t.distinct = oneKey && len(t.queues.list) == 0
	if !oneKey {
		t.uncacheable = true // the result is not that of RoutingKey alone
	}
}

// add adds the binding's destination. There is no need to search for a queue
// that can come but once (BenchmarkRouteFanout10: 363 to 67 ns; Fanout1000: 57
// to 6 us).
func (t *Matches) add(b *Binding) {
	if t.distinct && b.alone && b.Queue != nil {
		t.matched = true
		t.queues.append(b.Queue)
		return
	}
	t.addAgain(b)
}

// addAgain adds the destination of a binding that may have been added before.
func (t *Matches) addAgain(b *Binding) {
	t.matched = true
	if b.Queue == nil {
		t.exchanges.add(b.To)
		return
	}
	t.queues.add(b.Queue)
}

func (t *Matches) addAll(l routerList) {
	for _, b := range l {
		t.add(b)
	}
}

func (t *Matches) addExchange(x *Exchange) { t.exchanges.add(x) }

// maxLinear is how many elements a set searches one by one; beyond it makes an
// index.
const maxLinear = 16

// A set is a list without duplicates, in order of adding.
type set[T comparable] struct {
	list  []T
	index map[T]struct{} // of the first len(index) elements
}

// append adds what is not in the set.
func (s *set[T]) append(v T) { s.list = append(s.list, v) }

// add returns false if v is in the set already.
func (s *set[T]) add(v T) bool {
	if s.has(v) {
		return false
	}
	s.append(v)
	return true
}

func (s *set[T]) has(v T) bool {
	if len(s.list) > maxLinear {
		s.extendIndex()
		_, ok := s.index[v]
		return ok
	}
	for _, e := range s.list {
		if e == v {
			return true
		}
	}
	return false
}

func (s *set[T]) extendIndex() {
	if s.index == nil {
		s.index = make(map[T]struct{}, 2*len(s.list))
	}
	for _, e := range s.list[len(s.index):] {
		s.index[e] = struct{}{}
	}
}

// reset empties the set, keeps its memory and lets go of what was in it.
func (s *set[T]) reset() {
	if len(s.list) == 0 {
		return
	}
	clear(s.list)
	s.list = s.list[:0]
	if len(s.index) > 0 {
		clear(s.index)
	}
}
