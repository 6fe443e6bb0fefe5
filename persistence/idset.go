package persistence

import (
	"math/bits"
	"slices"
)

// An idset says which ids of a run are live. It is made only for runs with
// gaps and for runs settled out of order; all others are a pair of numbers.
//
// Bit i stands for the id first+i, or, when the ids are so far apart that a
// list is smaller, for first+offs[i].
type idset struct {
	offs []uint32 // rising; nil means that bit i is offset i
	bits []uint64
}

// sparseFactor is how many times the ids must outspan their count for a list
// (32 bits an id) to beat a bitmap (one bit for each id of the span).
const sparseFactor = 32

// newFullSet is a set of n consecutive offsets, all in it.
func newFullSet(n int) *idset {
	s := &idset{bits: make([]uint64, (n+63)/64)}
	for i := range s.bits {
		s.bits[i] = ^uint64(0)
	}
	if n%64 != 0 {
		s.bits[len(s.bits)-1] = 1<<(n%64) - 1
	}
	return s
}

// newIDSet is the set of these rising offsets.
func newIDSet(offs []uint32) *idset {
	n := len(offs)
	if n == 0 {
		return &idset{}
	}
	if span := int(offs[n-1]) + 1; span <= sparseFactor*n {
		s := &idset{bits: make([]uint64, (span+63)/64)}
		for _, o := range offs {
			s.bits[o/64] |= 1 << (o % 64)
		}
		return s
	}
	s := newFullSet(n)
	s.offs = slices.Clone(offs)
	return s
}

// pos is the bit that stands for an offset, or -1.
func (s *idset) pos(off uint32) int {
	if s.offs == nil {
		if int(off) >= len(s.bits)*64 {
			return -1
		}
		return int(off)
	}
	i, ok := slices.BinarySearch(s.offs, off)
	if !ok {
		return -1
	}
	return i
}

// off is the offset that bit i stands for.
func (s *idset) off(i int) uint32 {
	if s.offs == nil {
		return uint32(i)
	}
	return s.offs[i]
}

func (s *idset) has(off uint32) bool {
	i := s.pos(off)
	return i >= 0 && s.bits[i/64]&(1<<(i%64)) != 0
}

// remove takes an offset out and reports whether it was in.
func (s *idset) remove(off uint32) bool {
	i := s.pos(off)
	if i < 0 || s.bits[i/64]&(1<<(i%64)) == 0 {
		return false
	}
	s.bits[i/64] &^= 1 << (i % 64)
	return true
}

// removeRange takes the offsets lo to hi out, both included, and returns how
// many were in.
func (s *idset) removeRange(lo, hi uint32) int {
	from, to := int(lo), int(hi)+1
	if s.offs != nil {
		from, _ = slices.BinarySearch(s.offs, lo)
		to, _ = slices.BinarySearchFunc(s.offs, hi, func(e, t uint32) int {
			if e <= t {
				return -1
			}
			return 1
		})
	}
	to = min(to, len(s.bits)*64)
	removed := 0
	for from < to {
		w, n := from/64, min(64-from%64, to-from)
		mask := (^uint64(0) >> (64 - n)) << (from % 64)
		removed += bits.OnesCount64(s.bits[w] & mask)
		s.bits[w] &^= mask
		from += n
	}
	return removed
}

// next is the smallest member that is not below off.
func (s *idset) next(off uint32) (uint32, bool) {
	i := int(off)
	if s.offs != nil {
		i, _ = slices.BinarySearch(s.offs, off)
	}
	for w := i / 64; w < len(s.bits); w++ {
		word := s.bits[w]
		if w == i/64 {
			word &= ^uint64(0) << (i % 64)
		}
		if word != 0 {
			return s.off(w*64 + bits.TrailingZeros64(word)), true
		}
	}
	return 0, false
}

// last is the greatest member.
func (s *idset) last() (uint32, bool) {
	for w := len(s.bits) - 1; w >= 0; w-- {
		if s.bits[w] != 0 {
			return s.off(w*64 + 63 - bits.LeadingZeros64(s.bits[w])), true
		}
	}
	return 0, false
}

func (s *idset) count() int {
	n := 0
	for _, w := range s.bits {
		n += bits.OnesCount64(w)
	}
	return n
}
