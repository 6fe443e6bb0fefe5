package stream

import (
	"testing"
	"testing/synctest"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// An offset that somebody has seen names the same message after a crash, as nobody
// sees one before the message is on disk.
func TestReadersGetWhatIsOnDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t)
		publish(h, "0")
		h.Store.Hold()
		waiting := from(h, nil)
		publish(h, "1")
		h.Send(queuetest.Message("2"), queuetest.Message("3"))
		readers := map[string]*queuetest.Consumer{
			"the one that waited": waiting, "one from the first": from(h, "first"), "one from the last": from(h, "last"),
			"one from the next": from(h, "next"), "one from an offset": from(h, int64(1)), "one from a time": from(h, "1h"),
		}
		before := map[string][]string{"one from the first": {"0"}, "one from the last": {"0"}, "one from a time": {"0"}}
		for who, c := range readers {
			queuetest.Equal(t, who+", before the commit", c.Bodies(), before[who])
			h.Queue.Resume(c.Sub)
			h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
			queuetest.Equal(t, who+", with room and credit", c.Bodies(), nil)
		}
		loads := h.Store.Loads()
		h.Store.Commit()
		synctest.Wait()
		for who, c := range readers {
			queuetest.Equal(t, who+", after the commit", c.Bodies(), numbers(1, 4))
		}
		if n := h.Store.Loads() - loads; n > 0 {
			t.Errorf("read %d times what was published while readers waited", n)
		}
	})
}

// What waits for its commit stays in memory, however much it is.
func TestUncommittedMessagesAreNotReadBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t)
		c := &counter{}
		subscribe(t, h.Queue.(*Queue), c, "next", 1<<40)
		h.Store.Hold()
		for range 100 {
			h.Queue.Enqueue(makeBatch(100, 1000, false))
		}
		h.Store.Commit()
		synctest.Wait()
		if n := h.Store.Loads(); c.n != 10_000 || n > 0 {
			t.Errorf("%d messages were delivered and %d blocks read, want 10000 and none", c.n, n)
		}
		if st := h.Queue.Status(); st.InMemory > 1500 {
			t.Errorf("%d messages are in memory once they were delivered", st.InMemory)
		}
	})
}

func TestWhatTheStoreDoesNotTakeIsNotDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t)
		c := from(h, nil)
		h.Store.FailAppends(true)
		confirm := h.SendConfirmed(queuetest.Message("0"))
		synctest.Wait()
		queuetest.Equal(t, "delivered", c.Bodies(), nil)
		if _, failed := confirm.Refused(); !failed || !confirm.Done() {
			t.Errorf("the publisher was told once: %t, of a failure: %t", confirm.Done(), failed)
		}
	})
}

// The place of a tracked consumer is not beyond what is on disk.
func TestATrackedConsumerBeginsWhereTheDiskEnds(t *testing.T) {
	h := newStream(t)
	publish(h, "0")
	h.Store.Hold()
	publish(h, "1")
	h.Queue.Cancel(named(h, "worker").Sub)
	wantPlaces(h, map[string]uint64{"worker": 1})
}
