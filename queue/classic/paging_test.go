package classic

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// A paged queue has a memory budget so small that everything that can be is
// paged out.
type paged struct {
	*queuetest.Harness
	spill  *queuetest.Store // of transient messages
	full   error            // why no log can be made there; nil if one can
	asked  int              // how often one was wanted
	spills []*queuetest.Log
}

func newPaged(t *testing.T, spec queue.Spec, spill bool) *paged {
	t.Helper()
	p := &paged{}
	env := queue.Env{Memory: queue.NewBudget(1)}
	if spill {
		p.spill = queuetest.NewStore()
		env.Spill = func() (persistence.Log, error) {
			if p.asked++; p.full != nil {
				return nil, p.full
			}
			log, err := p.spill.NewLog()
			p.spills = append(p.spills, log.(*queuetest.Log))
			return log, err
		}
	}
	p.Harness = queuetest.NewWith(t, New, spec, env)
	return p
}

// big is a body of 4 KiB that begins with the number.
func big(i int) string { return fmt.Sprintf("%05d", i) + strings.Repeat(".", 4091) }

// number is the beginning of such a body.
func number(body string) string { return body[:5] }

func (p *paged) fill(from, to int, make func(string) *message.Message) {
	for i := from; i < to; i++ {
		p.Send(make(big(i)))
	}
}

// wantNumbers drains the queue, which must hold these.
func (p *paged) wantNumbers(from, to int) {
	p.T.Helper()
	var got, want []string
	for _, b := range p.Drain() {
		got = append(got, number(b))
	}
	for i := from; i < to; i++ {
		want = append(want, fmt.Sprintf("%05d", i))
	}
	queuetest.Equal(p.T, "messages", got, want)
}

// wantInMemory checks that no more than a window and a little is in memory.
func (p *paged) wantInMemory(most int) {
	p.T.Helper()
	if n := p.Queue.Status().InMemory; n > most {
		p.T.Errorf("%d messages are in memory, want at most %d", n, most)
	}
}

// atMost is how many messages may stay in memory when others are paged out: as
// many as are not worth a split, and what the budget does not know of yet.
const atMost = (4*tightWindow + memoryStep) / 4096

func TestPagesOutStored(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 1000, queuetest.Persistent)
	p.WantCounts(1000, 0)
	p.wantInMemory(atMost)
	if used := p.Env.Memory.Used(); used > 8*tightWindow {
		t.Errorf("%d bytes count as used, want at most %d", used, 8*tightWindow)
	}
	p.wantNumbers(0, 1000)
	if used := p.Env.Memory.Used(); used != 0 {
		t.Errorf("%d bytes count as used by an empty queue", used)
	}
	if n := p.Store.Log(p.Queue.(*Queue).LogID()).Len(); n != 0 {
		t.Errorf("%d records are left in the log", n)
	}
}

func TestUncommittedStaysInMemory(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.Store.Hold()
	p.fill(0, 500, queuetest.Persistent)
	if n := p.Queue.Status().InMemory; n != 500 {
		t.Errorf("%d messages are in memory before the commit, want 500", n)
	}
	p.Store.Commit()
	p.fill(500, 501, queuetest.Persistent)
	p.wantInMemory(atMost)
	p.wantNumbers(0, 501)
}

func TestSpillsTransient(t *testing.T) {
	p := newPaged(t, queue.Spec{}, true)
	p.fill(0, 1000, queuetest.Message)
	p.WantCounts(1000, 0)
	p.wantInMemory(atMost)
	p.wantNumbers(0, 1000)
	if n := p.spills[0].Len(); n != 0 {
		t.Errorf("%d records are left in the spill log", n)
	}
	if err := p.Queue.Stop(); err != nil || !p.spills[0].Dropped() {
		t.Errorf("Stop() = %v, spill log dropped %t", err, p.spills[0].Dropped())
	}
}

// TestSpillingIsTold: publishers to a queue that has messages in its spill log
// give that store something to write.
func TestSpillingIsTold(t *testing.T) {
	p := newPaged(t, queue.Spec{Arguments: &queue.Arguments{MaxPriority: 2}}, true)
	if w := p.Send(queuetest.Message("a")); w != 0 {
		t.Errorf("the first message gives something to write: %b", w)
	}
	p.fill(0, 1000, queuetest.Message)
	if w := p.Send(queuetest.Message("b")); w != queue.ToSpill {
		t.Errorf("a queue that spills gives something to write: %b, want %b", w, queue.ToSpill)
	}
	p.Drain()
	if w := p.Send(queuetest.Message("c")); w != 0 {
		t.Errorf("a queue that has spilled gives something to write: %b", w)
	}
}

func TestNothingIsSpilledIntoAFailedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaged(t, queue.Spec{}, true)
		p.fill(0, 500, queuetest.Message)
		p.wantInMemory(atMost)
		p.spill.FailAppends(true)
		p.fill(500, 1000, queuetest.Message)
		if n := p.Queue.Status().InMemory; n < 500 {
			t.Errorf("%d messages are in memory, want all that were published to a failed store, 500", n)
		}
		p.spill.FailAppends(false)
		time.Sleep(spillAgain)
		p.fill(1000, 1100, queuetest.Message)
		p.wantInMemory(atMost)
		p.wantNumbers(0, 1100)
		p.WantCounts(0, 0)
	})
}

func TestSpillIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaged(t, queue.Spec{}, true)
		p.full = errors.New("too many open files")
		p.fill(0, 300, queuetest.Message)
		p.full = nil
		time.Sleep(spillAgain - time.Millisecond)
		p.fill(300, 310, queuetest.Message)
		if n := p.Queue.Status().InMemory; n != 310 || p.asked != 1 {
			t.Errorf("%d messages are in memory and a log was wanted %d times, want 310 and once", n, p.asked)
		}
		time.Sleep(time.Millisecond)
		p.fill(310, 320, queuetest.Message)
		p.wantInMemory(atMost)
		p.wantNumbers(0, 320)
	})
}

func TestTransientStaysWithoutSpill(t *testing.T) {
	p := newPaged(t, queue.Spec{}, false)
	p.fill(0, 300, queuetest.Message)
	if n := p.Queue.Status().InMemory; n != 300 {
		t.Errorf("%d messages are in memory, want 300", n)
	}
	p.wantNumbers(0, 300)
}

func TestPagesOutMixed(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, true)
	for i := range 1000 {
		make := queuetest.Message
		if i%3 == 0 {
			make = queuetest.Persistent
		}
		p.fill(i, i+1, make)
	}
	p.wantInMemory(atMost)
	for i := range 1000 {
		d := p.Get()
		if got, want := number(string(d.Msg.Body)), fmt.Sprintf("%05d", i); got != want || d.Stored != (i%3 == 0) {
			t.Fatalf("message %s, stored %t, want %s", got, d.Stored, want)
		}
		p.Queue.Settle(nil, []queue.Delivery{d}, queue.Accepted)
	}
	p.WantCounts(0, 0)
}

func TestPagedConsumer(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 1000, queuetest.Persistent)
	c := p.Consume(func(s *queue.Subscription) { s.Prefetch = 100 })
	var got []string
	for len(got) < 1000 {
		held := c.Held()
		if len(held) == 0 {
			t.Fatalf("nothing more was delivered after %d messages", len(got))
		}
		for _, b := range c.Bodies() {
			got = append(got, number(b))
		}
		p.Queue.Settle(c.Sub, held, queue.Accepted)
	}
	for i, n := range got {
		if n != fmt.Sprintf("%05d", i) {
			t.Fatalf("message %d is number %s", i, n)
		}
	}
	p.WantCounts(0, 0)
}

// A slowLog reads nothing until its gate is closed.
type slowLog struct {
	persistence.Log
	asked atomic.Int64
	gate  chan struct{}
}

func (l *slowLog) Load(lane persistence.Lane, from uint64, dst []persistence.Record, maxBytes int) ([]persistence.Record, error) {
	l.asked.Add(1)
	<-l.gate
	return l.Log.Load(lane, from, dst, maxBytes)
}

// A client that settles one message while others are in memory does not wait for
// the block after those. If it did, this would be a deadlock.
func TestSettleDoesNotWaitForTheNextBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaged(t, queue.Spec{Durable: true}, false)
		p.fill(0, 500, queuetest.Persistent)
		c := p.Consume(func(s *queue.Subscription) { s.Prefetch = 1 })
		q := p.Queue.(*Queue)
		log := &slowLog{Log: q.log, gate: make(chan struct{})}
		q.mu.Lock()
		q.log = log
		q.mu.Unlock()
		for log.asked.Load() == 0 {
			held := c.Held()
			c.Bodies()
			q.Settle(c.Sub, held, queue.Accepted)
			synctest.Wait()
		}
		before := q.Status().InMemory
		if before == 0 {
			t.Error("the block was read when nothing else was in memory")
		}
		close(log.gate)
		synctest.Wait()
		if after := q.Status().InMemory; after <= before {
			t.Errorf("%d messages are in memory after the read, %d before", after, before)
		}
	})
}

func TestRestartWithBacklog(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 400, queuetest.Persistent)
	for range 10 {
		p.Get()
	}
	p.Reopen()
	p.WantCounts(400, 0)
	if n := p.Queue.Status().InMemory; n != 0 {
		t.Errorf("%d messages were read before anybody needed one", n)
	}
	if b := p.Queue.Status().ReadyBytes; b != 400*4096 {
		t.Errorf("%d bytes ready, want %d", b, 400*4096)
	}
	p.fill(400, 410, queuetest.Persistent)
	for i := range 12 {
		if d := p.Get(); d.Redelivered != (i < 10) {
			t.Errorf("message %d: redelivered %t", i, d.Redelivered)
		}
	}
	p.wantNumbers(12, 410)
	if b := p.Queue.Status().ReadyBytes; b != 0 {
		t.Errorf("%d bytes ready in an empty queue", b)
	}
}

func TestRestartWithPriorities(t *testing.T) {
	a := queue.NewArguments()
	a.MaxPriority = 3
	p := newPaged(t, queue.Spec{Durable: true, Arguments: &a}, false)
	for i := range 400 {
		p.Send(queuetest.Priority(big(i), byte(i%4)))
	}
	p.wantInMemory(4 * atMost)
	p.Reopen()
	for i := range 400 {
		d := p.Get()
		want := 4*(i%100) + 3 - i/100
		if got := number(string(d.Msg.Body)); got != fmt.Sprintf("%05d", want) {
			t.Fatalf("message %d is number %s, want %d", i, got, want)
		}
	}
}

func TestPurgeOfPaged(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, true)
	p.fill(0, 500, queuetest.Persistent)
	p.fill(500, 1000, queuetest.Message)
	d := p.Get()
	p.WantCounts(999, 1)
	if n, err := p.Queue.Purge(); n != 999 || err != nil {
		t.Errorf("Purge() = %d, %v, want 999", n, err)
	}
	if n := p.Store.Log(p.Queue.(*Queue).LogID()).Len(); n != 1 {
		t.Errorf("%d records are in the log, want the unacknowledged one", n)
	}
	if n := p.spills[0].Len(); n != 0 {
		t.Errorf("%d records are in the spill log", n)
	}
	p.Queue.Settle(nil, []queue.Delivery{d}, queue.Requeued)
	p.fill(1000, 1001, queuetest.Persistent)
	p.WantCounts(2, 0)
	queuetest.Equal(t, "first", []string{number(string(p.Get().Msg.Body))}, []string{"00000"})
	p.wantNumbers(1000, 1001)
}

// A purge, requeues and publishes may come while a block is being read.
func TestPurgeDuringLoad(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 500, queuetest.Persistent)
	q := p.Queue.(*Queue)
	first := p.Get()
	q.mu.Lock()
	ld := q.beginLoadLocked()
	q.mu.Unlock()
	b, err := q.read(&ld)
	if err != nil || b.items.n == 0 {
		t.Fatalf("read() = %d items, %v", b.items.n, err)
	}
	q.Settle(nil, []queue.Delivery{first}, queue.Requeued)
	purge(t, q)
	p.fill(1000, 1003, queuetest.Persistent)
	q.mu.Lock()
	err = q.endLoadLocked(&ld, b, nil)
	q.unlock()
	if err != nil {
		t.Fatal(err)
	}
	p.wantNumbers(1000, 1003)
}

func TestRequeueDuringLoad(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 500, queuetest.Persistent)
	q := p.Queue.(*Queue)
	first := p.Get()
	q.mu.Lock()
	ld := q.beginLoadLocked()
	q.mu.Unlock()
	b, err := q.read(&ld)
	q.Settle(nil, []queue.Delivery{first}, queue.Requeued)
	p.fill(500, 600, queuetest.Persistent)
	q.mu.Lock()
	err = errors.Join(err, q.endLoadLocked(&ld, b, nil))
	q.unlock()
	if err != nil {
		t.Fatal(err)
	}
	p.wantNumbers(0, 600)
}

func TestTrimsPaged(t *testing.T) {
	a := queue.NewArguments()
	a.DeadLetter = deadLetter
	p := newPaged(t, queue.Spec{Durable: true, Arguments: &a}, false)
	p.fill(0, 1000, queuetest.Persistent)
	p.Queue.SetPolicy(queue.Merge(&queue.NamedDefinition{Name: "p", Definition: queue.Definition{"max-length": 3.0}}, nil))
	p.WantCounts(3, 0)
	dead := p.Dead()
	if len(dead) != 997 || number(dead[0]) != "00000" || number(dead[996]) != "00996" {
		t.Errorf("%d dead letters", len(dead))
	}
	p.wantNumbers(997, 1000)
}

func TestExpiresPaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaged(t, queue.Spec{Durable: true, Arguments: &queue.Arguments{MessageTTL: 1000}}, false)
		p.fill(0, 1000, queuetest.Persistent)
		pass(999 * time.Millisecond)
		p.WantCounts(1000, 0)
		pass(time.Millisecond)
		p.WantCounts(0, 0)
	})
}

func TestFailedReadIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPaged(t, queue.Spec{Durable: true}, false)
		p.fill(0, 300, queuetest.Persistent)
		p.Reopen()
		broken := errors.New("broken disk")
		p.Store.FailLoads(broken)
		c := p.Consume(func(s *queue.Subscription) { s.NoAck = true })
		if _, _, ok, err := p.Queue.Get(false); ok || !errors.Is(err, broken) {
			t.Errorf("Get() = ok %t, error %v, want the store's", ok, err)
		}
		pass(10 * time.Second)
		queuetest.Equal(t, "delivered", c.Bodies(), nil)
		p.Store.FailLoads(nil)
		pass(retryAfter)
		if n := len(c.Bodies()); n != 300 {
			t.Errorf("%d messages were delivered when the store worked again, want 300", n)
		}
	})
}

// A store may lose a damaged block: the rest goes on, and the counts are right.
func TestMissingRecords(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 400, queuetest.Persistent)
	p.Reopen()
	log := p.Store.Log(p.Queue.(*Queue).LogID())
	log.SettleRange(0, 51, 150)  // behind the queue's back
	log.SettleRange(0, 391, 400) // the end, too
	var got []string
	for _, b := range p.Drain() {
		got = append(got, number(b))
	}
	if len(got) != 290 || got[50] != "00150" || got[289] != "00389" {
		t.Errorf("%d messages were left, want 290", len(got))
	}
	p.WantCounts(0, 0)
	p.fill(400, 403, queuetest.Persistent)
	p.wantNumbers(400, 403)
}

func TestPagingBytesPerMessage(t *testing.T) {
	p := newPaged(t, queue.Spec{Durable: true}, false)
	p.fill(0, 2000, queuetest.Persistent)
	l := &p.Queue.(*Queue).lanes[0]
	if n := l.head.n + l.tail.n + len(l.back); n > atMost {
		t.Errorf("%d messages have a place in memory, want at most %d", n, atMost)
	}
}
