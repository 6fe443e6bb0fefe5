package classic

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

func TestRetryContract(t *testing.T) { queuetest.RunRetry(t, New) }

func TestBrokenReadIsLogged(t *testing.T) { queuetest.RunBrokenRead(t, New) }

func TestRetryOnDisk(t *testing.T) { queuetest.RunRetryOnDisk(t, New) }

func TestRetryAgainstModel(t *testing.T) { queuetest.RunRetryRandom(t, New, 20, false) }

func TestRetryAgainstModelWhilePaging(t *testing.T) { queuetest.RunRetryRandom(t, New, 6, true) }

// Messages that wait and are stored are dropped from memory, and read when they
// are due.
func TestWaitingIsPagedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := queue.NewArguments()
		a.RedeliveryDelay = 1000
		h := queuetest.NewWith(t, New, queue.Spec{Durable: true, Arguments: &a}, queue.Env{Memory: queue.NewBudget(1)})
		filler := strings.Repeat(".", 10<<10)
		const n = 1000
		var held []queue.Delivery
		for i := range n {
			h.Send(queuetest.Persistent(fmt.Sprint(i, filler)))
			held = append(held, h.Get())
		}
		h.Queue.Settle(nil, held, queue.Requeued)
		h.Send(queuetest.Persistent("behind")) // a turn after the notes are written
		q := h.Queue.(*Queue)
		q.mu.Lock()
		absent, memory := q.delayed.absent, q.memory
		q.mu.Unlock()
		if absent != n || memory > 1<<10 {
			t.Errorf("%d of %d are not in memory, which has %d bytes", absent, n, memory)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		h.WantCounts(n+1, 0)
		for i := range n {
			if d := h.Get(); string(d.Msg.Body) != fmt.Sprint(i, filler) || d.Count != 1 {
				t.Fatalf("message %d is %.10s, count %d", i, d.Msg.Body, d.Count)
			}
		}
	})
}

// What cannot be read when it is due is tried again.
func TestWaitingCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := queue.NewArguments()
		a.RedeliveryDelay = 1000
		h := queuetest.New(t, New, queue.Spec{Durable: true, Arguments: &a})
		h.Send(queuetest.Persistent("a"))
		h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued)
		h.Reopen()
		h.Queue.SetPolicy(queue.Policy{})
		h.Store.FailLoads(fmt.Errorf("broken disk"))
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		h.WantCounts(0, 0)
		h.Store.FailLoads(nil)
		time.Sleep(retryAfter)
		synctest.Wait()
		h.WantDrain("a")
	})
}

// Each priority has its own order; a message that waited goes back to it.
func TestRetryWithPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := queue.NewArguments()
		a.RedeliveryDelay, a.MaxPriority = 100, 9
		h := queuetest.New(t, New, queue.Spec{Durable: true, Arguments: &a})
		h.Send(queuetest.Priority("low", 1), queuetest.Priority("high", 8), queuetest.Priority("mid", 5))
		for range 2 {
			h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued) // high, mid
		}
		h.Reopen()
		h.Queue.SetPolicy(queue.Policy{})
		if s := h.Queue.Status(); s.Ready != 1 || s.Delayed != 2 {
			t.Errorf("%d ready, %d delayed, want 1, 2", s.Ready, s.Delayed)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		for _, want := range []string{"high 1", "mid 1", "low 0"} {
			if d := h.Get(); fmt.Sprint(string(d.Msg.Body), " ", d.Count) != want {
				t.Errorf("got %s %d, want %s", d.Msg.Body, d.Count, want)
			}
		}
	})
}

// With as many priorities as there are, the log has no lane for notes: messages
// wait, but are ready after a restart.
func TestRetryWithAllPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := queue.NewArguments()
		a.RedeliveryDelay, a.MaxPriority = 100, 255
		h := queuetest.New(t, New, queue.Spec{Durable: true, Arguments: &a})
		h.Send(queuetest.Priority("a", 255))
		h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued)
		if s := h.Queue.Status(); s.Delayed != 1 {
			t.Errorf("%d delayed, want 1", s.Delayed)
		}
		h.Reopen()
		h.Queue.SetPolicy(queue.Policy{})
		h.WantDrain("a")
	})
}

// No timer is left when nothing waits any more.
func TestNoTimerWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := queue.NewArguments()
		a.RedeliveryDelay = 100
		h := newHarness(t, queue.Spec{Arguments: &a})
		h.Publish("a")
		h.Queue.Settle(nil, []queue.Delivery{h.Get()}, queue.Requeued)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		q := h.Queue.(*Queue)
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.wakeAt != 0 {
			t.Errorf("the alarm is set to %d", q.wakeAt)
		}
	})
}

// A message that was not delivered to the end keeps its own headers.
func TestTransientIsCounted(t *testing.T) {
	a := queue.NewArguments()
	a.DeliveryLimit = 1
	h := newHarness(t, queue.Spec{Arguments: &a})
	h.Publish("a")
	d := h.Get()
	before := len(d.Msg.Header)
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	d = h.Get()
	if d.Count != 1 || len(d.Msg.Header) == before || d.Msg.Header[0]&(frames.FlagHeaders>>8) == 0 {
		t.Errorf("count %d, header %x", d.Count, d.Msg.Header)
	}
	h.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	h.WantCounts(0, 0)
}
