package persistence

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
)

// A move copies live records of old chunks into a new one: to bring together
// the many small runs of a slow queue, or to free files that a few long-lived
// records keep from being collected. The new chunk and the end of the old runs
// are one transaction.
//
// The keeper prepares a move and reads the records, while they may still be
// settled. The committer looks again when it builds the transaction, and once
// more when it is committed; what was settled in between is settled in the new
// chunk too.
type move struct {
	c      *chunk
	values [][]byte // of the new chunk: directory, data
	dir    *directory
	from   [][]ref    // by slot: the old runs, in order of id
	keys   [][]byte   // of the new chunk, to be given its id
	killed []*chunk   // old chunks that end with the move
	done   chan error // capacity 1
}

// maxSources bounds the old chunks of one move, and with them the size of its
// transaction.
const maxSources = 100

// errSettled: nothing was left to move.
var errSettled = errors.New("all records were settled meanwhile")

// A mover collects the records of one move. It belongs to the keeper.
type mover struct {
	s      *Disk
	dir    directory
	logs   []*diskLog
	from   [][]ref
	data   []byte
	bodies []byte
	where  map[bodyAt]sharedRef
}

// bodyAt is a shared body in an old chunk.
type bodyAt struct {
	chunk, off uint64
}

// move moves the live records of these runs into one new chunk and waits for
// the commit. Each group becomes one run: it is one run, or some that are
// neighbours in their lane.
func (k *keeper) move(groups [][]ref) error {
	m := &mover{s: k.s, where: make(map[bodyAt]sharedRef)}
	slices.SortFunc(groups, compareGroups)
	for _, refs := range groups {
		if err := m.run(refs); err != nil {
			return err
		}
	}
	if len(m.dir.entries) == 0 {
		return errSettled
	}
	return k.s.submitMove(m.finish())
}

// compareGroups orders runs as a directory does.
func compareGroups(a, b []ref) int {
	x, y := a[0].run(), b[0].run()
	return cmp.Or(cmp.Compare(x.log.id, y.log.id), cmp.Compare(x.lane, y.lane), cmp.Compare(x.first, y.first))
}

// run adds one run, made of what is live in some runs of a lane.
func (m *mover) run(refs []ref) error {
	r := refs[0].run()
	r.log.mu.Lock()
	mark := r.log.deliveredLocked()
	r.log.mu.Unlock()
	e := dirEntry{log: r.log.id, lane: r.lane, offset: uint64(len(m.data)), mark: mark}
	var enc encoder
	var ids []uint64
	for _, old := range refs {
		err := m.records(old, func(rec *entry, ref *sharedRef) {
			if len(ids) == 0 {
				enc.id = rec.id
			}
			ids = append(ids, rec.id)
			e.note(len(rec.body), rec.expires)
			m.data = enc.append(m.data, rec, ref)
		})
		if err != nil {
			return fmt.Errorf("move records of chunk %d: %w", old.c.id, err)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if !e.setIDs(ids) {
		return fmt.Errorf("move records of log %d: ids too far apart", e.log)
	}
	e.size = uint64(len(m.data)) - e.offset
	e.crc = crc32.Checksum(m.data[e.offset:], castagnoli)
	m.dir.entries = append(m.dir.entries, e)
	m.logs = append(m.logs, r.log)
	m.from = append(m.from, refs)
	return nil
}

// setIDs fills in which ids a run has. It returns false if they are more than
// 32 bits apart.
func (e *dirEntry) setIDs(ids []uint64) bool {
	span := ids[len(ids)-1] - ids[0]
	if span != uint64(uint32(span)) {
		return false
	}
	e.first, e.span, e.count = ids[0], uint32(span), uint32(len(ids))
	if span+1 == uint64(len(ids)) {
		return true
	}
	offs := make([]uint32, len(ids))
	for i, id := range ids {
		offs[i] = uint32(id - e.first)
	}
	e.set = newIDSet(offs)
	return true
}

// records calls fn for the records of a run that are live now.
func (m *mover) records(old ref, fn func(*entry, *sharedRef)) error {
	d, err := m.s.directory(old.c.id)
	if errors.Is(err, errNoKey) {
		return nil // all of it was settled meanwhile
	}
	if err != nil {
		return err
	}
	e := &d.entries[old.slot]
	live := old.snapshot()
	return m.s.data(old.c.id, d, func(data []byte) error {
		run := data[e.offset : e.offset+e.size]
		if err := e.check(run); err != nil {
			return err
		}
		dec := decoder{id: e.first}
		var header []byte // outlives data, as the encoder remembers it
		for dec.off < len(run) {
			var rec Record
			at, ok := dec.next(run[dec.off:], &rec)
			if !ok {
				return dec.corrupt()
			}
			if !live.has(rec.ID) {
				continue
			}
			ref, err := m.share(old.c.id, at, data[d.runsLen:])
			if err != nil {
				return err
			}
			if !bytes.Equal(header, rec.Header) {
				header = bytes.Clone(rec.Header)
			}
			rec.Header = header
			en := entryOf(&rec)
			if ref != nil {
				en.body = data[d.runsLen+at.off:][:at.size]
			}
			fn(&en, ref)
		}
		return nil
	})
}

// snapshot is a copy of a run as it is now.
func (r ref) snapshot() run {
	rn := r.run()
	rn.log.mu.Lock()
	defer rn.log.mu.Unlock()
	cp := *rn
	if cp.set != nil {
		cp.set = &idset{offs: cp.set.offs, bits: slices.Clone(cp.set.bits)}
	}
	return cp
}

func entryOf(rec *Record) entry {
	return entry{
		id: rec.ID, time: rec.Time, expires: rec.Expires, exchange: rec.Exchange, key: rec.Key,
		header: rec.Header, extra: rec.Extra, body: rec.Body,
	}
}

// share copies a shared body once; nil if the record has a body of its own.
func (m *mover) share(chunk uint64, at sharedRef, bodies []byte) (*sharedRef, error) {
	if at.size == 0 {
		return nil, nil
	}
	key := bodyAt{chunk, at.off}
	if ref, ok := m.where[key]; ok {
		return &ref, nil
	}
	body, err := at.body(bodies)
	if err != nil {
		return nil, err
	}
	ref := sharedRef{off: uint64(len(m.bodies)), size: at.size, crc: at.crc}
	m.bodies = append(m.bodies, body...)
	m.where[key] = ref
	return &ref, nil
}

func (m *mover) finish() *move {
	m.dir.runsLen = uint64(len(m.data))
	data := append(m.data, m.bodies...)
	mv := &move{dir: &m.dir, from: m.from, done: make(chan error, 1)}
	mv.c, mv.values = m.dir.chunk(data, m.logs, m.s.lim.value, m.s.part())
	return mv
}

func (s *Disk) submitMove(m *move) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrClosed
	}
	s.moves = append(s.moves, m)
	s.mu.Unlock()
	s.wake()
	return <-m.done
}

// gatherMove ends the old runs and returns what has to be written. It is
// called by the committer, when it reads what is settled.
func (c *committer) gatherMove(m *move) []write {
	for slot := range m.c.runs {
		m.settle(slot)
	}
	writes := []write{{key: appendChunkKey(nil, keyChunk, 0), val: m.values[0]}}
	for n, val := range m.values[1:] {
		writes = append(writes, write{key: appendPartKey(nil, 0, n), val: val})
	}
	if m.c.partly() {
		m.c.acked = true
		writes = append(writes, write{key: appendChunkKey(nil, keyAcks, 0), val: m.c.ackState()})
	}
	for _, w := range writes {
		m.keys = append(m.keys, w.key)
	}
	seen := make(map[*chunk]bool)
	for _, refs := range m.from {
		for _, old := range refs {
			if !seen[old.c] && !old.c.dead {
				seen[old.c] = true
				writes = c.endMoved(m, old.c, writes)
			}
		}
	}
	return writes
}

// settle takes out of a new run what is not live any more in the old ones, and
// says of those that they are moved.
func (m *move) settle(slot int) {
	r := &m.c.runs[slot]
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	m.settleLocked(slot)
	for _, old := range m.from[slot] {
		old.run().moved = true
	}
}

func (m *move) settleLocked(slot int) {
	r, refs := &m.c.runs[slot], m.from[slot]
	for id, ok := r.nextLive(r.first); ok; id, ok = r.nextLive(id + 1) {
		for len(refs) > 1 && id > refs[0].run().last() {
			refs = refs[1:]
		}
		if !refs[0].run().has(id) && r.settle(id) {
			m.c.live.Add(-1)
		}
	}
}

// partly reports whether some records of a new chunk are settled.
func (ck *chunk) partly() bool {
	n := int64(0)
	for i := range ck.runs {
		n += int64(ck.runs[i].count)
	}
	return ck.live.Load() < n
}

// endMoved appends what ends the moved runs of an old chunk: its dead marker,
// if nothing else is live in it.
func (c *committer) endMoved(m *move, ck *chunk, writes []write) []write {
	rest := false
	for i := range ck.runs {
		r := &ck.runs[i]
		r.log.mu.Lock()
		rest = rest || r.live > 0 && !r.moved
		r.log.mu.Unlock()
	}
	if rest {
		ck.acked = true
		return append(writes, write{key: appendChunkKey(nil, keyAcks, ck.id), val: ck.ackState()})
	}
	ck.dead = true
	m.killed = append(m.killed, ck)
	c.markers = append(c.markers, ck.id)
	return ck.deathWrites(writes)
}

// patchKeys gives the writes of the new chunk its id, which is known only when
// they enter a group: ids are committed in order.
func (m *move) patchKeys() {
	for _, key := range m.keys {
		binary.BigEndian.PutUint64(key[1:], m.c.id)
	}
}

// moved puts the new runs in the place of the old ones, after the commit.
func (c *committer) moved(m *move) {
	s := c.s
	c.chunks = append(c.chunks, m.c)
	c.published = m.c.id + 1
	s.live.Add(m.c.size)
	for slot := range m.c.runs {
		m.replace(s, slot)
	}
	for _, ck := range m.killed {
		s.live.Add(-ck.size)
		s.keep.died(ck.size)
	}
	m.done <- nil
}

func (m *move) replace(s *Disk, slot int) {
	r := &m.c.runs[slot]
	l := r.log
	l.mu.Lock()
	defer l.mu.Unlock()
	before := m.c.live.Load()
	m.settleLocked(slot)
	l.laneLocked(r.lane).replace(m.from[slot], ref{m.c, uint32(slot)})
	for _, old := range m.from[slot] {
		rn := old.run()
		old.c.live.Add(-int64(rn.live))
		rn.live, rn.set, rn.from = 0, nil, rn.last()+1
		if l.savedIn == old.c {
			l.savedMark, l.savedIn, l.savedAcks = m.dir.entries[slot].mark, m.c, false
		}
		if !old.c.dead && old.c.live.Load() == 0 {
			s.touch(old.c)
		}
	}
	if live := m.c.live.Load(); live < before || live == 0 {
		s.touch(m.c)
	}
}

// replace puts one run in the place of some adjacent ones. The count and the
// bytes of the lane stay as they are.
func (ln *lane) replace(old []ref, with ref) {
	before := int64(0)
	for _, o := range old {
		before += o.run().bytes
	}
	with.run().bytes = before
	n := ln.head
	put := false
	for _, r := range ln.refs[ln.head:] {
		if !slices.Contains(old, r) {
			ln.refs[n] = r
			n++
			continue
		}
		ln.drop(r)
		if r.run().live == 0 {
			ln.empty--
		}
		if !put && with.run().live > 0 {
			put = true
			ln.refs[n] = with
			n++
			if with.c.tiny() {
				ln.tiny++
			}
		}
	}
	clear(ln.refs[n:])
	ln.refs, ln.hint, ln.cursor = ln.refs[:n], 0, cursor{}
}
