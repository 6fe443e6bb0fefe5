package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
)

// Records are loaded as they were appended, whatever their sizes and however
// little is asked for at once.
func TestLoadAnySize(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	defer closeTest(t, s)
	l, _ := s.NewLog()
	var want []Record
	for i := range 400 {
		size := []int{0, 1, 100, 900, slab / 4, slab/4 + 1, 3000, slab - 20, slab + 1, 5 * slab, 30, 31}[i%12]
		want = append(want, Record{
			ID: uint64(i + 1), Time: int64(1e12 + i), Key: fmt.Sprint("key", i/3),
			Header: bytes.Repeat([]byte{byte(i / 2)}, 1+i%50), Body: bytes.Repeat([]byte{byte(i)}, size),
		})
		if i%5 == 0 {
			want[i].Extra = fmt.Appendf(nil, "extra %d", i)
		}
	}
	mustAppend(t, l, want...)
	l.Settle([]uint64{5, 6, 7, 100})
	live := append(append(append([]Record(nil), want[:4]...), want[7:99]...), want[100:]...)
	for _, maxBytes := range []int{0, 1, 300, slab, 1 << 20, 1 << 30} {
		var got []Record
		for from := uint64(0); ; from = got[len(got)-1].ID + 1 {
			n := len(got)
			var err error
			if got, err = l.Load(0, from, got, maxBytes); err != nil {
				t.Fatal(err)
			}
			if len(got) == n {
				break
			}
		}
		if len(got) != len(live) {
			t.Fatalf("%d records in pieces of %d bytes, want %d", len(got), maxBytes, len(live))
		}
		for i := range got {
			if !sameRecord(got[i], live[i]) {
				t.Fatalf("in pieces of %d bytes record %d differs", maxBytes, live[i].ID)
			}
		}
	}
}

// What is loaded costs the copies of its runs and nothing for each record.
func TestAllocationsOfLoad(t *testing.T) {
	const n = 10_000
	s := openTest(t, Options{Dir: t.TempDir(), Profile: Server})
	defer closeTest(t, s)
	id := fillBacklog(t, s, n, 100)
	l := s.logs[id]
	recs := make([]Record, 0, n)
	load := func() {
		got := 0
		for from := uint64(0); ; from = recs[len(recs)-1].ID + 1 {
			var err error
			if recs, err = l.Load(0, from, recs[:0], 512<<10); err != nil {
				t.Fatal(err)
			}
			if len(recs) == 0 {
				break
			}
			got += len(recs)
		}
		if got < n {
			t.Fatalf("%d records, want %d", got, n)
		}
	}
	if allocs := testing.AllocsPerRun(5, load) / n; allocs > 0.05 {
		t.Errorf("%v allocations a record, want at most 0.05", allocs)
	}
	size := math.Inf(1)
	for range 5 { // what else is going on is not in all of them
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		load()
		runtime.ReadMemStats(&after)
		size = min(size, float64(after.TotalAlloc-before.TotalAlloc)/n)
	}
	if size > 140 {
		t.Errorf("%v bytes allocated for a record with a body of 100, want at most 140", size)
	}
}

// A blindEngine has no chunks while it is blind.
type blindEngine struct {
	engine
	blind atomic.Bool
}

func (e *blindEngine) get(key []byte, fn func(val []byte, meta byte) error) error {
	if e.blind.Load() && key[0] == keyChunk {
		return errNoKey
	}
	return e.engine.get(key, fn)
}

// A chunk that is gone although the index names it has moved: Load waits until
// the index says so.
func TestLoadWaitsForTheIndex(t *testing.T) {
	var e *blindEngine
	s := openTest(t, Options{Dir: t.TempDir(), wrap: func(under engine) engine {
		e = &blindEngine{engine: under}
		return e
	}})
	defer closeTest(t, s)
	l, _ := s.NewLog()
	mustAppend(t, l, testRecords(1, 2, 3)...)
	e.blind.Store(true)
	loaded := make(chan int)
	go func() {
		recs, err := l.Load(0, 0, nil, 1<<20)
		if err != nil {
			t.Error(err)
		}
		loaded <- len(recs)
	}()
	for !s.published.awaited() {
		runtime.Gosched()
	}
	select {
	case n := <-loaded:
		t.Fatalf("Load returned %d records of a chunk that is not there", n)
	default:
	}
	e.blind.Store(false)
	s.published.happened()
	if n := <-loaded; n != 3 {
		t.Errorf("Load returned %d records, want 3", n)
	}
}

// awaited says whether somebody waits for the moment.
func (m *moment) awaited() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ch != nil
}

func TestMomentWakesAllWhoWait(t *testing.T) {
	var m moment
	m.happened() // nobody waits
	a, b := m.next(), m.next()
	select {
	case <-a:
		t.Fatal("it has not happened since")
	default:
	}
	m.happened()
	<-a
	<-b
	select {
	case <-m.next():
		t.Error("it has happened only once")
	default:
	}
}

// A flippedEngine changes a byte of what is read, if that is a part of a chunk.
type flippedEngine struct {
	engine
	at int // of the byte; -1 is none
}

func (e *flippedEngine) get(key []byte, fn func(val []byte, meta byte) error) error {
	return e.engine.get(key, func(val []byte, meta byte) error {
		if key[0] == keyPart && e.at >= 0 {
			val = bytes.Clone(val)
			val[e.at] ^= 1
		}
		return fn(val, meta)
	})
}

// Of a run that is damaged anywhere nothing is loaded, however little of it is asked
// for, and its records are still wanted.
func TestDamagedRunIsNotLoaded(t *testing.T) {
	const n, size = 100, 1000
	e := &flippedEngine{at: -1}
	s := openTest(t, Options{Dir: t.TempDir(), wrap: func(under engine) engine {
		e.engine = under
		return e
	}})
	defer closeTest(t, s)
	l, _ := s.NewLog()
	var recs []Record
	for i := range n {
		recs = append(recs, Record{ID: uint64(i + 1), Header: []byte{0, byte(i)}, Body: make([]byte, size)})
	}
	mustAppend(t, l, recs...)
	before := []Record{{ID: 1000}}
	for at := 0; at < n*size; at += 997 {
		for _, room := range []int{0, 10 * size, n * size} {
			for _, from := range []uint64{0, n / 2} {
				e.at = at
				if got, err := l.Load(0, from, before, room); !errors.Is(err, errCorrupt) || len(got) != 1 || got[0].ID != 1000 {
					t.Fatalf("byte %d is wrong: Load from %d with room for %d gave %d records, %v", at, from, room, len(got)-1, err)
				}
				e.at = -1
				if got, err := l.Load(0, from, nil, 0); err != nil || len(got) != 1 || got[0].ID != max(from, 1) {
					t.Fatalf("it was right again, and Load gave %d records, %v", len(got), err)
				}
				if got, err := l.Load(0, n, nil, 0); err != nil || len(got) != 1 { // the end: nothing of the run is remembered
					t.Fatal(got, err)
				}
			}
		}
	}
}
