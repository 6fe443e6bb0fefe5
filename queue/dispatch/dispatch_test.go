package dispatch

import (
	"math"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// fakeSource is a line of ids.
type fakeSource struct {
	line    []queue.ID
	expired int // how many are counted but not to be had
	back    int // how many were put back
}

func (f *fakeSource) Take(dst []queue.Delivery, s *queue.Subscription, n int) []queue.Delivery {
	n = min(n, len(f.line))
	for _, id := range f.line[:n] {
		dst = append(dst, queue.Delivery{ID: id, Sub: s, Msg: &message.Message{Envelope: &message.Envelope{}}})
	}
	f.line = f.line[n:]
	return dst
}
func (f *fakeSource) Ready() int                                  { return len(f.line) + f.expired }
func (f *fakeSource) Taken(*queue.Subscription, []queue.Delivery) {}
func (f *fakeSource) PutBack(ds []queue.Delivery) {
	f.back += len(ds)
	for _, d := range ds {
		f.line = append(f.line, d.ID)
	}
	slices.Sort(f.line)
}

func numbers(n int) *fakeSource {
	f := &fakeSource{}
	for i := range n {
		f.line = append(f.line, queue.ID(i+1))
	}
	return f
}

// fakeConsumer takes up to room deliveries.
type fakeConsumer struct {
	sub    *queue.Subscription
	room   int
	got    []queue.ID
	active []bool
}

func (c *fakeConsumer) Deliver(batch []queue.Delivery) int {
	n := min(c.room, len(batch))
	c.room -= n
	for _, d := range batch[:n] {
		c.got = append(c.got, d.ID)
	}
	return n
}
func (c *fakeConsumer) Cancelled(*queue.Subscription)            {}
func (c *fakeConsumer) Activated(_ *queue.Subscription, on bool) { c.active = append(c.active, on) }

func add(cs *Consumers, tag string, priority, prefetch int) *fakeConsumer {
	c := &fakeConsumer{room: 1000}
	c.sub = &queue.Subscription{Consumer: c, Tag: tag, Priority: priority, Prefetch: prefetch, Window: &queue.Window{}}
	cs.Add(c.sub)
	return c
}

func wantGot(t *testing.T, what string, c *fakeConsumer, want ...queue.ID) {
	t.Helper()
	if !slices.Equal(c.got, want) {
		t.Errorf("%s got %v, want %v", what, c.got, want)
	}
	c.got = nil
}

func TestDealsInTurn(t *testing.T) {
	var cs Consumers
	a, b, c := add(&cs, "a", 0, 0), add(&cs, "b", 0, 1), add(&cs, "c", 0, 0)
	cs.Deal(numbers(6))
	wantGot(t, "a", a, 1, 4, 6)
	wantGot(t, "b", b, 2)
	wantGot(t, "c", c, 3, 5)
}

// A fakeChannel notes what its consumers get.
type fakeChannel struct {
	fakeConsumer
	all *[]queue.ID
}

func (c *fakeChannel) Deliver(batch []queue.Delivery) int {
	for _, d := range batch {
		*c.all = append(*c.all, d.ID)
	}
	return c.fakeConsumer.Deliver(batch)
}

// A channel gets the messages of a queue in order, even if they are for several consumers.
func TestOrderOnAChannel(t *testing.T) {
	var cs Consumers
	var all []queue.ID
	var window queue.Window
	on := func(tag string) *fakeChannel {
		c := &fakeChannel{fakeConsumer: fakeConsumer{room: 1000}, all: &all}
		c.sub = &queue.Subscription{Consumer: c, Tag: tag, Window: &window}
		cs.Add(c.sub)
		return c
	}
	a, b, c := on("a"), add(&cs, "elsewhere", 0, 0), on("c")
	cs.Deal(numbers(8))
	if want := []queue.ID{1, 3, 4, 6, 7}; !slices.Equal(all, want) {
		t.Errorf("the channel got %v, want %v", all, want)
	}
	wantGot(t, "a", &a.fakeConsumer, 1, 4, 7)
	wantGot(t, "elsewhere", b, 2, 5, 8)
	wantGot(t, "c", &c.fakeConsumer, 3, 6)
	cs.Remove(a.sub)
	if *of(c.sub).mates != 1 || *of(b.sub).mates != 1 {
		t.Error("who is alone on its channel is not known for that")
	}
	cs.Remove(b.sub)
	cs.Remove(c.sub)
	d, e := on("d"), on("e")
	if *of(d.sub).mates != 2 || *of(e.sub).mates != 2 {
		t.Errorf("%d and %d consumers of one channel, want 2", *of(d.sub).mates, *of(e.sub).mates)
	}
}

func TestLowerPrioritiesGetTheRest(t *testing.T) {
	var cs Consumers
	low, high := add(&cs, "low", 0, 0), add(&cs, "high", 7, 2)
	cs.Deal(numbers(4))
	wantGot(t, "high", high, 1, 2)
	wantGot(t, "low", low, 3, 4)
	cs.Settled(high.sub, 1)
	cs.Deal(numbers(2))
	wantGot(t, "high", high, 1)
	wantGot(t, "low", low, 2)
}

// A priority is any integer that a client can send.
func TestTheLeastPriorityIsBelowAllOthers(t *testing.T) {
	for _, high := range []int{1, math.MaxInt} {
		var cs Consumers
		a, b := add(&cs, "least", math.MinInt, 0), add(&cs, "high", high, 0)
		cs.Deal(numbers(1))
		wantGot(t, "the one of the least priority", a)
		wantGot(t, "the other", b, 1)
	}
}

// What one consumer has no room for is for the next, at once.
func TestPutBackGoesToOthers(t *testing.T) {
	for _, priorities := range [][2]int{{5, 0}, {0, 0}} {
		var cs Consumers
		a, b := add(&cs, "a", priorities[0], 0), add(&cs, "b", priorities[1], 0)
		a.room = 1
		src := numbers(5)
		cs.Deal(src)
		if n := len(a.got) + len(b.got); n != 5 || len(a.got) != 1 || len(src.line) != 0 {
			t.Errorf("priorities %v: a got %v, b %v, left %v", priorities, a.got, b.got, src.line)
		}
		if cs.Eligible() != 1 || !cs.Resume(a.sub) || cs.Resume(a.sub) || cs.Eligible() != 2 {
			t.Errorf("%d eligible", cs.Eligible())
		}
	}
}

// measuredConsumer is a fakeConsumer that says before how much it will take.
type measuredConsumer struct{ *fakeConsumer }

func (c measuredConsumer) Room() int {
	return c.room * queue.Weight(&message.Message{Envelope: &message.Envelope{}})
}

// Who gets a message gets none later that came before it: what one consumer gives back
// is for those who have got nothing after it.
func TestPutBackKeepsTheOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(a, b *fakeConsumer)
	}{
		{"the first has little room", func(a, _ *fakeConsumer) { a.room = 2 }},
		{"the second has little room", func(_, b *fakeConsumer) { b.room = 2 }},
		{"the first has none", func(a, _ *fakeConsumer) { a.room = 0 }},
		{"the second has none", func(_, b *fakeConsumer) { b.room = 0 }},
		{"a small window", func(_, b *fakeConsumer) { b.sub.Window.SetLimit(2) }},
		{"a common window", func(a, b *fakeConsumer) {
			a.sub.Window.SetLimit(5)
			b.sub.Window = a.sub.Window
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var cs Consumers
			all := []*fakeConsumer{{room: 100}, {room: 100}}
			for _, c := range all {
				c.sub = &queue.Subscription{Consumer: measuredConsumer{c}, Window: &queue.Window{}}
			}
			tt.set(all[0], all[1])
			for _, c := range all {
				cs.Add(c.sub)
			}
			src := numbers(20)
			for range 20 {
				had := []int{len(all[0].got), len(all[1].got)}
				cs.Deal(src)
				for i, c := range all { // settles what it has, and has some room again
					c.sub.Window.Give(len(c.got) - had[i])
					cs.Settled(c.sub, len(c.got)-had[i])
					c.room = max(c.room, 2)
					cs.Resume(c.sub)
				}
			}
			a, b := all[0].got, all[1].got
			if !slices.IsSorted(a) || !slices.IsSorted(b) || len(a)+len(b) != 20 {
				t.Errorf("the first got %v, the second %v; want all 20, each in order", a, b)
			}
			if n := all[0].sub.Window.Room(); all[0].sub.Window.Limited() && n != 5 {
				t.Errorf("%d places of the common window are free, want all 5", n)
			}
		})
	}
}

func TestWindowPlaces(t *testing.T) {
	for _, n := range []int{1, 2, 3, 9} {
		var cs Consumers
		a, b := add(&cs, "a", 0, 0), add(&cs, "b", 0, 0)
		b.sub.Window = a.sub.Window
		a.sub.Window.SetLimit(3)
		cs.Deal(numbers(n))
		want := min(n, 3)
		if got := len(a.got) + len(b.got); got != want || a.sub.Window.Room() != 3-want {
			t.Errorf("of %d: %d delivered and %d places free, want %d and %d", n, got, a.sub.Window.Room(), want, 3-want)
		}
	}
}

// Turns that come to nothing cost no credit and no places, and are not lost.
func TestFewerThanReady(t *testing.T) {
	var cs Consumers
	a, b, c := add(&cs, "a", 0, 1), add(&cs, "b", 0, 1), add(&cs, "c", 0, 1)
	c.sub.Window.SetLimit(5)
	src := numbers(1)
	src.expired = 2
	cs.Deal(src)
	wantGot(t, "a", a, 1)
	if cs.Eligible() != 2 || c.sub.Window.Room() != 5 {
		t.Errorf("%d eligible and %d places free, want 2 and 5", cs.Eligible(), c.sub.Window.Room())
	}
	cs.Deal(numbers(1))
	wantGot(t, "b", b, 1)
	cs.Deal(numbers(1))
	wantGot(t, "c", c, 1)
}

func TestSole(t *testing.T) {
	var cs Consumers
	if cs.Sole() != nil {
		t.Error("one of none")
	}
	low, high := add(&cs, "low", 0, 0), add(&cs, "high", 1, 3)
	for _, room := range []int{3, 1} { // it has room for 2 in its outbox
		c := cs.Sole()
		if c == nil || c.Subscription() != high.sub {
			t.Fatal("the one of the highest priority was not found")
		}
		dst, n := c.Batch()
		if len(dst) != 0 || n != room {
			t.Errorf("batch of %d with room for %d, want 0 and %d", len(dst), n, room)
		}
		high.room = 2
		if took := cs.Offer(c, append(dst, numbers(3).Take(nil, high.sub, n)...), numbers(0)); took != min(room, 2) {
			t.Errorf("it took %d of %d", took, room)
		}
		cs.Resume(high.sub)
	}
	if c := cs.Sole(); c == nil || c.Subscription() != low.sub {
		t.Error("without credit for the highest it was not the next")
	}
	low.sub.Window.SetLimit(1)
	if _, room := cs.Sole().Batch(); room != 1 {
		t.Errorf("room for %d with one place in the window", room)
	}
	add(&cs, "like low", 0, 0)
	low.sub.Window.SetLimit(0)
	if cs.Sole() != nil {
		t.Error("one of two")
	}
}

// What Offer does not hand over is the caller's, and the consumer waits.
func TestOfferShort(t *testing.T) {
	var cs Consumers
	a := add(&cs, "a", 0, 0)
	a.room = 1
	src := numbers(0)
	if took := cs.Offer(cs.Sole(), numbers(3).Take(nil, a.sub, 3), src); took != 1 || len(src.line) != 0 {
		t.Errorf("it took %d, and %v went back, want 1 and none", took, src.line)
	}
	wantGot(t, "a", a, 1)
	if cs.Sole() != nil || !cs.Resume(a.sub) {
		t.Error("it does not wait")
	}
}

// Nothing is taken that there is no place for, to be put back.
func TestFullWindow(t *testing.T) {
	var cs Consumers
	a := add(&cs, "a", 0, 0)
	a.sub.Window.SetLimit(3)
	src := numbers(9)
	cs.Deal(src)
	wantGot(t, "a", a, 1, 2, 3)
	if src.back != 0 || cs.Eligible() != 0 {
		t.Errorf("%d put back and %d eligible, want 0", src.back, cs.Eligible())
	}
	cs.Settled(a.sub, 2)
	if !a.sub.Window.Give(2) || !cs.Resume(a.sub) {
		t.Error("it does not wait for the window")
	}
	cs.Deal(src)
	wantGot(t, "a", a, 4, 5)
}

func TestSingleActive(t *testing.T) {
	for _, tt := range []struct {
		mode   Mode
		active []string // after: all are there; the first has settled; the active one is removed
	}{
		{FirstCome, []string{"a", "a", "b"}},
		{ByPriority, []string{"a", "c", "a"}},
	} {
		cs := Consumers{Mode: tt.mode}
		a := add(&cs, "a", 0, 1)
		cs.Deal(numbers(1))
		b, c := add(&cs, "b", 0, 1), add(&cs, "c", 9, 1)
		by := map[string]*fakeConsumer{"a": a, "b": b, "c": c}
		got := []string{cs.ActiveTag()}
		cs.Settled(a.sub, 1)
		got = append(got, cs.ActiveTag())
		cs.Remove(by[cs.ActiveTag()].sub)
		got = append(got, cs.ActiveTag())
		if !slices.Equal(got, tt.active) {
			t.Errorf("mode %d: active %v, want %v", tt.mode, got, tt.active)
		}
		if cs.Eligible() != 1 {
			t.Errorf("mode %d: %d eligible, want the active one", tt.mode, cs.Eligible())
		}
	}
}

func TestRemove(t *testing.T) {
	var cs Consumers
	a, b := add(&cs, "a", 0, 0), add(&cs, "b", 0, 0)
	if !cs.Remove(a.sub) || cs.Remove(a.sub) || cs.Remove(&queue.Subscription{}) {
		t.Error("Remove() is wrong about who was there")
	}
	cs.Deal(numbers(2))
	wantGot(t, "a", a)
	wantGot(t, "b", b, 1, 2)
	cs.Settled(a.sub, 1)
	if cs.Resume(a.sub) || cs.Len() != 1 {
		t.Error("a removed consumer is back")
	}
	cs.End()
	if cs.Len() != 0 || cs.Eligible() != 0 {
		t.Errorf("%d consumers after the end, %d eligible", cs.Len(), cs.Eligible())
	}
}
