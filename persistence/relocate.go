package persistence

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
)

// What the keeper moves, and when; move.go says how.

const (
	// tinyRun is the size of a run, in bytes, below which it is worth merging,
	// and mergeTiny how many such runs a lane may have, unless the options say.
	tinyRun   = 4 << 10
	mergeTiny = 1000
	// minSources is the least number of adjacent runs worth merging.
	minSources = 16
	// moveRate is how fast the keeper moves records, in bytes a second.
	moveRate = 16 << 20
)

// wantMerge says that a log has many tiny runs. The log's lock is held.
func (s *Disk) wantMerge(l *diskLog) {
	s.mu.Lock()
	if !slices.Contains(s.merges, l) {
		s.merges = append(s.merges, l)
	}
	s.mu.Unlock()
	if !s.keep.merge.Swap(true) {
		s.keep.wake()
	}
}

// mergeRuns brings the tiny runs of logs that have many together.
func (k *keeper) mergeRuns() {
	k.s.mu.Lock()
	logs := k.s.merges
	k.s.merges = nil
	k.s.mu.Unlock()
	for _, l := range logs {
		for {
			refs := l.tinyRuns()
			if len(refs) == 0 || !k.moved(k.move([][]ref{refs}), sizeOf(refs)) {
				break
			}
		}
	}
}

// tinyRuns are the oldest adjacent tiny runs of a lane that has too many.
func (l *diskLog) tinyRuns() []ref {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.lanes {
		ln := &l.lanes[i]
		if ln.tiny <= l.s.opts.mergeTiny/2 {
			continue
		}
		ln.compact()
		var refs []ref
		for _, r := range ln.refs {
			if len(refs) == maxSources || len(refs) > 0 && r.run().last()-refs[0].run().first > 1<<32-1 {
				break
			}
			if r.c.tiny() {
				refs = append(refs, r)
				continue
			}
			if len(refs) >= minSources {
				break
			}
			refs = refs[:0]
		}
		if len(refs) >= minSources {
			return refs
		}
	}
	return nil
}

// sizeOf is what some runs take on disk, about.
func sizeOf(refs []ref) (n int64) {
	for _, r := range refs {
		n += r.c.size / int64(len(r.c.runs))
	}
	return n
}

// moved waits out the rate after a move. It returns false if there should be
// no more moves now.
func (k *keeper) moved(err error, bytes int64) bool {
	switch {
	case err == nil, errors.Is(err, errSettled), errors.Is(err, errNoKey):
	case errors.Is(err, ErrClosed), k.s.failure() != nil:
		return false
	default:
		k.s.opts.Log.Error("records cannot be moved together, and the space of settled ones stays in use; it is tried again: look at the disk if this line comes back", zap.Error(err))
		return false
	}
	return k.pause(time.Duration(float64(bytes) / moveRate * float64(time.Second)))
}

// relocate moves the live records out of files that are mostly dead. It
// reports whether it moved any.
func (k *keeper) relocate() bool {
	if !k.crowded(3) {
		return false
	}
	any := false
	for _, share := range k.victims() {
		err := k.move(share)
		any = any || err == nil
		if !k.moved(err, sizeOf(slices.Concat(share...))) {
			return any
		}
	}
	return any
}

// victims are the live runs of stretches of the store where less than a third
// is live, oldest first, in shares for one move each. A stretch is as many
// chunks as fill a file; the ids in between tell how many have died.
func (k *keeper) victims() (shares [][][]ref) {
	chunks := k.s.liveChunks()
	total := int64(0)
	for _, ck := range chunks {
		total += ck.size
	}
	var share [][]ref
	size, budget := int64(0), max(2*k.s.sizes.vlog, k.s.opts.gcStep)
	for _, ck := range sparse(chunks, k.s.sizes.vlog*int64(len(chunks))/max(1, total)) {
		if budget -= ck.size; budget < 0 {
			break
		}
		if len(share) > 0 && (size >= int64(k.s.sizes.chunk) || len(share) >= maxSources) {
			shares, share, size = append(shares, share), nil, 0
		}
		for _, r := range ck.liveRefs() {
			share = append(share, []ref{r})
		}
		size += int64(float64(ck.size) * ck.liveShare())
	}
	if len(share) > 0 {
		shares = append(shares, share)
	}
	return shares
}

// sparse are the chunks in stretches of so many ids of which less than a third
// is live. The youngest stretch is still being written and does not count, and
// records of several parts are not moved.
func sparse(chunks []*chunk, stretch int64) (found []*chunk) {
	stretch = max(1, stretch)
	for len(chunks) > 0 {
		end, n, live := chunks[0].id+uint64(stretch), 0, 0.0
		for n < len(chunks) && chunks[n].id < end {
			live += chunks[n].liveShare()
			n++
		}
		if n == len(chunks) {
			break
		}
		if live*3 < float64(stretch) {
			found = append(found, chunks[:n]...)
		}
		chunks = chunks[n:]
	}
	return slices.DeleteFunc(found, func(ck *chunk) bool { return ck.parts > 1 })
}

// liveChunks are the chunks with live records, by id.
func (s *Disk) liveChunks() []*chunk {
	s.mu.Lock()
	logs := make([]*diskLog, 0, len(s.logs))
	for _, l := range s.logs {
		logs = append(logs, l)
	}
	s.mu.Unlock()
	seen := make(map[*chunk]bool)
	for _, l := range logs {
		l.mu.Lock()
		for i := range l.lanes {
			for _, r := range l.lanes[i].refs[l.lanes[i].head:] {
				seen[r.c] = true
			}
		}
		l.mu.Unlock()
	}
	chunks := make([]*chunk, 0, len(seen))
	for ck := range seen {
		if ck.live.Load() > 0 {
			chunks = append(chunks, ck)
		}
	}
	slices.SortFunc(chunks, func(a, b *chunk) int { return cmp.Compare(a.id, b.id) })
	return chunks
}

// liveShare is how much of a chunk is live, by records.
func (ck *chunk) liveShare() float64 {
	n := 0
	for i := range ck.runs {
		n += int(ck.runs[i].count)
	}
	return float64(ck.live.Load()) / float64(n)
}

// liveRefs are the runs of a chunk that have live records.
func (ck *chunk) liveRefs() (refs []ref) {
	for i := range ck.runs {
		r := &ck.runs[i]
		r.log.mu.Lock()
		if r.live > 0 {
			refs = append(refs, ref{ck, uint32(i)})
		}
		r.log.mu.Unlock()
	}
	return refs
}
