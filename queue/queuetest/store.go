package queuetest

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// A Store keeps logs in memory. By default what is appended is durable at once;
// with Hold, when Commit is called.
type Store struct {
	mu    sync.Mutex // guards everything, the logs too
	logs  map[persistence.LogID]*Log
	last  persistence.LogID
	held  bool
	fail  error         // of Load
	lost  bool          // Append takes nothing
	gate  chan struct{} // Load waits until it is closed; nil if it does not
	late  chan struct{} // the same, with what it has read
	loads int           // calls of Load
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{logs: map[persistence.LogID]*Log{}} }

// Hold makes appends wait for Commit.
func (s *Store) Hold() {
	s.mu.Lock()
	s.held = true
	s.mu.Unlock()
}

// FailLoads makes every Load fail with err, or none if it is nil.
func (s *Store) FailLoads(err error) {
	s.mu.Lock()
	s.fail = err
	s.mu.Unlock()
}

// FailAppends makes every Append fail, or none.
func (s *Store) FailAppends(on bool) {
	s.mu.Lock()
	s.lost = on
	s.mu.Unlock()
}

// BlockLoads makes every Load wait until open is called.
func (s *Store) BlockLoads() (open func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return func() { close(gate) }
}

// HoldLoads makes every Load wait with what it has read until open is called.
func (s *Store) HoldLoads() (open func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.late = gate
	return func() { close(gate) }
}

// Loads is how often Load was called.
func (s *Store) Loads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads
}

// enter counts a Load and waits until it may go on.
func (s *Store) enter() {
	s.mu.Lock()
	s.loads++
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

// Commit makes everything durable and releases the receipts.
func (s *Store) Commit() {
	s.mu.Lock()
	var done []*message.Receipt
	for _, l := range s.logs {
		done = append(done, l.commit()...)
	}
	s.mu.Unlock()
	for _, r := range done {
		r.Release()
	}
}

// Crash loses what is not committed, as a restart does.
func (s *Store) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.logs {
		l.receipts = nil
		for lane, recs := range l.lanes {
			l.lanes[lane] = slices.DeleteFunc(recs, func(r persistence.Record) bool { return r.ID > l.durable })
			for i := range l.lanes[lane] {
				r := &l.lanes[lane][i]
				r.Redelivered = r.Redelivered || r.ID <= l.delivered
			}
		}
	}
}

// Log returns a log that was made, or nil.
func (s *Store) Log(id persistence.LogID) *Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[id]
}

// NewLog makes a log.
func (s *Store) NewLog() (persistence.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	l := &Log{s: s, id: s.last, lanes: map[persistence.Lane][]persistence.Record{}}
	s.logs[l.id] = l
	return l, nil
}

// OpenLog returns a log that was made before.
func (s *Store) OpenLog(id persistence.LogID) (persistence.Log, error) {
	if l := s.Log(id); l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("no log %d", id)
}

// The other methods of a persistence.Store do nothing.

func (s *Store) Recovered() error                           { return nil }
func (s *Store) Together(fn func())                         { fn() }
func (s *Store) Put(persistence.Kind, string, []byte) error { return nil }
func (s *Store) Delete(persistence.Kind, string) error      { return nil }
func (s *Store) PutAll([]persistence.Definition) []error    { return nil }
func (s *Store) Wait(context.Context) error                 { return nil }
func (s *Store) Health() persistence.Health                 { return persistence.Health{} }
func (s *Store) Watch() <-chan struct{}                     { return nil }
func (s *Store) Close() error                               { return nil }
func (s *Store) All(persistence.Kind) iter.Seq2[string, []byte] {
	return func(func(string, []byte) bool) {}
}

// A Log keeps records in memory.
type Log struct {
	s         *Store
	id        persistence.LogID
	lanes     map[persistence.Lane][]persistence.Record
	receipts  []*message.Receipt
	last      uint64
	durable   uint64
	delivered uint64
	written   int // records that a commit found live
	dropped   bool
}

// Records returns the live records of a lane.
func (l *Log) Records(lane persistence.Lane) []persistence.Record {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return slices.Clone(l.lanes[lane])
}

// Len is how many records are live.
func (l *Log) Len() int {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	n := 0
	for _, recs := range l.lanes {
		n += len(recs)
	}
	return n
}

// Written is how many records were live when they were committed.
func (l *Log) Written() int {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.written
}

// Dropped says whether Drop was called.
func (l *Log) Dropped() bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.dropped
}

func (l *Log) ID() persistence.LogID { return l.id }

func (l *Log) Append(recs []persistence.Record, r *message.Receipt) (taken bool) {
	l.s.mu.Lock()
	if l.s.lost {
		l.s.mu.Unlock()
		if r != nil {
			r.Fail()
			r.Release()
		}
		return false
	}
	for i := range recs {
		if recs[i].ID <= l.last {
			panic(fmt.Sprintf("queuetest: record %d appended after %d", recs[i].ID, l.last))
		}
		l.last = recs[i].ID
		l.lanes[recs[i].Lane] = append(l.lanes[recs[i].Lane], recs[i])
	}
	if r != nil {
		l.receipts = append(l.receipts, r)
	}
	var done []*message.Receipt
	if !l.s.held {
		done = l.commit()
	}
	l.s.mu.Unlock()
	for _, r := range done {
		r.Release()
	}
	return true
}

// Return brings settled records back, as a crash may.
func (l *Log) Return(lane persistence.Lane, recs ...persistence.Record) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	all := append(slices.Clone(recs), l.lanes[lane]...)
	slices.SortFunc(all, func(a, b persistence.Record) int { return cmp.Compare(a.ID, b.ID) })
	l.lanes[lane] = all
}

// commit needs the store's lock.
func (l *Log) commit() []*message.Receipt {
	for _, recs := range l.lanes {
		for i := len(recs) - 1; i >= 0 && recs[i].ID > l.durable; i-- {
			l.written++
		}
	}
	l.durable = l.last
	done := l.receipts
	l.receipts = nil
	return done
}

func (l *Log) Settle(ids []uint64) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for _, id := range ids {
		for lane, recs := range l.lanes {
			if i, ok := find(recs, id); ok {
				l.lanes[lane] = slices.Delete(recs, i, i+1)
			}
		}
	}
}

func find(recs []persistence.Record, id uint64) (int, bool) {
	return slices.BinarySearchFunc(recs, id, func(r persistence.Record, id uint64) int {
		switch {
		case r.ID < id:
			return -1
		case r.ID > id:
			return 1
		}
		return 0
	})
}

func (l *Log) SettleRange(lane persistence.Lane, from, to uint64) int {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	recs := l.lanes[lane]
	i, _ := find(recs, from)
	j, _ := find(recs, to+1)
	l.lanes[lane] = slices.Delete(recs, i, j)
	return j - i
}

func (l *Log) WriteAhead() {}

func (l *Log) Delivered(upTo uint64) {
	l.s.mu.Lock()
	l.delivered = max(l.delivered, upTo)
	l.s.mu.Unlock()
}

func (l *Log) Load(lane persistence.Lane, from uint64, dst []persistence.Record, maxBytes int) ([]persistence.Record, error) {
	l.s.enter()
	dst, late, err := l.read(lane, from, dst, maxBytes)
	if late != nil {
		<-late
	}
	return dst, err
}

func (l *Log) read(lane persistence.Lane, from uint64, dst []persistence.Record, maxBytes int) (_ []persistence.Record, late chan struct{}, err error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.fail != nil {
		return nil, nil, l.s.fail
	}
	recs := l.lanes[lane]
	i, _ := find(recs, from)
	for bytes := 0; i < len(recs) && bytes <= maxBytes; i++ {
		dst = append(dst, recs[i])
		bytes += len(recs[i].Header) + len(recs[i].Body)
	}
	return dst, l.s.late, nil
}

func (l *Log) Holds(id uint64) bool {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for _, recs := range l.lanes {
		if _, ok := find(recs, id); ok {
			return true
		}
	}
	return false
}

func (l *Log) Durable() uint64 {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.durable
}

func (l *Log) LastID() uint64 {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	return l.last
}

func (l *Log) Lanes() []persistence.LaneInfo {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	var infos []persistence.LaneInfo
	for lane, recs := range l.lanes {
		if len(recs) == 0 {
			continue
		}
		info := persistence.LaneInfo{Lane: lane, Count: len(recs), First: recs[0].ID, Last: recs[len(recs)-1].ID}
		for _, r := range recs {
			info.Bytes += int64(len(r.Body))
			if r.Expires != 0 && (info.Earliest == 0 || r.Expires < info.Earliest) {
				info.Earliest = r.Expires
			}
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b persistence.LaneInfo) int { return int(a.Lane) - int(b.Lane) })
	return infos
}

func (l *Log) Drop() {
	l.s.mu.Lock()
	done := l.receipts
	l.receipts, l.dropped = nil, true
	clear(l.lanes)
	delete(l.s.logs, l.id)
	l.s.mu.Unlock()
	for _, r := range done {
		r.Release()
	}
}
