package management

import (
	"context"
	"slices"
	"sync"
	"time"
)

// sampleInterval is how often figures are sampled (RabbitMQ 4.0:
// collect_statistics_interval).
const sampleInterval = 5 * time.Second

// A sampler remembers figures, for rates and histories. One goroutine samples;
// requests read what it found. Nothing is touched between two samples.
type sampler struct {
	cfg *Config // immutable

	mu     sync.RWMutex // guards the fields below; held for one sampling or one look
	round  uint64       // counts samplings
	at     time.Time    // of the last one
	series map[part]*series
	// gone is what objects had counted that are no more, by vhost, so that the
	// totals do not fall.
	gone map[string]*counters
	// zero is what had been counted, by vhost, when the statistics were reset.
	zero map[string]*counters

	// recent is the last collected totals, for requests that come in a row.
	recentMu sync.Mutex
	recent   *totals
}

// A series is what is remembered of one object, guarded by sampler.mu.
type series struct {
	round uint64   // of the last sample
	last  []int64  // by the kind's metrics
	rates []rate   // the same; replaced as a whole
	past  *history // nil until there is something to remember
}

func newSampler(cfg *Config) *sampler {
	return &sampler{cfg: cfg, series: make(map[part]*series), gone: make(map[string]*counters), zero: make(map[string]*counters)}
}

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context) {
	tick := time.NewTicker(sampleInterval)
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
const maxShare = 50

// totals are the figures as of now, or of a moment ago if many ask for them.
func (s *sampler) totals() *totals {
	s.recentMu.Lock()
	defer s.recentMu.Unlock()
	if t := s.recent; t != nil && time.Since(t.at) < maxShare*t.took {
		return t
	}
	t := collect(s.cfg, nil)
	s.mu.RLock()
	s.adjustLocked(t)
	s.mu.RUnlock()
	s.recent = t
	return t
}

// adjustLocked makes the totals monotonous: what is gone still counts, what was
// there at the last reset does not. s.mu must be held.
func (s *sampler) adjustLocked(t *totals) {
	for vhost, f := range t.vhosts {
		if c := s.gone[vhost]; c != nil {
			f.counters.plus(c)
		}
		if c := s.zero[vhost]; c != nil {
			f.counters.minus(c)
		}
	}
}

// sample takes one sample of everything.
func (s *sampler) sample() {
	type sampled struct {
		part part
		c    counters
	}
	var all []sampled
	t := collect(s.cfg, func(p part, c *counters) { all = append(all, sampled{p, *c}) })
	s.mu.Lock()
	defer s.mu.Unlock()
	elapsed := sampleInterval
	if !s.at.IsZero() {
		elapsed = max(t.at.Sub(s.at), time.Millisecond)
	}
	s.at = t.at
	s.round++
	for i := range all {
		s.noteLocked(all[i].part, &all[i].c, elapsed)
	}
	s.forgetLocked()
	s.adjustLocked(t)
	var all2 figures
	for vhost, f := range t.vhosts {
		s.noteLocked(part{kind: aVHost, name: vhost}, &f.counters, elapsed)
		all2.plus(f)
	}
	s.noteLocked(part{kind: theOverview}, &all2.counters, elapsed)
}

// noteLocked takes a sample of one object. s.mu must be held.
func (s *sampler) noteLocked(p part, c *counters, elapsed time.Duration) {
	metrics := p.kind.metrics()
	e := s.series[p]
	if e == nil {
		e = &series{last: make([]int64, len(metrics))}
		for i, m := range metrics {
			if m.level() {
				e.last[i] = c[m]
			}
		}
		s.series[p] = e
	}
	e.round = s.round
	e.note(metrics, c, elapsed)
}

func (e *series) note(metrics []metric, c *counters, elapsed time.Duration) {
	changed := false
	for i, m := range metrics {
		changed = changed || e.last[i] != c[m]
	}
	if !changed && e.rates == nil {
		return
	}
	var rates []rate
	if changed {
		rates = make([]rate, len(metrics))
	}
	for i, m := range metrics {
		d := c[m] - e.last[i]
		e.last[i] = c[m]
		if changed && (d > 0 || m.level()) { // a counter falls when its object was made again
			rates[i] = rate(float64(d) / elapsed.Seconds())
		}
	}
	e.rates = rates
}

// forgetLocked drops the series of what is no more and keeps its counters for
// the totals. s.mu must be held.
func (s *sampler) forgetLocked() {
	for p, e := range s.series {
		if e.round == s.round || p.kind == theOverview || p.kind == aVHost || p.kind == theNode {
			continue
		}
		s.keepLocked(p, e)
		delete(s.series, p)
	}
}

// keepLocked adds the counters of a thing that is no more to those of its vhost.
func (s *sampler) keepLocked(p part, e *series) {
	if p.kind != aQueue && p.kind != anExchange {
		return
	}
	c := s.gone[p.vhost]
	if c == nil {
		c = &counters{}
		s.gone[p.vhost] = c
	}
	for i, m := range p.kind.metrics() {
		switch {
		case m.level(), m == mPublish:
		case m == mPublishIn:
			c[mPublish] += e.last[i]
		case m == mPublishOut:
		default:
			c[m] += e.last[i]
		}
	}
}

// reset makes the totals count from 0.
func (s *sampler) reset() {
	t := collect(s.cfg, nil)
	s.mu.Lock()
	for vhost, f := range t.vhosts {
		if c := s.gone[vhost]; c != nil {
			f.counters.plus(c)
		}
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
	rates []rate
	past  *history
}

// view looks an object up.
func (s *sampler) view(p part) view {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w := view{kind: p.kind}
	if e := s.series[p]; e != nil {
		w.rates, w.past = e.rates, e.past
	}
	return w
}

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
