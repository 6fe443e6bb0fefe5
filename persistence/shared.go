package persistence

import "sync/atomic"

// sharedState orders shared bodies by when they were first appended, so that
// the records of one publish are cut into the same chunk.
type sharedState struct {
	seq atomic.Uint64 // 0 until the first Append
}

// join gives the body its number. It reports whether this was the first call:
// the body then counts against the limit of uncommitted bytes, once.
func (b *SharedBody) join(counter *atomic.Uint64) (first bool) {
	if b.state.seq.Load() != 0 {
		return false
	}
	return b.state.seq.CompareAndSwap(0, counter.Add(1))
}

func (b *SharedBody) seq() uint64 { return b.state.seq.Load() }
