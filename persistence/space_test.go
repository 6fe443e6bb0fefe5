package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestDeadChunksStayDead is the case in which Badger 4.9 brings deleted keys
// back: delete, fill the memtable to some level, collect the value log moving
// what it thinks is live, flush. What comes back must not be served.
func TestDeadChunksStayDead(t *testing.T) {
	for _, fill := range []int{20, 50, 80} {
		t.Run(fmt.Sprint(fill), func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, Options{Dir: dir, Durability: Relaxed})
			l, _ := s.NewLog()
			const n = 250
			body := randomBody(40 << 10)
			for id := uint64(1); id <= n; id++ {
				mustAppend(t, l, Record{ID: id, Body: body})
			}
			var left []uint64
			for id := uint64(1); id <= n; id++ {
				if id%3 != 0 {
					l.Settle([]uint64{id})
				} else {
					left = append(left, id)
				}
			}
			mustAppend(t, l, Record{ID: 1000})
			s.keep.pad()
			l.Settle(left[:40])
			mustAppend(t, l, Record{ID: 1001})
			left = append(left[40:], 1000, 1001)
			for k := range fill * int(s.sizes.memtable) / 100 / 900 {
				s.do([]write{{key: fmt.Appendf(nil, "z%d", 500+k), val: make([]byte, 900)}})
			}
			s.keep.collect(0.3)
			for range 4 {
				s.keep.pad()
			}
			closeTest(t, s)
			s = openTest(t, Options{Dir: dir})
			l, _ = s.OpenLog(l.ID())
			if got := loadedIDs(t, l); !slices.Equal(got, left) {
				t.Errorf("%d records are there, want %d; first %v", len(got), len(left), got[:5])
			}
			closeTest(t, s)
		})
	}
}

// TestNoFileGoesUnderAReader collects the value log while somebody who reads has
// found a value to be in a file that is to go, and not read it yet.
func TestNoFileGoesUnderAReader(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir, Durability: Relaxed})
	defer closeTest(t, s)
	l := mustLog(t, s)
	body := randomBody(40 << 10)
	const n = 150 // more than a file
	for id := uint64(1); id <= n; id++ {
		mustAppend(t, l, Record{ID: id, Body: body})
	}
	for id := uint64(2); id <= n; id++ {
		l.Settle([]uint64{id})
	}
	mustAppend(t, l, Record{ID: n + 1})
	s.keep.pad()
	eng := s.eng.(*badgerEngine)
	waitFor(t, s, eng.rests)
	txn := eng.db.NewTransactionAt(math.MaxUint64, false)
	defer txn.Discard()
	chunk := s.liveChunks()[0].id
	found, err := txn.Get(appendPartKey(nil, chunk, 0))
	if err != nil {
		t.Fatal(err)
	}
	collected := make(chan error, 1)
	err = eng.get(appendChunkKey(nil, keyChunk, chunk), func([]byte, byte) error {
		go func() { collected <- eng.reclaim(0.3) }()
		for eng.reading.TryRLock() { // until the collection waits for this reader
			eng.reading.RUnlock()
			if len(collected) > 0 {
				return errors.New("the value log was collected meanwhile")
			}
			runtime.Gosched()
		}
		return found.Value(func(val []byte) error {
			if !bytes.Contains(val, body) {
				return fmt.Errorf("%d bytes that are not the record", len(val))
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-collected; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "000001.vlog")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the first file was not to stay: %v", err)
	}
}

// TestDiskSpaceIsReturned keeps a short queue going for 20 times as much as it
// holds; now and then a record stays.
func TestDiskSpaceIsReturned(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir(), gcStep: 8 << 20, Durability: Relaxed})
	l, _ := s.NewLog()
	body := randomBody(8 << 10)
	peak, kept, keptIDs := int64(0), int64(0), []uint64{}
	for id := uint64(1); id <= 16_000; id++ { // 125 MiB
		r, w := newWaiter()
		l.Append([]Record{{ID: id, Body: body}}, r)
		if id%100 == 0 {
			w.wait()
			if err := s.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			peak = max(peak, s.eng.used())
		}
		if id > 200 {
			old := id - 200
			if old%200 == 0 {
				kept += int64(len(body))
				keptIDs = append(keptIDs, old)
				continue
			}
			l.Settle([]uint64{old})
		}
	}
	live := kept + 200*int64(len(body))
	limit := 3*live + s.opts.gcStep + 4*s.sizes.vlog
	s.keep.died(s.keep.threshold())
	waitFor(t, s, func() bool { return s.eng.used() <= limit })
	t.Logf("peak %d MiB, at the end %d MiB for %d MiB of live records", peak>>20, s.eng.used()>>20, live>>20)
	got := loadedIDs(t, l)
	for _, id := range keptIDs {
		if !slices.Contains(got, id) {
			t.Errorf("record %d, which should stay, is lost", id)
		}
	}
	closeTest(t, s)
}

func TestManySmallRunsAreMerged(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, mergeTiny: 100, Durability: Relaxed}
	s := openTest(t, o)
	slow, other := mustLog(t, s), mustLog(t, s)
	for id := uint64(1); id <= 1000; id++ {
		slow.Append(testRecords(id), nil)
		mustAppend(t, other, testRecords(id)...)
		if id%7 == 0 {
			slow.Settle([]uint64{id - 3})
		}
		other.Settle([]uint64{id - 1})
	}
	s.wantMerge(slow)
	waitFor(t, s, func() bool {
		slow.mu.Lock()
		defer slow.mu.Unlock()
		return slow.lanes[0].tiny <= 100
	})
	var want []uint64
	for id := uint64(1); id <= 1000; id++ {
		if (id+3)%7 != 0 || id > 997 {
			want = append(want, id)
		}
	}
	if got := loadedIDs(t, slow); !slices.Equal(got, want) {
		t.Errorf("%d records after merging, want %d", len(got), len(want))
	}
	closeTest(t, s)
	s = openTest(t, o)
	l, _ := s.OpenLog(slow.id)
	if got := loadedIDs(t, l); !slices.Equal(got, want) {
		t.Errorf("%d records after merging and reopening, want %d", len(got), len(want))
	}
	if n := len(l.(*diskLog).lanes[0].refs); n > 150 {
		t.Errorf("%d runs after merging, want about 100", n)
	}
	closeTest(t, s)
}

func mustLog(t *testing.T, s *Disk) *diskLog {
	t.Helper()
	l, err := s.NewLog()
	if err != nil {
		t.Fatalf("NewLog: %v", err)
	}
	return l.(*diskLog)
}

// waitFor waits until the store's goroutines have made something true, which
// takes some commits and pauses. How many commits fit into those is the machine's.
func waitFor(t *testing.T, s *Disk, ok func() bool) {
	t.Helper()
	const hopeless = time.Minute
	for began := time.Now(); !ok(); {
		if time.Since(began) > hopeless {
			t.Fatal("it does not happen")
		}
		if err := s.Put(Parameters, "tick", nil); err != nil {
			t.Fatalf("Put: %v", err)
		}
	}
}

// TestTornTail cuts or wipes the end of the newest files, as a disk does that
// lied about a sync. The store must open with what is whole.
func TestTornTail(t *testing.T) {
	for _, tt := range []struct {
		name, ext string
		zero      bool
	}{{"cut value log", ".vlog", false}, {"wiped value log", ".vlog", true}, {"cut log", ".mem", false}, {"wiped log", ".mem", true}} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, Options{Dir: dir})
			l, _ := s.NewLog()
			for id := uint64(1); id <= 20; id++ {
				mustAppend(t, l, Record{ID: id, Body: randomBody(3000)})
			}
			copied := t.TempDir()
			copyDir(t, dir, copied) // as if the machine had died here
			closeTest(t, s)
			tearTail(t, copied, tt.ext, tt.zero)
			s = openTest(t, Options{Dir: copied, Log: zap.NewNop()})
			l, _ = s.OpenLog(l.ID())
			got := loadedIDs(t, l)
			if len(got) < 15 || len(got) > 19 || !slices.Equal(got, ids(1, uint64(len(got)))) {
				t.Errorf("left are %v, want 1 to 15 or a few more", got)
			}
			mustAppend(t, l, testRecords(100)...)
			closeTest(t, s)
		})
	}
}

// What is torn of shared bodies, which are the end of a chunk, is found at Open like
// all else, where the engine does not look: not in its newest file.
func TestTornSharedBodyIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir})
	logs := []Log{mustLog(t, s), mustLog(t, s)}
	s.Together(func() {
		for id := uint64(1); id <= 10; id++ {
			body, shared := randomBody(4<<10), new(SharedBody)
			for _, l := range logs {
				l.Append([]Record{{ID: id, Body: body, Shared: shared}}, nil)
			}
		}
	})
	closeTest(t, s)
	closeTest(t, openTest(t, Options{Dir: dir})) // begins another file
	for _, path := range valueFiles(t, dir) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if end := len(strings.TrimRight(string(b), "\x00")); end > 4<<10 {
			clear(b[end-4<<10:])
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	core, logged := observer.New(zap.ErrorLevel)
	s = openTest(t, Options{Dir: dir, Log: zap.New(core)})
	defer closeTest(t, s)
	for _, l := range logs {
		l, err := s.OpenLog(l.ID())
		if err != nil {
			t.Fatal(err)
		}
		if got := loadedIDs(t, l); len(got) != 0 || len(l.Lanes()) != 0 {
			t.Errorf("log %d has %v and loads %v, want nothing", l.ID(), l.Lanes(), got)
		}
	}
	if n := logged.FilterMessageSnippet("given up").Len(); n != 1 {
		t.Errorf("%d errors in the log say what is given up, want 1: %v", n, logged.All())
	}
}

func valueFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%d value files, %v; want 2 or more", len(files), err)
	}
	return files
}

// A crash leaves a memtable of the server profile, which has more than one of the
// tiny profile may have. Its log is as long as it was made, or, if the next start was
// cut off, as long as what it holds.
func TestTinyOpensWhatServerLeft(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, Options{Dir: dir, Profile: Server})
	defs := make([]Definition, 2000) // 1.8 MB of what stays in the memtable
	for i := range defs {
		defs[i] = Definition{Kind: Users, Key: fmt.Sprint(i), Value: randomBody(900)}
	}
	if err := errors.Join(s.PutAll(defs)...); err != nil {
		t.Fatal(err)
	}
	whole, cut := t.TempDir(), t.TempDir()
	copyDir(t, dir, whole) // as if the process had died here
	copyDir(t, dir, cut)
	closeTest(t, s)
	if err := os.Truncate(filepath.Join(cut, "00001.mem"), 2<<20); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{whole, cut} {
		s := openTest(t, Options{Dir: dir, Profile: Tiny})
		found := 0
		for range s.All(Users) {
			found++
		}
		if found != len(defs) {
			t.Errorf("%d definitions are left, want %d", found, len(defs))
		}
		closeTest(t, s)
	}
}

func ids(lo, hi uint64) (all []uint64) {
	for id := lo; id <= hi; id++ {
		all = append(all, id)
	}
	return all
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tearTail damages the last 4000 bytes written to the newest file of a kind.
func tearTail(t *testing.T, dir, ext string, zero bool) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*"+ext))
	if len(files) == 0 {
		t.Fatalf("no %s file", ext)
	}
	slices.Sort(files)
	path := files[len(files)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(strings.TrimRight(string(b), "\x00"))
	cut := 4000
	if ext == ".mem" {
		cut = 150 // its entries are small
	}
	if zero {
		clear(b[end-cut:])
	} else {
		b = b[:end-cut]
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRandomDeaths settles in random order, so that files die slowly.
func TestRandomDeaths(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, gcStep: 2 << 20, Durability: Relaxed}
	s := openTest(t, o)
	l := mustLog(t, s)
	rnd := rand.New(rand.NewPCG(1, 2))
	alive := make(map[uint64]bool)
	for id := uint64(1); id <= 6000; id++ {
		r, w := newWaiter()
		l.Append([]Record{{ID: id, Body: randomBody(4 << 10)}}, r)
		alive[id] = true
		if id%50 == 0 {
			w.wait()
		}
		for len(alive) > 300 {
			for old := range alive {
				if rnd.IntN(4) == 0 {
					l.Settle([]uint64{old})
					delete(alive, old)
				}
				break
			}
		}
	}
	for range 2 {
		got := loadedIDs(t, l)
		if len(got) != len(alive) {
			t.Errorf("%d records are there, want %d", len(got), len(alive))
		}
		for _, id := range got {
			if !alive[id] {
				t.Errorf("record %d was settled and is there", id)
			}
		}
		closeTest(t, s)
		s = openTest(t, o)
		again, err := s.OpenLog(l.id)
		if err != nil {
			t.Fatal(err)
		}
		l = again.(*diskLog)
	}
	if err := s.failure(); err != nil && !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	closeTest(t, s)
}
