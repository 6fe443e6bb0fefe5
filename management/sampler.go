package management

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// sampleInterval is how often figures are sampled unless Options say otherwise
// (RabbitMQ 4.0: collect_statistics_interval).
const sampleInterval = 5 * time.Second

// maxHistories bounds the objects, besides the broker, its node and vhosts,
// whose past is remembered: about 18 KB each. The others have rates only.
const maxHistories = 1000

// A sampler remembers figures, for rates and histories. One goroutine samples;
// requests read what it found. Nothing is touched between two samples.
type sampler struct {
	mostDropped atomic.Int64 // see dropped
	cfg         *Config      // immutable
	batch       batch        // owned by whoever samples: New, then run

	mu        sync.RWMutex // guards the fields below; held for one sampling or one look
	round     uint64       // counts samplings
	at        time.Time    // of the last one
	series    map[part]*series
	histories int // of series whose number is bounded
	// zero is what had been counted, by vhost, when the statistics were reset.
	zero      map[string]*counters
	zeroChurn counters

	// recentMu guards recent: the last totals, for requests that come in a row.
	// It is held while they are collected, which many then wait for together.
	recentMu sync.Mutex
	recent   *totals
}

// A series is what is remembered of one object. It is guarded by sampler.mu.
type series struct {
	round uint64    // of the last sample
	last  []int64   // by the kind's metrics
	rates []rate    // the same; replaced as a whole. Nil is all 0
	past  *history  // nil until the figures have changed
	busy  time.Time // of the last sample that differed from the one before
}

func newSampler(cfg *Config) *sampler {
	return &sampler{cfg: cfg, series: make(map[part]*series), zero: make(map[string]*counters)}
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	tick := time.NewTicker(s.cfg.Options.sampleInterval())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sample()
		}
	}
}

// maxShare bounds what collecting totals for requests may cost: a share of one
// processor of 1/maxShare.
const maxShare = 200

// totals are the figures as of now, or of a moment ago if many ask for them.
func (s *sampler) totals() *totals {
	s.recentMu.Lock()
	defer s.recentMu.Unlock()
	if t := s.recent; t != nil && time.Since(t.at) < min(maxShare*t.took, maxStale) {
		return t
	}
	t := collect(s.cfg, nil)
	s.mu.RLock()
	s.adjustLocked(t)
	s.mu.RUnlock()
	s.recent = t
	return t
}

// adjustLocked keeps totals from falling: what is gone still counts, under no
// vhost if its own has gone, too. What was there at the last reset does not
// count. s.mu must be held.
func (s *sampler) adjustLocked(t *totals) {
	for vhost, c := range t.past.byVHost() {
		t.orNone(vhost).counters.plus(c)
	}
	t.churn[mDropUnroutable] = s.dropped(t) - t.droppedByChannels()
	for vhost, c := range s.zero {
		t.orNone(vhost).counters.minus(c)
	}
	t.churn.minus(&s.zeroChurn)
}

// dropped is how many publishes since the start were neither routed nor returned. It
// does not fall: what is returned meanwhile is counted the next time.
func (s *sampler) dropped(t *totals) int64 {
	var returned int64
	for _, f := range t.vhosts {
		returned += f.counters[mReturnUnroutable]
	}
	n := int64(t.unroutable) - returned
	for {
		peak := s.mostDropped.Load()
		if n <= peak {
			return peak
		}
		if s.mostDropped.CompareAndSwap(peak, n) {
			return n
		}
	}
}

// droppedByChannels is how many of those came over channels, and so are known by vhost.
func (t *totals) droppedByChannels() (n int64) {
	for _, f := range t.vhosts {
		n += f.counters[mDropUnroutable]
	}
	return n
}

// sample takes one sample of everything.
func (s *sampler) sample() {
	b := &s.batch
	b.reset()
	t := collect(s.cfg, b.add)
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := s.cfg.Options.sampleInterval()
	if s.round > 0 {
		elapsed = max(t.at.Sub(s.at), time.Millisecond)
	}
	s.at = t.at
	s.round++
	s.noteAllLocked(b, elapsed)
	s.forgetLocked()
	s.adjustLocked(t)
	b.reset()
	b.addTotals(t)
	node := nodeCounters(s.cfg)
	b.add(part{kind: theNode}, &node)
	s.noteAllLocked(b, elapsed)
}

// A batch is what one sampling has found: objects, and the figures of each by
// its kind's metrics, all in one row.
type batch struct {
	parts []part
	cells []int64
}

func (b *batch) reset() { b.parts, b.cells = b.parts[:0], b.cells[:0] }

// add takes what was found of an object. Of a queue or an exchange of which nothing
// was ever counted nothing is kept: it may be one of a hundred thousand.
func (b *batch) add(p part, c *counters) {
	if (p.kind == aQueue || p.kind == anExchange) && *c == (counters{}) {
		return
	}
	b.parts = append(b.parts, p)
	for _, m := range p.kind.metrics() {
		b.cells = append(b.cells, c[m])
	}
}

func (b *batch) addTotals(t *totals) {
	for vhost, f := range t.vhosts {
		b.add(part{aVHost, vhost, ""}, &f.counters)
	}
	sum := t.sum()
	b.add(part{kind: theOverview}, &sum.counters)
}

// noteAllLocked takes a sample of each object. s.mu must be held.
func (s *sampler) noteAllLocked(b *batch, elapsed time.Duration) {
	cells := b.cells
	for _, p := range b.parts {
		n := len(p.kind.metrics())
		s.noteLocked(p, cells[:n], elapsed)
		cells = cells[n:]
	}
}

// nodeCounters are the figures of the process.
func nodeCounters(cfg *Config) counters {
	p := readProcess()
	var c counters
	c[mMemory], c[mFiles], c[mProcesses] = p.memory, p.files, int64(runtime.NumGoroutine())
	h := cfg.Store.Health()
	c[mDiskFree], c[mWrites], c[mRecords] = h.DiskFree, int64(h.Commits), int64(h.Records)
	if h.Synced {
		c[mSyncs] = int64(h.Commits)
	}
	c[mCollections] = int64(runtimeFigure("/gc/cycles/total:gc-cycles"))
	c[mReclaimed] = int64(runtimeFigure("/gc/heap/frees:bytes"))
	c[mSwitches] = p.switches
	return c
}

// noteLocked takes a sample of one object. s.mu must be held.
func (s *sampler) noteLocked(p part, figures []int64, elapsed time.Duration) {
	e := s.series[p]
	if e == nil {
		e = newSeries(p.kind, figures, s.round == 1)
		s.series[p] = e
	}
	e.round = s.round
	changed := e.note(p.kind.metrics(), figures, elapsed)
	if changed || e.busy.IsZero() {
		e.busy = s.at
	}
	if e.past == nil && (changed || p.kind.unbounded()) && s.mayRememberLocked(p.kind) {
		e.past = newHistory(p.kind)
	}
	if e.past != nil {
		e.past.add(s.at.UnixMilli(), e.last)
	}
}

// unbounded says that there are few of the kind, so that all have a history.
func (k kind) unbounded() bool { return k == theOverview || k == theNode || k == aVHost }

func (s *sampler) mayRememberLocked(k kind) bool {
	if k.unbounded() {
		return true
	}
	if s.histories >= maxHistories {
		return false
	}
	s.histories++
	return true
}

// newSeries begins with an object that has just come, or of which something is
// counted for the first time: its figures were 0. Those that were there before the
// first sampling had what they hold.
func newSeries(k kind, figures []int64, before bool) *series {
	metrics := k.metrics()
	e := &series{last: make([]int64, len(metrics))}
	if !before && !k.unbounded() {
		return e
	}
	for i, m := range metrics {
		if m.level() {
			e.last[i] = figures[i]
		}
	}
	return e
}

// note takes the figures and finds the rates.
func (e *series) note(metrics []metric, figures []int64, elapsed time.Duration) (changed bool) {
	if slices.Equal(e.last, figures) {
		e.rates = nil
		return false
	}
	rates := make([]rate, len(metrics))
	for i, m := range metrics {
		d := figures[i] - e.last[i]
		e.last[i] = figures[i]
		if d > 0 || m.level() { // a counter falls when its object was made again, or at a reset
			rates[i] = rate(float64(d) / elapsed.Seconds())
		}
	}
	e.rates = rates
	return true
}

// forgetLocked drops the series of what is no more. s.mu must be held.
func (s *sampler) forgetLocked() {
	for p, e := range s.series {
		if e.round == s.round || p.kind == theOverview || p.kind == theNode {
			continue
		}
		if p.kind == aVHost && e.round+1 >= s.round { // vhosts are noted last
			continue
		}
		delete(s.series, p)
		if e.past != nil && !p.kind.unbounded() {
			s.histories--
		}
	}
}

// reset makes the totals count from 0.
func (s *sampler) reset() {
	t := collect(s.cfg, nil)
	s.mu.Lock()
	s.zero, s.zeroChurn = make(map[string]*counters), counters{}
	s.adjustLocked(t)
	s.zeroChurn = t.churn
	for vhost, f := range t.vhosts {
		c := f.counters
		s.zero[vhost] = &c
	}
	s.mu.Unlock()
	s.recentMu.Lock()
	s.recent = nil
	s.recentMu.Unlock()
}

// A view is what a request shows of one object's past.
type view struct {
	kind  kind
	at    time.Time // of the last sample
	rates []rate
	idle  time.Time // since when its figures are the same; zero if they have just changed
	// points reads the past of one figure; see history.column.
	points func(m metric, age time.Duration) []point
}

// view looks an object up.
func (s *sampler) view(p part) view {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w := view{kind: p.kind, at: s.at, points: noPoints}
	e := s.series[p]
	if e == nil {
		return w
	}
	w.rates = e.rates
	if e.busy.Before(s.at) {
		w.idle = e.busy
	}
	if e.past == nil {
		return w
	}
	w.points = func(m metric, age time.Duration) []point {
		i := slices.Index(p.kind.metrics(), m)
		if i < 0 {
			return nil
		}
		s.mu.RLock()
		defer s.mu.RUnlock()
		return e.past.column(i, age, !m.level())
	}
	return w
}

// drain is in how many seconds a queue's ready messages will be gone at the rate of
// the last interval; NaN if they do not become fewer.
func (s *sampler) drain(vhost, queue string, ready int) float64 {
	if ready == 0 {
		return math.NaN()
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	e := s.series[part{aQueue, vhost, queue}]
	if e == nil || e.rates == nil {
		return math.NaN()
	}
	if r := float64(e.rates[readySampled]); r < 0 {
		return float64(ready) / -r
	}
	return math.NaN()
}

func noPoints(metric, time.Duration) []point { return nil }

// rate is how fast a figure changes, per second.
func (w view) rate(m metric) rate {
	if w.rates == nil {
		return 0
	}
	if i := slices.Index(w.kind.metrics(), m); i >= 0 {
		return w.rates[i]
	}
	return 0
}
