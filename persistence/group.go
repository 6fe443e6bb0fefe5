package persistence

import (
	"fmt"
	"math"

	"github.com/leveretmq/leveret/message"
)

// A group is one transaction.
type group struct {
	writes []write
	bytes  int64 // of keys and values
	inline int   // as Badger counts them against its limit
	built  []*built
	ops    []*op
	dead   []*chunk
	moves  []*move
}

// build makes the next group, of the round in progress or a new one; nil if
// there is nothing to write. A group may turn out to have no writes: all its
// records were settled by then.
func (c *committer) build() *group {
	if c.round == nil {
		c.round = c.gather()
	}
	if c.round == nil {
		return nil
	}
	g := new(group)
	c.fill(g, c.round)
	if c.round.empty() {
		c.round = nil
	}
	return g
}

// fill puts as much of the round into the group as it may hold.
func (c *committer) fill(g *group, r *round) {
	g.add(c.s.lim, r.first...)
	r.first = nil
	for g.bytes < int64(c.s.sizes.group) {
		if r.open == nil && !c.openNext(r) {
			break
		}
		if !c.emit(g, r.open) {
			return
		}
		r.open = nil
	}
	if r.open != nil || len(r.own)+len(r.mixed) > 0 {
		return
	}
	for len(r.tail) > 0 && g.fits(c.s.lim, r.tail[0].writes) {
		if m := r.tail[0].move; m != nil {
			m.c.id = c.nextChunk
			c.nextChunk++
			m.patchKeys()
		}
		g.take(c.s.lim, r.tail[0])
		r.tail[0] = tailItem{}
		r.tail = r.tail[1:]
	}
}

// openNext builds the next chunk of the round. It returns false if there is none.
func (c *committer) openNext(r *round) bool {
	limit := c.s.sizes.chunk
	switch {
	case len(r.own) > 0:
		c.startChunk()
		b := r.own[0]
		c.builder.take(b, limit, math.MaxUint64)
		if b.next == len(b.entries) {
			r.own = r.own[1:]
		}
	case len(r.mixed) > 0:
		c.startChunk()
		c.mix(r, limit)
	default:
		return false
	}
	r.open = c.finishChunk()
	return true
}

// mix fills a chunk from the batches that share.
func (c *committer) mix(r *round, limit int) {
	for {
		maxSeq := uint64(math.MaxUint64)
		if len(r.cuts) > 0 {
			maxSeq = r.cuts[0]
		}
		rest := make([]*batch, 0, len(r.mixed))
		for i, b := range r.mixed {
			if c.builder.size() >= limit {
				rest = append(rest, r.mixed[i:]...)
				break
			}
			if i == 0 || b.log != r.mixed[i-1].log { // a chunk has one stretch of a log
				c.builder.take(b, limit, maxSeq)
			}
			if b.next < len(b.entries) {
				rest = append(rest, b)
			}
		}
		r.mixed = rest
		if c.builder.size() < limit && len(r.cuts) > 0 {
			r.cuts = r.cuts[1:]
		}
		if len(c.builder.spans) > 0 {
			return
		}
	}
}

func (c *committer) startChunk() {
	var buf []byte
	if n := len(c.buffers); n > 0 {
		buf, c.buffers = c.buffers[n-1], c.buffers[:n-1]
	}
	c.builder.reset(c.nextChunk, buf)
}

func (c *committer) finishChunk() *openChunk {
	b := &built{runs: c.builder.runs, spans: c.builder.spans}
	if len(c.builder.runs) == 0 {
		return &openChunk{built: b}
	}
	c.nextChunk++
	var values [][]byte
	b.c, values = c.builder.finish(c.s.lim.value, c.s.part())
	b.buf = c.builder.data
	return &openChunk{built: b, values: values}
}

// part is the greatest size of one value, in bytes. A chunk of records of
// common sizes is smaller than that.
func (s *Disk) part() int { return 2 * s.sizes.chunk }

// emit puts an open chunk into the group, the directory last. It returns false
// if the group is full and the chunk goes on in the next one.
func (c *committer) emit(g *group, o *openChunk) bool {
	if o.built.c == nil {
		g.built = append(g.built, o.built)
		return true
	}
	id := o.built.c.id
	for o.part < len(o.values)-1 {
		w := write{key: appendPartKey(nil, id, o.part), val: o.values[o.part+1]}
		if !g.fits(c.s.lim, []write{w}) {
			return false
		}
		g.add(c.s.lim, w)
		o.part++
	}
	w := write{key: appendChunkKey(nil, keyChunk, id), val: o.values[0]}
	if !g.fits(c.s.lim, []write{w}) {
		return false
	}
	g.add(c.s.lim, w)
	g.built = append(g.built, o.built)
	return true
}

func (g *group) take(lim limits, t tailItem) {
	g.add(lim, t.writes...)
	if t.op != nil {
		g.ops = append(g.ops, t.op)
	}
	if t.dead != nil {
		g.dead = append(g.dead, t.dead)
	}
	if t.move != nil {
		g.moves = append(g.moves, t.move)
	}
}

func (g *group) add(lim limits, writes ...write) {
	for _, w := range writes {
		g.writes = append(g.writes, w)
		g.bytes += int64(len(w.key) + len(w.val))
		g.inline += w.inline(lim)
	}
}

// inline is what a write counts against the limit of a transaction.
func (w *write) inline(lim limits) int {
	if len(w.val) < lim.value {
		return len(w.key) + len(w.val) + 12
	}
	return len(w.key) + lim.pointer + 12
}

// check says why writes that belong together cannot be a transaction.
func (lim limits) check(writes []write) error {
	n := 0
	for i := range writes {
		n += writes[i].inline(lim)
	}
	if n > lim.inline || len(writes) > lim.entries {
		return fmt.Errorf("write %d values of %d bytes, with their keys, at once: at most %d of %d are possible", len(writes), n, lim.entries, lim.inline)
	}
	return nil
}

// fits reports whether these writes fit into what is left of the transaction.
func (g *group) fits(lim limits, writes []write) bool {
	if len(g.writes) == 0 {
		return true
	}
	n, bytes := g.inline, g.bytes
	for i := range writes {
		n += writes[i].inline(lim)
		bytes += int64(len(writes[i].val))
	}
	return n <= lim.inline && bytes <= lim.bytes && len(g.writes)+len(writes) <= lim.entries
}

// publish makes a committed group visible: its chunks enter the index, and all
// who waited for it are told.
func (c *committer) publish(g *group) {
	var done []*message.Receipt
	freed := int64(0)
	for _, b := range g.built {
		if b.c != nil {
			c.chunks = append(c.chunks, b.c)
			c.published = b.c.id + 1
			c.s.live.Add(b.c.size)
		}
		slot := 0
		for i := range b.spans {
			slot, done = c.index(b, &b.spans[i], slot, done)
			freed += b.spans[i].freed
		}
		c.release(b)
	}
	for _, ck := range g.dead {
		c.s.live.Add(-ck.size)
		c.s.keep.died(ck.size)
	}
	for _, m := range g.moves {
		c.moved(m)
	}
	c.s.published.happened()
	answer(g.ops, nil)
	c.s.freed(freed)
	for _, r := range done {
		r.Release()
	}
}

// maxBuffers is how many chunk buffers are kept for their next use.
const maxBuffers = 4

// release keeps the buffer of a chunk for another one.
func (c *committer) release(b *built) {
	if cap(b.buf) > 0 && cap(b.buf) <= 2*c.s.part() && len(c.buffers) < maxBuffers {
		c.buffers = append(c.buffers, b.buf)
	}
}

// index moves a span from its batch to the runs of the committed chunk, which
// start at slot, and counts its records off their parts. It returns the slot after
// them and adds the receipts that are complete. All happens under one lock: a
// record is always in exactly one place.
func (c *committer) index(bt *built, sp *span, slot int, done []*message.Receipt) (int, []*message.Receipt) {
	b := sp.b
	l := b.log
	t := toll{s: c.s}
	l.mu.Lock()
	for ; slot < len(bt.runs) && bt.runs[slot].b == b; slot++ {
		c.indexRunLocked(l, bt, slot, &t)
	}
	done = b.committed(sp, done)
	finished := b.done == len(b.entries)
	if finished {
		l.judgeLocked(b)
		l.flights = without(l.flights, b)
	}
	t.pay()
	l.mu.Unlock()
	c.s.records.Add(uint64(sp.records))
	if finished {
		c.s.putBatch(b)
	}
	return slot, done
}

// committed counts a span's records off their parts, and adds the receipts that
// are complete. Those settled late are off already.
func (b *batch) committed(sp *span, done []*message.Receipt) []*message.Receipt {
	for i := sp.from; i < sp.to; i++ {
		if b.settledLate(i) {
			continue
		}
		if r := b.parts[b.entries[i].part].less(); r != nil {
			done = append(done, r)
		}
	}
	b.done = sp.to
	return done
}

func (c *committer) indexRunLocked(l *diskLog, bt *built, slot int, t *toll) {
	br, r := &bt.runs[slot], &bt.c.runs[slot]
	if br.mark > l.savedMark {
		l.savedMark, l.savedIn, l.savedAcks = br.mark, bt.c, false
	}
	bytes := r.bytes
	for i := br.from; i < br.to && br.b.late != nil; i++ {
		if e := &br.b.entries[i]; br.b.settledLate(i) && e.lane == r.lane && r.settle(e.id) {
			bytes -= int64(len(e.body)) // the lane has been told the same
			t.add(bt.c, 1)
		}
	}
	r.bytes = bytes
	ln := l.laneLocked(r.lane)
	ln.push(ref{bt.c, uint32(slot)})
	if ln.tiny > c.s.opts.mergeTiny {
		c.s.wantMerge(l)
	}
}

// without removes the first v of a slice.
func without[T comparable](s []T, v T) []T {
	for i := range s {
		if s[i] == v {
			copy(s[i:], s[i+1:])
			var zero T
			s[len(s)-1] = zero
			return s[:len(s)-1]
		}
	}
	return s
}
