package queuetest

import (
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// RunBurial tests what holds for types of queue that send dead letters at most
// once: they stay in the log until their targets have them on disk.
func RunBurial(t *testing.T, factory queue.Factory) {
	for _, tt := range []struct {
		name string
		fail bool // the target's store does
		stop bool // the queue is stopped while it sends the dead letter
		left int  // records, after the target's answer
	}{
		{name: "Stored"},
		{name: "StoreFailed", fail: true, left: 2},
		{name: "StoppedMeanwhile", stop: true}, // the note does not outlive its message
	} {
		t.Run(tt.name, func(t *testing.T) {
			var target *message.Receipt
			a := queue.NewArguments()
			a.DeadLetter, a.DeliveryLimit = &queue.Target{Exchange: "dlx"}, 1
			h := New(t, func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
				env.DeadLetter = func(from queue.Queue, _ queue.Target, _ queue.Reason, _ []*message.Message, r *message.Receipt) {
					if tt.stop {
						if err := from.Stop(); err != nil {
							t.Errorf("Stop() = %v", err)
						}
					}
					if target = r; r != nil {
						r.Hold(1)
					}
				}
				return factory(env, spec)
			}, queue.Spec{Durable: true, Arguments: &a})
			h.Send(Persistent("a"))
			h.nack("a")
			h.nack("a") // over the limit; the log has a note of it, too
			h.wantRecords(2)
			if target == nil {
				t.Fatal("the dead letter has no receipt")
			}
			if tt.fail {
				target.Fail()
			}
			target.Release()
			h.wantRecords(tt.left)
		})
	}
}

// wantRecords checks how many records the log has.
func (h *Harness) wantRecords(want int) {
	h.T.Helper()
	if n := h.Store.Log(h.Queue.(queue.Logged).LogID()).Len(); n != want {
		h.T.Errorf("%d records in the log, want %d", n, want)
	}
}
