//go:build !race

// The race detector makes sync.Pool forget, so budgets are checked without it.

package amqp

import (
	"testing"

	"github.com/leveretmq/leveret/queue"
)

func TestDeliverAndSettleDoNotAllocate(t *testing.T) {
	ch, c, q := newTestChannel(false)
	batch := testBatch(64, 100)
	var out pending
	round := func() {
		if err := deliverAndSend(c, batch, &out); err != nil {
			t.Fatal(err)
		}
		if err := ch.settleTags(ch.unacked.next-1, true, queue.Accepted); err != nil {
			t.Fatal(err)
		}
	}
	round()
	round()
	if got := testing.AllocsPerRun(200, round); got != 0 {
		t.Errorf("delivering and settling 64 messages: %v allocations, want 0", got)
	}
	if q.settled != 203*64 {
		t.Errorf("settled %d messages, want %d", q.settled, 203*64)
	}
}
