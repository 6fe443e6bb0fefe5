package persistence

import (
	"bytes"
	"errors"
	"fmt"
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
// stays alive for long keeps no more than this.
const slab = 64 << 10

func (l *diskLog) Load(number Lane, from uint64, dst []Record, maxBytes int) ([]Record, error) {
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

// maxLost is how often a chunk may not be there before that is an error. The
// waits in between take 5 s together.
const maxLost = 1000

// A loader is one Load in progress.
type loader struct {
	l     *diskLog
	lane  Lane
	from  uint64 // nothing below is wanted any more
	dst   []Record
	start int // len(dst) at first
	room  int // bytes left
	free  []byte
	lost  int // times a chunk was not there
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
		// The chunk died, or its records moved, since the index was looked at.
		// The commit is done; its goroutine is about to say so to the index.
		if ld.lost++; ld.lost > maxLost {
			return fmt.Errorf("chunk %d: %w", r.c.id, err)
		}
		time.Sleep(time.Duration(ld.lost-1) * 10 * time.Microsecond)
		return nil
	}
	if err != nil {
		return fmt.Errorf("chunk %d: %w", r.c.id, err)
	}
	ld.lost = 0
	l := ld.l
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.laneLocked(ld.lane)
	keep := ld.dst[:first]
	for i := first; i < len(ld.dst); i++ {
		rec := &ld.dst[i]
		if !ln.has(rec.ID) {
			continue
		}
		rec.Redelivered = rec.ID <= l.redelivered
		ld.room -= len(rec.Header) + len(rec.Body)
		keep = append(keep, *rec)
	}
	clear(ld.dst[len(keep):])
	ld.dst = keep
	ln.cursor = *cur
	return nil
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
		return ld.records(e, cur, data[e.offset:e.offset+e.size], data[d.runsLen:])
	})
}

func (ld *loader) records(e *dirEntry, cur *cursor, run, bodies []byte) error {
	if cur.dec.off == 0 {
		if err := e.check(run); err != nil {
			return err
		}
		cur.dec.id = e.first
	}
	room, got := ld.room, len(ld.dst) > ld.start
	for cur.dec.off < len(run) && (room > 0 || !got) {
		var rec Record
		ref, err := cur.dec.next(run, &rec)
		if err != nil {
			return err
		}
		cur.next = rec.ID + 1
		if rec.ID < ld.from {
			continue
		}
		if rec.Body == nil && ref.size > 0 {
			if rec.Body, err = ref.body(bodies); err != nil {
				return err
			}
		}
		rec.Lane = ld.lane
		ld.own(&rec)
		ld.dst = append(ld.dst, rec)
		ld.from = rec.ID + 1
		room -= len(rec.Header) + len(rec.Body)
		got = true
	}
	if cur.dec.off >= len(run) {
		ld.from = max(ld.from, e.first+uint64(e.span)+1)
		*cur = cursor{}
	}
	return nil
}

// own copies what a record does not own yet.
func (ld *loader) own(rec *Record) {
	rec.Body = ld.copy(rec.Body)
	rec.Extra = ld.copy(rec.Extra)
}

func (ld *loader) copy(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	if len(b) > slab/4 {
		return append(make([]byte, 0, len(b)), b...)
	}
	if len(b) > cap(ld.free)-len(ld.free) {
		ld.free = make([]byte, 0, min(slab, max(4*len(b), ld.room)))
	}
	n := len(ld.free)
	ld.free = append(ld.free, b...)
	return ld.free[n : n+len(b) : n+len(b)]
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
