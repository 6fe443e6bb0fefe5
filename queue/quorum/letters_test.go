package quorum

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// fakeTarget is where confirmed dead letters go. It answers when the test says.
type fakeTarget struct {
	mu      sync.Mutex // guards the fields below
	got     []string
	waiting []*message.Receipt
	refuses map[string]bool // bodies
}

func (f *fakeTarget) take(_ queue.Queue, to queue.Target, why queue.Reason, dead []*message.Message, r *message.Receipt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, m := range dead {
		f.got = append(f.got, string(m.Body)+" "+string(why))
		if f.refuses[string(m.Body)] {
			r.Refuse(uint64(i + 1))
		}
	}
	r.Hold(1)
	f.waiting = append(f.waiting, r)
}

// refuse makes the target refuse a message, or not any more.
func (f *fakeTarget) refuse(body string, on bool) {
	f.mu.Lock()
	f.refuses[body] = on
	f.mu.Unlock()
}

func (f *fakeTarget) sent() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := strings.Join(f.got, ", ")
	f.got = nil
	return got
}

// answer says that everything not refused is safe.
func (f *fakeTarget) answer() {
	f.mu.Lock()
	waiting := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	for _, r := range waiting {
		r.Release()
	}
	synctest.Wait()
}

func atLeastOnce() queue.Arguments {
	a := queue.NewArguments()
	a.Overflow, a.DeadLetter = queue.RejectPublish, deadLetters
	a.Table = frames.Table{{Name: "x-dead-letter-strategy", Value: "at-least-once"}}
	return a
}

func confirming(t *testing.T, a queue.Arguments, test func(h *queuetest.Harness, f *fakeTarget)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeTarget{refuses: map[string]bool{}}
		test(newSpecHarness(t, a, f.take), f)
	})
}

func wantSent(h *queuetest.Harness, f *fakeTarget, want string) {
	h.T.Helper()
	if got := f.sent(); got != want {
		h.T.Errorf("sent %q, want %q", got, want)
	}
}

func wantRecords(h *queuetest.Harness, n int) {
	h.T.Helper()
	if got := logOf(h).Len() - len(logOf(h).Records(noteLane)); got != n {
		h.T.Errorf("%d messages are stored, want %d", got, n)
	}
}

func reject(h *queuetest.Harness, n int) {
	h.T.Helper()
	var ds []queue.Delivery
	for range n {
		ds = append(ds, h.Get())
	}
	h.Queue.Settle(nil, ds, queue.Rejected)
}

func TestStaysUntilTheTargetConfirms(t *testing.T) {
	confirming(t, atLeastOnce(), func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a", "b", "c")
		reject(h, 2)
		wantSent(h, f, "a rejected, b rejected")
		wantRecords(h, 3)
		h.WantCounts(1, 0)
		f.answer()
		wantRecords(h, 1)
		if n := logOf(h).Len(); n != 1 {
			h.T.Errorf("%d records are left, want 1", n)
		}
		h.WantDrain("c")
	})
}

func TestRefusedIsSentAgain(t *testing.T) {
	confirming(t, atLeastOnce(), func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a", "b", "c")
		f.refuse("b", true)
		reject(h, 3)
		wantSent(h, f, "a rejected, b rejected, c rejected")
		f.answer()
		wantRecords(h, 1)
		pass(repostAfter - 1)
		wantSent(h, f, "")
		pass(1)
		wantSent(h, f, "b rejected")
		f.answer()
		f.refuse("b", false)
		pass(repostAfter)
		wantSent(h, f, "b rejected")
		f.answer()
		wantRecords(h, 0)
	})
}

func TestFailedIsSentAgain(t *testing.T) {
	confirming(t, atLeastOnce(), func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a")
		reject(h, 1)
		f.sent()
		f.waiting[0].Fail()
		f.answer()
		wantRecords(h, 1)
		pass(repostAfter)
		wantSent(h, f, "a rejected")
	})
}

func TestDeadSurviveAKill(t *testing.T) {
	for _, tt := range []struct {
		reason string
		limit  int64
		die    func(h *queuetest.Harness)
	}{
		{"rejected", 5, func(h *queuetest.Harness) { reject(h, 1) }},
		{"delivery_limit", 0, func(h *queuetest.Harness) { returnHead(h) }},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			a := atLeastOnce()
			confirming(t, a, func(h *queuetest.Harness, f *fakeTarget) {
				h.Queue.SetPolicy(policy(queue.Definition{"delivery-limit": float64(tt.limit)}))
				h.Publish("a", "b")
				tt.die(h)
				wantSent(h, f, "a "+tt.reason)
				h.Reopen() // the target has not answered
				h.WantCounts(1, 0)
				wantSent(h, f, "")
				h.Queue.SetPolicy(queue.Merge(nil, nil))
				wantSent(h, f, "a "+tt.reason)
				h.WantDrain("b")
				wantRecords(h, 1)
				if n, _ := h.Queue.Purge(); n != 0 {
					h.T.Errorf("purged %d, want 0", n)
				}
				wantRecords(h, 1)
				f.answer()
				if n := logOf(h).Len(); n != 0 {
					h.T.Errorf("%d records are left, want 0", n)
				}
				h.Reopen()
				h.WantCounts(0, 0)
			})
		})
	}
}

// A message that dies of its last delivery, as the broker did, waits for its target.
func TestKilledByTheLastDelivery(t *testing.T) {
	a := atLeastOnce()
	a.DeliveryLimit = 1
	confirming(t, a, func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a", "b")
		returnHead(h)
		h.Get()
		h.Reopen()
		h.Queue.Touch()
		h.WantDrain("b")
		wantSent(h, f, "a delivery_limit")
		wantRecords(h, 1)
		h.Reopen()
		h.Queue.Touch()
		wantSent(h, f, "a delivery_limit")
		h.WantCounts(0, 0)
		f.answer()
		if n := logOf(h).Len(); n != 0 {
			h.T.Errorf("%d records are left, want 0", n)
		}
	})
}

func TestExpiredWaitForTheirTarget(t *testing.T) {
	a := atLeastOnce()
	a.MessageTTL = 10
	confirming(t, a, func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a")
		pass(10)
		wantSent(h, f, "a expired")
		wantRecords(h, 1)
		h.Reopen()
		h.Queue.Touch()
		wantSent(h, f, "a expired")
		f.answer()
		wantRecords(h, 0)
	})
}

// A purge between restart and confirm must not take the dead with it.
func TestPurgeLeavesTheDead(t *testing.T) {
	confirming(t, atLeastOnce(), func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a", "b", "c", "d")
		a, b := h.Get(), h.Get()
		h.Queue.Settle(nil, []queue.Delivery{b}, queue.Rejected)
		_ = a
		h.Reopen()
		if n, _ := h.Queue.Purge(); n != 3 {
			h.T.Errorf("purged %d, want 3", n)
		}
		wantRecords(h, 1)
		h.Reopen()
		h.Queue.Touch()
		f.sent()
		f.answer()
		wantRecords(h, 0)
	})
}

// A dead letter of before a restart stays dead if its target has it while the
// block is read that its record is in.
func TestConfirmedWhileABlockIsRead(t *testing.T) {
	confirming(t, atLeastOnce(), func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a", "b", "c")
		reject(h, 1)
		h.Reopen()
		h.Queue.Touch() // a is sent again
		open := h.Store.HoldLoads()
		c := queuetest.NewConsumer()
		go func() {
			if err := h.Queue.Subscribe(c.Sub); err != nil {
				h.T.Errorf("Subscribe() = %v", err)
			}
		}()
		synctest.Wait()
		f.answer()
		open()
		synctest.Wait()
		queuetest.Equal(h.T, "delivered", c.Bodies(), []string{"b", "c"})
		h.WantCounts(0, 2)
		if n := h.Queue.(*Queue).m.lanes[normal].away.count; n != 0 {
			h.T.Errorf("%d messages are away, want 0", n)
		}
	})
}

// What is dead counts against the limit, so that a full target stops publishers.
func TestTheDeadMakeTheQueueFull(t *testing.T) {
	a := atLeastOnce()
	a.MaxLength = 2
	confirming(t, a, func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("1", "2", "3")
		reject(h, 3)
		if got := refusedOf(h, "4"); got != "4" {
			h.T.Errorf("refused %q, want 4", got)
		}
		f.answer()
		if got := refusedOf(h, "5"); got != "" {
			h.T.Errorf("refused %q, want none", got)
		}
	})
}

func TestAtMostOnceWithoutRejectPublish(t *testing.T) {
	a := atLeastOnce()
	a.Overflow = queue.DropHead
	confirming(t, a, func(h *queuetest.Harness, f *fakeTarget) {
		h.Publish("a")
		f.refuse("a", true)
		reject(h, 1)
		wantSent(h, f, "a rejected")
		f.answer()
		wantRecords(h, 0)
	})
}

func TestStrategyByPolicy(t *testing.T) {
	a := queue.NewArguments()
	a.DeadLetter = deadLetters
	confirming(t, a, func(h *queuetest.Harness, f *fakeTarget) {
		h.Queue.SetPolicy(policy(queue.Definition{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}))
		h.Publish("a", "b")
		f.refuse("a", true)
		reject(h, 1)
		wantSent(h, f, "a rejected")
		f.answer()
		h.Queue.SetPolicy(queue.Merge(nil, nil)) // from now on at most once
		pass(repostAfter)
		wantSent(h, f, "a rejected")
		wantRecords(h, 2) // the target has it, but not on disk
		f.answer()
		wantRecords(h, 1) // refused again, and forgotten
	})
}

// Targets may answer while this queue's own lock is held, or be this queue.
func TestConfirmedToItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *queuetest.Harness
		rounds := 0
		h = newSpecHarness(t, atLeastOnce(), func(from queue.Queue, _ queue.Target, _ queue.Reason, dead []*message.Message, r *message.Receipt) {
			batch := make([]queue.Entry, len(dead))
			for i, m := range dead {
				batch[i] = queue.Entry{Msg: m, Receipt: r, Seq: uint64(i + 1)}
			}
			rounds++
			r.Hold(1)
			from.Enqueue(batch)
		})
		h.Publish("a", "b")
		for range 50 {
			reject(h, 2)
			synctest.Wait()
		}
		h.WantDrain("a", "b")
		if n := logOf(h).Len(); n != 0 || rounds != 50 {
			t.Errorf("%d records and %d rounds, want 0 and 50", n, rounds)
		}
	})
}

func TestManyDead(t *testing.T) {
	confirming(t, atLeastOnce(), func(h *queuetest.Harness, f *fakeTarget) {
		for i := range 1000 {
			h.Publish(fmt.Sprint(i))
		}
		reject(h, 1000)
		h.Reopen()
		h.Queue.Touch()
		f.answer()
		if n := logOf(h).Len(); n != 0 {
			h.T.Errorf("%d records are left", n)
		}
	})
}
