package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
)

// A recovery reads the index back from the store: head, directories, ack
// states. Records stay where they are.
type recovery struct {
	s       *Disk
	chunks  []*chunk // alive, by id
	garbage [][]byte // keys to delete
	maxID   uint64   // of any chunk seen, dead ones too
}

func (s *Disk) recover() error {
	r := recovery{s: s}
	if err := r.head(); err != nil {
		return err
	}
	for _, scan := range []struct {
		prefix byte
		fn     func(item) error
	}{{keyLastIDs, r.lastIDs}, {keyChunk, r.chunk}, {keyAcks, r.acks}, {keyPart, r.part}} {
		if err := s.eng.scan([]byte{scan.prefix}, scan.fn); err != nil {
			return err
		}
	}
	r.verifyNewest()
	r.index()
	if err := s.defs.load(s.eng); err != nil {
		return err
	}
	r.sweep()
	return nil
}

func (r *recovery) head() error {
	c := &r.s.com
	err := r.s.eng.get([]byte{keyHead}, func(val []byte, _ byte) error {
		h, err := decodeHead(val)
		c.lowWater = h.lowWater
		c.nextChunk = max(1, h.nextChunk, h.lowWater)
		c.reserved = max(1, h.nextLog)
		r.s.nextLog = c.reserved
		return err
	})
	if errors.Is(err, errNoKey) {
		return nil
	}
	return err
}

// chunk takes one chunk key in. What is below the low-water mark is a ghost,
// or a marker that was about to be deleted.
func (r *recovery) chunk(it item) error {
	id, ok := chunkOf(it.key)
	switch {
	case !ok:
		return fmt.Errorf("%w: chunk key of %d bytes", errCorrupt, len(it.key))
	case id < r.s.com.lowWater:
		r.garbage = append(r.garbage, slices.Clone(it.key))
		return nil
	case it.meta == metaDead:
		r.s.com.markers = append(r.s.com.markers, id)
		r.maxID = max(r.maxID, id)
		return nil
	}
	r.maxID = max(r.maxID, id)
	err := it.value(func(val []byte) error {
		d, err := decodeDirectory(val)
		if err == nil {
			r.chunks = append(r.chunks, r.revive(id, d, int64(len(val))))
		}
		return err
	})
	if err != nil {
		r.lost(id, err)
	}
	return nil
}

// lost gives a chunk up. Records without their bytes cannot be delivered, and
// a broker that does not start delivers nothing at all.
func (r *recovery) lost(id uint64, err error) {
	r.s.opts.Log.Error("a chunk of records cannot be read and is given up: the messages in it are lost; check the disk, and restore a backup if they are needed", zap.Uint64("chunk", id), zap.Error(err))
	r.garbage = append(r.garbage, appendChunkKey(nil, keyChunk, id))
}

// revive makes the chunk of a directory, with all records live.
func (r *recovery) revive(id uint64, d *directory, dirSize int64) *chunk {
	ck := &chunk{id: id, size: dirSize, parts: d.parts(), runs: make([]run, len(d.entries))}
	if !d.inline() {
		ck.size += int64(d.dataLen)
	}
	for i := range d.entries {
		e := &d.entries[i]
		l := r.s.openLog(e.log)
		l.noteMark(e.mark)
		ck.runs[i] = e.run(l)
		l.laneLocked(e.lane).noteEarliest(e.earliest)
		l.lastID = max(l.lastID, ck.runs[i].last())
	}
	return ck
}

// noteMark takes a delivered mark in. It is only used before the store is open.
func (l *diskLog) noteMark(mark uint64) {
	l.redelivered = max(l.redelivered, mark)
	l.lastID = max(l.lastID, mark)
	l.delivered.Store(l.redelivered)
}

func (ln *lane) noteEarliest(at int64) {
	if at != 0 && (ln.earliest == 0 || at < ln.earliest) {
		ln.earliest = at
	}
}

// find is the live chunk with an id, or nil.
func (r *recovery) find(id uint64) *chunk {
	i, ok := slices.BinarySearchFunc(r.chunks, id, func(c *chunk, id uint64) int { return cmp.Compare(c.id, id) })
	if !ok {
		return nil
	}
	return r.chunks[i]
}

func (r *recovery) acks(it item) error {
	id, _ := chunkOf(it.key)
	ck := r.find(id)
	if ck == nil {
		r.garbage = append(r.garbage, slices.Clone(it.key))
		return nil
	}
	ck.acked = true
	err := it.value(func(val []byte) error {
		return applyAcks(val, ck.runs, func(slot int, mark uint64) { ck.runs[slot].log.noteMark(mark) })
	})
	if err != nil {
		// Records come back that were settled: better than to lose others.
		r.s.opts.Log.Error("an ack state cannot be read: messages that were acknowledged may be delivered again; check the disk", zap.Uint64("chunk", id), zap.Error(err))
	}
	return nil
}

func (r *recovery) part(it item) error {
	id, ok := chunkOf(it.key)
	if !ok || r.find(id) == nil {
		r.maxID = max(r.maxID, id)
		r.garbage = append(r.garbage, slices.Clone(it.key))
	}
	return nil
}

// verifyNewest checks the records of the newest chunks: a disk that lied about
// a sync, or a power cut with Relaxed, leaves their index but not their bytes.
func (r *recovery) verifyNewest() {
	budget := r.s.sizes.verify
	for i := len(r.chunks) - 1; i >= 0 && budget > 0; i-- {
		ck := r.chunks[i]
		budget -= ck.size
		if err := r.s.verify(ck.id); err != nil {
			r.lost(ck.id, err)
			r.chunks[i] = nil
		}
	}
	r.chunks = slices.DeleteFunc(r.chunks, func(c *chunk) bool { return c == nil })
}

// verify checks all records of a chunk, and the bodies they share.
func (s *Disk) verify(id uint64) error {
	d, err := s.directory(id)
	if err != nil {
		return err
	}
	return s.data(id, d, func(data []byte) error {
		for i := range d.entries {
			e := &d.entries[i]
			if err := e.check(data[e.offset : e.offset+e.size]); err != nil {
				return err
			}
		}
		return d.checkShared(data)
	})
}

// checkShared checks the shared bodies in the data of a chunk whose runs are good,
// each one once.
func (d *directory) checkShared(data []byte) error {
	if d.runsLen == d.dataLen {
		return nil
	}
	checked := make(map[uint64]bool) // by offset
	for i := range d.entries {
		e := &d.entries[i]
		run := data[e.offset : e.offset+e.size]
		dec := decoder{id: e.first}
		var rec Record
		for dec.off < len(run) {
			ref, ok := dec.next(run[dec.off:], &rec)
			if !ok {
				return dec.corrupt()
			}
			if ref.size == 0 || checked[ref.off] {
				continue
			}
			if _, err := ref.body(data[d.runsLen:]); err != nil {
				return err
			}
			checked[ref.off] = true
		}
	}
	return nil
}

// index enters the chunks that were found.
func (r *recovery) index() {
	s, c := r.s, &r.s.com
	for _, ck := range r.chunks {
		live := int64(0)
		for slot := range ck.runs {
			rn := &ck.runs[slot]
			live += int64(rn.live)
			if rn.live > 0 {
				rn.log.laneLocked(rn.lane).adopt(ref{ck, uint32(slot)})
			}
		}
		ck.live.Store(live)
		s.live.Add(ck.size)
		if live == 0 {
			s.touch(ck)
		}
	}
	c.chunks = r.chunks
	c.nextChunk = max(c.nextChunk, r.maxID+1)
	c.published = c.nextChunk
	for _, l := range s.logs {
		for i := range l.lanes {
			l.lanes[i].sortAdopted()
		}
	}
}

// adopt adds a recovered run.
func (ln *lane) adopt(r ref) {
	rn := r.run()
	ln.refs = append(ln.refs, r)
	ln.count += int(rn.live)
	ln.bytes += rn.bytes
	if r.c.tiny() {
		ln.tiny++
	}
}

// sortAdopted brings the runs in order: those that were moved are in younger chunks.
func (ln *lane) sortAdopted() {
	slices.SortFunc(ln.refs, func(a, b ref) int { return cmp.Compare(a.run().first, b.run().first) })
	if ln.count == 0 {
		ln.earliest = 0
	}
}

// sweep queues the deletion of what belongs to no chunk any more.
func (r *recovery) sweep() {
	for keys := range slices.Chunk(r.garbage, maxMarkers) {
		writes := make([]write, len(keys))
		for i, key := range keys {
			writes[i] = write{key: key, del: true}
		}
		r.s.ops = append(r.s.ops, &op{writes: writes, done: make(chan error, 1)})
	}
}
