package quorum

import (
	"iter"
	"maps"
	"slices"

	"github.com/leveretmq/leveret/queue"
)

// A table holds slots by id. Ids are dense where messages are, so slots are in
// pages: a message costs a place in one, not an entry of a map.
type table struct {
	pages map[uint64]*page
	last  *page // the one used last
	spare *page // an empty one, for the next turn
}

// pageBits says how many slots a page has: 128.
const pageBits = 7

type page struct {
	number uint64
	used   int
	slots  [1 << pageBits]slot
}

// page is the page of an id, or nil.
func (t *table) page(id queue.ID) *page {
	n := uint64(id) >> pageBits
	if t.last != nil && t.last.number == n {
		return t.last
	}
	p := t.pages[n]
	if p != nil {
		t.last = p
	}
	return p
}

// get is the slot of a message, or nil if it is not there.
func (t *table) get(id queue.ID) *slot {
	p := t.page(id)
	if p == nil {
		return nil
	}
	s := &p.slots[id&(1<<pageBits-1)]
	if s.msg == nil {
		return nil
	}
	return s
}

// add makes a slot, to be filled at once.
func (t *table) add(id queue.ID) *slot {
	p := t.page(id)
	if p == nil {
		p = t.grow(uint64(id) >> pageBits)
	}
	p.used++
	return &p.slots[id&(1<<pageBits-1)]
}

func (t *table) grow(number uint64) *page {
	p := t.spare
	t.spare = nil
	if p == nil {
		p = &page{}
	}
	p.number = number
	if t.pages == nil {
		t.pages = make(map[uint64]*page)
	}
	t.pages[number] = p
	t.last = p
	return p
}

// remove frees the slot of a message, which must be there.
func (t *table) remove(id queue.ID) {
	p := t.page(id)
	p.slots[id&(1<<pageBits-1)] = slot{}
	p.used--
	if p.used > 0 {
		return
	}
	delete(t.pages, p.number)
	t.last, t.spare = nil, p
}

// all are the messages in order of id.
func (t *table) all() iter.Seq2[queue.ID, *slot] {
	return func(yield func(queue.ID, *slot) bool) {
		for _, n := range slices.Sorted(maps.Keys(t.pages)) {
			p := t.pages[n]
			for i := range p.slots {
				if p.slots[i].msg != nil && !yield(queue.ID(n<<pageBits+uint64(i)), &p.slots[i]) {
					return
				}
			}
		}
	}
}
