package persistence

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leveretmq/leveret/message"
)

// A diskLog is a Log of a Disk store. A record is in one of three places, by
// rising id: in a run of a committed chunk, in a batch in flight, in the
// pending batch.
type diskLog struct {
	id          LogID  // immutable
	s           *Disk  // immutable
	redelivered uint64 // the delivered mark found at Open; immutable
	delivered   atomic.Uint64
	fetching    atomic.Bool // a read-ahead is under way
	ahead       bool        // see WriteAhead; set before the first Append

	// mu guards the fields below, and the runs of this log wherever they are.
	// It is held for one batch, never across a disk access. It is a leaf, but
	// that Disk.mu may be taken with it held.
	mu      sync.Mutex
	lanes   []lane   // by number, made when first used
	flights []*batch // taken by the committer, oldest first
	pending []*batch // not taken yet, oldest first; none of them is empty
	lastID  uint64
	queued  bool // is on the store's list of logs with a pending batch
	opened  bool // has an owner
	dropped bool

	// What says whether consumers settle the records of this log at once, see prompt.go.
	prompt int    // commits in a row that found it so, promptTrust at most
	early  int    // records settled while pending, since the last commit
	mark   uint64 // lastID when the committer last left what is pending

	// What is known about delivered is part of some chunk's directory or ack
	// state: which mark, and where.
	savedMark uint64
	savedIn   *chunk
	savedAcks bool // in the ack state, not the directory
}

var _ Log = (*diskLog)(nil)

func (l *diskLog) ID() LogID { return l.id }

func (l *diskLog) Append(recs []Record, r *message.Receipt) (taken bool) {
	if len(recs) == 0 {
		release(r, nil)
		return true
	}
	l.mu.Lock()
	if err := l.s.failure(); err != nil || l.dropped {
		l.mu.Unlock()
		release(r, err)
		return err == nil
	}
	size := l.openBatchLocked().add(recs, r, l.s)
	l.lastID = max(l.lastID, recs[len(recs)-1].ID)
	l.countLocked(recs)
	if !l.queued {
		l.queued = true
		l.s.enqueue(l)
	}
	urgent := l.urgentLocked()
	l.mu.Unlock()
	l.s.gathered(size, urgent)
	return true
}

// openBatchLocked is the pending batch to append to.
func (l *diskLog) openBatchLocked() *batch {
	if n := len(l.pending); n > 0 && len(l.pending[n-1].entries) < fullBatch {
		return l.pending[n-1]
	}
	b := l.s.takeBatch(l)
	l.pending = append(l.pending, b)
	return b
}

// countLocked counts new records in their lanes.
func (l *diskLog) countLocked(recs []Record) {
	ln := l.laneLocked(recs[0].Lane)
	for i := range recs {
		if recs[i].Lane != ln.number {
			ln = l.laneLocked(recs[i].Lane)
		}
		ln.note(len(recs[i].Body), recs[i].Expires)
	}
}

// laneLocked is the lane with a number; it is made if it is missing. The
// pointer is good until the next lane is made.
func (l *diskLog) laneLocked(n Lane) *lane {
	if len(l.lanes) > 0 && l.lanes[0].number == n {
		return &l.lanes[0]
	}
	i, ok := slices.BinarySearchFunc(l.lanes, n, func(ln lane, n Lane) int { return int(ln.number) - int(n) })
	if !ok {
		l.lanes = slices.Insert(l.lanes, i, lane{number: n})
	}
	return &l.lanes[i]
}

func (l *diskLog) Settle(ids []uint64) {
	var room [8]*message.Receipt
	done, freed := room[:0], int64(0)
	t := toll{s: l.s}
	l.mu.Lock()
	first := l.firstUncommittedLocked()
	for i := 0; i < len(ids); {
		if n := rising(ids[i:], first); n > 0 {
			l.settleRunsLocked(ids[i], ids[i+n-1], &t)
			i += n
			continue
		}
		var r *message.Receipt
		var size int64
		if b, k := l.uncommittedLocked(ids[i]); b != nil {
			r, size = l.settleEntryLocked(b, k)
		}
		if r != nil {
			done = append(done, r)
		}
		freed += size
		i++
	}
	l.tidyLocked()
	t.pay()
	l.mu.Unlock()
	l.s.freed(freed)
	for _, r := range done {
		r.Release()
	}
}

// uncommittedLocked finds the batch and the entry of an id that is not below
// all of them. b is nil if a run may hold it, i is -1 if nothing does.
func (l *diskLog) uncommittedLocked(id uint64) (b *batch, i int) {
	for k := len(l.pending) - 1; k >= 0; k-- {
		if p := l.pending[k]; id >= p.entries[0].id {
			return p, p.find(id)
		}
	}
	for k := len(l.flights) - 1; k >= 0; k-- {
		if f := l.flights[k]; f.done < len(f.entries) && id >= f.entries[f.done].id {
			return f, f.find(id)
		}
	}
	return nil, -1
}

// firstUncommittedLocked is the least id that may be of an uncommitted record.
func (l *diskLog) firstUncommittedLocked() uint64 {
	for _, f := range l.flights {
		if f.done < len(f.entries) {
			return f.entries[f.done].id
		}
	}
	if len(l.pending) > 0 {
		return l.pending[0].entries[0].id
	}
	return math.MaxUint64
}

// rising is how many ids from the front on follow one another without a gap and
// are below a limit.
func rising(ids []uint64, limit uint64) int {
	if ids[0] >= limit {
		return 0
	}
	n := 1
	for n < len(ids) && ids[n] == ids[0]+uint64(n) && ids[n] < limit {
		n++
	}
	return n
}

// settleRunsLocked settles committed records: all with lo <= id <= hi.
func (l *diskLog) settleRunsLocked(lo, hi uint64, t *toll) {
	for i := range l.lanes {
		if lo == hi && l.lanes[i].settle(lo, t) {
			return
		}
		if lo < hi {
			l.lanes[i].settleRange(lo, hi, t)
		}
	}
}

// settleEntryLocked settles entry i of an uncommitted batch, if it is one.
func (l *diskLog) settleEntryLocked(b *batch, i int) (r *message.Receipt, size int64) {
	if i < 0 {
		return nil, 0
	}
	ln, n := l.laneLocked(b.entries[i].lane), int64(len(b.entries[i].body))
	var ok bool
	if b.taken {
		r, ok = b.settleLate(i)
	} else if r, size, ok = b.settle(i); ok {
		l.early++
	}
	if ok {
		ln.forget(1, n)
	}
	return r, size
}

// tidyLocked frees what pending batches hold for nothing.
func (l *diskLog) tidyLocked() {
	keep := l.pending[:0]
	for _, p := range l.pending {
		switch {
		case p.live == 0:
			l.s.putBatch(p)
			continue
		case p.wasteful():
			p.squeeze()
		}
		keep = append(keep, p)
	}
	clear(l.pending[len(keep):])
	l.pending = keep
}

func (l *diskLog) SettleRange(number Lane, from, to uint64) int {
	var room [8]*message.Receipt
	done, freed := room[:0], int64(0)
	t := toll{s: l.s}
	l.mu.Lock()
	ln := l.laneLocked(number)
	n := ln.settleRange(from, to, &t)
	for _, f := range l.flights {
		n += l.settleSpanLocked(f, number, from, to, &done, &freed)
	}
	for _, p := range l.pending {
		n += l.settleSpanLocked(p, number, from, to, &done, &freed)
	}
	l.tidyLocked()
	t.pay()
	l.mu.Unlock()
	l.s.freed(freed)
	for _, r := range done {
		r.Release()
	}
	return n
}

// settleSpanLocked settles the entries of one batch and lane with from <= id <= to.
func (l *diskLog) settleSpanLocked(b *batch, number Lane, from, to uint64, done *[]*message.Receipt, freed *int64) int {
	before := b.live
	for i := max(b.search(from), b.done); i < len(b.entries) && b.entries[i].id <= to; i++ {
		if b.entries[i].lane != number {
			continue
		}
		r, size := l.settleEntryLocked(b, i)
		if r != nil {
			*done = append(*done, r)
		}
		*freed += size
	}
	return before - b.live
}

func (l *diskLog) Delivered(upTo uint64) {
	for {
		old := l.delivered.Load()
		if upTo <= old || l.delivered.CompareAndSwap(old, upTo) {
			return
		}
	}
}

func (l *diskLog) Holds(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, i := l.uncommittedLocked(id); b != nil {
		return i >= 0 && b.isLive(i)
	}
	for i := range l.lanes {
		if l.lanes[i].has(id) {
			return true
		}
	}
	return false
}

func (l *diskLog) Durable() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.durableLocked()
}

func (l *diskLog) durableLocked() uint64 {
	for _, f := range l.flights {
		if f.done < len(f.entries) {
			return f.entries[f.done].id - 1
		}
	}
	if len(l.pending) > 0 {
		return l.pending[0].entries[0].id - 1
	}
	return l.lastID
}

func (l *diskLog) LastID() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastID
}

func (l *diskLog) Lanes() []LaneInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	infos := make([]LaneInfo, 0, len(l.lanes))
	for i := range l.lanes {
		ln := &l.lanes[i]
		if ln.count == 0 {
			continue
		}
		first, last := l.boundsLocked(ln)
		infos = append(infos, LaneInfo{
			Lane: ln.number, Count: ln.count, Bytes: ln.bytes, First: first, Last: last, Earliest: ln.earliest,
		})
	}
	return infos
}

// boundsLocked is the least and the greatest live id of a lane.
func (l *diskLog) boundsLocked(ln *lane) (first, last uint64) {
	ln.trim()
	if _, id, ok := ln.next(0); ok {
		first = id
	}
	for i := len(ln.refs) - 1; i >= ln.head; i-- {
		if r := ln.refs[i].run(); r.live > 0 {
			last = r.lastLive()
			break
		}
	}
	for _, b := range l.uncommittedBatchesLocked() {
		lo, hi := b.bounds(ln.number)
		if first == 0 {
			first = lo
		}
		last = max(last, hi)
	}
	return first, last
}

// uncommittedBatchesLocked are the batches in flight and the pending ones.
func (l *diskLog) uncommittedBatchesLocked() []*batch { return slices.Concat(l.flights, l.pending) }

func (l *diskLog) Drop() {
	l.mu.Lock()
	done, freed := l.dropLocked()
	l.mu.Unlock()
	l.s.forget(l)
	l.s.freed(freed)
	for _, r := range done {
		r.Release()
	}
}

// dropLocked settles everything for good.
func (l *diskLog) dropLocked() (done []*message.Receipt, freed int64) {
	if l.dropped {
		return nil, 0
	}
	l.dropped = true
	t := toll{s: l.s}
	for i := range l.lanes {
		l.lanes[i].settleRange(0, ^uint64(0), &t)
	}
	t.pay()
	for _, b := range l.uncommittedBatchesLocked() {
		for i := b.done; i < len(b.entries); i++ {
			r, size := l.settleEntryLocked(b, i)
			if r != nil {
				done = append(done, r)
			}
			freed += size
		}
	}
	l.tidyLocked()
	return done, freed
}

// release keeps the promise to a receipt, or fails it.
func release(r *message.Receipt, err error) {
	if r == nil {
		return
	}
	if err != nil {
		r.Fail()
	}
	r.Release()
}
