package persistence

import (
	"encoding/binary"
	"fmt"
)

// The ack state of a chunk says which records are settled. It is written whole
// with each commit that settles some. Disk format, numbers are uvarints:
//
//	version(1), then for each run that is not as it was written, by slot:
//	  slot as difference, delivered mark,
//	  form(1): 0 nothing is live; 1 what is live starts at first + n, n;
//	  2 the bits of the run's ids: index of the first word, number of words, words
//	CRC32C of everything before(4)
const (
	ackGone = 0
	ackFrom = 1
	ackBits = 2
)

// An ackWriter builds an ack state.
type ackWriter struct {
	b    []byte
	slot int
}

func newAckWriter(b []byte) *ackWriter { return &ackWriter{b: append(b, codecVersion)} }

// add writes the state of a run. The run's lock must be held.
func (w *ackWriter) add(slot int, r *run, mark uint64) {
	w.b = binary.AppendUvarint(w.b, uint64(slot-w.slot))
	w.slot = slot
	w.b = binary.AppendUvarint(w.b, mark)
	switch {
	case r.live == 0, r.moved:
		w.b = append(w.b, ackGone)
	case r.set == nil:
		w.b = append(w.b, ackFrom)
		w.b = binary.AppendUvarint(w.b, r.from-r.first)
	default:
		w.bits(r.set, uint32(r.from-r.first))
	}
}

// bits writes the words of a set from the first one that has a live id.
func (w *ackWriter) bits(s *idset, from uint32) {
	start := max(s.pos(from), 0) / 64
	w.b = append(w.b, ackBits)
	w.b = binary.AppendUvarint(w.b, uint64(start))
	w.b = binary.AppendUvarint(w.b, uint64(len(s.bits)-start))
	for _, word := range s.bits[start:] {
		w.b = binary.LittleEndian.AppendUint64(w.b, word)
	}
}

// applyAcks takes out of a chunk's runs what its ack state says is settled.
// note is told the delivered marks.
func applyAcks(b []byte, runs []run, note func(slot int, mark uint64)) error {
	b, err := unseal(b, "ack state")
	if err != nil {
		return err
	}
	r := reader{b: b}
	slot := uint64(0)
	for len(r.b) > 0 {
		slot += r.uvarint()
		mark := r.uvarint()
		form := r.byte()
		if r.bad || slot >= uint64(len(runs)) {
			return fmt.Errorf("%w: ack state of run %d", errCorrupt, slot)
		}
		if !applyAck(&r, form, &runs[slot]) || r.bad {
			return fmt.Errorf("%w: ack state of run %d", errCorrupt, slot)
		}
		note(int(slot), mark)
	}
	return nil
}

func applyAck(r *reader, form byte, run *run) bool {
	switch form {
	case ackGone:
		run.settleRange(run.first, run.last())
	case ackFrom:
		n := r.number(uint64(run.span) + 1)
		if n > 0 {
			run.settleRange(run.first, run.first+n-1)
		}
	case ackBits:
		return applyBits(r, run)
	default:
		return false
	}
	return true
}

// applyBits leaves live what is live in both the run and the words that follow.
func applyBits(r *reader, run *run) bool {
	if run.live == 0 {
		return false
	}
	if run.set == nil {
		run.materialize()
	}
	words := run.set.bits
	start := r.number(uint64(len(words)))
	n := r.uvarint()
	if r.bad || start+n != uint64(len(words)) {
		return false
	}
	clear(words[:start])
	for i := range words[start:] {
		words[int(start)+i] &= r.uint64()
	}
	if r.bad {
		clear(words) // never trust half of it
	}
	before := run.live
	run.shrink(before - uint32(run.set.count()))
	run.advance(run.first)
	return !r.bad
}
