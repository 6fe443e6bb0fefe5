package bench

import "time"

// groupsPerSecond is how finely a pace is cut. Up to this rate each message has
// a time of its own; at higher rates so many groups a second have.
const groupsPerSecond = 5000

// A pacer says when each message of one publisher is due. The times follow from
// the start alone: if the broker makes a publisher late, they do not move, and
// latencies counted from them include the wait (no coordinated omission).
type pacer struct {
	rates Rates
	seg   int   // place in rates
	start int64 // of the segment, in the clock's nanoseconds
	taken int64 // messages of the segment so far
}

func newPacer(rates Rates, start int64) *pacer {
	return &pacer{rates: rates, start: start}
}

// next is when the next group is due.
func (p *pacer) next() int64 {
	for {
		r := p.rates[p.seg]
		if r.PerSecond > 0 {
			at := p.start + int64(float64(p.taken)*(float64(time.Second)/r.PerSecond))
			if r.For == 0 || at < p.start+int64(r.For) {
				return at
			}
		}
		p.start += int64(r.For)
		p.taken = 0
		p.seg = (p.seg + 1) % len(p.rates)
	}
}

// group is how many messages are due at next.
func (p *pacer) group() int {
	return max(1, int(p.rates[p.seg].PerSecond/groupsPerSecond))
}

// take counts n messages as sent.
func (p *pacer) take(n int) { p.taken += int64(n) }
