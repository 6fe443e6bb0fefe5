package persistence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
)

// A faultEngine stands before the real engine: the test sees each transaction
// before it is written, and decides how it ends.
type faultEngine struct {
	engine
	mu   sync.Mutex
	hook func(w []write) error // before the commit; may block
	// syncError is what sync returns.
	syncError error
}

func (e *faultEngine) sync() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.syncError != nil {
		return e.syncError
	}
	return e.engine.sync()
}

func (e *faultEngine) commit(w []write, done func(error)) {
	e.mu.Lock()
	hook := e.hook
	e.mu.Unlock()
	if hook == nil {
		e.engine.commit(w, done)
		return
	}
	go func() {
		if err := hook(w); err != nil {
			done(err)
			return
		}
		e.engine.commit(w, done)
	}()
}

func (e *faultEngine) set(hook func(w []write) error) {
	e.mu.Lock()
	e.hook = hook
	e.mu.Unlock()
}

// openFaulty opens a store whose engine the test controls.
func openFaulty(t *testing.T, o Options) (*Disk, *faultEngine) {
	t.Helper()
	f := new(faultEngine)
	o.wrap = func(e engine) engine {
		f.engine = e
		return f
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	return openTest(t, o), f
}

// A gate holds transactions back until the test lets them go.
type gate struct {
	seen chan []write // each transaction, as it arrives
	let  chan error   // how it ends
}

func newGate(f *faultEngine) *gate {
	g := &gate{make(chan []write, 100), make(chan error, 100)}
	f.set(func(w []write) error {
		g.seen <- w
		return <-g.let
	})
	return g
}

func (w waiter) settled() bool { return len(w) > 0 }

func TestNoReceiptBeforeTheCommit(t *testing.T) {
	s, f := openFaulty(t, Options{})
	g := newGate(f)
	l, _ := s.NewLog()
	for id := uint64(1); id <= 20; id++ {
		r, w := newWaiter()
		l.Append(testRecords(id), r)
		<-g.seen
		if w.settled() {
			t.Fatal("the receipt was released before the commit")
		}
		if got := l.Durable(); got != id-1 {
			t.Fatalf("Durable() = %d before the commit of %d", got, id)
		}
		g.let <- nil
		if w.wait() {
			t.Fatal("the receipt failed")
		}
		if got := l.Durable(); got != id {
			t.Fatalf("Durable() = %d after the commit of %d", got, id)
		}
	}
	f.set(nil)
	closeTest(t, s)
}

// testRecords are records of these ids with small bodies.
func testRecords(ids ...uint64) []Record {
	recs := make([]Record, len(ids))
	for i, id := range ids {
		recs[i] = Record{ID: id, Time: 1e12, Key: "k", Header: []byte{0}, Body: fmt.Appendf(nil, "body %d", id)}
	}
	return recs
}

func loadedIDs(t *testing.T, l Log) (ids []uint64) {
	t.Helper()
	recs, err := l.Load(0, 0, nil, 1<<40)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	for _, r := range recs {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestRecordsGatherDuringACommit(t *testing.T) {
	s, f := openFaulty(t, Options{})
	g := newGate(f)
	l, _ := s.NewLog()
	l.Append(testRecords(1), nil)
	<-g.seen
	r, w := newWaiter()
	for id := uint64(2); id <= 100; id++ {
		l.Append(testRecords(id), nil)
	}
	l.Append(testRecords(101), r)
	if ids := loadedIDs(t, l); len(ids) != 101 {
		t.Errorf("%d records are readable while 1 is in flight and 100 pending, want 101", len(ids))
	}
	g.let <- nil
	g.let <- nil
	if w.wait() {
		t.Fatal("the receipt failed")
	}
	f.set(nil)
	if h := s.Health(); h.Commits != 2 || h.Records != 101 || h.Uncommitted != 0 {
		t.Errorf("Health() = %+v, want 2 commits of 101 records", h)
	}
	closeTest(t, s)
}

func TestSettledRecordsAreNotWritten(t *testing.T) {
	s, f := openFaulty(t, Options{})
	g := newGate(f)
	l, _ := s.NewLog()
	l.Append(testRecords(1, 2, 3), nil)
	<-g.seen
	r1, w1 := newWaiter()
	r2, w2 := newWaiter()
	l.Append(testRecords(4, 5), r1)
	l.Append(testRecords(6, 7), r2)
	l.Settle([]uint64{2, 4, 5, 6}) // 2 is in flight
	if !w1.settled() {
		t.Error("a receipt whose records are all settled was not released at once")
	}
	if w2.settled() {
		t.Error("a receipt with a record left was released before the commit")
	}
	g.let <- nil
	g.let <- nil
	w2.wait()
	f.set(nil)
	if h := s.Health(); h.Records != 4 {
		t.Errorf("%d records were written, want 4", h.Records)
	}
	if got, want := loadedIDs(t, l), []uint64{1, 3, 7}; !slices.Equal(got, want) {
		t.Errorf("left are %v, want %v", got, want)
	}
	closeTest(t, s)
}

func TestSettledInFlightStaysGone(t *testing.T) {
	dir := t.TempDir()
	s, f := openFaulty(t, Options{Dir: dir})
	g := newGate(f)
	l, _ := s.NewLog()
	r, w := newWaiter()
	l.Append(testRecords(1, 2, 3, 4), r)
	<-g.seen
	l.Settle([]uint64{2, 4})
	f.set(nil)
	g.let <- nil
	w.wait()
	closeTest(t, s)
	s = openTest(t, Options{Dir: dir})
	l, _ = s.OpenLog(l.ID())
	if got, want := loadedIDs(t, l), []uint64{1, 3}; !slices.Equal(got, want) {
		t.Errorf("after reopening there are %v, want %v", got, want)
	}
	closeTest(t, s)
}

// keys describes the writes of a transaction, without the ids.
func keys(w []write) string {
	var b strings.Builder
	for _, e := range w {
		switch {
		case e.del:
			b.WriteByte('-')
		case e.meta == metaDead:
			b.WriteByte('+')
		}
		b.WriteByte(e.key[0])
	}
	return b.String()
}

// TestAppendComesBeforeSettle is what dead-lettering relies on: what is
// settled after an Append elsewhere is not committed without it.
func TestAppendComesBeforeSettle(t *testing.T) {
	s, f := openFaulty(t, Options{})
	a, _ := s.NewLog()
	b, _ := s.NewLog()
	mustAppend(t, b, testRecords(1, 2)...)
	g := newGate(f)
	big := testRecords(1)[0] // more than a group: it takes several transactions
	big.Body = make([]byte, 3*s.sizes.group)
	a.Append([]Record{big}, nil)
	b.Settle([]uint64{1, 2})
	r, w := newWaiter()
	a.Append(testRecords(2), r)
	go func() {
		for range 20 {
			g.let <- nil
		}
	}()
	w.wait()
	f.set(nil)
	closeTest(t, s)
	close(g.seen)
	appended, ended := false, false
	for w := range g.seen {
		k := keys(w)
		appended = appended || strings.Contains(strings.ReplaceAll(k, "+c", ""), "c")
		if strings.Contains(k, "+c") {
			ended = true
			if !appended {
				t.Errorf("transaction %s has the settle before the record was written", k)
			}
		}
	}
	if !ended {
		t.Error("no transaction had the settle")
	}
}

func TestFailedCommit(t *testing.T) {
	errDisk := errors.New("no disk")
	s, f := openFaulty(t, Options{Log: zap.NewNop(), MaxUncommitted: 50})
	l, _ := s.NewLog()
	mustAppend(t, l, testRecords(1)...)
	watch := s.Watch()
	g := newGate(f)
	r1, w1 := newWaiter()
	l.Append(testRecords(2), r1)
	<-g.seen
	r2, w2 := newWaiter()
	l.Append(testRecords(3), r2) // pending
	put := make(chan error, 1)
	go func() { put <- s.Put(Queues, "q", nil) }()
	wait := make(chan error, 1)
	go func() { wait <- s.Wait(context.Background()) }()
	g.let <- errDisk
	if !w1.wait() || !w2.wait() {
		t.Error("a receipt succeeded although its commit failed")
	}
	if err := <-put; !errors.Is(err, errDisk) {
		t.Errorf("Put = %v, want the error of the disk", err)
	}
	if err := <-wait; !errors.Is(err, errDisk) {
		t.Errorf("Wait = %v, want the error of the disk", err)
	}
	<-watch
	if h := s.Health(); !errors.Is(h.Err, errDisk) {
		t.Errorf("Health().Err = %v, want the error of the disk", h.Err)
	}
	r3, w3 := newWaiter()
	if l.Append(testRecords(4), r3) {
		t.Error("Append took a record after the store had failed")
	}
	if !w3.wait() {
		t.Error("a receipt succeeded after the store had failed")
	}
	if got := loadedIDs(t, l); !slices.Equal(got, []uint64{1, 2, 3}) {
		t.Errorf("after the failure the log has the ids %v, want the 3 that it took", got)
	}
	if err := s.Put(Queues, "q", nil); !errors.Is(err, errDisk) {
		t.Errorf("Put after the failure = %v, want the error of the disk", err)
	}
	if _, err := s.NewLog(); !errors.Is(err, errDisk) {
		t.Errorf("NewLog after the failure = %v, want the error of the disk", err)
	}
	f.set(nil)
	if err := s.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close after the failure = %v, want the error of the disk", err)
	}
}

// What a consumer had before its commit is not taken for a part of the log after a
// crash.
func TestLastIDAfterACrash(t *testing.T) {
	s, f := openFaulty(t, Options{Log: zap.NewNop()})
	l := mustLog(t, s)
	g := newGate(f)
	s.Together(func() {
		for id := uint64(1); id <= 3; id++ { // each is a transaction
			l.Append([]Record{{ID: id, Time: 1e12, Header: []byte{0}, Body: make([]byte, s.sizes.group)}}, nil)
		}
		l.Delivered(3)
	})
	<-g.seen
	g.let <- nil
	<-g.seen
	g.let <- errors.New("killed")
	_ = s.Close() // it has failed
	s = openTest(t, Options{Dir: s.opts.Dir})
	defer closeTest(t, s)
	again, err := s.OpenLog(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := loadedIDs(t, again); !slices.Equal(got, []uint64{1}) {
		t.Fatalf("the log has %v, want 1", got)
	}
	if got := again.LastID(); got != 1 {
		t.Errorf("LastID() = %d, want 1", got)
	}
}

// What is too big for a transaction is refused; the store goes on.
func TestDefinitionsThatAreTooBig(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	defer closeTest(t, s)
	if err := s.Put(Queues, strings.Repeat("k", MaxKey+1), nil); err == nil || !strings.Contains(err.Error(), "key of 32769 bytes") {
		t.Errorf("Put with a key that is too long = %v", err)
	}
	var writes []write
	for i := range 10 {
		writes = append(writes, write{key: fmt.Appendf(nil, "%c%0*d", keyPadding, MaxKey, i), del: true})
	}
	if err := s.do(writes); err == nil {
		t.Error("a transaction of 320 KiB of keys was taken")
	}
	if err := s.Put(Queues, "q", nil); err != nil {
		t.Errorf("Put after that: %v", err)
	}
}

// A definition that is refused costs only itself: those beside it still share a commit.
func TestRefusedDefinitionAmongOthers(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	defer closeTest(t, s)
	before := s.Health().Commits
	errs := s.PutAll([]Definition{
		{Queues, "a", make([]byte, 2*fragmentSize)},
		{Queues, strings.Repeat("k", MaxKey+1), []byte{}},
		{Queues, "b", []byte("b")},
		{Queues, "c", make([]byte, s.sizes.group+1)},
		{Queues, "missing", nil},
		{Queues, "d", []byte("d")},
	})
	for i, err := range errs {
		if refused := i == 1 || i == 3; (err != nil) != refused {
			t.Errorf("definition %d: error %v", i, err)
		}
	}
	if got := maps.Collect(s.All(Queues)); len(errs) != 6 || len(got) != 3 || len(got["a"]) != 2*fragmentSize || string(got["b"])+string(got["d"]) != "bd" {
		t.Errorf("%d errors, stored %d definitions, want 6 and a, b, d", len(errs), len(got))
	}
	if n := s.Health().Commits - before; n != 1 {
		t.Errorf("%d commits, want 1", n)
	}
}

// TestFailedValueLogSync: Badger logs this failure and reports success.
func TestFailedValueLogSync(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir(), Log: zap.NewNop()})
	l, _ := s.NewLog()
	mustAppend(t, l, testRecords(1)...)
	s.eng.(*badgerEngine).log.Errorf("Error while curlf sync: %v\n", errors.New("input/output error"))
	r, w := newWaiter()
	l.Append(testRecords(2), r)
	if !w.wait() {
		t.Error("a receipt succeeded although the value log was not synced")
	}
	if s.Health().Err == nil {
		t.Error("Health().Err is nil after a failed sync")
	}
	if err := s.Close(); err == nil {
		t.Error("Close returned no error after a failed sync")
	}
}

func TestWaitBlocksWhileMuchIsUncommitted(t *testing.T) {
	s, f := openFaulty(t, Options{MaxUncommitted: 10_000})
	g := newGate(f)
	l, _ := s.NewLog()
	rec := testRecords(1)[0]
	rec.Body = make([]byte, 9000)
	l.Append([]Record{rec}, nil)
	<-g.seen
	if err := s.Wait(t.Context()); err != nil {
		t.Fatalf("Wait below the limit: %v", err)
	}
	rec.ID = 2
	l.Append([]Record{rec}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait above the limit with a cancelled context = %v", err)
	}
	wait := make(chan error, 1)
	go func() { wait <- s.Wait(t.Context()) }()
	l.Settle([]uint64{2}) // frees it without a commit
	if err := <-wait; err != nil {
		t.Errorf("Wait = %v", err)
	}
	f.set(nil)
	g.let <- nil
	closeTest(t, s)
}

func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o nullEngine
		s := newDisk(Options{Linger: 5e6}.withDefaults(), &o)
		s.wg.Add(1)
		go s.com.run()
		synctest.Wait() // until it is idle
		l, _ := s.NewLog()
		r, w := newWaiter()
		for id := uint64(1); id <= 10; id++ {
			l.Append(testRecords(id), nil)
			synctest.Wait()
		}
		l.Append(testRecords(11), r)
		if w.wait() || o.commits != 1 {
			t.Errorf("%d commits of records that came within the linger, want 1", o.commits)
		}
		close(s.stop)
		s.wg.Wait()
	})
}

// nullEngine keeps nothing.
type nullEngine struct {
	engine
	commits int
}

func (e *nullEngine) commit(w []write, done func(error)) { e.commits++; done(nil) }
func (e *nullEngine) limits() limits {
	return limits{entries: 1000, bytes: 8 << 20, inline: 1 << 20, value: 1 << 10, pointer: 12, memtable: 1 << 20}
}
func (e *nullEngine) rotated() bool { return false }

func TestManyAppendsShareAReceipt(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	defer closeTest(t, s)
	w := make(waiter, 1)
	r := message.NewReceipt(w, 1, 100)
	r.Hold(101)
	l, _ := s.NewLog()
	for id := uint64(1); id <= 100; id++ {
		l.Append(testRecords(id), r)
	}
	l.Settle([]uint64{5, 50, 99, 100})
	r.Release()
	if w.wait() {
		t.Error("the receipt failed")
	}
}

func TestZeroLengthFiles(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	l, _ := s.NewLog()
	mustAppend(t, l, testRecords(1, 2)...)
	closeTest(t, s)
	for _, name := range []string{"000009.vlog", "00009.mem", "000010.vlog"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = openTest(t, Options{Dir: dir})
	defer closeTest(t, s)
	l, _ = s.OpenLog(l.ID())
	if got := loadedIDs(t, l); len(got) != 2 {
		t.Errorf("%d records, want 2", len(got))
	}
}

func TestLockedDirectory(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	_, err := Open(Options{Dir: dir, LockWait: -1})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open of a directory in use = %v, want ErrLocked with its name", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	s, err = Open(Options{Dir: dir})
	if err != nil {
		t.Fatalf("Open of a directory being closed: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	closeTest(t, s)
}

func TestNewerFormat(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	if err := s.do([]write{{key: []byte{keyFormat}, val: []byte{formatVersion + 1}}}); err != nil {
		t.Fatal(err)
	}
	closeTest(t, s)
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrFormat) {
		t.Errorf("Open of a newer format = %v, want ErrFormat", err)
	}
}

func TestDiskAlarm(t *testing.T) {
	var free atomic.Int64
	free.Store(90)
	s := openTest(t, Options{Dir: t.TempDir(), DiskLimit: 100, diskFree: func(string) (int64, error) { return free.Load(), nil }})
	defer closeTest(t, s)
	if h := s.Health(); !h.DiskLow || h.DiskFree != 90 || h.DiskLimit != 100 {
		t.Errorf("Health() = %+v with 90 of 100 bytes free, want DiskLow", h)
	}
	watch := s.Watch()
	for _, tt := range []struct {
		free int64
		low  bool
	}{{105, true}, {110, false}} {
		free.Store(tt.free)
		s.keep.wake()
		<-watch
		if h := s.Health(); h.DiskLow != tt.low || h.DiskFree != tt.free {
			t.Errorf("Health() = %+v with %d of 100 bytes free, want DiskLow %v", h, tt.free, tt.low)
		}
	}
}

func TestFailedBackgroundSync(t *testing.T) {
	errDisk := errors.New("no disk")
	s, f := openFaulty(t, Options{Durability: Relaxed, Log: zap.NewNop()})
	watch := s.Watch()
	f.mu.Lock()
	f.syncError = errDisk
	f.mu.Unlock()
	l := mustLog(t, s)
	mustAppend(t, l, testRecords(1)...)
	for !errors.Is(s.Health().Err, errDisk) {
		<-watch
	}
	r, w := newWaiter()
	l.Append(testRecords(2), r)
	if !w.wait() {
		t.Error("a receipt succeeded after a failed sync")
	}
	if err := s.Close(); !errors.Is(err, errDisk) {
		t.Errorf("Close = %v, want the error of the disk", err)
	}
}

// TestFullDisk: below the floor nothing is written and nothing confirmed; what
// waited is written when there is space again.
func TestFullDisk(t *testing.T) {
	var free atomic.Int64
	free.Store(1000)
	o := Options{DiskLimit: 100, Log: zap.NewNop(), diskFree: func(string) (int64, error) { return free.Load(), nil }}
	s, f := openFaulty(t, o)
	l := mustLog(t, s)
	mustAppend(t, l, testRecords(1)...)
	var commits atomic.Int64
	f.set(func([]write) error { commits.Add(1); return nil })
	watch := s.Watch()
	free.Store(49)
	r, w := newWaiter()
	l.Append(testRecords(2), r)
	for !s.Health().DiskLow { // the alarm does not wait for the next 16 MiB
		<-watch
	}
	if commits.Load() > 0 || w.settled() {
		t.Error("written although the disk is full")
	}
	free.Store(50)
	if w.wait() {
		t.Error("a receipt failed although there was space again")
	}
	free.Store(5)
	r, w = newWaiter()
	l.Append(testRecords(3), r)
	if err := s.Close(); !errors.Is(err, ErrDiskFull) {
		t.Errorf("Close with a full disk = %v, want ErrDiskFull", err)
	}
	if !w.wait() {
		t.Error("a receipt succeeded although the disk was full until the end")
	}
	free.Store(1000)
	closeEngine(t, s)
	o.Dir, o.Log = s.opts.Dir, nil
	free.Store(49)
	if _, err := Open(o); !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("Open with a full disk = %v, want ErrDiskFull and what to do", err)
	}
	free.Store(1000)
	s = openTest(t, o)
	defer closeTest(t, s)
	again, err := s.OpenLog(l.id)
	if err != nil {
		t.Fatal(err)
	}
	if got := loadedIDs(t, again); !slices.Equal(got, ids(1, 2)) {
		t.Errorf("records %v are there, want 1 and 2", got)
	}
}

// closeEngine does what Close leaves to the end of the process.
func closeEngine(t *testing.T, s *Disk) {
	t.Helper()
	if err := errors.Join(s.eng.close(), s.unlock()); err != nil {
		t.Fatal(err)
	}
}
