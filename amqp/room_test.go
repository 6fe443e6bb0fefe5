package amqp

import (
	"testing"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/classic"
)

// TestDeliverTakesWhatItHasPromised: a consumer takes as much as it has said it has room
// for, once, whoever fills the outbox in between.
func TestDeliverTakesWhatItHasPromised(t *testing.T) {
	const size = 100 << 10 // ten fit, and the eleventh fills it
	ch, c, _ := newTestChannel(true)
	out := ch.conn.out
	fill := func() {
		other := &consumer{ch: ch, queue: &fakeQueue{}, sub: c.sub}
		for other.Deliver(testBatch(1, size)) == 1 {
		}
	}
	if room := c.Room(); room != outboxLimit {
		t.Errorf("an empty outbox has room for %d bytes, want %d", room, outboxLimit)
	}
	fill()
	if n := c.Deliver(testBatch(20, size)); n != 11 {
		t.Errorf("took %d messages of a batch after the outbox was filled, want the 11 that were promised", n)
	}
	if n := c.Deliver(testBatch(1, size)); n != 0 {
		t.Errorf("took %d messages more than was promised, want none", n)
	}
	if room := c.Room(); room != 0 {
		t.Errorf("a full outbox has room for %d bytes, want 0", room)
	}
	out.close(true)
	if room := c.Room(); room != 0 {
		t.Errorf("a closed outbox has room for %d bytes, want 0", room)
	}
}

// A hindered consumer does something in the middle of each of its deliveries, with its
// queue's lock held.
type hindered struct {
	*consumer
	meanwhile func()
}

func (h hindered) Deliver(batch []queue.Delivery) int {
	h.meanwhile()
	return h.consumer.Deliver(batch)
}

// TestRoomIsForAllWhoShareTheWindow: a queue takes places for a batch that the consumer
// does not take, for want of room in the outbox, and in that moment another queue finds
// the window full.
func TestRoomIsForAllWhoShareTheWindow(t *testing.T) {
	ch, other, _ := newTestChannel(true)
	ch.window.SetLimit(10)
	out := ch.conn.out
	for other.Deliver(testBatch(1, 100<<10)) == 1 {
	}
	out.starved = nil
	delete(ch.consumers, other.sub.Tag)
	a, qa := consumeClassic(t, ch, "a")
	b, qb := consumeClassic(t, ch, "b")
	a.sub.Consumer = hindered{a, func() { qb.Enqueue([]queue.Entry{{Msg: testBatch(1, 1)[0].Msg}}) }}
	for _, s := range []*consumer{a, b} {
		if err := s.queue.Subscribe(s.sub); err != nil {
			t.Fatal(err)
		}
	}
	batch := make([]queue.Entry, 10)
	for i := range batch {
		batch[i].Msg = testBatch(1, 1)[0].Msg
	}
	qa.Enqueue(batch)
	if _, err := qa.Purge(); err != nil {
		t.Fatal(err)
	}
	var p pending
	starved, _ := out.next(&p)
	ch.conn.resume(starved)
	if s := qb.Status(); s.Ready != 0 || s.Unacked != 1 {
		t.Errorf("%d ready and %d with the consumer that has the window for itself, want 0 and 1", s.Ready, s.Unacked)
	}
}

// consumeClassic is a consumer of the channel that is still to subscribe to its queue.
func consumeClassic(t *testing.T, ch *channel, name string) (*consumer, queue.Queue) {
	t.Helper()
	q, err := classic.New(queue.Env{Store: persistence.NewMemory()}, queue.Spec{VHost: "/", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	c := &consumer{ch: ch, queue: q}
	c.sub = &queue.Subscription{Consumer: c, Tag: name, Window: &ch.window}
	ch.consumers[name] = c
	return c, q
}
