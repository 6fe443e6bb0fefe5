package management

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// A resolution is how densely, and how far back, figures are kept.
type resolution struct {
	step    time.Duration
	samples int
}

// resolutions are RabbitMQ 4.0's retention policies: "global" for the broker,
// its node and vhosts, "basic" for everything else.
func (k kind) resolutions() []resolution {
	all := []resolution{{5 * time.Second, 121}, {time.Minute, 61}, {10 * time.Minute, 49}, {30 * time.Minute, 49}}
	if k == theOverview || k == theNode || k == aVHost {
		return all
	}
	return all[:2]
}

// A history is the past figures of one object. It is guarded by sampler.mu.
type history struct {
	width int // metrics
	rings []ring
}

// A ring is the newest samples of one resolution. Each is a time, in
// milliseconds since the Unix epoch, and the figures.
type ring struct {
	resolution
	cells []int64 // grows up to samples × (1 + width)
	next  int     // where the next sample goes, once the ring is full
}

func newHistory(k kind) *history {
	h := &history{width: len(k.metrics())}
	for _, r := range k.resolutions() {
		h.rings = append(h.rings, ring{resolution: r})
	}
	return h
}

// add keeps a sample in each ring whose step has passed.
func (h *history) add(at int64, figures []int64) {
	for i := range h.rings {
		r := &h.rings[i]
		if last := r.newest(h.width); last != nil && at-last[0] < r.step.Milliseconds()-jitter {
			continue
		}
		r.add(at, figures)
	}
}

// jitter is how much too early, in milliseconds, a sample may come.
const jitter = 500

func (r *ring) add(at int64, figures []int64) {
	stride := 1 + len(figures)
	if len(r.cells) < r.samples*stride {
		r.cells = append(append(r.cells, at), figures...)
		return
	}
	r.cells[r.next*stride] = at
	copy(r.cells[r.next*stride+1:], figures)
	r.next = (r.next + 1) % r.samples
}

func (r *ring) len(width int) int { return len(r.cells) / (1 + width) }

// at returns the i-th sample, the newest first; nil beyond the oldest.
func (r *ring) at(width, i int) []int64 {
	n := r.len(width)
	if i >= n {
		return nil
	}
	place := n - 1 - i // while the ring fills
	if n == r.samples {
		place = (r.next - 1 - i + 2*n) % n
	}
	return r.cells[place*(1+width) : (place+1)*(1+width)]
}

func (r *ring) newest(width int) []int64 { return r.at(width, 0) }

// A point is one figure at one time.
type point struct{ at, value int64 }

// column copies one figure's points, the newest first, from the finest ring
// that goes back as far as age; the coarsest if none does. A counter was 0 before its
// first point.
func (h *history) column(i int, age time.Duration, counter bool) []point {
	at := slices.IndexFunc(h.rings, func(r ring) bool { return r.step*time.Duration(r.samples-1) >= age })
	if at < 0 {
		at = len(h.rings) - 1
	}
	r := &h.rings[at]
	points := make([]point, 0, r.len(h.width)+1)
	for n := range r.len(h.width) {
		s := r.at(h.width, n)
		points = append(points, point{s[0], s[1+i]})
	}
	if n := len(points); counter && n > 0 && n < r.samples {
		points = append(points, point{at: points[n-1].at - 1})
	}
	return points
}

// A timeRange is what part of the past a query wants: samples every incr, as
// far back as age.
type timeRange struct{ age, incr time.Duration }

// maxSamples bounds the samples of an answer.
const maxSamples = 500

// timeRange reads the two parameters of a name; ok is false without both.
func (r *request) timeRange(name string) (t timeRange, ok bool, err error) {
	age, okAge := parseInteger(r.query.Get(name + "_age"))
	incr, okIncr := parseInteger(r.query.Get(name + "_incr"))
	if !okAge || !okIncr {
		return t, false, nil
	}
	if age < 0 || incr <= 0 || age/incr > maxSamples || age > int64(maxAge/time.Second) {
		return t, false, &failure{http.StatusBadRequest, "invalid_range_parameters", fmt.Sprintf("Invalid range parameters: age %d, incr %d", age, incr)}
	}
	return timeRange{time.Duration(age) * time.Second, time.Duration(incr) * time.Second}, true, nil
}

// maxAge is far beyond what any ring has.
const maxAge = 365 * 24 * time.Hour

// rangeNames are the names of the four ranges, by what they are of.
var rangeNames = [...]string{"msg_rates", "lengths", "data_rates", "node_stats"}

// rangeOf says which range shows a metric.
func rangeOf(m metric) int {
	switch {
	case m == mReceived || m == mSent:
		return 2
	case m >= mMemory, m >= mCollections && m <= mRecords:
		return 3
	case m.level():
		return 1
	}
	return 0
}

// A details function makes the _details member of a figure: an object or a rateOnly.
type details func(w view, m metric, now int64) any

// details is what the query asks for: the rate, and with a range the samples.
func (r *request) details() (details, error) {
	var ranges [len(rangeNames)]timeRange
	asked := false
	for i, name := range rangeNames {
		t, ok, err := r.timeRange(name)
		if err != nil {
			return nil, err
		}
		if ok {
			ranges[i], asked = t, true
		}
	}
	if !asked {
		return func(w view, m metric, _ int64) any { return rateOnly(w.rate(m)) }, nil
	}
	return func(w view, m metric, now int64) any {
		t := ranges[rangeOf(m)]
		if t.incr == 0 {
			return rateOnly(w.rate(m))
		}
		return t.details(w, m, now)
	}, nil
}

// nodeDetails is details for all that a node shows: the range is node_stats.
func (r *request) nodeDetails() (details, error) {
	t, asked, err := r.timeRange("node_stats")
	return func(w view, m metric, now int64) any {
		if !asked {
			return rateOnly(w.rate(m))
		}
		return t.details(w, m, now)
	}, err
}

// details shows the samples of a figure, the newest first, with their average
// and the average rate.
func (t timeRange) details(w view, m metric, now int64) object {
	samples := t.samples(w.points(m, t.age), w.at.UnixMilli(), now)
	list := make([]object, len(samples))
	var sum float64
	for i, s := range samples {
		list[i] = object{{"sample", s.value}, {"timestamp", s.at}}
		sum += float64(s.value)
	}
	newest, oldest := samples[0], samples[len(samples)-1]
	var average float64
	if span := newest.at - oldest.at; span > 0 {
		average = float64(newest.value-oldest.value) / (float64(span) / 1000)
	}
	return object{{"rate", w.rate(m)}, {"samples", list}, {"avg_rate", rate(average)}, {"avg", rate(sum / float64(len(samples)))}}
}

// samples picks a value for each time that is asked for: the last one before
// it. What had not been sampled yet then was as it was first seen.
func (t timeRange) samples(points []point, newest, now int64) []point {
	if len(points) == 0 {
		points = []point{{newest, now}}
	}
	n := int(t.age/t.incr) + 1
	list := make([]point, n)
	i := 0
	for k := range n {
		at := newest - int64(k)*t.incr.Milliseconds()
		for i < len(points)-1 && points[i].at > at {
			i++
		}
		list[k] = point{at, points[i].value}
	}
	return list
}

// addFigures appends the figures with their rates.
func addFigures(o *object, metrics []metric, c *counters, w view, d details) {
	for _, m := range metrics {
		o.add(metricNames[m], c[m])
		o.add(detailNames[m], d(w, m, c[m]))
	}
}

// groups are the metrics of message_stats, by kind, that are shown together.
func (k kind) groups() [][]metric {
	switch k {
	case aQueue:
		return queueGroups
	case anExchange:
		return exchangeGroups
	}
	return channelGroups
}

var (
	queueGroups    = [][]metric{consumerMetrics, {mPublish}}
	exchangeGroups = [][]metric{{mPublishIn}, {mPublishOut}}
	channelGroups  = [][]metric{consumerMetrics, {mPublish, mConfirm, mReturnUnroutable, mDropUnroutable}}
)

// overviewMetrics are the metrics of message_stats in the overview. Without rates
// those of the disk are left (RabbitMQ 4.0).
func (o *Options) overviewMetrics() []metric {
	if o.NoRates {
		return []metric{mDiskReads, mDiskWrites}
	}
	return overviewMetrics
}

// messageStats is the member message_stats of anything but the overview: each
// group is there once one of it was used. It is nil if none was, and without
// rates.
func (r *request) messageStats(c *counters, w view, d details) object {
	if r.s.cfg.Options.NoRates {
		return nil
	}
	var o object
	for _, group := range w.kind.groups() {
		if c.any(group) {
			addFigures(&o, group, c, w, d)
		}
	}
	return o
}

// addRuntime appends what RabbitMQ shows of the Erlang process behind a thing.
// There is none; clients decode the members all the same.
func addRuntime(o *object) {
	*o = append(*o, member{"reductions", 0}, member{"reductions_details", object{{"rate", rate(0)}}}, member{"garbage_collection", object{
		{"fullsweep_after", 0}, {"max_heap_size", 0}, {"min_bin_vheap_size", 0}, {"min_heap_size", 0}, {"minor_gcs", 0}}})
}
