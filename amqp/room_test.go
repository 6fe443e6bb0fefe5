package amqp

import "testing"

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
