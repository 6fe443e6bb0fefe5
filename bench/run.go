package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leveretmq/leveret/frames"
)

const (
	publisherBuffer = 64 << 10  // read buffer of a connection, in bytes
	consumerBuffer  = 256 << 10 // likewise
	// partingTime is how long a connection may take to close in order.
	partingTime = 5 * time.Second
	maxErrors   = 10 // that are kept
)

// A run is one scenario on one broker. The goroutine of Run owns it, except for
// the fields that say otherwise.
type run struct {
	b      *Broker
	sc     *Scenario
	m      *meter // its counters and recorders are everybody's
	gate   *gate  // immutable once clients run
	fan    *fan
	result *Result

	subs []*subConn
	pubs []*pubConn

	stop     chan struct{} // closed to end publishing
	stopped  atomic.Bool   // likewise, for loops
	leave    chan struct{} // closed when consumers are to hurry
	leaving  atomic.Bool   // likewise; from then on connections may end
	target   atomic.Int64  // consumed messages that are waited for
	reached  chan struct{} // holds a token when target is reached, confirms are complete or a publisher is gone
	writers  sync.WaitGroup
	hurried  string        // when settle gave up while deliveries still came; "" if it did not
	finished chan struct{} // closed when all publishers have ended; nil without any
	trouble  chan struct{} // closed with the first error

	// mu guards the field below. It is held to add one error.
	mu   sync.Mutex
	errs []string
}

func newRun(b *Broker, sc *Scenario, o Options) *run {
	r := &run{b: b, sc: sc, m: newMeter(b, o), stop: make(chan struct{}), leave: make(chan struct{}),
		reached: make(chan struct{}, 1), trouble: make(chan struct{})}
	r.target.Store(math.MaxInt64)
	r.gate = newGate(r.m, 0, 1)
	r.result = &Result{Scenario: sc.Name, Broker: b.String(), Settings: sc.changed(), Started: time.Now().UTC().Truncate(time.Second)}
	return r
}

// changed are the settings that are not the default, as text.
func (sc *Scenario) changed() map[string]string {
	set := map[string]string{}
	standard := NewScenario()
	for _, s := range Settings() {
		if s.Name == "queue-pattern" { // is queue
			continue
		}
		if text := s.Text(sc); text != s.Text(standard) {
			set[s.Name] = text
		}
	}
	return set
}

// failed notes an error of a connection, unless it is about to be closed anyway.
func (r *run) failed(err error) {
	if r.leaving.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if text := err.Error(); len(r.errs) < maxErrors && !slices.Contains(r.errs, text) {
		r.errs = append(r.errs, text)
		if len(r.errs) == 1 {
			close(r.trouble)
		}
	}
}

// closedBy notes that the broker has closed a channel or connection; done says
// that it is the connection, which is then answered. A publisher's channel is
// not: its writer may be about to publish, which must not come after close-ok.
func (r *run) closedBy(c *conn, f frames.Frame) (done bool) {
	m, err := decode(f)
	if err != nil {
		r.failed(err)
		return false
	}
	closed := closeOf(m)
	r.failed(closed)
	if !closed.connection {
		r.m.channelCloses.Add(1)
		return false
	}
	r.m.connCloses.Add(1)
	_, _ = c.sock.Write(frames.AppendMethod(nil, 0, &frames.ConnectionCloseOk{})) // the broker has gone if it fails
	return true
}

// connectConsumers opens all consumers and waits until the broker has accepted
// them.
func (r *run) connectConsumers(ctx context.Context) error {
	for from := 0; from < r.sc.Consumers; from += r.sc.Channels {
		c, err := dial(ctx, r.b, r.sc.Heartbeat, consumerBuffer)
		if err != nil {
			return err
		}
		s, err := r.openConsumers(c, from, min(from+r.sc.Channels, r.sc.Consumers))
		if err != nil {
			c.cut()
			return fmt.Errorf("consumer: %w", err)
		}
		r.subs = append(r.subs, s)
		go s.readLoop() // ends with its connection, which part waits for
	}
	timeout := time.NewTimer(callTimeout)
	defer timeout.Stop()
	for _, s := range r.subs {
		select {
		case <-s.ready:
		case <-r.trouble:
			return fmt.Errorf("consumer: %s", r.firstError())
		case <-timeout.C:
			return errors.New("consumer: the broker does not answer basic.consume")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// firstError is what has closed trouble.
func (r *run) firstError() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs[0]
}

// connectPublishers opens all publishers; they publish nothing yet. It comes
// before connectConsumers, which use the gate.
func (r *run) connectPublishers(ctx context.Context) error {
	for from := 0; from < r.sc.Publishers; from += r.sc.Channels {
		c, err := dial(ctx, r.b, r.sc.Heartbeat, publisherBuffer)
		if err != nil {
			return err
		}
		p, err := r.openPublishers(c, r.fan, from, min(from+r.sc.Channels, r.sc.Publishers))
		if err != nil {
			c.cut()
			return fmt.Errorf("publisher: %w", err)
		}
		r.pubs = append(r.pubs, p)
		go p.readLoop() // ends with its connection, which part waits for
	}
	r.makeGate()
	return nil
}

// makeGate limits what is under way to the messages of the publishers there are.
func (r *run) makeGate() {
	maxFan, waiters := int64(1), []chan struct{}(nil)
	for _, pc := range r.pubs {
		waiters = append(waiters, pc.wake)
		for _, p := range pc.publishers {
			maxFan = max(maxFan, p.t.maxFan)
		}
	}
	r.gate = newGate(r.m, int64(r.sc.InFlight), maxFan)
	r.gate.waiters = waiters
	if r.gate.limit == 0 {
		return
	}
	for _, pc := range r.pubs {
		for _, p := range pc.publishers {
			p.step = max(1, min(p.step, r.gate.limit/4/maxFan))
		}
	}
}

// startPublishers lets the publishers begin, evenly spread over the time
// between two messages of one.
func (r *run) startPublishers() {
	now, i := r.m.clock.now(), 0
	for _, pc := range r.pubs {
		pc.exact = len(r.pubs) <= exactPublishers
		for _, p := range pc.publishers {
			p.starts = now + r.startDelay(i)
			if rates := r.sc.rates(); len(rates) > 0 {
				p.starts += r.offset(rates, i)
				p.pace = newPacer(rates, p.starts)
			}
			i++
		}
	}
	r.finished = make(chan struct{})
	for _, pc := range r.pubs {
		r.writers.Go(pc.writeLoop)
	}
	go func() { // ends with the writers, which stopPublishers waits for
		r.writers.Wait()
		close(r.finished)
	}()
}

// startDelay is how long the i-th publisher waits, in nanoseconds.
func (r *run) startDelay(i int) int64 {
	d := int64(r.sc.PublisherDelay) * int64(i)
	if r.sc.PublisherJitter > 0 {
		d += rand.Int64N(int64(r.sc.PublisherJitter))
	}
	return d
}

// offset spreads publishers of the same pace, in nanoseconds.
func (r *run) offset(rates Rates, i int) int64 {
	if rates[0].PerSecond == 0 {
		return 0
	}
	gap := float64(time.Second) / rates[0].PerSecond
	return int64(gap * float64(i) / float64(r.sc.Publishers))
}

// stopPublishers ends publishing. A write that the broker does not take is cut
// off after the drain time.
func (r *run) stopPublishers() {
	r.stopped.Store(true)
	close(r.stop)
	if r.finished == nil {
		return
	}
	t := time.NewTimer(r.sc.DrainTime)
	defer t.Stop()
	select {
	case <-r.finished:
	case <-t.C:
		r.failed(fmt.Errorf("the broker took nothing for %v: connections were cut", r.sc.DrainTime))
		for _, pc := range r.pubs {
			pc.c.cut()
		}
		<-r.finished
	}
	for _, pc := range r.pubs {
		for _, p := range pc.publishers {
			p.ended.Store(true)
		}
	}
}

// watch takes samples until the time is over or something is done.
func (r *run) watch(ctx context.Context, phase string, limit time.Duration, done <-chan struct{}) {
	tick := time.NewTicker(r.m.o.Interval)
	defer tick.Stop()
	end := time.NewTimer(limit)
	defer end.Stop()
	for {
		select {
		case <-tick.C:
			r.m.sample(phase)
			continue
		case <-end.C:
		case <-done:
		case <-ctx.Done():
		}
		r.m.sample(phase)
		return
	}
}

// lookTime is how often settle looks whether anything still comes.
const lookTime = 20 * time.Millisecond

// settle waits until all confirms and deliveries have come, or none comes for
// the drain time, which is not measured then, or the timeout is over.
func (r *run) settle(ctx context.Context, phase string) {
	tick := time.NewTicker(r.m.o.Interval)
	defer tick.Stop()
	look := time.NewTicker(lookTime)
	defer look.Stop()
	end := time.NewTimer(r.sc.Timeout)
	defer end.Stop()
	var silence silence
	for !r.complete() {
		select {
		case <-r.reached:
			continue
		case <-tick.C:
			r.m.sample(phase)
		case <-look.C:
		case <-end.C:
			r.hurried = fmt.Sprintf("after %v, the timeout", r.sc.Timeout)
			return
		case <-ctx.Done():
			r.hurried = "when the run was interrupted"
			return
		}
		if silence.length(r.m) >= r.sc.DrainTime {
			r.m.sample(phase)
			r.discard(silence)
			return
		}
	}
	r.m.sample(phase)
}

// A silence is the time in which nothing comes from the broker.
type silence struct {
	progress int64   // of the meter
	since    reading // when it was noticed; at is 0 while something comes
}

// length is how long nothing has come. It is to be called every lookTime.
func (s *silence) length(m *meter) time.Duration {
	p := m.progress()
	switch {
	case p != s.progress:
		s.progress, s.since = p, reading{}
		return 0
	case s.since.at == 0:
		s.since = m.read()
		return 0
	}
	return time.Duration(m.clock.now() - s.since.at)
}

// discard takes a silence out of what is measured.
func (r *run) discard(s silence) {
	if !r.m.measuring {
		return
	}
	r.m.last = s.since
	r.result.Notes = append(r.result.Notes, fmt.Sprintf("nothing came in the last %v, the drain-time, which was not measured", r.sc.DrainTime))
}

// due is how many deliveries must come; 0 where that cannot be known.
func (r *run) due() int64 {
	if r.fan == nil || !r.fan.known || !r.sc.keepsAll() {
		return 0
	}
	return r.possible()
}

// possible is how many deliveries may come; math.MaxInt64 where that cannot be
// known.
func (r *run) possible() int64 {
	switch {
	case r.sc.Consumers == 0:
		return 0
	case !r.fan.known:
		return math.MaxInt64
	}
	maxFan := int64(1)
	for _, pc := range r.pubs {
		for _, p := range pc.publishers {
			maxFan = max(maxFan, p.t.maxFan)
		}
	}
	return max(0, r.m.expected.Load()-r.m.nacked.Load()*maxFan)
}

// complete says whether nothing more is waited for: of what is measured all that
// may come, afterwards what must.
func (r *run) complete() bool {
	wanted := r.due()
	if r.m.measuring {
		wanted = r.possible()
	}
	r.target.Store(wanted)
	return r.awaited() == 0 && r.m.consumed.Load() >= wanted
}

// awaited is how many publishes will still be confirmed or refused.
func (r *run) awaited() int64 {
	n := int64(0)
	for _, pc := range r.pubs {
		n += pc.awaited()
	}
	return n
}

// unconfirmed is how many publishes have no confirm.
func (r *run) unconfirmed() int64 {
	n := int64(0)
	for _, pc := range r.pubs {
		n += pc.unconfirmed()
	}
	return n
}

// account writes what is missing into the result. It comes before part.
func (r *run) account() {
	r.result.Unconfirmed = r.unconfirmed()
	r.result.Missing = max(0, r.due()-r.m.consumed.Load())
	if r.hurried != "" && r.result.Missing > 0 {
		r.result.Notes = append(r.result.Notes, fmt.Sprintf("%s deliveries were still to come %s, and were not waited for",
			formatCount(float64(r.result.Missing)), r.hurried))
		r.result.Missing = 0
	}
}

// part closes all connections in order, publishers first.
func (r *run) part() {
	r.leaving.Store(true)
	close(r.leave)
	var wg sync.WaitGroup
	for _, pc := range r.pubs {
		pc.finish(&wg)
	}
	wg.Wait()
	for _, s := range r.subs {
		s.finish(&wg)
	}
	wg.Wait()
}

// farewell writes the last frames of a connection, and cuts it when its reader
// has ended or does not in time.
func (r *run) farewell(c *conn, last []byte, read <-chan struct{}) {
	c.stopBeats()
	defer c.cut()
	t := time.NewTimer(partingTime)
	defer t.Stop()
	if c.sock.SetWriteDeadline(time.Now().Add(partingTime)) == nil {
		if _, err := c.sock.Write(last); err == nil {
			select {
			case <-read:
				return
			case <-t.C:
			}
		}
	}
	c.cut()
	<-read
}

// report completes the result.
func (r *run) report() {
	r.m.finish(r.result)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Errors = r.errs
}
