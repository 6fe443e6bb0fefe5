//go:build !race

// The race detector makes sync.Pool forget, so budgets are checked without it.

package vhost

import (
	"testing"

	"github.com/leveretmq/leveret/queue"
)

// A read of small messages is a batch that no publisher keeps the memory of: it
// must come from those before, not be grown anew.
func TestLargeBatchesUseTheirMemoryAgain(t *testing.T) {
	v := newBenchVHost(t, 2)
	p := v.NewPublisher()
	m := newMessage("amq.fanout", "")
	rt := route(t, p, "amq.fanout", "")
	round := func() {
		for range 4 * maxFreeBatch {
			p.Add(rt, m, nil, 0)
		}
		p.Flush()
	}
	round()
	// The two batches' headers; to grow one takes ten allocations and more.
	if got := leastAllocs(20, round); got > 2 {
		t.Errorf("%v allocations for a batch of %d messages to two queues, want at most 2", got, 4*maxFreeBatch)
	}
}

func TestHugeBatchesAreNotKept(t *testing.T) {
	p := newBenchVHost(t, 1).NewPublisher()
	m := newMessage("", "a")
	rt := route(t, p, "", "a")
	for range maxLargeBatch + 1 {
		p.Add(rt, m, nil, 0)
	}
	huge := &p.active[0].batch[0]
	p.Flush()
	p.Add(rt, m, nil, 0)
	if now := p.active[0].batch; &now[0] == huge || cap(now) > maxLargeBatch {
		t.Errorf("a batch of more than %d entries was kept", maxLargeBatch)
	}
}

func TestLonePublishTakesNoLargeBatch(t *testing.T) {
	share(make([]queue.Entry, 0, 4*maxFreeBatch))
	p := newBenchVHost(t, 1).NewPublisher()
	p.Add(route(t, p, "", "a"), newMessage("", "a"), nil, 0)
	if n := cap(p.active[0].batch); n > maxFreeBatch {
		t.Errorf("a batch of one message has room for %d", n)
	}
}
