package persistence

import (
	"slices"
	"sort"

	"github.com/leveretmq/leveret/message"
)

// An entry is a record that is not committed yet.
type entry struct {
	id       uint64
	time     int64
	expires  int64
	exchange string
	key      string
	header   []byte
	extra    []byte
	body     []byte
	shared   *SharedBody
	size     uint32 // what it counts against the limit of uncommitted bytes
	part     uint32 // index of its Append in the batch's parts
	lane     Lane
	settled  bool // while pending; a batch in flight has its late bits instead
}

// A part is what one Append brought.
type part struct {
	receipt *message.Receipt // nil once released, or if there was none
	left    int              // records neither committed nor settled
}

// A batch is what a log gathered for one round of the committer.
//
// While it is one of the log's pending batches, the log's lock guards all of it. Once
// taken for a round its entries do not change any more and the committer reads
// them without a lock; late stays guarded by the log's lock, next, done and
// parts belong to the committer (parts under the log's lock, for fail).
type batch struct {
	log     *diskLog
	entries []entry
	parts   []part
	live    int   // entries not settled
	bytes   int64 // of the records in a chunk, about; shared bodies left out
	lanes   [4]uint64
	shared  bool // has shared bodies
	taken   bool // in flight

	first int // while pending: entries before it are settled

	late []uint64 // bit i: entry i was settled after the batch was taken
	next int      // entries before it are in a chunk already built
	done int      // entries before it are committed
}

// sharedMin is the least size of a body worth sharing, in bytes: the records
// that go to several logs repeat more than this in their other fields.
const sharedMin = 256

// recordOverhead is what a record takes in a chunk besides its fields, and
// entryOverhead what it takes in memory, in bytes; both are estimates.
const (
	recordOverhead = 12
	entryOverhead  = 32
)

// add copies records in and returns what they count as uncommitted.
func (b *batch) add(recs []Record, r *message.Receipt, s *Disk) int64 {
	b.parts = append(b.parts, part{r, len(recs)})
	n := len(b.entries)
	b.entries = slices.Grow(b.entries, len(recs))[:n+len(recs)]
	total := int64(0)
	for i := range recs {
		total += b.set(&b.entries[n+i], &recs[i], s)
	}
	b.live += len(recs)
	return total
}

func (b *batch) set(e *entry, r *Record, s *Disk) int64 {
	rest := len(r.Header) + len(r.Extra)
	size := rest + entryOverhead + len(r.Key)
	e.id, e.time, e.expires, e.lane, e.settled = r.ID, r.Time, r.Expires, r.Lane, false
	e.exchange, e.key, e.header, e.extra, e.body = r.Exchange, r.Key, r.Header, r.Extra, r.Body
	e.shared, e.part = nil, uint32(len(b.parts)-1)
	if r.Shared != nil && len(r.Body) >= sharedMin {
		e.shared, b.shared = r.Shared, true
		if r.Shared.join(&s.sharedSeq) {
			size += len(r.Body)
		}
	} else {
		size += len(r.Body)
		rest += len(r.Body)
	}
	b.bytes += int64(rest + len(r.Key) + recordOverhead)
	b.lanes[r.Lane/64] |= 1 << (r.Lane % 64)
	e.size = uint32(min(size, 1<<32-1))
	return int64(e.size)
}

// find is the index of the entry with an id, or -1.
func (b *batch) find(id uint64) int {
	if len(b.entries) == 0 || id < b.entries[0].id {
		return -1
	}
	if i := id - b.entries[0].id; i < uint64(len(b.entries)) && b.entries[i].id == id {
		return int(i)
	}
	i := b.search(id)
	if i == len(b.entries) || b.entries[i].id != id {
		return -1
	}
	return i
}

// search is the index of the first entry with an id of at least this.
func (b *batch) search(id uint64) int {
	return sort.Search(len(b.entries), func(i int) bool { return b.entries[i].id >= id })
}

// settle drops entry i of a pending batch. It returns the receipt to release,
// if any, and what the entry counted as uncommitted; ok is false if it was
// settled before.
func (b *batch) settle(i int) (r *message.Receipt, size int64, ok bool) {
	e := &b.entries[i]
	if e.settled {
		return nil, 0, false
	}
	e.settled = true
	e.body, e.header, e.extra, e.shared = nil, nil, nil, nil
	b.live--
	for b.first < len(b.entries) && b.entries[b.first].settled {
		b.first++
	}
	return b.parts[e.part].less(), int64(e.size), true
}

// less counts off one record that is committed or settled. It returns the
// receipt to release if it was the last.
func (p *part) less() (r *message.Receipt) {
	p.left--
	if p.left == 0 {
		r, p.receipt = p.receipt, nil
	}
	return r
}

// settledLate reports whether entry i was settled while in flight.
func (b *batch) settledLate(i int) bool {
	return b.late != nil && b.late[i/64]&(1<<(i%64)) != 0
}

// settleLate notes that entry i of a batch in flight is settled. It returns the
// receipt to release, if any; ok is false if it was settled or committed before.
func (b *batch) settleLate(i int) (r *message.Receipt, ok bool) {
	if b.late == nil {
		b.late = make([]uint64, (len(b.entries)+63)/64)
	}
	if i < b.done || b.settledLate(i) {
		return nil, false
	}
	b.late[i/64] |= 1 << (i % 64)
	b.live--
	return b.parts[b.entries[i].part].less(), true
}

// squeeze removes the settled entries of a pending batch.
func (b *batch) squeeze() {
	if b.live == len(b.entries) {
		return
	}
	n := 0
	b.bytes = 0
	for i := range b.entries {
		if e := &b.entries[i]; !e.settled {
			b.bytes += int64(e.bytes())
			if n != i {
				b.entries[n] = *e
			}
			n++
		}
	}
	clear(b.entries[n:])
	b.entries, b.first = b.entries[:n], 0
}

// wasteful reports whether a pending batch is mostly settled entries, as when
// consumers keep up with a slow disk.
func (b *batch) wasteful() bool { return len(b.entries) >= 4096 && b.live < len(b.entries)/4 }

// reset empties the batch for its next use, and lets go of everything it
// pointed to.
func (b *batch) reset() {
	clear(b.entries)
	clear(b.parts)
	*b = batch{entries: b.entries[:0], parts: b.parts[:0]}
}

// fullBatch is how many entries a batch takes before a log begins another, so
// that batches can be used again whatever the backlog: 600 KB.
const fullBatch = 4096

// isLive reports whether entry i is neither settled nor committed.
func (b *batch) isLive(i int) bool {
	return i >= b.done && !b.entries[i].settled && !b.settledLate(i)
}

// bounds is the least and the greatest live id of a lane, 0 if there is none.
func (b *batch) bounds(number Lane) (first, last uint64) {
	for i := b.done; i < len(b.entries); i++ {
		if b.entries[i].lane == number && b.isLive(i) {
			first = b.entries[i].id
			break
		}
	}
	for i := len(b.entries) - 1; i >= b.done && first != 0; i-- {
		if b.entries[i].lane == number && b.isLive(i) {
			return first, b.entries[i].id
		}
	}
	return first, last
}
