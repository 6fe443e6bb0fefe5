package queuetest

import (
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/queue"
)

// RunBrokenRead tests what a queue whose messages cannot be read says of it: the log
// has what is wrong, with which queue, and what to do.
func RunBrokenRead(t *testing.T, factory queue.Factory) {
	synctest.Test(t, func(t *testing.T) { // it is read again after a second
		core, logged := observer.New(zap.WarnLevel)
		h := NewWith(t, factory, queue.Spec{Durable: true}, queue.Env{Log: zap.New(core)})
		h.Send(Persistent("a"))
		h.Reopen()
		h.Store.FailLoads(errors.New("broken disk"))
		if _, _, ok, err := h.Queue.Get(true); ok || err == nil {
			t.Errorf("Get() = ok %t, error %v, want an error", ok, err)
		}
		const want = "messages cannot be read from the store and stay there; it is tried again every second: look at the disk"
		if lines := logged.All(); len(lines) != 1 || lines[0].Message != want || lines[0].ContextMap()["queue"] != "queue 'q' in vhost '/'" {
			t.Errorf("logged %v, want one line with the queue and %q", lines, want)
		}
		h.Store.FailLoads(nil)
	})
}
