package persistence

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/leveretmq/leveret/message"
)

// A Memory is a Store that uses no disk: all is lost when it is closed.
// Receipts are released at once. NewMemory makes it.
type Memory struct {
	records atomic.Uint64
	bytes   atomic.Int64 // of live records

	// mu guards the fields below; a leaf.
	mu      sync.Mutex
	nextLog LogID
	defs    map[Kind]map[string][]byte
	closed  bool
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{nextLog: 1, defs: make(map[Kind]map[string][]byte)} }

func (m *Memory) NewLog() (Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	l := &memoryLog{id: m.nextLog, m: m}
	m.nextLog++
	return l, nil
}

// OpenLog fails: there was nothing when the store was opened.
func (m *Memory) OpenLog(id LogID) (Log, error) {
	return nil, fmt.Errorf("open log %d: a store in memory has no logs from before", id)
}

func (m *Memory) Recovered() error { return nil }

func (m *Memory) Put(kind Kind, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	if m.defs[kind] == nil {
		m.defs[kind] = make(map[string][]byte)
	}
	m.defs[kind][key] = bytes.Clone(value)
	return nil
}

func (m *Memory) Delete(kind Kind, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	delete(m.defs[kind], key)
	return nil
}

func (m *Memory) PutAll(defs []Definition) (errs []error) {
	for i := range defs {
		d := &defs[i]
		var err error
		if d.Value == nil {
			err = m.Delete(d.Kind, d.Key)
		} else {
			err = m.Put(d.Kind, d.Key, d.Value)
		}
		if err != nil && errs == nil {
			errs = make([]error, len(defs))
		}
		if err != nil {
			errs[i] = err
		}
	}
	return errs
}

func (m *Memory) All(kind Kind) iter.Seq2[string, []byte] {
	m.mu.Lock()
	defs := maps.Clone(m.defs[kind])
	m.mu.Unlock()
	return func(yield func(string, []byte) bool) {
		for _, key := range slices.Sorted(maps.Keys(defs)) {
			if !yield(key, bytes.Clone(defs[key])) {
				return
			}
		}
	}
}

func (m *Memory) Together(fn func()) { fn() }

func (m *Memory) Wait(context.Context) error { return nil }

func (m *Memory) Health() Health {
	return Health{Live: m.bytes.Load(), Records: m.records.Load(), Synced: true}
}

// Watch returns a channel that never gets a value: nothing can go wrong.
func (m *Memory) Watch() <-chan struct{} { return make(chan struct{}) }

func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	m.closed = true
	return nil
}

// A memoryLog is a Log of a Memory store.
type memoryLog struct {
	id LogID   // immutable
	m  *Memory // immutable

	// mu guards the fields below; a leaf.
	mu      sync.Mutex
	lanes   []*memoryLane // by number
	lastID  uint64
	dropped bool
}

var _ Log = (*memoryLog)(nil)

// A memoryLane keeps the records of one lane, by id. A settled record leaves a
// hole with no bytes, until the holes are the most.
type memoryLane struct {
	number   Lane
	recs     []Record
	gone     []bool // parallel to recs
	head     int    // recs before it are gone
	count    int
	bytes    int64
	earliest int64
}

func (l *memoryLog) ID() LogID { return l.id }

func (l *memoryLog) Append(recs []Record, r *message.Receipt) (taken bool) {
	l.mu.Lock()
	if !l.dropped {
		for i := range recs {
			l.addLocked(&recs[i])
		}
	}
	l.mu.Unlock()
	l.m.records.Add(uint64(len(recs)))
	release(r, nil)
	return true
}

func (l *memoryLog) addLocked(rec *Record) {
	ln := l.laneLocked(rec.Lane)
	ln.recs = append(ln.recs, *rec)
	ln.gone = append(ln.gone, false)
	ln.count++
	ln.bytes += int64(len(rec.Body))
	l.m.bytes.Add(int64(len(rec.Body)))
	if rec.Expires != 0 && (ln.earliest == 0 || rec.Expires < ln.earliest) {
		ln.earliest = rec.Expires
	}
	l.lastID = max(l.lastID, rec.ID)
}

func (l *memoryLog) laneLocked(n Lane) *memoryLane {
	i, ok := slices.BinarySearchFunc(l.lanes, n, func(ln *memoryLane, n Lane) int { return int(ln.number) - int(n) })
	if !ok {
		l.lanes = slices.Insert(l.lanes, i, &memoryLane{number: n})
	}
	return l.lanes[i]
}

func (l *memoryLog) Settle(ids []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		for _, ln := range l.lanes {
			if i := ln.search(id); i < len(ln.recs) && ln.recs[i].ID == id {
				l.m.bytes.Add(-ln.drop(i))
				break
			}
		}
	}
	l.tidyLocked()
}

func (l *memoryLog) SettleRange(number Lane, from, to uint64) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.laneLocked(number)
	before := ln.count
	for i := ln.search(from); i < len(ln.recs) && ln.recs[i].ID <= to; i++ {
		l.m.bytes.Add(-ln.drop(i))
	}
	n = before - ln.count
	l.tidyLocked()
	return n
}

func (l *memoryLog) tidyLocked() {
	for _, ln := range l.lanes {
		ln.tidy()
	}
}

// search is the index of the first record with at least this id.
func (ln *memoryLane) search(id uint64) int {
	if ln.head < len(ln.recs) {
		first := ln.recs[ln.head].ID
		if i := ln.head + int(id-first); id >= first && id-first < uint64(len(ln.recs)-ln.head) && ln.recs[i].ID == id {
			return i
		}
	}
	return ln.head + sort.Search(len(ln.recs)-ln.head, func(i int) bool { return ln.recs[ln.head+i].ID >= id })
}

// drop forgets record i, and returns the bytes that frees.
func (ln *memoryLane) drop(i int) (freed int64) {
	if ln.gone[i] {
		return 0
	}
	freed = int64(len(ln.recs[i].Body))
	ln.gone[i] = true
	ln.recs[i] = Record{ID: ln.recs[i].ID}
	ln.count--
	ln.bytes -= freed
	return freed
}

// tidy closes the holes when they are at the front, or most of the lane.
func (ln *memoryLane) tidy() {
	for ln.head < len(ln.recs) && ln.gone[ln.head] {
		ln.head++
	}
	switch {
	case ln.count == 0:
		*ln = memoryLane{number: ln.number}
	case ln.head > 1024 && ln.head > len(ln.recs)/2, len(ln.recs)-ln.head > 1024 && ln.count < (len(ln.recs)-ln.head)/4:
		ln.compact()
	}
}

func (ln *memoryLane) compact() {
	recs := make([]Record, 0, ln.count+ln.count/2)
	for i := ln.head; i < len(ln.recs); i++ {
		if !ln.gone[i] {
			recs = append(recs, ln.recs[i])
		}
	}
	ln.recs, ln.gone, ln.head = recs, make([]bool, len(recs), cap(recs)), 0
}

func (l *memoryLog) WriteAhead() {}

func (l *memoryLog) Delivered(uint64) {}

func (l *memoryLog) Load(number Lane, from uint64, dst []Record, maxBytes int) ([]Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.laneLocked(number)
	start, size := len(dst), 0
	for i := ln.search(from); i < len(ln.recs); i++ {
		if ln.gone[i] {
			continue
		}
		if len(dst) > start && size >= maxBytes {
			break
		}
		dst = append(dst, ln.recs[i])
		size += len(ln.recs[i].Header) + len(ln.recs[i].Body)
	}
	return dst, nil
}

func (l *memoryLog) Holds(id uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ln := range l.lanes {
		if i := ln.search(id); i < len(ln.recs) && ln.recs[i].ID == id {
			return !ln.gone[i]
		}
	}
	return false
}

func (l *memoryLog) Durable() uint64 { return l.LastID() }

func (l *memoryLog) LastID() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lastID
}

func (l *memoryLog) Lanes() []LaneInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	infos := make([]LaneInfo, 0, len(l.lanes))
	for _, ln := range l.lanes {
		if ln.count == 0 {
			continue
		}
		last := len(ln.recs) - 1
		for ln.gone[last] {
			last--
		}
		infos = append(infos, LaneInfo{
			Lane: ln.number, Count: ln.count, Bytes: ln.bytes, Earliest: ln.earliest,
			First: ln.recs[ln.head].ID, Last: ln.recs[last].ID,
		})
	}
	return infos
}

func (l *memoryLog) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ln := range l.lanes {
		l.m.bytes.Add(-ln.bytes)
	}
	l.lanes, l.dropped = nil, true
}
