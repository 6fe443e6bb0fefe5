package message

import (
	"slices"
	"testing"
	"time"
)

func TestSizesGoWithTheBatch(t *testing.T) {
	var h Sizes
	var b SizeBatch
	for _, n := range []int{0, 100, 101, 1000, 5000, 200_000_000} {
		b.Add(n)
	}
	if got := h.Snapshot(); got.Sum != 0 {
		t.Errorf("sum %d before the flush, want 0", got.Sum)
	}
	b.Flush(&h)
	b.Flush(&h)
	got := h.Snapshot()
	if want := []uint64{2, 2, 1, 0, 0, 0, 0, 0, 1}; !slices.Equal(got.Counts, want) || got.Sum != 200_006_201 {
		t.Errorf("counts %v sum %d, want %v and 200006201", got.Counts, got.Sum, want)
	}
}

func TestLatencies(t *testing.T) {
	var h Latencies
	for _, d := range []time.Duration{-1, 100 * time.Microsecond, 3 * time.Millisecond, time.Minute} {
		h.Add(d)
	}
	got := h.Snapshot()
	if n := len(got.Bounds); got.Bounds[0] != 100_000 || got.Bounds[n-1] != int64(10*time.Second) || got.Counts[0] != 2 || got.Counts[n] != 1 {
		t.Errorf("%+v, want two up to 100 microseconds and one above 10 seconds", got)
	}
	if i := slices.Index(got.Bounds, int64(5*time.Millisecond)); i < 0 || got.Counts[i] != 1 {
		t.Errorf("%+v, want one up to 5 milliseconds", got)
	}
	if want := int64(time.Minute + 3*time.Millisecond + 100*time.Microsecond); got.Sum != want {
		t.Errorf("sum %d, want %d", got.Sum, want)
	}
}

func TestCountingAllocatesNothing(t *testing.T) {
	var h Sizes
	var l Latencies
	var b SizeBatch
	if n := testing.AllocsPerRun(100, func() { b.Add(20); b.Flush(&h); l.Add(3) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// BenchmarkSizeBatch counts a batch of 64 messages.
func BenchmarkSizeBatch(b *testing.B) {
	var h Sizes
	var sizes SizeBatch
	for b.Loop() {
		for range 64 {
			sizes.Add(16)
		}
		sizes.Flush(&h)
	}
}
