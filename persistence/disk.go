package persistence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
)

// A Disk is the Store that keeps its data, on Badger. Open makes it.
//
// Two goroutines belong to it: the committer writes everything there is to
// write (committer.go), the keeper looks after space and files (keeper.go); with
// Relaxed there is also the syncer (syncer.go). Close ends them.
type Disk struct {
	opts   Options // immutable, with defaults
	sizes  sizes   // immutable
	eng    engine  // immutable
	lim    limits  // immutable
	unlock func() error

	sharedSeq   atomic.Uint64 // of shared bodies
	uncommitted atomic.Int64  // bytes appended, neither committed nor settled
	waiting     atomic.Int64  // bytes appended since the committer last took all
	enough      atomic.Int64  // how many of those wake the committer
	rest        atomic.Uint32 // what the committer waits for: awake, idle or leaving
	wakeup      chan struct{} // capacity 1
	blocked     atomic.Bool   // somebody waits in Wait
	failed      atomic.Pointer[error]
	live        atomic.Int64 // bytes of chunks with live records
	commits     atomic.Uint64
	latency     message.Latencies // of commits
	records     atomic.Uint64
	diskLow     atomic.Bool
	diskFree    atomic.Int64
	diskLimit   atomic.Int64 // Options.DiskLimit, or what SetDiskLimit has made it
	touched     atomic.Int64 // see touchPages

	// together is held, shared, by Together, and alone while a round takes what was
	// appended. Order: before the locks of logs and mu.
	together sync.RWMutex

	// loads is held, shared, by each Load, and alone by Close, which so waits for
	// those under way before it takes the files from under them. It guards shut.
	// Order: before the locks of logs and mu.
	loads sync.RWMutex
	shut  bool // there are no files to load from any more

	// mu guards the fields below. It is a leaf, held for a few instructions.
	mu       sync.Mutex
	logs     map[LogID]*diskLog
	nextLog  LogID
	lastIDs  map[LogID]uint64 // from the last Close, see last.go; nil once all is recovered
	queue    []*diskLog
	dirty    []*chunk
	ops      []*op
	moves    []*move
	pool     []*batch
	pooled   int           // entries the pool has room for
	room     chan struct{} // closed when Wait may look again
	watchers []chan struct{}
	closing  bool
	merges   []*diskLog // logs with many tiny runs

	stop   chan struct{} // closed by Close
	wg     sync.WaitGroup
	fetch  sync.WaitGroup // read-ahead
	com    committer
	keep   keeper
	syncer syncer
	closed sync.Once
	defs   definitions

	published moment // the index has what a commit wrote
}

var _ Store = (*Disk)(nil)

// An op is a change that is not of records, written in order with the others.
type op struct {
	writes []write
	done   chan error // has room for the answer
}

// logBlock is how many log ids are reserved with one write.
const logBlock = 1024

func (s *Disk) NewLog() (Log, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &diskLog{id: s.nextLog, s: s, opened: true}
	s.logs[l.id] = l
	s.nextLog++
	return l, nil
}

func (s *Disk) OpenLog(id LogID) (Log, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	if id == 0 {
		return nil, fmt.Errorf("open log 0: there is no log with this id")
	}
	l := s.openLog(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened {
		return nil, fmt.Errorf("open log %d: it is open already", id)
	}
	l.opened = true
	return l, nil
}

// openLog finds or makes a log. One that holds nothing has left no trace.
func (s *Disk) openLog(id LogID) *diskLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[id]
	if l == nil {
		l = &diskLog{id: id, s: s, lastID: s.lastIDs[id]}
		s.logs[id] = l
		s.nextLog = max(s.nextLog, id+1)
	}
	return l
}

func (s *Disk) Recovered() error {
	s.mu.Lock()
	all := make([]*diskLog, 0, len(s.logs))
	for _, l := range s.logs {
		all = append(all, l)
	}
	s.lastIDs = nil
	s.mu.Unlock()
	for _, l := range all {
		l.mu.Lock()
		ownerless := !l.opened
		l.mu.Unlock()
		if !ownerless {
			continue
		}
		if len(l.Lanes()) > 0 { // else it is only named where others have records
			s.opts.Log.Warn("dropping the records of a queue that is gone; nothing is to be done", zap.Uint32("log", uint32(l.id)))
		}
		l.Drop()
	}
	return s.failure()
}

// forget takes a dropped log out.
func (s *Disk) forget(l *diskLog) {
	s.mu.Lock()
	delete(s.logs, l.id)
	s.mu.Unlock()
}

func (s *Disk) Put(kind Kind, key string, value []byte) error {
	if value == nil {
		value = []byte{}
	}
	return s.defs.writeOne(s, Definition{kind, key, value})
}

func (s *Disk) Delete(kind Kind, key string) error {
	return s.defs.writeOne(s, Definition{Kind: kind, Key: key})
}

func (s *Disk) PutAll(defs []Definition) []error { return s.defs.write(s, defs) }

func (s *Disk) All(kind Kind) iter.Seq2[string, []byte] { return s.defs.all(s, kind) }

// submit queues writes for one transaction. The op answers when it is committed.
func (s *Disk) submit(writes []write) *op {
	o := &op{writes: writes, done: make(chan error, 1)}
	s.submitAll(o)
	return o
}

// submitAll queues ops, each for one transaction, so that they are taken together.
// It answers them at once if the store is closed.
func (s *Disk) submitAll(ops ...*op) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		answer(ops, cmp.Or(s.failure(), ErrClosed))
		return
	}
	s.ops = append(s.ops, ops...)
	s.mu.Unlock()
	s.wake()
}

// takeBatch hands out an empty batch for a log.
func (s *Disk) takeBatch(l *diskLog) *batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b *batch
	if n := len(s.pool); n > 0 {
		b, s.pool = s.pool[n-1], s.pool[:n-1]
		s.pooled -= cap(b.entries)
	} else {
		b = new(batch)
	}
	b.log = l
	return b
}

// maxPooled is how many entries are kept for their next use, in bytes about 5 MB.
const maxPooled = 8 * fullBatch

func (s *Disk) putBatch(b *batch) {
	n := cap(b.entries)
	if n > 2*fullBatch {
		return
	}
	b.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pooled+n <= maxPooled {
		s.pooled += n
		s.pool = append(s.pool, b)
	}
}

// enqueue puts a log on the list of those with something pending.
func (s *Disk) enqueue(l *diskLog) {
	s.mu.Lock()
	s.queue = append(s.queue, l)
	s.mu.Unlock()
}

// touch puts a chunk on the list of those whose state must be written.
func (s *Disk) touch(c *chunk) {
	if c.dirty.Load() || c.dirty.Swap(true) {
		return
	}
	s.mu.Lock()
	s.dirty = append(s.dirty, c)
	s.mu.Unlock()
	if s.rest.Load() == idle {
		s.wake()
	}
}

// gathered says that so many bytes were appended. It wakes the committer if
// that waits for them, or if there is now enough for it.
func (s *Disk) gathered(size int64, urgent bool) {
	s.uncommitted.Add(size)
	n, full := s.waiting.Add(size), s.enough.Load()
	rest := s.rest.Load()
	if rest == idle || rest == leaving && urgent || n >= full && n-size < full {
		s.wake()
	}
}

// What the committer may be waiting for.
const (
	awake   uint32 = iota // nothing, or a commit
	idle                  // any work
	leaving               // work that is urgent, see prompt.go
)

func (s *Disk) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// freed says that so many uncommitted bytes are no longer so.
func (s *Disk) freed(size int64) {
	if size == 0 {
		return
	}
	if s.uncommitted.Add(-size) <= s.opts.MaxUncommitted && s.blocked.Load() {
		s.unblock()
	}
}

func (s *Disk) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked.Store(false)
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

func (s *Disk) Wait(ctx context.Context) error {
	for s.uncommitted.Load() > s.opts.MaxUncommitted {
		if err := s.failure(); err != nil {
			return err
		}
		s.mu.Lock()
		if s.room == nil {
			s.room = make(chan struct{})
		}
		room := s.room
		s.mu.Unlock()
		s.blocked.Store(true)
		if s.uncommitted.Load() <= s.opts.MaxUncommitted || s.failure() != nil {
			continue
		}
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (s *Disk) Health() Health {
	return Health{
		Err:         s.failure(),
		DiskLow:     s.diskLow.Load(),
		DiskFree:    s.diskFree.Load(),
		DiskLimit:   s.limit(),
		DiskUsed:    s.eng.used(),
		Live:        s.live.Load(),
		Uncommitted: max(0, s.uncommitted.Load()),
		Commits:     s.commits.Load(),
		Latency:     s.latency.Snapshot(),
		Records:     s.records.Load(),
		Synced:      s.opts.Durability == Synced,
	}
}

func (s *Disk) Watch() <-chan struct{} {
	ch := make(chan struct{}, 1)
	s.mu.Lock()
	s.watchers = append(s.watchers, ch)
	s.mu.Unlock()
	return ch
}

func (s *Disk) signal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ch := range s.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// failure is why the store has stopped, nil if it has not.
func (s *Disk) failure() error {
	if p := s.failed.Load(); p != nil {
		return *p
	}
	return nil
}

// stopFor stops the store for good: from now on nothing is confirmed.
func (s *Disk) stopFor(err error) {
	if !s.failed.CompareAndSwap(nil, &err) {
		return
	}
	if err != ErrClosed {
		s.opts.Log.Error("the store has failed and takes nothing more: free or repair the disk and restart the broker", zap.String("dir", s.opts.Dir), zap.Error(err))
	}
	s.unblock()
	s.signal()
	s.wake()
}

func (s *Disk) Close() error {
	err := ErrClosed
	s.closed.Do(func() { err = s.close() })
	return err
}

func (s *Disk) close() error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	close(s.stop)
	s.wg.Wait()
	s.loads.Lock()
	s.shut = true
	s.loads.Unlock()
	s.fetch.Wait()
	err := s.failure()
	if errors.Is(err, ErrClosed) {
		err = nil
	}
	if free, ferr := s.opts.diskFree(s.opts.Dir); ferr == nil && free < s.opts.floor()/4 {
		// Closing the engine writes, and would end the process (see hold). The
		// next start recovers as after a crash; the lock goes with the process.
		return cmp.Or(err, fmt.Errorf("%w: %s; the store was left as it is", ErrDiskFull, s.opts.Dir))
	}
	if cerr := s.eng.close(); err == nil {
		err = cerr
	}
	if cerr := s.unlock(); err == nil {
		err = cerr
	}
	return err
}
