package persistence

import "sync/atomic"

// A run is what one chunk holds of one lane of one log: all the memory that a
// committed record costs. Its fields are guarded by the log's lock once the
// chunk is in the index.
type run struct {
	log   *diskLog // immutable
	first uint64   // id of the first record written; immutable
	from  uint64   // no id below it is live
	bytes int64    // of live bodies, in proportion once settled in part
	set   *idset   // the live ids; nil means all from `from` to last
	span  uint32   // last id written - first; immutable
	count uint32   // records written; immutable
	live  uint32   // records not settled
	lane  Lane     // immutable
	moved bool     // a transaction being written moves it to another chunk
}

// chunk is one value, or several, in the store: the runs written together.
type chunk struct {
	id    uint64 // immutable
	size  int64  // in bytes on disk, about; immutable
	parts int    // values of the records, 0 if they are in the directory; immutable
	runs  []run  // by slot, which is the order of the directory

	live  atomic.Int64 // live records of all runs
	dirty atomic.Bool  // is on the store's list of chunks whose state must be written

	// The fields below belong to the committer.
	acked bool // has an ack state on disk
	dead  bool // its marker is written, or is part of a transaction being built
}

func (r *run) last() uint64 { return r.first + uint64(r.span) }

// has reports whether a record is live.
func (r *run) has(id uint64) bool {
	if id < r.from || id > r.last() {
		return false
	}
	return r.set == nil || r.set.has(uint32(id-r.first))
}

// settle takes one record out and reports whether it was live.
func (r *run) settle(id uint64) bool {
	if id < r.from || id > r.last() {
		return false
	}
	if r.set == nil && id != r.from {
		r.materialize()
	}
	if r.set != nil && !r.set.remove(uint32(id-r.first)) {
		return false
	}
	r.shrink(1)
	if id == r.from {
		r.advance(id + 1)
	}
	return true
}

// settleRange takes out the live records with lo <= id <= hi and returns how
// many those were.
func (r *run) settleRange(lo, hi uint64) int {
	lo, hi = max(lo, r.from), min(hi, r.last())
	if r.live == 0 || lo > hi {
		return 0
	}
	if r.set == nil && lo > r.from {
		r.materialize()
	}
	n := int(hi - lo + 1)
	if r.set != nil {
		n = r.set.removeRange(uint32(lo-r.first), uint32(hi-r.first))
	}
	r.shrink(uint32(n))
	if lo == r.from {
		r.advance(hi + 1)
	}
	return n
}

// materialize gives a run without gaps a set, so that gaps can be made.
func (r *run) materialize() {
	r.set = newFullSet(int(r.span) + 1)
	if r.from > r.first {
		r.set.removeRange(0, uint32(r.from-r.first-1))
	}
}

// shrink takes n records off the counts.
func (r *run) shrink(n uint32) {
	if n == 0 {
		return
	}
	r.bytes = int64(float64(r.bytes) * float64(r.live-n) / float64(r.live))
	r.live -= n
}

// advance moves from to the first live id at or after it, and drops the set of
// a run written without gaps when what is left has none either.
func (r *run) advance(to uint64) {
	r.from = to
	if r.live == 0 {
		r.from, r.set = r.last()+1, nil
		return
	}
	if r.set == nil {
		return
	}
	off, _ := r.set.next(uint32(to - r.first))
	r.from = r.first + uint64(off)
	// A run written with gaps keeps its set: ack states are in terms of its bits.
	if r.count == r.span+1 && uint64(r.live) == r.last()-r.from+1 {
		r.set = nil
	}
}

// lastLive is the greatest live id; the run must not be empty.
func (r *run) lastLive() uint64 {
	if r.set == nil {
		return r.last()
	}
	off, _ := r.set.last()
	return r.first + uint64(off)
}

// nextLive is the first live id at or after id.
func (r *run) nextLive(id uint64) (uint64, bool) {
	if r.live == 0 || id > r.last() {
		return 0, false
	}
	id = max(id, r.from)
	if r.set == nil {
		return id, true
	}
	off, ok := r.set.next(uint32(id - r.first))
	return r.first + uint64(off), ok
}

// tiny reports whether the runs of a chunk are so small that many of them are
// worth merging.
func (ck *chunk) tiny() bool { return ck.size < tinyRun*int64(len(ck.runs)) }
