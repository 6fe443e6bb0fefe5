package queuetest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// RunAppender tests what a publisher need not wait for, with queues that drop
// their head and page out.
func RunAppender(t *testing.T, factory queue.Factory) {
	for _, tt := range []struct {
		name string
		test func(h *Harness)
	}{
		{"EnqueueDoesNotRead", testEnqueueDoesNotRead},
		{"EnqueueOnlyLeavesTheRest", testEnqueueOnly},
		{"EnqueueOnlyWithoutRest", testEnqueueOnlyWithoutRest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := queue.NewArguments()
				a.MaxLength, a.DeadLetter = backlog, &queue.Target{Exchange: "dlx"}
				h := NewWith(t, factory, queue.Spec{Durable: true, Arguments: &a}, queue.Env{Memory: queue.NewBudget(1)})
				tt.test(h)
			})
		})
	}
}

// backlog is how many messages of 4 KiB the queue holds; most of them are paged
// out. Half as many more drop all of those that are not.
const backlog = 600

// sized makes a number of persistent messages of 4 KiB.
func sized(n int) []*message.Message {
	list := make([]*message.Message, n)
	for i := range list {
		list[i] = Persistent(fmt.Sprintf("%04d", i) + strings.Repeat(".", 4092))
	}
	return list
}

// fillUp fills the queue, message by message, so that it pages out.
func (h *Harness) fillUp() {
	h.T.Helper()
	for _, m := range sized(backlog) {
		h.Send(m)
	}
	if s := h.Queue.Status(); s.InMemory > backlog/4 {
		h.T.Fatalf("%d messages are in memory, want most of %d paged out", s.InMemory, backlog)
	}
}

func testEnqueueDoesNotRead(h *Harness) {
	h.fillUp()
	open := h.Store.BlockLoads()
	returned := false
	go func() {
		h.Send(sized(backlog / 2)...)
		returned = true
	}()
	synctest.Wait()
	if !returned {
		h.T.Error("Enqueue waits for a read")
	}
	open()
	synctest.Wait()
	h.WantCounts(backlog, 0) // somebody else has done it
}

func testEnqueueOnly(h *Harness) {
	h.fillUp()
	loads := h.Store.Loads()
	batch := make([]queue.Entry, backlog/2)
	for i, m := range sized(backlog / 2) {
		batch[i].Msg = m
	}
	writes, then := h.Queue.(queue.Appender).EnqueueOnly(batch)
	synctest.Wait()
	if n := h.Store.Loads() - loads; n > 0 || len(h.Dead()) > 0 {
		h.T.Errorf("EnqueueOnly has read %d times, and published dead letters: want it to append only", n)
	}
	if writes != queue.Anywhere {
		h.T.Errorf("something to write: %b, want %b", writes, queue.Anywhere)
	}
	if then == nil {
		h.T.Fatal("EnqueueOnly leaves nothing")
	}
	then()
	synctest.Wait()
	h.WantCounts(backlog, 0)
	if n := len(h.Dead()); n != backlog/2 {
		h.T.Errorf("%d dead letters, want %d", n, backlog/2)
	}
}

func testEnqueueOnlyWithoutRest(h *Harness) {
	if _, then := h.Queue.(queue.Appender).EnqueueOnly([]queue.Entry{{Msg: Persistent("a")}}); then != nil {
		h.T.Error("there is something left to do after the first message")
	}
	h.WantDrain("a")
}
