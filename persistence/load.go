package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// A cursor remembers where in a run the last Load of a lane stopped, so that
// the next one need not decode the run from its start. The zero cursor is none.
type cursor struct {
	chunk uint64
	slot  uint32
	next  uint64 // the id after the last one decoded
	dec   decoder
}

// slab is the most memory that records of one Load share, in bytes: one that
// stays alive for long keeps no more than this. It is the largest size that the
// runtime does not allocate a span for.
const slab = 32 << 10

func (l *diskLog) Load(number Lane, from uint64, dst []Record, maxBytes int) ([]Record, error) {
	l.s.loads.RLock()
	defer l.s.loads.RUnlock()
	if l.s.shut {
		return dst, fmt.Errorf("load from log %d: %w", l.id, ErrClosed)
	}
	ld := loader{l: l, lane: number, from: from, dst: dst, start: len(dst), room: maxBytes}
	for range maxAttempts {
		more, err := ld.step()
		if err != nil {
			return ld.dst, fmt.Errorf("load from log %d: %w", l.id, err)
		}
		if !more {
			return ld.dst, nil
		}
	}
	return ld.dst, fmt.Errorf("load from log %d: record %d is nowhere to be found", l.id, ld.from)
}

// maxAttempts ends a Load that finds nothing where the index says there is.
const maxAttempts = 1 << 20

// A loader is one Load in progress.
type loader struct {
	l        *diskLog
	lane     Lane
	from     uint64 // nothing below is wanted any more
	dst      []Record
	start    int              // len(dst) at first
	room     int              // bytes left
	deadline <-chan time.Time // of the wait for a run that is not there; nil if none is missed
}

// full reports whether enough was loaded.
func (ld *loader) full() bool { return len(ld.dst) > ld.start && ld.room <= 0 }

// step loads from the next place that has something. It returns false when
// there is no more to load.
func (ld *loader) step() (more bool, err error) {
	if ld.full() {
		return false, nil
	}
	l := ld.l
	l.mu.Lock()
	ln := l.laneLocked(ld.lane)
	r, id, ok := ln.next(ld.from)
	if !ok {
		ld.uncommittedLocked()
		l.mu.Unlock()
		return false, nil
	}
	cur := ln.cursor
	ln.cursor = cursor{} // taken: a second Load starts afresh
	l.mu.Unlock()
	if cur.chunk != r.c.id || cur.slot != r.slot || cur.next > id {
		cur = cursor{chunk: r.c.id, slot: r.slot}
	}
	ld.from = id
	return true, ld.run(r, &cur)
}

// run loads from a committed run and leaves the cursor in the lane.
func (ld *loader) run(r ref, cur *cursor) error {
	first := len(ld.dst)
	err := ld.decode(r, cur)
	if err != nil {
		if _, derr := ld.l.s.directory(r.c.id); derr != nil {
			err = derr // the value went with its chunk
		}
	}
	if errors.Is(err, errNoKey) {
		err = ld.await(r)
		if err == nil {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("chunk %d: %w", r.c.id, err)
	}
	ld.deadline = nil
	cur.dec.header = bytes.Clone(cur.dec.header) // the cursor must not keep a slab alive
	l := ld.l
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.laneLocked(ld.lane)
	ld.sweepLocked(ln, first)
	ln.cursor = *cur
	return nil
}

// lostPatience is how long the index may name a chunk that is not there.
const lostPatience = 5 * time.Second

// await returns when the index has changed, after the chunk of r was not there:
// it died, or its records moved, since the index was looked at. The commit is
// done; its goroutine is about to say so to the index.
func (ld *loader) await(r ref) error {
	l := ld.l
	changed := l.s.published.next()
	l.mu.Lock()
	now, _, ok := l.laneLocked(ld.lane).next(ld.from)
	l.mu.Unlock()
	if !ok || now != r {
		return nil // it has changed already
	}
	if ld.deadline == nil {
		ld.deadline = time.After(lostPatience)
	}
	select {
	case <-changed:
		return nil
	case <-ld.deadline:
		return errNoKey
	}
}

// sweepLocked removes the records from the first one on that are not live any
// more, and takes the others off the room.
func (ld *loader) sweepLocked(ln *lane, first int) {
	all := ln.hasAll(ld.dst[first:])
	n := first
	for i := first; i < len(ld.dst); i++ {
		rec := &ld.dst[i]
		if !all && !ln.has(rec.ID) {
			continue
		}
		rec.Redelivered = rec.ID <= ld.l.redelivered
		ld.room -= len(rec.Header) + len(rec.Body)
		if n != i {
			ld.dst[n] = *rec
		}
		n++
	}
	clear(ld.dst[n:])
	ld.dst = ld.dst[:n]
}

// decode reads records of a run from ld.from on, until they fill the room or
// the run ends; ld.from is then the next id wanted.
func (ld *loader) decode(r ref, cur *cursor) error {
	d, err := ld.l.s.directory(r.c.id)
	if err != nil {
		return err
	}
	slot := int(r.slot)
	if slot >= len(d.entries) {
		return fmt.Errorf("%w: no run %d", errCorrupt, slot)
	}
	e := &d.entries[slot]
	if cur.dec.off == 0 {
		ld.l.s.keep.loaded(int64(e.size))
		ld.l.s.readAhead(ld.l, ld.lane, e.first+uint64(e.span)+1)
	}
	return ld.l.s.data(r.c.id, d, func(data []byte) error {
		rd := runReader{cursor: cur, run: data[e.offset : e.offset+e.size], bodies: data[d.runsLen:], room: ld.room}
		return ld.records(e, &rd)
	})
}

// records appends the records of a run, which is verified when its first ones are
// wanted: if it is damaged, none of them is appended.
func (ld *loader) records(e *dirEntry, rd *runReader) error {
	verify, first, from := rd.dec.off == 0, len(ld.dst), ld.from
	if verify {
		rd.dec.id = e.first
	}
	err := ld.decodeRun(e, rd)
	if verify {
		if bad := e.verify(rd.finish()); bad != nil {
			err = bad // the cause of the other, if there is one
		}
	}
	if err != nil {
		clear(ld.dst[first:])
		ld.dst, ld.from = ld.dst[:first], from
	}
	return err
}

func (ld *loader) decodeRun(e *dirEntry, rd *runReader) error {
	if !rd.skip(ld.from) {
		return rd.dec.corrupt()
	}
	ld.dst = slices.Grow(ld.dst, e.expect(rd.room))
	got := len(ld.dst) > ld.start
	for rd.dec.off < len(rd.run) && (rd.room > 0 || !got) {
		n := len(ld.dst)
		ld.dst = slices.Grow(ld.dst, 1)[:n+1]
		rec := &ld.dst[n]
		if err := rd.read(rec); err != nil {
			ld.dst = ld.dst[:n]
			return err
		}
		rec.Lane = ld.lane
		ld.from = rec.ID + 1
		rd.room -= len(rec.Header) + len(rec.Body)
		got = true
	}
	rd.next = ld.from
	if rd.dec.off >= len(rd.run) {
		ld.from = max(ld.from, e.first+uint64(e.span)+1)
		*rd.cursor = cursor{}
	}
	return nil
}

// expect is how many records of the run fit into so many bytes, about.
func (e *dirEntry) expect(room int) int {
	const most = 4096 // of records without bodies many would
	return min(int(e.count), most, max(room, 0)/int(e.bytes/int64(e.count)+1)+1)
}

// A runReader reads records of a run that own their memory: it copies the run,
// a slab at a time, and decodes the copy. It also computes the checksum of the run
// from that: memory that has been read once already costs a quarter of what it does
// the first time.
type runReader struct {
	*cursor
	run    []byte // not ours
	bodies []byte // the shared ones, not ours
	room   int    // bytes of headers and bodies that are wanted still
	copied []byte // of the run, from where the last slab began
	begin  int    // where that is in the run
	slab   []byte // of bodies that were shared; records own what is before its length
	summed int    // so much of the run is in crc
	crc    uint32
}

// skip moves on to the first record with an id of at least from. It returns
// false if it does not get there for what is not a record.
func (rd *runReader) skip(from uint64) bool {
	if rd.cursor.next >= from && rd.cursor.next > 0 {
		return true
	}
	var rec Record
	for rd.dec.off < len(rd.run) {
		dec := rd.dec
		if _, ok := dec.next(rd.run[dec.off:], &rec); !ok {
			return false
		}
		if rec.ID >= from {
			return true
		}
		rd.dec = dec
	}
	return true
}

// read reads the next record.
func (rd *runReader) read(rec *Record) error {
	at := rd.dec.off - rd.begin
	if at >= len(rd.copied) {
		if !rd.refill() {
			return rd.dec.corrupt()
		}
		at = 0
	}
	ref, ok := rd.dec.next(rd.copied[at:], rec)
	if !ok && at > 0 { // perhaps it goes on where the slab ends
		if !rd.refill() {
			return rd.dec.corrupt()
		}
		ref, ok = rd.dec.next(rd.copied, rec)
	}
	if !ok {
		return rd.dec.corrupt()
	}
	if ref.size > 0 {
		body, err := ref.body(rd.bodies)
		if err != nil {
			return err
		}
		rec.Body = rd.own(body)
	}
	return nil
}

// refill copies the next stretch of the run: a slab, no more than is wanted, or
// one record that is larger. It returns false if there is no record.
func (rd *runReader) refill() bool {
	var rec Record
	rd.dec.header = bytes.Clone(rd.dec.header) // keeps no slab but its own alive
	dec, rest := rd.dec, rd.run[rd.dec.off:]
	if _, ok := dec.next(rest, &rec); !ok {
		return false
	}
	n := dec.off - rd.dec.off
	if n < slab/4 {
		n = min(len(rest), max(n, min(slab, rd.room+rd.room/8)))
	}
	rest = rest[:n]
	copied := make([]byte, n) // together with copy it is not cleared first
	copy(copied, rest)
	rd.begin, rd.copied = rd.dec.off, copied
	if rd.summed >= rd.begin { // it is the checksum of a run from its start
		rd.crc = crc32.Update(rd.crc, castagnoli, copied[rd.summed-rd.begin:])
		rd.summed = rd.begin + n
	}
	return true
}

// finish is the checksum of the whole run.
func (rd *runReader) finish() uint32 {
	rd.crc = crc32.Update(rd.crc, castagnoli, rd.run[rd.summed:])
	rd.summed = len(rd.run)
	return rd.crc
}

// own copies a body.
func (rd *runReader) own(b []byte) []byte {
	if len(b) > slab/4 {
		return bytes.Clone(b)
	}
	if len(b) > cap(rd.slab)-len(rd.slab) {
		rd.slab = make([]byte, 0, min(slab, max(4*len(b), rd.room)))
	}
	n := len(rd.slab)
	rd.slab = append(rd.slab, b...)
	return rd.slab[n : n+len(b) : n+len(b)]
}

// uncommittedLocked appends records that are in flight or pending.
func (ld *loader) uncommittedLocked() {
	for _, b := range ld.l.uncommittedBatchesLocked() {
		for i := max(b.search(ld.from), b.done); i < len(b.entries); i++ {
			e := &b.entries[i]
			if e.lane != ld.lane || !b.isLive(i) {
				continue
			}
			if ld.full() {
				return
			}
			ld.dst = append(ld.dst, e.record())
			ld.room -= len(e.header) + len(e.body)
			ld.from = e.id + 1
		}
	}
}

// record is what was appended.
func (e *entry) record() Record {
	return Record{
		ID: e.id, Lane: e.lane, Time: e.time, Expires: e.expires, Exchange: e.exchange, Key: e.key,
		Header: e.header, Extra: e.extra, Body: e.body, Shared: e.shared,
	}
}

// directory reads the directory of a chunk; errNoKey if the chunk is dead.
func (s *Disk) directory(id uint64) (d *directory, err error) {
	err = s.eng.get(appendChunkKey(nil, keyChunk, id), func(val []byte, meta byte) error {
		if meta == metaDead {
			return errNoKey
		}
		if d, err = decodeDirectory(val); err == nil && d.inline() {
			d.data = bytes.Clone(d.data)
		}
		return err
	})
	return d, err
}

// data calls fn with the data of a chunk, which is only good inside fn.
func (s *Disk) data(id uint64, d *directory, fn func([]byte) error) error {
	switch n := d.parts(); n {
	case 0:
		return fn(d.data)
	case 1:
		return s.eng.get(appendPartKey(nil, id, 0), func(val []byte, _ byte) error {
			if uint64(len(val)) != d.dataLen {
				return fmt.Errorf("%w: %d bytes instead of %d", errCorrupt, len(val), d.dataLen)
			}
			return fn(val)
		})
	default:
		all := make([]byte, 0, min(d.dataLen, 1<<30))
		for part := range n {
			err := s.eng.get(appendPartKey(nil, id, part), func(val []byte, _ byte) error {
				all = append(all, val...)
				return nil
			})
			if err != nil {
				return err
			}
		}
		if uint64(len(all)) != d.dataLen {
			return fmt.Errorf("%w: %d bytes instead of %d", errCorrupt, len(all), d.dataLen)
		}
		return fn(all)
	}
}

// readAhead brings the records from an id on into the page cache, in the
// background, unless that is going on already.
func (s *Disk) readAhead(l *diskLog, number Lane, from uint64) {
	l.mu.Lock()
	r, _, ok := l.laneLocked(number).next(from)
	l.mu.Unlock()
	if !ok || r.c.parts == 0 || !l.fetching.CompareAndSwap(false, true) {
		return
	}
	id, parts := r.c.id, r.c.parts
	s.fetch.Go(func() {
		defer l.fetching.Store(false)
		for part := range min(parts, 2) {
			// An error shows when the records are loaded.
			_ = s.eng.get(appendPartKey(nil, id, part), func(val []byte, _ byte) error {
				s.touched.Add(touchPages(val))
				return nil
			})
		}
	})
}

// touchPages reads one byte of each page. Its result must be used, lest the
// compiler saves the reading.
func touchPages(b []byte) (sum int64) {
	for i := 0; i < len(b); i += 4 << 10 {
		sum += int64(b[i])
	}
	return sum
}
