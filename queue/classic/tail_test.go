package classic

import (
	"testing"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// What is behind messages that wait on disk leaves memory once it is on disk,
// although the budget has room for it.
func TestTailLeavesMemory(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 200, queuetest.Persistent)
	p.Env.Memory.SetLimit(1 << 30)
	p.fill(200, 1000, queuetest.Persistent)
	p.wantInMemory(atMost + eagerTail/4096 + 1)
	p.wantNumbers(0, 1000)
	if used := p.Env.Memory.Used(); used != 0 {
		t.Errorf("%d bytes count as used by an empty queue", used)
	}
}

func TestTailStaysUntilItIsOnDisk(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 200, queuetest.Persistent)
	p.Env.Memory.SetLimit(1 << 30)
	p.Store.Hold()
	p.fill(200, 500, queuetest.Persistent)
	if n := p.Queue.Status().InMemory; n < 300 {
		t.Errorf("%d messages are in memory before the commit, want those 300 at least", n)
	}
	p.Store.Commit()
	p.fill(500, 501, queuetest.Persistent)
	p.wantInMemory(atMost + eagerTail/4096 + 1)
	p.wantNumbers(0, 501)
}

// Transient messages cost a write to leave memory: they stay while the budget
// has room.
func TestTransientTailStaysInMemory(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, true)
	p.fill(0, 200, queuetest.Persistent)
	p.Env.Memory.SetLimit(1 << 30)
	p.fill(200, 500, queuetest.Message)
	if n := p.Queue.Status().InMemory; n < 300 {
		t.Errorf("%d messages are in memory, want the 300 transient ones at least", n)
	}
	p.wantNumbers(0, 500)
}
