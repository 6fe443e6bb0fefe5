package bench

import (
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What latencies are measured of.
const (
	latencyDelivery = iota
	latencyConfirm
	latencyOpen
	latencyClose
	latencyKinds
)

// A counter has a cache line of its own, so that publishers and consumers do not
// slow each other down.
type counter struct {
	atomic.Int64
	_ [56]byte
}

// counters are what all clients of a run have done so far.
type counters struct {
	published, publishedBytes counter
	confirmed, nacked         counter
	returned                  counter
	expected                  counter // deliveries that publishes lead to
	consumed, consumedBytes   counter
	foreign, repeated         counter // deliveries that are not in consumed
	ops                       counter
	blockedNow, blocked       counter
	blockedFor                counter // nanoseconds, over all connections
	channelCloses, connCloses counter
}

// A reading is counters, and what was spent, at one time.
type reading struct {
	at                        int64 // of the clock
	published, publishedBytes int64
	confirmed, nacked         int64
	returned                  int64
	consumed, consumedBytes   int64
	ops                       int64
	self                      time.Duration // processor time of this program
	broker                    usage
}

// A meter turns counters and latencies into samples and a result. All but its
// counters and recorders is owned by the goroutine that runs the scenario.
type meter struct {
	counters
	latencies [latencyKinds]recorder

	clock     clock
	pids      []int
	o         Options
	began     int64
	last      reading // when the last sample was taken
	from      reading // when measuring began
	totals    [latencyKinds]*hdrhistogram.Histogram
	measuring bool
	peak      float64 // MiB, of the broker
	samples   []Sample
}

func newMeter(b *Broker, o Options) *meter {
	m := &meter{clock: newClock(), pids: b.PIDs, o: o}
	for i := range m.latencies {
		m.latencies[i].interval = newHistogram()
		m.totals[i] = newHistogram()
	}
	if m.o.Interval <= 0 {
		m.o.Interval = time.Second
	}
	m.began = m.clock.now()
	m.last = m.read()
	return m
}

func (m *meter) read() reading {
	return reading{
		at: m.clock.now(), published: m.published.Load(), publishedBytes: m.publishedBytes.Load(), confirmed: m.confirmed.Load(),
		nacked: m.nacked.Load(), returned: m.returned.Load(), consumed: m.consumed.Load(), consumedBytes: m.consumedBytes.Load(),
		ops: m.ops.Load(), self: selfCPU(), broker: readUsage(m.pids),
	}
}

// begin starts measuring: what came before does not count.
func (m *meter) begin() {
	for i := range m.latencies {
		m.latencies[i].drain(nil)
		m.totals[i].Reset()
	}
	m.measuring = true
	m.from = m.read()
	m.last = m.from
}

// progress grows with whatever comes from the broker.
func (m *meter) progress() int64 {
	return m.consumed.Load() + m.foreign.Load() + m.repeated.Load() + m.confirmed.Load() + m.nacked.Load()
}

// sample takes a sample of the time since the last one.
func (m *meter) sample(phase string) {
	now := m.read()
	span := time.Duration(now.at - m.last.at).Seconds()
	if span <= 0 {
		return
	}
	per := func(now, before int64) float64 { return round(float64(now-before)/span, 1) }
	s := Sample{
		Second: round(time.Duration(now.at-m.began).Seconds(), 2), Phase: phase,
		Publish: per(now.published, m.last.published), Confirm: per(now.confirmed, m.last.confirmed),
		Consume: per(now.consumed, m.last.consumed), Ops: per(now.ops, m.last.ops),
		Waiting: max(0, m.expected.Load()-now.consumed), Nacked: now.nacked - m.last.nacked, Returns: now.returned - m.last.returned,
		Blocked: m.blockedNow.Load(),
	}
	drained := [latencyKinds]*Percentiles{}
	for i := range m.latencies {
		total := m.totals[i]
		if !m.measuring {
			total = nil
		}
		drained[i] = m.latencies[i].drain(total)
	}
	s.Delivery, s.Confirms, s.Open = drained[latencyDelivery], drained[latencyConfirm], drained[latencyOpen]
	if now.broker.known {
		s.BrokerCores = ptr(round((now.broker.cpu-m.last.broker.cpu).Seconds()/span, 2))
		s.RSSMiB = ptr(mib(now.broker.rss))
		m.peak = max(m.peak, *s.RSSMiB)
	}
	m.last = now
	if len(m.samples) > 0 && span < m.o.Interval.Seconds()/10 {
		return // the rest of a phase, too short for a rate that means anything
	}
	m.samples = append(m.samples, s)
	if m.o.Progress != nil {
		m.o.Progress(s)
	}
}

// end stops measuring and writes rates, latencies and costs into the result.
func (m *meter) end(r *Result) {
	m.measuring = false
	span := time.Duration(m.last.at - m.from.at).Seconds()
	if span <= 0 {
		return
	}
	now, from := m.last, m.from
	per := func(now, before int64) float64 { return round(float64(now-before)/span, 1) }
	r.Seconds = round(span, 3)
	r.PublishRate, r.ConfirmRate = per(now.published, from.published), per(now.confirmed, from.confirmed)
	r.ConsumeRate, r.OpRate = per(now.consumed, from.consumed), per(now.ops, from.ops)
	r.PublishMBs = round(float64(now.publishedBytes-from.publishedBytes)/span/1e6, 2)
	r.ConsumeMBs = round(float64(now.consumedBytes-from.consumedBytes)/span/1e6, 2)
	r.settle(m.totals)
	m.costs(r, max(now.published-from.published, now.consumed-from.consumed, now.ops-from.ops))
}

// costs writes what n messages or operations cost.
func (m *meter) costs(r *Result, n int64) {
	if n > 0 {
		r.ClientCPU = round(micro(m.last.self-m.from.self)/float64(n), 3)
	}
	if !m.last.broker.known {
		return
	}
	spent := m.last.broker.cpu - m.from.broker.cpu
	if n > 0 {
		r.BrokerCPU = ptr(round(micro(spent)/float64(n), 3))
	}
	r.BrokerCores = ptr(round(spent.Seconds()/time.Duration(m.last.at-m.from.at).Seconds(), 2))
	r.RSSMiB = ptr(mib(m.last.broker.rss))
	r.PeakMiB = ptr(m.peak)
}

// finish writes the totals and samples into the result.
func (m *meter) finish(r *Result) {
	r.Published, r.Confirmed, r.Consumed = m.published.Load(), m.confirmed.Load(), m.consumed.Load()
	r.Foreign, r.Repeated = m.foreign.Load(), m.repeated.Load()
	r.Ops, r.Nacked, r.Returned = m.ops.Load(), m.nacked.Load(), m.returned.Load()
	r.Blocked, r.BlockedSeconds = m.blocked.Load(), round(time.Duration(m.blockedFor.Load()).Seconds(), 2)
	r.ChannelCloses, r.ConnCloses = m.channelCloses.Load(), m.connCloses.Load()
	r.Samples = m.samples
}

func ptr(v float64) *float64 { return &v }

func mib(bytes int64) float64 { return round(float64(bytes)/(1<<20), 1) }

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
