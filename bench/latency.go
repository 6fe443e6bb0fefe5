package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of latencies, in nanoseconds, with three significant digits. What
// lies outside counts as the nearest that does not.
const (
	lowestLatency  = 100
	highestLatency = int64(time.Hour)
)

// A recorder takes latencies from all goroutines that measure the same thing.
type recorder struct {
	// mu guards the field below. It is held for one batch of latencies, or while
	// a sample is taken.
	mu       sync.Mutex
	interval *hdrhistogram.Histogram // since the last sample
}

// newHistogram is an empty histogram for latencies.
func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(lowestLatency, highestLatency, 3)
}

// record takes a tally and empties it.
func (r *recorder) record(t *tally) {
	if len(t.runs) == 0 {
		return
	}
	r.mu.Lock()
	for _, v := range t.runs {
		_ = r.interval.RecordValues(min(max(v.latency, 0), highestLatency), v.n) // in range: it cannot fail
	}
	r.mu.Unlock()
	t.runs = t.runs[:0]
}

// drain adds what was recorded since the last call to total, if it is not nil,
// and returns its percentiles, nil if there was nothing.
func (r *recorder) drain(total *hdrhistogram.Histogram) *Percentiles {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := percentilesOf(r.interval)
	if total != nil {
		total.Merge(r.interval)
	}
	r.interval.Reset()
	return p
}

// A tally is the latencies of one batch, owned by one goroutine. Messages that
// were sent together and arrive together share one entry.
type tally struct{ runs []latencyRun }

type latencyRun struct{ latency, n int64 }

// add counts one latency, in nanoseconds.
func (t *tally) add(latency int64) {
	if n := len(t.runs); n > 0 && t.runs[n-1].latency == latency {
		t.runs[n-1].n++
		return
	}
	t.runs = append(t.runs, latencyRun{latency, 1})
}

// Percentiles are what a histogram says, in microseconds.
type Percentiles struct {
	Count int64   `json:"count"`
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P75   float64 `json:"p75"`
	P95   float64 `json:"p95"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// percentilesOf is nil for an empty histogram.
func percentilesOf(h *hdrhistogram.Histogram) *Percentiles {
	if h.TotalCount() == 0 {
		return nil
	}
	at := func(q float64) float64 { return micros(h.ValueAtPercentile(q)) }
	return &Percentiles{Count: h.TotalCount(), Mean: round(h.Mean()/1e3, 1),
		P50: at(50), P75: at(75), P95: at(95), P99: at(99), P999: at(99.9), Max: micros(h.Max())}
}

// micros is nanoseconds as microseconds with one decimal.
func micros(ns int64) float64 { return round(float64(ns)/1e3, 1) }

// A CurvePoint is one point of a latency distribution: Percentile of the
// latencies are at most Micros.
type CurvePoint struct {
	Percentile float64 `json:"percentile"`
	Micros     float64 `json:"us"`
}

// curveOf is the distribution with more points the nearer it comes to 100 %.
func curveOf(h *hdrhistogram.Histogram) []CurvePoint {
	if h.TotalCount() == 0 {
		return nil
	}
	var curve []CurvePoint
	rest := 100.0 // percent above the point
	for range 6 {
		for _, f := range []float64{1, 0.75, 0.5, 0.35, 0.25, 0.15} {
			p := round(100-rest*f, 7)
			if (100-p)/100*float64(h.TotalCount()) < 1 {
				break
			}
			curve = append(curve, CurvePoint{p, micros(h.ValueAtPercentile(p))})
		}
		rest /= 10
	}
	return append(curve, CurvePoint{100, micros(h.Max())})
}
