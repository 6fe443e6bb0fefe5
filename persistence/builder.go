package persistence

import (
	"hash/crc32"
	"math"
	"math/bits"
	"slices"
)

// A chunkBuilder turns entries into one chunk. It is owned by the committer.
type chunkBuilder struct {
	id     uint64
	dir    directory
	data   []byte // the runs
	bodies []byte // shared bodies, each once
	where  map[*SharedBody]sharedRef
	runs   []builtRun // parallel to dir.entries
	spans  []span
	offs   []uint32 // scratch
}

// A span is a stretch of a batch that one chunk has taken in.
type span struct {
	b        *batch
	from, to int
	records  int // those that were not settled by then
	freed    int64
}

// A builtRun remembers what a run of a new chunk was made of, until the commit.
type builtRun struct {
	b        *batch
	from, to int
	mark     uint64 // the delivered mark that is in the directory
}

// reset makes the builder ready for the next chunk. data is its new buffer.
func (c *chunkBuilder) reset(id uint64, data []byte) {
	clear(c.where)
	*c = chunkBuilder{
		id: id, data: data[:0], bodies: c.bodies[:0], where: c.where, offs: c.offs[:0],
		dir: directory{entries: c.dir.entries[:0]},
	}
}

// size is the bytes of the chunk's data so far.
func (c *chunkBuilder) size() int { return len(c.data) + len(c.bodies) }

// take moves entries of a batch into the chunk, in order, until the chunk has
// about limit bytes or a shared body with a number above maxSeq comes. Unless
// it is stopped by maxSeq it takes at least one entry.
func (c *chunkBuilder) take(b *batch, limit int, maxSeq uint64) {
	from, to := b.next, b.cut(limit-c.size(), maxSeq)
	if from == to {
		return
	}
	b.log.mu.Lock()
	late := slices.Clone(b.late) // settled since the batch was taken: not worth writing
	b.log.mu.Unlock()
	sp := span{b: b, from: from, to: to}
	mark := min(b.log.delivered.Load(), b.entries[to-1].id) // see deliveredLocked
	for w, word := range b.lanes {
		for ; word != 0; word &= word - 1 {
			if e, ok := c.addRun(b, Lane(w*64+bits.TrailingZeros64(word)), from, to, late); ok {
				e.mark = mark
				sp.records += int(e.count)
				c.dir.entries = append(c.dir.entries, e)
				c.runs = append(c.runs, builtRun{b: b, from: from, to: to, mark: mark})
			}
		}
	}
	for i := from; i < to; i++ {
		sp.freed += int64(b.entries[i].size)
	}
	b.next = to
	c.spans = append(c.spans, sp)
}

// cut is the end of what fits into limit bytes from b.next on.
func (b *batch) cut(limit int, maxSeq uint64) int {
	if b.next == 0 && !b.shared && b.bytes <= int64(limit) && b.narrow() {
		return len(b.entries)
	}
	size, first := 0, b.entries[b.next].id
	for i := b.next; i < len(b.entries); i++ {
		e := &b.entries[i]
		if e.shared != nil && e.shared.seq() > maxSeq {
			return i
		}
		size += e.bytes()
		if i > b.next && (size > limit || e.id-first > math.MaxUint32) {
			return i
		}
	}
	return len(b.entries)
}

// narrow reports whether the ids fit the 32 bits of a run's span.
func (b *batch) narrow() bool {
	return b.entries[len(b.entries)-1].id-b.entries[0].id <= math.MaxUint32
}

// bytes is what an entry takes in a chunk, about; a shared body is left out.
func (e *entry) bytes() int {
	n := len(e.header) + len(e.extra) + len(e.key) + recordOverhead
	if e.shared == nil {
		n += len(e.body)
	}
	return n
}

// addRun encodes the entries of one lane. ok is false if there are none.
func (c *chunkBuilder) addRun(b *batch, lane Lane, from, to int, late []uint64) (d dirEntry, ok bool) {
	d = dirEntry{log: b.log.id, lane: lane, offset: uint64(len(c.data))}
	var enc encoder
	gaps := c.offs[:0] // the offsets, once there is a gap
	for i := from; i < to; i++ {
		e := &b.entries[i]
		if e.lane != lane || late != nil && late[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		if d.count == 0 {
			d.first, enc.id = e.id, e.id
		}
		off := uint32(e.id - d.first)
		if off != d.count && len(gaps) == 0 {
			for k := range d.count {
				gaps = append(gaps, k)
			}
		}
		if len(gaps) > 0 {
			gaps = append(gaps, off)
		}
		d.span = off
		d.count++
		d.note(len(e.body), e.expires)
		c.data = enc.append(c.data, e, c.share(e))
	}
	if len(gaps) > 0 {
		d.set = newIDSet(gaps)
	}
	c.offs = gaps[:0]
	d.size = uint64(len(c.data)) - d.offset
	d.crc = crc32.Checksum(c.data[d.offset:], castagnoli)
	return d, d.count > 0
}

// note counts a record in.
func (e *dirEntry) note(body int, expires int64) {
	e.bytes += int64(body)
	if expires > 0 && (e.earliest == 0 || expires < e.earliest) {
		e.earliest = expires
	}
}

// share puts a shared body into the chunk unless it is there, and returns
// where; nil if the body is the record's own.
func (c *chunkBuilder) share(e *entry) *sharedRef {
	if e.shared == nil {
		return nil
	}
	ref, ok := c.where[e.shared]
	if !ok {
		ref = c.addBody(e.body)
		if c.where == nil {
			c.where = make(map[*SharedBody]sharedRef)
		}
		c.where[e.shared] = ref
	}
	return &ref
}

func (c *chunkBuilder) addBody(body []byte) sharedRef {
	ref := sharedRef{off: uint64(len(c.bodies)), size: uint64(len(body)), crc: crc32.Checksum(body, castagnoli)}
	c.bodies = append(c.bodies, body...)
	return ref
}

// finish returns the chunk and its values, see directory.chunk.
func (c *chunkBuilder) finish(threshold, part int) (*chunk, [][]byte) {
	logs := make([]*diskLog, len(c.runs))
	for i := range c.runs {
		logs[i] = c.runs[i].b.log
	}
	c.dir.runsLen = uint64(len(c.data))
	c.data = append(c.data, c.bodies...)
	ck, values := c.dir.chunk(c.data, logs, threshold, part)
	ck.id = c.id
	return ck, values
}

// chunk makes the chunk of a directory whose data is complete, and the values
// to write: the directory, then the parts of the data, which are none if the
// data is so small that it goes with the directory. logs are those of the
// entries; threshold and part are in bytes.
func (d *directory) chunk(data []byte, logs []*diskLog, threshold, part int) (*chunk, [][]byte) {
	d.dataLen = uint64(len(data))
	ck := &chunk{runs: make([]run, len(d.entries))}
	for i := range d.entries {
		ck.runs[i] = d.entries[i].run(logs[i])
		ck.live.Add(int64(d.entries[i].count))
	}
	room := 2*minDirEntry*len(d.entries) + 16
	if len(data)+room < threshold {
		value := seal(append(d.append(make([]byte, 0, room+len(data))), data...))
		ck.size = int64(len(value))
		return ck, [][]byte{value}
	}
	d.part = uint64(part)
	values := [][]byte{seal(d.append(make([]byte, 0, 2*room)))}
	values = slices.AppendSeq(values, slices.Chunk(data, part))
	ck.parts = len(values) - 1
	ck.size = int64(len(values[0]) + len(data))
	return ck, values
}

// run is the run that a directory entry stands for, with all records live.
func (e *dirEntry) run(l *diskLog) run {
	return run{
		log: l, lane: e.lane, first: e.first, from: e.first, span: e.span,
		count: e.count, live: e.count, bytes: e.bytes, set: e.set,
	}
}
