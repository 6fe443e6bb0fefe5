package stream

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
)

// named makes a tracked reader.
func named(h *queuetest.Harness, tag string, more ...frames.Field) *queuetest.Consumer {
	h.T.Helper()
	return h.Consume(func(s *queue.Subscription) {
		s.Tag, s.Prefetch = tag, 100
		s.Arguments = append(frames.Table{{Name: trackingArgument, Value: true}}, more...)
	})
}

var first = frames.Field{Name: "x-stream-offset", Value: "first"}

func wantPlaces(h *queuetest.Harness, want map[string]uint64) {
	h.T.Helper()
	if got := h.Queue.(*Queue).Places(); !maps.Equal(got, want) {
		h.T.Errorf("places %v, want %v", got, want)
	}
}

func TestANamedConsumerGoesOn(t *testing.T) {
	h := newStream(t)
	publish(h, numbers(0, 10)...)
	c := named(h, "worker", first)
	queuetest.Equal(t, "at first", c.Bodies(), numbers(0, 10))
	h.Queue.Settle(c.Sub, c.Held()[:4], queue.Accepted)
	h.Queue.Cancel(c.Sub)
	wantPlaces(h, map[string]uint64{"worker": 4})
	again := named(h, "worker", first)
	queuetest.Equal(t, "the second time", again.Bodies(), numbers(4, 10))
	other := named(h, "other")
	queuetest.Equal(t, "another", other.Bodies(), nil)
	h.Queue.Settle(again.Sub, again.Held()[:1], queue.Rejected)
	h.Reopen()
	wantPlaces(h, map[string]uint64{"worker": 5, "other": 10})
	queuetest.Equal(t, "after a restart", named(h, "worker").Bodies(), numbers(5, 10))
	publish(h, "10")
	h.Reopen()
	queuetest.Equal(t, "what came meanwhile", named(h, "other").Bodies(), numbers(10, 11))
}

// One that was not there yet is still to begin at its offset when it comes back.
func TestANamedConsumerWaitsForItsOffset(t *testing.T) {
	h := newStream(t)
	publish(h, numbers(0, 3)...)
	fifth := frames.Field{Name: "x-stream-offset", Value: int64(5)}
	h.Queue.Cancel(named(h, "worker", fifth).Sub)
	wantPlaces(h, map[string]uint64{})
	c := named(h, "worker", fifth)
	publish(h, numbers(3, 7)...)
	queuetest.Equal(t, "from its offset", c.Bodies(), numbers(5, 7))
}

// However many deliveries are out and in whatever order they are done, the place is
// the first that is not.
func TestProgressIsTheFirstThatIsNotDone(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	p := &progress{}
	next := uint64(0)
	var out []uint64 // ascending
	for turn := range 2000 {
		for range rnd.IntN(8) {
			p.deliver([]queue.Delivery{{ID: queue.ID(next + 1)}})
			out = append(out, next)
			next += 1 + rnd.Uint64N(3)
		}
		var ds []queue.Delivery
		for range min(rnd.IntN(8), len(out)) {
			i := rnd.IntN(len(out))
			if turn%2 == 0 {
				i = 0
			}
			ds = append(ds, queue.Delivery{ID: queue.ID(out[i] + 1)})
			out = slices.Delete(out, i, i+1)
		}
		p.settle(ds)
		want := next
		if len(out) > 0 {
			want = out[0]
		}
		if got := (&reader{progress: p, next: next}).at(); got != want {
			t.Fatalf("turn %d: %d is the first that is not done, want %d", turn, got, want)
		}
	}
}

// A delivery that is never done keeps its place and nothing else: what is done after it
// is forgotten.
func TestProgressBehindAnOpenDeliveryIsForgotten(t *testing.T) {
	h := newStream(t)
	publish(h, "given back")
	c := named(h, "worker", first)
	h.Queue.Settle(c.Sub, c.Held(), queue.Requeued)
	for range 1000 {
		publish(h, "m")
		h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	}
	r := readerOf(c.Sub)
	if n := len(r.progress.open); n > 2 {
		t.Errorf("%d offsets are kept for one that is not done", n)
	}
	h.Queue.Cancel(c.Sub)
	wantPlaces(h, map[string]uint64{"worker": 0})
}

func TestOnlyNamedConsumersThatAskAreTracked(t *testing.T) {
	h := newStream(t)
	publish(h, "0")
	for _, set := range []func(s *queue.Subscription){
		func(s *queue.Subscription) { s.Arguments = frames.Table{{Name: trackingArgument, Value: false}} },
		func(s *queue.Subscription) { s.Arguments = frames.Table{{Name: trackingArgument, Value: "true"}} },
		func(s *queue.Subscription) { s.Tag = "amq.ctag-1234" },
		func(s *queue.Subscription) { s.Tag = "" },
	} {
		c := h.Consume(func(s *queue.Subscription) {
			s.Tag, s.Prefetch, s.Arguments = "name", 10, frames.Table{{Name: trackingArgument, Value: true}, first}
			set(s)
		})
		h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
		h.Queue.Cancel(c.Sub)
	}
	wantPlaces(h, map[string]uint64{})
}

// The place is the first message that is not done, whatever is done after it.
func TestPlaceIsTheFirstThatIsNotDone(t *testing.T) {
	h := newStream(t)
	publish(h, numbers(0, 6)...)
	c := named(h, "worker", first)
	held := c.Held()
	h.Queue.Cancel(c.Sub)
	for _, tt := range []struct {
		settle []queue.Delivery
		how    queue.Outcome
		want   uint64
	}{
		{held[1:3], queue.Accepted, 0},
		{held[0:1], queue.Accepted, 3},
		{held[4:5], queue.Accepted, 3},
		{held[3:4], queue.Requeued, 3},
		{held[3:4], queue.Rejected, 5},
		{held[5:6], queue.Returned, 5},
	} {
		h.Queue.Settle(c.Sub, tt.settle, tt.how)
		wantPlaces(h, map[string]uint64{"worker": tt.want})
	}
}

func TestPlacesAreSavedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t)
		log := h.Store.Log(h.Queue.(*Queue).tracker.log.ID())
		c := named(h, "worker")
		for range 10 {
			for range 5 {
				publish(h, "m")
				h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
			}
			time.Sleep(saveEvery)
			synctest.Wait()
		}
		if n := log.Written(); n != 10 {
			t.Errorf("%d records for 50 acks in 10 seconds, want 10", n)
		}
		if n := log.Len(); n != 1 {
			t.Errorf("%d live records of one consumer", n)
		}
		batch := makeBatch(saveAfter, 1, false)
		c.Sub.Prefetch = len(batch)
		h.Queue.Enqueue(batch)
		h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
		wantPlaces(h, map[string]uint64{"worker": 50 + saveAfter})
	})
}

// A consumer that has nothing left to do is not behind in the log for good.
func TestPlaceOfIdleConsumerIsSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newStream(t)
		busy, idle := named(h, "busy"), named(h, "idle")
		publish(h, numbers(0, 5)...)
		h.Queue.Settle(busy.Sub, busy.Held(), queue.Accepted)
		h.Queue.Settle(idle.Sub, idle.Held()[:3], queue.Accepted)
		wantPlaces(h, map[string]uint64{})
		time.Sleep(saveEvery)
		synctest.Wait()
		wantPlaces(h, map[string]uint64{"busy": 5, "idle": 3})
		publish(h, "5")
		h.Queue.Settle(busy.Sub, busy.Held(), queue.Accepted)
		time.Sleep(saveEvery)
		synctest.Wait()
		wantPlaces(h, map[string]uint64{"busy": 6, "idle": 3})
	})
}

func TestManyForgottenPlacesAreDropped(t *testing.T) {
	h := newStream(t, segmentsOf3)
	for i := range manyPlaces {
		c := named(h, fmt.Sprint("tag ", i), first)
		h.Queue.Cancel(c.Sub)
	}
	kilo(h, 4)
	late := named(h, "late")
	h.Queue.Cancel(late.Sub)
	h.Queue.SetPolicy(policy(queue.Definition{"max-length-bytes": 1}))
	wantPlaces(h, map[string]uint64{"late": 4})
}

// A client that makes a new tag for each run leaves a place every time.
func TestPlacesSavedLongestAgoAreForgotten(t *testing.T) {
	h := newStream(t)
	log := h.Store.Log(h.Queue.(*Queue).tracker.log.ID())
	tag := func(i int) string { return fmt.Sprint("run ", i) }
	leave := func(i int) { h.Queue.Cancel(named(h, tag(i), first).Sub) }
	for i := range maxPlaces {
		leave(i)
	}
	publish(h, "0")
	c := named(h, tag(0))
	h.Queue.Settle(c.Sub, c.Held(), queue.Accepted)
	h.Queue.Cancel(c.Sub)
	leave(maxPlaces)
	places := h.Queue.(*Queue).Places()
	_, again := places[tag(0)]
	_, oldest := places[tag(1)]
	_, newest := places[tag(maxPlaces)]
	if n := len(places); n > maxPlaces || n < maxPlaces*8/10 || !again || oldest || !newest {
		t.Errorf("%d places; of who came again: %t, the oldest: %t, the newest: %t, want at most %d, true, false, true", n, again, oldest, newest, maxPlaces)
	}
	if n := log.Len(); n != len(places) {
		t.Errorf("%d live records of %d places", n, len(places))
	}
}

func TestDeleteDropsThePlaces(t *testing.T) {
	h := newStream(t)
	log := h.Store.Log(h.Queue.(*Queue).tracker.log.ID())
	if _, err := h.Queue.Delete(queue.Condition{}); err != nil || !log.Dropped() {
		t.Errorf("Delete() = %v, the places' log was dropped: %t", err, log.Dropped())
	}
}

func TestPlacesOfAnEmptyStream(t *testing.T) {
	d := newDisk(t)
	worker := func() *queuetest.Consumer {
		c := queuetest.NewConsumer()
		c.Sub.Tag, c.Sub.Prefetch = "worker", 5
		c.Sub.Arguments = frames.Table{{Name: trackingArgument, Value: true}}
		if err := d.Subscribe(c.Sub); err != nil {
			t.Fatal(err)
		}
		return c
	}
	d.Cancel(worker().Sub)
	d.restart()
	commit(d.Queue, makeBatch(3, 10, false))
	if n := len(worker().Held()); n != 3 {
		t.Errorf("a consumer that comes back gets %d of 3 messages that came meanwhile", n)
	}
}

func TestPlacesOnDisk(t *testing.T) {
	d := newDisk(t)
	commit(d.Queue, makeBatch(100, 10, false))
	for i := range 10 {
		c := queuetest.NewConsumer()
		c.Sub.Tag, c.Sub.Prefetch = "worker", 5
		c.Sub.Arguments = frames.Table{{Name: trackingArgument, Value: true}, first}
		if err := d.Subscribe(c.Sub); err != nil {
			t.Fatal(err)
		}
		held := c.Held()
		if got := offsetOf(t, held[0].Msg); got != int64(5*i) {
			t.Fatalf("begins at %d the %dth time, want %d", got, i, 5*i)
		}
		d.Settle(c.Sub, held, queue.Accepted)
		d.restart()
	}
}
