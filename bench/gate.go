package bench

import "sync/atomic"

// A gate holds publishers back while too many deliveries are under way. Its
// waiters are set before the run and immutable then.
type gate struct {
	m       *meter
	limit   int64 // deliveries, 0 = no limit
	resume  int64 // room at which publishers that wait are woken
	waiters []chan struct{}
	waiting atomic.Bool
}

// newGate makes a gate for messages of which none has more than maxFan
// deliveries.
func newGate(m *meter, limit, maxFan int64) *gate {
	return &gate{m: m, limit: limit, resume: min(limit, max(limit/4, maxFan))}
}

func (g *gate) room() int64 { return g.limit - (g.m.expected.Load() - g.m.consumed.Load()) }

// ask says whether there is room for n deliveries. If not, the caller's waiter
// is woken when there is.
func (g *gate) ask(n int64) bool {
	n = min(n, g.resume)
	if g.room() >= n {
		return true
	}
	g.waiting.Store(true)
	return g.room() >= n // it may have come since
}

// passed is called by consumers after they have counted deliveries.
func (g *gate) passed() {
	if g.waiting.Load() && g.room() >= g.resume && g.waiting.CompareAndSwap(true, false) {
		for _, w := range g.waiters {
			wake(w)
		}
	}
}

// wake leaves a token in a channel of capacity 1.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // one is there already
	}
}
