package persistence

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// A round is everything there was to write at one moment.
type round struct {
	own   []*batch // each is enough for chunks of its own
	mixed []*batch // by log; they share chunks
	cuts  []uint64 // shared bodies up to these numbers go together
	open  *openChunk
	first []write    // before all others
	tail  []tailItem // after all records
}

// A tailItem is some writes that belong together, and what follows from their commit.
type tailItem struct {
	writes []write
	op     *op    // to answer
	dead   *chunk // whose marker it is
	move   *move
}

// An openChunk is built and only partly put into groups: a record bigger than
// a group. Its directory goes last, and without that the rest is nothing.
type openChunk struct {
	built  *built
	values [][]byte
	part   int // the next of values[1:] to write
}

// built is a chunk in a group, with what it is made of.
type built struct {
	c     *chunk // nil if all records were settled by then
	runs  []builtRun
	spans []span
	buf   []byte
}

// ownChunk is how much a log must bring to a round to get chunks of its own,
// in bytes. Less shares chunks with other logs, as each write costs its 5 µs
// whatever it holds.
const ownChunk = 32 << 10

// gather starts a round; nil if there is nothing to write. What is settled is
// read before what is appended is taken: see committer.
func (c *committer) gather() *round {
	r := new(round)
	c.gatherTail(r)
	c.gatherBatches(r)
	if len(r.own)+len(r.mixed)+len(r.tail) == 0 {
		return nil
	}
	c.reserve(r)
	return r
}

// gatherTail reads what changed without records: settled chunks, definitions.
func (c *committer) gatherTail(r *round) {
	s := c.s
	s.mu.Lock()
	dirty, ops, moves := s.dirty, s.ops, s.moves
	s.dirty, s.ops, s.moves = nil, nil, nil
	s.mu.Unlock()
	for _, m := range moves {
		r.tail = append(r.tail, tailItem{writes: c.gatherMove(m), move: m})
	}
	for i := 0; i < len(dirty); i++ {
		// A chunk that dies may make another one dirty: see carryMark.
		dirty = c.gatherChunk(r, dirty[i], dirty)
	}
	for _, o := range ops {
		if err := c.s.lim.check(o.writes); err != nil {
			o.done <- err
			continue
		}
		r.tail = append(r.tail, tailItem{writes: o.writes, op: o})
	}
	c.gatherMarkers(r)
}

// gatherChunk adds what has to be written of a chunk with settled records.
func (c *committer) gatherChunk(r *round, ck *chunk, dirty []*chunk) []*chunk {
	ck.dirty.Store(false)
	if ck.dead {
		return dirty
	}
	if ck.live.Load() > 0 {
		ck.acked = true
		w := write{key: appendChunkKey(nil, keyAcks, ck.id), val: ck.ackState()}
		r.tail = append(r.tail, tailItem{writes: []write{w}})
		return dirty
	}
	ck.dead = true
	c.markers = append(c.markers, ck.id)
	r.tail = append(r.tail, tailItem{writes: ck.deathWrites(nil), dead: ck})
	for i := range ck.runs {
		dirty = ck.runs[i].log.carryMark(ck, dirty)
	}
	return dirty
}

// deathWrites appends the dead marker of a chunk and the deletion of the rest.
func (ck *chunk) deathWrites(w []write) []write {
	w = append(w, write{key: appendChunkKey(nil, keyChunk, ck.id), val: []byte{0}, meta: metaDead})
	for n := range ck.parts {
		w = append(w, write{key: appendPartKey(nil, ck.id, n), del: true})
	}
	if ck.acked {
		w = append(w, write{key: appendChunkKey(nil, keyAcks, ck.id), del: true})
	}
	return w
}

// ackState encodes what is settled of a chunk.
func (ck *chunk) ackState() []byte {
	w := newAckWriter(make([]byte, 0, 16+8*len(ck.runs)))
	for i := range ck.runs {
		r := &ck.runs[i]
		r.log.mu.Lock()
		if l := r.log; r.live < r.count || r.moved || l.savedIn == ck && l.savedAcks {
			l.saveMarkLocked(ck, true)
			w.add(i, r, l.savedMark)
		}
		r.log.mu.Unlock()
	}
	return seal(w.b)
}

// saveMarkLocked notes that the delivered mark is written with a chunk: in its
// ack state or else in its directory.
func (l *diskLog) saveMarkLocked(ck *chunk, acks bool) {
	l.savedMark, l.savedIn, l.savedAcks = l.deliveredLocked(), ck, acks
}

// deliveredLocked is the delivered mark as it may be written: no higher than what is
// on disk, lest a start takes that for there which a consumer had before its commit.
func (l *diskLog) deliveredLocked() uint64 { return min(l.delivered.Load(), l.durableLocked()) }

// carryMark sees to it that the delivered mark of a log outlives a chunk that
// dies, if there is one: if it was written there, or nowhere yet, and matters to
// records that stay, the chunk of the first of those becomes dirty.
func (l *diskLog) carryMark(dying *chunk, dirty []*chunk) []*chunk {
	l.mu.Lock()
	defer l.mu.Unlock()
	if dying != nil && l.savedIn == dying {
		l.savedMark, l.savedIn = 0, nil
	}
	mark := l.deliveredLocked()
	if mark <= l.savedMark || l.dropped {
		return dirty
	}
	for i := range l.lanes {
		r, id, ok := l.lanes[i].next(0)
		if !ok || id > mark {
			continue
		}
		l.saveMarkLocked(r.c, true)
		if !r.c.dirty.Swap(true) {
			dirty = append(dirty, r.c)
		}
		return dirty
	}
	return dirty
}

// keepMarks sees to it, before an orderly stop, that those delivered marks are written
// that nothing was written with since.
func (s *Disk) keepMarks() {
	s.mu.Lock()
	logs := slices.Collect(maps.Values(s.logs))
	s.mu.Unlock()
	var dirty []*chunk
	for _, l := range logs {
		dirty = l.carryMark(nil, dirty)
	}
	s.mu.Lock()
	s.dirty = append(s.dirty, dirty...)
	s.mu.Unlock()
}

// minMarkers and maxMarkers are how many dead markers are deleted at once.
const (
	minMarkers = 256
	maxMarkers = 512
)

// gatherMarkers deletes dead markers that are not needed any more: those below
// the low-water mark, which is written with the deletions.
func (c *committer) gatherMarkers(r *round) {
	if len(c.markers) < minMarkers {
		return
	}
	low := c.oldest()
	if low == c.lowWater {
		return
	}
	c.lowWater = low
	h := c.head()
	item := tailItem{writes: []write{{key: []byte{keyHead}, val: h.append(nil)}}}
	keep := c.markers[:0]
	for _, id := range c.markers {
		if id >= low || len(item.writes) > maxMarkers {
			keep = append(keep, id)
			continue
		}
		item.writes = append(item.writes, write{key: appendChunkKey(nil, keyChunk, id), del: true})
	}
	c.markers = keep
	r.tail = append(r.tail, item)
}

// oldest is the least id of a chunk that may be live.
func (c *committer) oldest() uint64 {
	n := 0
	for n < len(c.chunks) && c.chunks[n].dead {
		c.chunks[n] = nil
		n++
	}
	c.chunks = c.chunks[n:]
	if len(c.chunks) == 0 {
		return c.published
	}
	return c.chunks[0].id
}

// head is the head record as it would be written now.
func (c *committer) head() head {
	return head{nextLog: c.reserved, nextChunk: c.published, lowWater: c.lowWater}
}

// reserve adds the reservation of log ids if the ids in use have reached its
// end. It is called after the batches were taken, whose ids it must cover.
func (c *committer) reserve(r *round) {
	c.s.mu.Lock()
	next := c.s.nextLog
	c.s.mu.Unlock()
	if next <= c.reserved {
		return
	}
	c.reserved = LogID(min(uint64(next)+logBlock, math.MaxUint32))
	h := c.head()
	r.first = []write{{key: []byte{keyHead}, val: h.append(nil)}}
}

// gatherBatches takes what is appended.
func (c *committer) gatherBatches(r *round) {
	s := c.s
	s.together.Lock()
	defer s.together.Unlock()
	c.refill.appended += s.waiting.Swap(0)
	s.mu.Lock()
	queue := s.queue
	s.queue = c.queue[:0]
	s.mu.Unlock()
	shared := false
	var ahead []*batch
	for _, l := range queue {
		own := true
		for _, b := range l.takePending() {
			if l.ahead {
				ahead = append(ahead, b)
				continue
			}
			shared = shared || b.shared
			own = own && b.bytes >= ownChunk && !b.shared // what follows must not overtake
			if own {
				r.own = append(r.own, b)
			} else {
				r.mixed = append(r.mixed, b)
			}
		}
	}
	if len(ahead) > 0 {
		r.own = append(ahead, r.own...)
	}
	clear(queue)
	c.queue = queue
	slices.SortStableFunc(r.mixed, func(a, b *batch) int { return cmp.Compare(a.log.id, b.log.id) })
	if shared {
		r.cuts = cutShared(r.mixed, s.sizes.chunk)
	}
}

// takePending puts the pending batches in flight.
func (l *diskLog) takePending() []*batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queued = false
	n := len(l.flights)
	for _, b := range l.pending {
		b.squeeze()
		b.taken = true
		l.flights = append(l.flights, b)
	}
	clear(l.pending)
	l.pending = l.pending[:0]
	return slices.Clone(l.flights[n:])
}

// cutShared divides the shared bodies of a round, by their numbers, so that
// each share with all that refers to it is about limit bytes. It returns the
// last number of each share but the last. Without it a chunk could begin with
// the records of one log, and the next would have the same bodies again.
func cutShared(batches []*batch, limit int) []uint64 {
	type use struct {
		seq  uint64
		size int
	}
	var uses []use
	seen := make(map[uint64]bool)
	for _, b := range batches {
		for i := range b.entries {
			e := &b.entries[i]
			if e.shared == nil {
				continue
			}
			u := use{e.shared.seq(), e.bytes()}
			if !seen[u.seq] {
				seen[u.seq] = true
				u.size += len(e.body)
			}
			uses = append(uses, u)
		}
	}
	slices.SortFunc(uses, func(a, b use) int { return cmp.Compare(a.seq, b.seq) })
	var cuts []uint64
	size := 0
	for i, u := range uses {
		size += u.size
		if size > limit && i > 0 && u.seq != uses[i-1].seq {
			cuts = append(cuts, uses[i-1].seq)
			size = u.size
		}
	}
	return cuts
}

// answer answers all who wait for the round's definitions.
func (r *round) answer(err error) {
	for _, t := range r.tail {
		if t.op != nil {
			t.op.done <- err
		}
		if t.move != nil {
			t.move.done <- err
		}
	}
}

// empty reports whether all of the round is in groups.
func (r *round) empty() bool {
	return len(r.own) == 0 && len(r.mixed) == 0 && r.open == nil && len(r.tail) == 0 && len(r.first) == 0
}
