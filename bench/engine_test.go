package bench

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/leveretmq/leveret/frames"
)

func TestPacer(t *testing.T) {
	const start = int64(1e18)
	times := func(rates string, n int) []time.Duration {
		r, err := ParseRates(rates)
		if err != nil {
			t.Fatal(err)
		}
		p := newPacer(r, start)
		var due []time.Duration
		for range n {
			due = append(due, time.Duration(p.next()-start))
			p.take(p.group())
		}
		return due
	}
	const ms = time.Millisecond
	for _, tt := range []struct {
		rates string
		want  []time.Duration
	}{
		{"1000", []time.Duration{0, ms, 2 * ms, 3 * ms}},
		{"100:20ms,1000:2ms", []time.Duration{0, 10 * ms, 20 * ms, 21 * ms, 22 * ms, 32 * ms, 42 * ms, 43 * ms}},
		{"0:5ms,1000:1ms", []time.Duration{5 * ms, 11 * ms}},
		{"50k", []time.Duration{0, 200 * time.Microsecond, 400 * time.Microsecond}}, // ten at a time
	} {
		if got := times(tt.rates, len(tt.want)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: due at %v, want %v", tt.rates, got, tt.want)
		}
	}
}

// TestLateMessagesCountFromWhenTheyWereDue is about coordinated omission: a
// publisher that was held up for 50 ms must not hide it.
func TestLateMessagesCountFromWhenTheyWereDue(t *testing.T) {
	rates, err := ParseRates("1000")
	if err != nil {
		t.Fatal(err)
	}
	const start = int64(1e18)
	p := &publisher{t: &template{}, pace: newPacer(rates, start), confirms: newConfirms(100), left: -1, step: 100}
	for range 60 {
		p.t.append(NewScenario(), 1, "", "q", make([]byte, 100), frameMax)
	}
	late := start + int64(50*time.Millisecond)
	for {
		n, _ := p.due(late)
		if n == 0 {
			break
		}
		p.mark(n, late)
	}
	var waits tally
	if n, _ := p.confirms.settle(51, true, late, &waits); n != 51 {
		t.Fatalf("%d messages were due, want 51", n)
	}
	if first, last := waits.runs[0].latency, waits.runs[len(waits.runs)-1].latency; first != int64(50*time.Millisecond) || last != 0 {
		t.Errorf("latencies from %d to %d, want 50 ms to 0", first, last)
	}
	if got := stampOf(firstBody(t, p.t.slice(0, 1))); got != start {
		t.Errorf("the first message has the time %d, want %d", got, start)
	}
}

// firstBody is the payload of the first body frame.
func firstBody(t *testing.T, b []byte) []byte {
	t.Helper()
	for {
		f, n, err := frames.Parse(b, frameMax)
		if err != nil || n == 0 {
			t.Fatalf("no body frame: %v", err)
		}
		if f.Type == frames.BodyFrame {
			return f.Payload
		}
		b = b[n:]
	}
}

func TestConfirms(t *testing.T) {
	c := newConfirms(4)
	type ack struct {
		tag      int64
		multiple bool
	}
	for i, step := range []struct {
		add     int
		ack     ack
		settled int64 // by the ack
		room    int64 // after it
	}{
		{4, ack{2, false}, 1, 0}, // out of order: 1 still waits
		{0, ack{2, false}, 0, 0}, // twice
		{0, ack{1, false}, 1, 2},
		{2, ack{5, true}, 3, 3},
		{0, ack{99, true}, 0, 3}, // was never published
		{1, ack{0, true}, 2, 4},  // all
	} {
		c.add(step.add, 1)
		n, _ := c.settle(step.ack.tag, step.ack.multiple, 2, nil)
		if n != step.settled || c.room() != step.room {
			t.Errorf("step %d: settled %d with room for %d, want %d and %d", i, n, c.room(), step.settled, step.room)
		}
	}
}

func TestConfirmsWakeTheWriter(t *testing.T) {
	c := newConfirms(4)
	c.add(4, 1)
	if c.ask(2) {
		t.Fatal("there is room in a full window")
	}
	if _, wakes := c.settle(1, true, 2, nil); wakes {
		t.Error("woken with room for one, asked for two")
	}
	if _, wakes := c.settle(2, true, 2, nil); !wakes || !c.ask(2) {
		t.Error("not woken with room for two")
	}
}

func TestTemplate(t *testing.T) {
	sc := scenario(t, "size: 20,40:3", "queues: 5", "consumers: 3", "publishers: 2", "persistent: true", "mandatory: true")
	tp := newTemplate(sc, newFan(sc, nil), 1, 7, frameMax)
	if len(tp.ends)%20 != 0 {
		t.Fatalf("%d messages are no whole round of 5 queues and 4 sizes", len(tp.ends))
	}
	tp.stamp(0, len(tp.ends), 12345)
	sizes, keys := map[int]int{}, map[string]int{}
	for b := tp.bytes; len(b) > 0; {
		var f [3]frames.Frame
		for i := range f {
			var n int
			var err error
			if f[i], n, err = frames.Parse(b, frameMax); err != nil || n == 0 {
				t.Fatal("frames end within a message", err)
			}
			b = b[n:]
		}
		m, err := decode(f[0])
		publish, ok := m.(*frames.BasicPublish)
		if err != nil || !ok || !publish.Mandatory || f[0].Channel != 7 {
			t.Fatalf("got %+v, %v", m, err)
		}
		sizes[len(f[2].Payload)]++
		keys[publish.RoutingKey]++
		if got := stampOf(f[2].Payload); got != 12345 {
			t.Fatalf("the time is %d", got)
		}
	}
	n := len(tp.ends)
	if sizes[20] != n/4 || sizes[40] != n/4*3 || len(keys) != 5 || keys["leveret-bench.test.0"] != n/5 {
		t.Errorf("%d messages have sizes %v and keys %v", n, sizes, keys)
	}
	// Three of five queues have a consumer.
	if got := sum(tp.fans, 0, n); got != int64(n/5*3) {
		t.Errorf("%d messages have %d deliveries", n, got)
	}
	if got := sum(tp.sizes, 0, n); got != int64(n/4*20+n/4*3*40) {
		t.Errorf("%d messages have %d bytes", n, got)
	}
}

func TestBodyWithoutRoomForTheTime(t *testing.T) {
	if got := stampOf(binary.BigEndian.AppendUint32(nil, stampMark)); got != 0 {
		t.Errorf("a short body has the time %d", got)
	}
	if got := stampOf(bytes.Repeat([]byte("x"), 100)); got != 0 {
		t.Errorf("a body of somebody else has the time %d", got)
	}
}

func TestTallyAndRecorder(t *testing.T) {
	var ta tally
	for i := range 1000 {
		ta.add(int64(i+1) * 1000)
		ta.add(int64(i+1) * 1000)
	}
	if len(ta.runs) != 1000 {
		t.Errorf("%d entries for 1000 pairs", len(ta.runs))
	}
	r := recorder{interval: newHistogram()}
	r.record(&ta)
	ta.add(-5)
	ta.add(int64(2 * time.Hour))
	total := newHistogram()
	r.record(&ta)
	p := r.drain(total)
	want := Percentiles{Count: 2002, P50: 500.2, P75: 750.1, P95: 950.3, P99: 990.2, P999: 999.4, Max: 3.6e9}
	if p == nil || p.Count != want.Count {
		t.Fatalf("got %+v", p)
	}
	for _, v := range []struct{ got, want float64 }{{p.P50, want.P50}, {p.P75, want.P75}, {p.P95, want.P95}, {p.P99, want.P99}, {p.P999, want.P999}, {p.Max, want.Max}} {
		if v.got < v.want*0.998 || v.got > v.want*1.002 { // three significant digits
			t.Errorf("got %v, want %v", v.got, v.want)
		}
	}
	if again := r.drain(nil); again != nil || total.TotalCount() != 2002 {
		t.Errorf("drained twice: %+v, %d in total", again, total.TotalCount())
	}
	curve := curveOf(total)
	if first, last := curve[0], curve[len(curve)-1]; first.Percentile != 0 || last.Percentile != 100 || last.Micros != p.Max {
		t.Errorf("the curve goes from %+v to %+v", first, last)
	}
	if !slices.IsSortedFunc(curve, func(a, b CurvePoint) int { return int(a.Micros - b.Micros) }) {
		t.Errorf("the curve falls: %+v", curve)
	}
}

func TestGateLetsSmallLimitsPass(t *testing.T) {
	m := &meter{}
	g := newGate(m, 5, 10)
	if !g.ask(10) {
		t.Error("a message with more deliveries than the limit never passes")
	}
	m.expected.Add(10)
	if g.ask(10) {
		t.Error("passed with all under way")
	}
	g.waiters = []chan struct{}{make(chan struct{}, 1)}
	m.consumed.Add(10)
	g.passed()
	select {
	case <-g.waiters[0]:
	default:
		t.Error("the waiter was not woken")
	}
}

// TestPublishAllocates holds the measuring path to no allocation.
func TestPublishAllocates(t *testing.T) {
	sc := scenario(t, "confirm: 1000")
	r := newRun(&Broker{}, sc, Options{})
	p := &publisher{r: r, t: newTemplate(sc, newFan(sc, nil), 0, 1, frameMax), left: -1, confirms: newConfirms(1000), step: 64}
	var acks tally
	if n := testing.AllocsPerRun(100, func() {
		n, _ := p.due(1)
		p.mark(n, 1)
		p.count(p.place-int(n), p.place)
		p.place %= len(p.t.ends)
		p.confirms.settle(p.confirms.sent.Load(), true, 5, &acks)
		r.m.latencies[latencyConfirm].record(&acks)
	}); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
}
