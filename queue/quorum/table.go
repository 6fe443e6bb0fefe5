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
	young *page // the one with the highest number: it stays when it is empty
	spare *page // empty ones, for later
	kept  int   // how many those are
}

// keptPages is how many empty pages a table keeps: 4 KiB each.
const keptPages = 4

// pageBits says how many slots a page has: 128.
const pageBits = 7

type page struct {
	number uint64
	used   int
	next   *page // in the list of free ones
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
	if p == nil {
		p = &page{}
	} else {
		t.spare, p.next = p.next, nil
		t.kept--
	}
	p.number = number
	if old := t.young; old == nil || number > old.number {
		t.young = p
		if old != nil && old.used == 0 {
			t.discard(old)
		}
	}
	if t.pages == nil {
		t.pages = make(map[uint64]*page)
	}
	t.pages[number] = p
	t.last = p
	return p
}

// remove frees the slot of a message, which must be there.
func (t *table) remove(id queue.ID) { t.free(id, t.get(id)) }

// free frees the slot of a message that was looked up just now.
func (t *table) free(id queue.ID, s *slot) {
	*s = slot{}
	p := t.page(id)
	p.used--
	if p.used == 0 && p != t.young {
		t.discard(p)
	}
}

// discard takes an empty page off.
func (t *table) discard(p *page) {
	delete(t.pages, p.number)
	if t.last == p {
		t.last = nil
	}
	if t.kept < keptPages {
		t.kept++
		p.next, t.spare = t.spare, p
	}
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
