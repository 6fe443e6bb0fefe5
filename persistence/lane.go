package persistence

import "sort"

// A ref is one run in the index of a lane.
type ref struct {
	c    *chunk
	slot uint32
}

func (r ref) run() *run { return &r.c.runs[r.slot] }

// A lane is the index of one lane of a log, guarded by the log's lock: its
// committed runs, oldest first. What is pending or in flight is only counted.
type lane struct {
	number   Lane
	refs     []ref // refs[head:] in order of id; runs without live records may be among them
	head     int
	empty    int // runs without live records in refs[head:]
	tiny     int // runs in refs[head:] small enough to be merged; see keeper.go
	hint     int // index of the run used last
	count    int // live records, the uncommitted ones too
	bytes    int64
	earliest int64
	cursor   cursor
}

// note counts a record in.
func (ln *lane) note(bytes int, expires int64) {
	ln.count++
	ln.bytes += int64(bytes)
	if expires != 0 && (ln.earliest == 0 || expires < ln.earliest) {
		ln.earliest = expires
	}
}

// forget counts records out.
func (ln *lane) forget(n int, bytes int64) {
	ln.count -= n
	ln.bytes -= bytes
	if ln.count == 0 {
		ln.bytes, ln.earliest = 0, 0
	}
}

// push adds the youngest run, unless nothing of it is live any more.
func (ln *lane) push(r ref) {
	if r.run().live == 0 {
		return
	}
	ln.refs = append(ln.refs, r)
	if r.c.tiny() {
		ln.tiny++
	}
	ln.trim()
}

// search is the index of the first run that ends at or after id.
func (ln *lane) search(id uint64) int {
	if h := ln.hint; h >= ln.head && h < len(ln.refs) {
		if r := ln.refs[h].run(); r.first <= id && id <= r.last() {
			return h
		}
	}
	n := sort.Search(len(ln.refs)-ln.head, func(i int) bool { return ln.refs[ln.head+i].run().last() >= id })
	return ln.head + n
}

// settle takes one record out of its run, if a run has it.
func (ln *lane) settle(id uint64, t *toll) bool {
	i := ln.search(id)
	if i == len(ln.refs) {
		return false
	}
	ln.hint = i
	r := ln.refs[i].run()
	before := r.bytes
	if !r.settle(id) {
		return false
	}
	ln.forget(1, before-r.bytes)
	t.add(ln.refs[i].c, 1)
	if r.live == 0 {
		ln.empty++
		ln.trim()
	}
	return true
}

// settleRange takes out the committed records with lo <= id <= hi.
func (ln *lane) settleRange(lo, hi uint64, t *toll) (n int) {
	for i := ln.search(lo); i < len(ln.refs); i++ {
		r := ln.refs[i].run()
		if r.first > hi {
			break
		}
		before := r.bytes
		k := r.settleRange(lo, hi)
		if k == 0 {
			continue
		}
		n += k
		ln.hint = i
		ln.forget(k, before-r.bytes)
		t.add(ln.refs[i].c, k)
		if r.live == 0 {
			ln.empty++
		}
	}
	ln.trim()
	return n
}

// trim lets go of runs without live records: at once at the front, and
// everywhere when they are the most.
func (ln *lane) trim() {
	for ln.head < len(ln.refs) && ln.refs[ln.head].run().live == 0 {
		ln.drop(ln.refs[ln.head])
		ln.refs[ln.head] = ref{}
		ln.head++
		ln.empty--
	}
	switch {
	case ln.head == len(ln.refs):
		ln.refs, ln.head = ln.refs[:0], 0
		if cap(ln.refs) > 64 {
			ln.refs = nil
		}
	case ln.empty > 16 && ln.empty > (len(ln.refs)-ln.head)/2:
		ln.compact()
	case ln.head > 64 && ln.head > len(ln.refs)/2:
		n := copy(ln.refs, ln.refs[ln.head:])
		clear(ln.refs[n:])
		ln.refs, ln.head = ln.refs[:n], 0
	}
}

func (ln *lane) drop(r ref) {
	if r.c.tiny() {
		ln.tiny--
	}
}

// compact removes all runs without live records.
func (ln *lane) compact() {
	n := 0
	for _, r := range ln.refs[ln.head:] {
		if r.run().live == 0 {
			ln.drop(r)
			continue
		}
		ln.refs[n] = r
		n++
	}
	clear(ln.refs[n:])
	ln.refs, ln.head, ln.empty = ln.refs[:n], 0, 0
}

// next is the first run that has a live record with an id of at least from,
// and that id.
func (ln *lane) next(from uint64) (r ref, id uint64, ok bool) {
	for i := ln.search(from); i < len(ln.refs); i++ {
		rn := ln.refs[i].run()
		if id, ok := rn.nextLive(from); ok {
			ln.hint = i
			return ln.refs[i], id, true
		}
	}
	return ref{}, 0, false
}

// has reports whether a committed record is live.
func (ln *lane) has(id uint64) bool {
	i := ln.search(id)
	return i < len(ln.refs) && ln.refs[i].run().has(id)
}

// hasAll reports whether all of these records, which are in order of id, are
// live in one committed run without gaps. If it is false they may be all the same.
func (ln *lane) hasAll(recs []Record) bool {
	if len(recs) == 0 {
		return true
	}
	i := ln.search(recs[0].ID)
	if i == len(ln.refs) {
		return false
	}
	r := ln.refs[i].run()
	return r.set == nil && r.live > 0 && recs[0].ID >= r.from && recs[len(recs)-1].ID <= r.last()
}

// A toll gathers what a call settles, so that a chunk is told once for many
// records in a row.
type toll struct {
	s *Disk
	c *chunk
	n int64
}

func (t *toll) add(c *chunk, n int) {
	if t.c != c {
		t.pay()
		t.c = c
	}
	t.n += int64(n)
}

// pay tells the chunk. It must come last.
func (t *toll) pay() {
	if t.c == nil {
		return
	}
	t.c.live.Add(-t.n)
	t.s.touch(t.c)
	t.c, t.n = nil, 0
}
