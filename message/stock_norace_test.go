//go:build !race

// The race detector makes sync.Pool forget, so what comes back is checked without it; and
// on one processor, as a pool may keep one value for each.

package message

import (
	"bytes"
	"runtime"
	"testing"
)

func TestStockUsesBodiesAgain(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, n := range []int{MaxInline + 1, 2048, 2049, 4000, 64 << 10, maxUsed} {
		b := bytes.Repeat([]byte{1}, n)
		s, r := stocked(b)
		if got := s.Take(n); got != nil {
			t.Errorf("%d bytes: there is a body before it was given to all", n)
		}
		r.Flush()
		if got := s.Take(n); got != nil {
			t.Errorf("%d bytes: looked twice in one batch", n)
		}
		s.Rest()
		got := s.Take(n)
		if len(got) != 0 || cap(got) < n || &got[:1][0] != &b[0] {
			t.Errorf("%d bytes: got %d with room for %d; want the same memory, empty", n, len(got), cap(got))
		}
		if again := s.Take(n); again != nil {
			t.Errorf("%d bytes: the body was there twice", n)
		}
	}
}

func TestStockPacksGoRound(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const n = 2*packSize + 3
	s, r := stocked()
	for range n {
		r.Put(make([]byte, 1500))
	}
	r.Flush()
	seen := make(map[*byte]bool)
	for b := s.Take(1500); b != nil; b = s.Take(1500) {
		seen[&b[:1][0]] = true
		if len(seen) == packSize+1 {
			s.Rest() // what is left is for all
		}
	}
	if len(seen) != n {
		t.Errorf("%d bodies came back, want %d", len(seen), n)
	}
}

func TestStockAllocatesNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s, r := stocked(make([]byte, 4096), make([]byte, 4096))
	r.Flush()
	round := func() {
		a, b := s.Take(4000), s.Take(4000)
		if a == nil || b == nil {
			t.Fatal("a body is missing")
		}
		r.Put(a)
		r.Put(b)
		s.Rest()
		r.Flush()
	}
	round()
	if got := testing.AllocsPerRun(100, round); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}
