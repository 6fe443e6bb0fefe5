package quorum

import (
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func TestDedupContract(t *testing.T) { queuetest.RunDedup(t, New) }

// What is dead and waits for its target has left the queue: after a restart it does
// not stand for another message with its id.
func TestTheDeadHaveNoID(t *testing.T) {
	a := atLeastOnce()
	a.Deduplication = "id"
	confirming(t, a, func(h *queuetest.Harness, _ *fakeTarget) {
		m := queuetest.With("x", func(p *frames.Properties) { p.SetTable(frames.Table{{Name: "id", Value: "x"}}) })
		h.Send(m)
		reject(h, 1)
		h.Send(m)
		h.WantCounts(1, 0)
		h.Reopen()
		h.Queue.Touch()
		h.Send(m)
		if n := h.Queue.Status().Duplicates; n != 1 {
			t.Errorf("%d duplicates, want 1", n)
		}
		h.WantDrain("x")
		h.Reopen() // with the dead one only
		h.Send(m)
		if n := h.Queue.Status().Duplicates; n != 0 {
			t.Errorf("%d duplicates of a dead message, want 0", n)
		}
		h.WantDrain("x")
	})
}
