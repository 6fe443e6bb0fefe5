package message

import (
	"sync/atomic"
	"time"
)

// A Distribution is a snapshot of Sizes or Latencies: how many values were in
// each bucket. Bounds are the upper bounds, included; Counts has one more element,
// for what is above all of them.
type Distribution struct {
	Bounds []int64
	Counts []uint64
	Sum    int64
}

// sizeBounds are in bytes; RabbitMQ 4.1: message_size_bytes.
var sizeBounds = [...]int64{100, 1e3, 10e3, 100e3, 1e6, 10e6, 50e6, 100e6}

// latencyBounds are in nanoseconds.
var latencyBounds = [...]int64{100e3, 250e3, 500e3, 1e6, 2500e3, 5e6, 10e6, 25e6, 50e6, 100e6, 250e6, 500e6, 1e9, 2500e6, 5e9, 10e9}

// Sizes counts the sizes of bodies, in bytes. The zero value is ready; see
// SizeBatch.
type Sizes struct {
	counts [len(sizeBounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

// Snapshot returns what was counted. What is added meanwhile may be in Counts and
// not yet in Sum.
func (s *Sizes) Snapshot() Distribution { return snapshot(sizeBounds[:], s.counts[:], &s.sum) }

// A SizeBatch counts the bodies of one batch, so that the hot path needs an atomic
// operation per batch and not per message. It is used by one goroutine at a time;
// the zero value is ready.
type SizeBatch struct {
	counts [len(sizeBounds) + 1]uint32
	n      uint32
	sum    int64
}

// Add counts a body of so many bytes.
func (b *SizeBatch) Add(n int) {
	i := 0
	for i < len(sizeBounds) && int64(n) > sizeBounds[i] {
		i++
	}
	b.counts[i]++
	b.n++
	b.sum += int64(n)
}

// Flush gives the batch to the sizes and begins a new one.
func (b *SizeBatch) Flush(to *Sizes) {
	if b.n == 0 {
		return
	}
	for i := 0; b.n > 0; i++ {
		if n := b.counts[i]; n > 0 {
			to.counts[i].Add(uint64(n))
			b.counts[i] = 0
			b.n -= n
		}
	}
	to.sum.Add(b.sum)
	b.sum = 0
}

// Latencies counts durations. Adding one costs two atomic operations: once per
// batch. The zero value is ready.
type Latencies struct {
	counts [len(latencyBounds) + 1]atomic.Uint64
	sum    atomic.Int64
}

// Add counts one duration; of a clock that was set back it is 0.
func (l *Latencies) Add(d time.Duration) {
	d = max(d, 0)
	i := 0
	for i < len(latencyBounds) && int64(d) > latencyBounds[i] {
		i++
	}
	l.counts[i].Add(1)
	l.sum.Add(int64(d))
}

// Snapshot returns what was counted, in nanoseconds; see Sizes.Snapshot.
func (l *Latencies) Snapshot() Distribution { return snapshot(latencyBounds[:], l.counts[:], &l.sum) }

func snapshot(bounds []int64, counts []atomic.Uint64, sum *atomic.Int64) Distribution {
	d := Distribution{Bounds: bounds, Counts: make([]uint64, len(counts)), Sum: sum.Load()}
	for i := range counts {
		d.Counts[i] = counts[i].Load()
	}
	return d
}
