package quorum

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
	"github.com/leveretmq/leveret/queue/retry"
)

func TestRetryContract(t *testing.T) { queuetest.RunRetry(t, New) }

func TestBrokenReadIsLogged(t *testing.T) { queuetest.RunBrokenRead(t, New) }

func TestRetryOnDisk(t *testing.T) { queuetest.RunRetryOnDisk(t, New) }

func TestRetryAgainstModel(t *testing.T) { queuetest.RunRetryRandom(t, New, 20, false) }

func TestRetryAgainstModelWhilePaging(t *testing.T) { queuetest.RunRetryRandom(t, New, 6, true) }

func TestMachineWakesInOrderOfTime(t *testing.T) {
	d := driver{m: newMachine()}
	d.publish(text("a", 0, -1), text("b", 0, -1), text("c", 0, 500), text("d", 0, -1))
	_, ids := d.take(4)
	d.do(command{op: opRequeue, time: 1000, ids: ids, dues: []int64{3000, 2000, 9000, 0}}) // c expires at 1500
	for _, tt := range []struct {
		now  int64
		want string
	}{{1499, "d"}, {1500, ""}, {1999, ""}, {2000, "b"}, {5000, "a"}} {
		d.do(command{op: opWake, time: tt.now, count: 9})
		if got, _ := d.take(9); got != tt.want {
			t.Errorf("at %d: %q is ready, want %q", tt.now, got, tt.want)
		}
	}
	if d.m.delay.n != 0 || d.m.delay.bytes != 0 || d.m.out != 3 {
		t.Errorf("%d of %d bytes wait, %d are out, want none and 3", d.m.delay.n, d.m.delay.bytes, d.m.out)
	}
}

// What waits may be away: the same state, and a wake stops before it.
func TestMachineDelayedAway(t *testing.T) {
	d, shadow := driver{m: newMachine()}, driver{m: newMachine()}
	for _, d := range []*driver{&d, &shadow} {
		d.publish(text("a", 0, -1), text("b", 0, -1), text("c", 0, -1))
		_, ids := d.take(3)
		d.do(command{op: opRequeue, time: 1000, ids: ids, dues: []int64{3000, 2000, 4000}})
	}
	msgs := map[queue.ID]arrival{}
	for id, s := range d.m.table.all() {
		msgs[id] = arrival{id: id, msg: s.msg, count: s.count}
	}
	d.m.evictDelayed(2, 1<<20)
	again, err := restore(d.m.snapshot(nil))
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "restored with two away", again, d.m)
	if d.do(command{op: opWake, time: 5000, count: 9}); d.m.ready != 0 {
		t.Errorf("%d are ready, want none before b is back", d.m.ready)
	}
	ids := d.m.awayDelayed(9)
	queuetest.Equal(t, "away", ids, []queue.ID{2, 1})
	d.m.admitDelayed([]arrival{msgs[2], msgs[1]})
	wantSame(t, "with all back", d.m, shadow.m)
	d.m.evictDelayed(1, 1<<20)
	d.m.missDelayed(map[queue.ID]bool{1: true}, 1)
	d.do(command{op: opWake, time: 5000, count: 9})
	if got, _ := d.take(9); got != "b c" || d.m.delay.n != 0 || d.m.delay.bytes != 0 || d.m.delay.awayBytes != 0 {
		t.Errorf("delivered %q, then %+v waits, want b c and nothing", got, d.m.delay)
	}
}

// What a log says of sizes is an estimate: its error goes with the last message
// that is away, also if those behind that one wait.
func TestMachineEstimateEnds(t *testing.T) {
	m := newMachine()
	m.take(normal, persistence.LaneInfo{First: 1, Last: 3, Count: 3, Bytes: 300})
	m.setApart(retry.Note{ID: 3, Due: 1000, Size: 10})
	m.admit(normal, []arrival{{id: 1, msg: text("a", 0, -1)}, {id: 2, msg: text("bb", 0, -1)}}, 2)
	if m.ready != 2 || m.readyBytes != 3 || m.absent() != 0 || m.delay.bytes != 10 {
		t.Errorf("%d ready of %d bytes, %d away, %d bytes wait, want 2, 3, 0, 10", m.ready, m.readyBytes, m.absent(), m.delay.bytes)
	}
}

// Messages that wait are dropped from memory, and read when they are due.
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
		q := h.Queue.(*Queue)
		q.PageOut()
		q.mu.Lock()
		away, memory := q.m.delay.away, q.m.memory
		q.mu.Unlock()
		if away != n || memory != 0 {
			t.Errorf("%d of %d are away, %d bytes are in memory", away, n, memory)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		h.WantCounts(n, 0)
		for i := range n {
			if d := h.Get(); string(d.Msg.Body) != fmt.Sprint(i, filler) || d.Count != 1 {
				t.Fatalf("message %d is %.10s, count %d", i, d.Msg.Body, d.Count)
			}
		}
	})
}
