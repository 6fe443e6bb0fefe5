package persistence

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestHeadRoundTrip(t *testing.T) {
	for _, h := range []head{{}, {nextLog: 1, nextChunk: 2, lowWater: 3}, {^LogID(0), ^uint64(0), ^uint64(0)}} {
		got, err := decodeHead(h.append(nil))
		if err != nil || got != h {
			t.Errorf("decodeHead of %+v = %+v, %v", h, got, err)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add([]byte{codecVersion, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeHead(b)
		h, err := decodeHead(seal(b))
		if err != nil {
			return
		}
		if again, err := decodeHead(h.append(nil)); err != nil || again != h {
			t.Errorf("%+v does not survive: %+v, %v", h, again, err)
		}
	})
}

// testDirectory has a run of each form.
func testDirectory() *directory {
	return &directory{part: 1 << 20, dataLen: 900_000, runsLen: 800_000, entries: []dirEntry{
		{log: 1, first: 10, span: 9, count: 10, bytes: 100, size: 300_000, crc: 7, mark: 12},
		{log: 1, lane: 3, first: 5, span: 64, count: 3, size: 100_000, earliest: 1e12, set: newIDSet([]uint32{0, 63, 64})},
		{log: 9, first: 1 << 40, span: 1 << 20, count: 3, size: 400_000, set: newIDSet([]uint32{0, 5, 1 << 20})},
	}}
}

func TestDirectoryRoundTrip(t *testing.T) {
	d := testDirectory()
	got, err := decodeDirectory(seal(d.append(nil)))
	if err != nil {
		t.Fatalf("decodeDirectory: %v", err)
	}
	offset := uint64(0)
	for i := range d.entries {
		d.entries[i].offset = offset
		offset += d.entries[i].size
	}
	if !reflect.DeepEqual(got, d) {
		t.Errorf("decodeDirectory = %+v, want %+v", got, d)
	}
}

func TestDirectoryRefused(t *testing.T) {
	whole := seal(testDirectory().append(nil))
	for i := range whole {
		broken := bytes.Clone(whole)
		broken[i] ^= 0x10
		if _, err := decodeDirectory(broken); !errors.Is(err, errCorrupt) {
			t.Errorf("a directory with byte %d changed gave %v, want an error", i, err)
		}
		if _, err := decodeDirectory(whole[:i]); !errors.Is(err, errCorrupt) {
			t.Errorf("a directory of %d of %d bytes gave %v, want an error", i, len(whole), err)
		}
	}
	for name, change := range map[string]func(d *directory){
		"runs out of order":       func(d *directory) { d.entries[0], d.entries[1] = d.entries[1], d.entries[0] },
		"overlapping runs":        func(d *directory) { d.entries[1].lane, d.entries[1].first = 0, 19 },
		"more records than bytes": func(d *directory) { d.entries[0].span, d.entries[0].count = 1<<31, 1<<31+1 },
		"runs longer than data":   func(d *directory) { d.dataLen = 100 },
		"no runs":                 func(d *directory) { d.entries, d.runsLen = nil, 0 },
		"gaps without a set":      func(d *directory) { d.entries[0].count = 9 },
	} {
		d := testDirectory()
		change(d)
		if _, err := decodeDirectory(seal(d.append(nil))); !errors.Is(err, errCorrupt) {
			t.Errorf("a directory with %s gave %v, want an error", name, err)
		}
	}
}

func FuzzDirectory(f *testing.F) {
	f.Add(testDirectory().append(nil))
	inline := &directory{dataLen: 8, runsLen: 8, entries: []dirEntry{{log: 1, first: 1, count: 1, size: 8}}}
	f.Add(append(inline.append(nil), "12345678"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeDirectory(b)
		d, err := decodeDirectory(seal(b))
		if err != nil {
			return
		}
		again, err := decodeDirectory(seal(append(d.append(nil), d.data...)))
		if err != nil || !reflect.DeepEqual(again, d) {
			t.Errorf("%+v does not survive: %+v, %v", d, again, err)
		}
	})
}

func FuzzRecords(f *testing.F) {
	var enc encoder
	b := enc.append(nil, &entry{id: 0, time: 5, key: "k", header: []byte{1}, body: []byte("body")}, nil)
	b = enc.append(b, &entry{id: 7, time: 3, expires: 9, exchange: "x", key: "k", extra: []byte("e")}, &sharedRef{3, 400, 9})
	f.Add(b)
	f.Fuzz(func(t *testing.T, run []byte) {
		var dec decoder
		var enc encoder
		var recs []Record
		var refs []sharedRef
		var again []byte
		for dec.off < len(run) {
			var r Record
			ref, ok := dec.next(run[dec.off:], &r)
			if !ok {
				return
			}
			e := entryOf(&r)
			at := &ref
			if ref == (sharedRef{}) {
				at = nil
			}
			again = enc.append(again, &e, at)
			recs, refs = append(recs, r), append(refs, ref)
		}
		dec = decoder{}
		for i := range recs {
			var r Record
			ref, ok := dec.next(again[dec.off:], &r)
			if !ok || !sameRecord(r, recs[i]) || ref != refs[i] {
				t.Fatalf("record %d does not survive: %+v, %+v, %v; want %+v, %+v", i, r, ref, ok, recs[i], refs[i])
			}
		}
	})
}

// testRuns are a run of each form.
func testRuns() []run {
	d := testDirectory()
	runs := make([]run, len(d.entries))
	for i := range runs {
		runs[i] = d.entries[i].run(new(diskLog))
	}
	return runs
}

func FuzzAcks(f *testing.F) {
	runs := testRuns()
	runs[0].settle(12)
	runs[1].settle(5)
	runs[2].settle(1<<40 + 5)
	w := newAckWriter(nil)
	for i := range runs {
		w.add(i, &runs[i], 3)
	}
	f.Add(w.b)
	f.Fuzz(func(t *testing.T, b []byte) {
		applyAcks(b, testRuns(), func(int, uint64) {})
		runs := testRuns()
		if applyAcks(seal(b), runs, func(int, uint64) {}) != nil {
			return
		}
		w := newAckWriter(nil)
		for i := range runs {
			checkRun(t, &runs[i])
			w.add(i, &runs[i], 0)
		}
		again := testRuns()
		if err := applyAcks(seal(w.b), again, func(int, uint64) {}); err != nil {
			t.Fatalf("an ack state made from one does not apply: %v", err)
		}
		for i := range runs {
			if got, want := liveIDs(&again[i]), liveIDs(&runs[i]); !slices.Equal(got, want) {
				t.Errorf("run %d has %v live, want %v", i, got, want)
			}
		}
	})
}

func FuzzLastIDs(f *testing.F) {
	f.Add(appendLastID(appendLastID([]byte{codecVersion}, 0, 3, 1<<40), 3, 700, 5))
	f.Fuzz(func(t *testing.T, b []byte) {
		ignore := func(LogID, uint64) {}
		_ = decodeLastIDs(b, ignore)
		again, prev := []byte{codecVersion}, LogID(0)
		err := decodeLastIDs(seal(slices.Clone(b)), func(log LogID, id uint64) {
			if log < prev {
				t.Errorf("log %d comes after %d", log, prev)
			}
			again = appendLastID(again, prev, log, id)
			prev = log
		})
		if err != nil {
			return
		}
		if err := decodeLastIDs(seal(again), ignore); err != nil {
			t.Errorf("a list made from one: %v", err)
		}
	})
}

func liveIDs(r *run) (ids []uint64) {
	for id, ok := r.nextLive(0); ok; id, ok = r.nextLive(id + 1) {
		ids = append(ids, id)
	}
	return ids
}

// checkRun checks that the fields of a run agree.
func checkRun(t *testing.T, r *run) {
	t.Helper()
	ids := liveIDs(r)
	if len(ids) != int(r.live) {
		t.Fatalf("a run has %d live ids and says %d", len(ids), r.live)
	}
	if len(ids) > 0 && (ids[0] != r.from || ids[len(ids)-1] != r.lastLive()) {
		t.Fatalf("a run has %v live and says from %d to %d", ids, r.from, r.lastLive())
	}
}

// TestRunAgainstMap does to a run and to a map the same.
func TestRunAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, step := range []uint64{1, 2, 3, 50, 1000} {
		for range 200 {
			want := make(map[uint64]bool)
			var ids []uint64
			for id := uint64(100); len(ids) < 1+rnd.IntN(150); id += 1 + rnd.Uint64N(step) {
				ids = append(ids, id)
				want[id] = true
			}
			var e dirEntry
			e.setIDs(ids)
			r := e.run(nil)
			for r.live > 0 {
				a := 98 + rnd.Uint64N(uint64(r.span)+5)
				if rnd.IntN(3) == 0 {
					a = r.from
				}
				if rnd.IntN(4) > 0 {
					if got := r.settle(a); got != want[a] {
						t.Fatalf("settle(%d) = %v, want %v", a, got, want[a])
					}
					delete(want, a)
				} else {
					b, n := a+rnd.Uint64N(step*10), 0
					for id := a; id <= b; id++ {
						if want[id] {
							n++
							delete(want, id)
						}
					}
					if got := r.settleRange(a, b); got != n {
						t.Fatalf("settleRange(%d, %d) = %d, want %d", a, b, got, n)
					}
				}
				checkRun(t, &r)
				for _, id := range ids {
					if r.has(id) != want[id] {
						t.Fatalf("has(%d) = %v, want %v", id, r.has(id), want[id])
					}
				}
			}
			if len(want) > 0 {
				t.Fatalf("%d ids are left that the run does not have", len(want))
			}
		}
	}
}

// Append and Settle allocate nothing of their own once buffers are warm.
func TestAppendSettleBudget(t *testing.T) {
	s, f := openFaulty(t, Options{})
	g := newGate(f) // a commit that does not end: nothing else runs
	l := mustLog(t, s)
	l.Append(testRecords(1), nil)
	<-g.seen
	recs := testRecords(ids(10, 73)...)
	settled := ids(10, 73)
	if n := testing.AllocsPerRun(100, func() {
		l.Append(recs, nil)
		l.Settle(settled)
	}); n > 0 {
		t.Errorf("Append and Settle of 64 records allocate %v times, want 0", n)
	}
	f.set(nil)
	g.let <- nil
	closeTest(t, s)
}

func TestSettleBudget(t *testing.T) {
	s := openTest(t, Options{Dir: t.TempDir()})
	l := mustLog(t, s)
	mustAppend(t, l, testRecords(ids(1, 4000)...)...)
	next := uint64(1)
	one := make([]uint64, 8)
	if n := testing.AllocsPerRun(100, func() {
		for i := range one {
			one[i] = next
			next++
		}
		l.Settle(one)
	}); n >= 1 {
		t.Errorf("Settle of 8 committed records allocates %v times, want 0", n)
	}
	closeTest(t, s)
}
