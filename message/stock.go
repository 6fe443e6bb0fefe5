package message

import (
	"math/bits"
	"sync"
)

// Large bodies are used again: the memory of one that was passed on to the only
// client that gets it goes into Returns, and from there into the Stock of a front
// door that needs one for the next message. It saves the allocator's and the
// collector's work: bodies of 4 KiB take 4.2 us a message instead of 5.7, those of 16 KiB
// 15.2 instead of 19.4, body-64K 64 instead of 73 (medians of four and five runs). For
// small ones it does not pay. Those that are allocated anew lie one behind the other,
// used ones wherever they were, far from the processor that needs them: fire-16B took
// 0.67 us instead of 0.55. And messages that have them apart are two allocations if they
// do not come back: four publishers of 1 KiB without a limit lost a fifth of their rate.
//
// To return a body is never necessary: who is not sure leaves it to the collector.

// Used bodies have room for more than MaxInline bytes and for maxUsed at most. What
// is smaller is in one piece with its message, see New; what is larger comes in more
// than one frame.
const maxUsed = 256 << 10

// classes is how many classes of used bodies there are: by the binary logarithm
// of the room that they have. The first has up to 2 KiB.
const (
	classes    = 8
	firstClass = 11
)

// classOf is the class of a body with room for n bytes, of those that are used again.
func classOf(n int) int { return max(0, bits.Len(uint(n-1))-firstClass) }

// packSize is how many bodies change hands at once.
const packSize = 16

// A pack is some bodies of a class that nobody has.
type pack struct {
	n      int
	bodies [packSize][]byte
}

var (
	// used are bodies that were returned, in packs by class. The collector
	// empties them.
	used [classes]sync.Pool
	// empty are packs without bodies.
	empty = sync.Pool{New: func() any { return new(pack) }}
)

// packs is at most one pack of each class.
type packs [classes]*pack

// flush gives the packs to all.
func (ps *packs) flush() {
	for c, p := range ps {
		if p != nil {
			ps[c] = nil
			used[c].Put(p)
		}
	}
}

// A Stock has used bodies for new messages. Only one goroutine uses it at a time.
// The zero value is ready.
type Stock struct {
	packs packs
	dry   [classes]bool // was looked for in vain
}

// Take returns an empty body with room for n bytes, or nil if there is none or if n
// is not of a size that is used again. The stock has no memory but that of bodies
// that have been here already: taking it for a body that was only announced cannot
// exhaust it.
func (s *Stock) Take(n int) []byte {
	if n <= MaxInline || n > maxUsed {
		return nil
	}
	c := classOf(n)
	p := s.packs[c]
	if p == nil {
		if p = s.find(c); p == nil {
			return nil
		}
	}
	p.n--
	b := p.bodies[p.n]
	p.bodies[p.n] = nil
	if p.n == 0 {
		s.packs[c] = nil
		empty.Put(p)
	}
	if cap(b) < n {
		return nil
	}
	return b[:0]
}

// find gets a pack, if others have left one. It looks once.
func (s *Stock) find(c int) *pack {
	if s.dry[c] {
		return nil
	}
	p, _ := used[c].Get().(*pack)
	s.packs[c] = p
	s.dry[c] = p == nil
	return p
}

// Rest gives what is in the stock to others, and has it look again for what it
// did not find. Call it after each batch.
func (s *Stock) Rest() {
	s.packs.flush()
	s.dry = [classes]bool{}
}

// Returns takes bodies that nobody has any more. Only one goroutine uses it at a
// time. The zero value is ready.
type Returns struct{ packs packs }

// Put returns a body. The caller must be the only one that has it or its message,
// and forget both. Bodies of other sizes than those that are used again are ignored.
func (r *Returns) Put(body []byte) {
	n := cap(body)
	if n <= MaxInline || n > maxUsed {
		return
	}
	if poison {
		spoil(body[:n])
	}
	c := classOf(n)
	p := r.packs[c]
	if p == nil {
		p = empty.Get().(*pack)
		r.packs[c] = p
	}
	p.bodies[p.n] = body
	p.n++
	if p.n == packSize {
		r.packs[c] = nil
		used[c].Put(p)
	}
}

// Flush gives what was put here to the stocks.
func (r *Returns) Flush() { r.packs.flush() }

// spoil overwrites a body that was returned, so that whoever still has it sees
// that, and the race detector, too.
func spoil(b []byte) {
	for i := range b {
		b[i] = 0xdb
	}
}
