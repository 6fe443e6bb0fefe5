package amqp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// stupidUnacked is a map that says what unacked should do.
type stupidUnacked struct {
	next uint64
	m    map[uint64]queue.ID
}

func (s *stupidUnacked) upTo(tag uint64) []queue.ID {
	var tags []uint64
	for t := range s.m {
		if t <= tag {
			tags = append(tags, t)
		}
	}
	slices.Sort(tags)
	ids := []queue.ID{}
	for _, t := range tags {
		ids = append(ids, s.m[t])
		delete(s.m, t)
	}
	return ids
}

func ids(list []outstanding) []queue.ID {
	out := []queue.ID{}
	for _, o := range list {
		out = append(out, o.ID)
	}
	return out
}

func TestUnackedAgainstMap(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		var u unacked
		u.init()
		s := stupidUnacked{next: 1, m: map[uint64]queue.ID{}}
		id, msg := queue.ID(0), &message.Message{Envelope: &message.Envelope{}}
		for step := range 3000 {
			switch k := r.IntN(100); {
			case k < 35:
				batch := make([]queue.Delivery, 1+r.IntN(8))
				for i := range batch {
					id++
					batch[i] = queue.Delivery{Msg: msg, ID: id}
					s.m[s.next] = id
					s.next++
				}
				u.push(batch, nil)
			case k < 40:
				n := 1 + r.IntN(50)
				u.skip(n)
				s.next += uint64(n)
			case k < 95:
				tag := s.next - uint64(r.IntN(40)) // mostly the newest, so that old ones are left behind
				want, wantOk := s.m[tag]
				delete(s.m, tag)
				o, ok := u.take(tag)
				if ok != wantOk || o.ID != want || ok && o.tag != tag {
					t.Fatalf("seed %d step %d: take(%d) = id %d tag %d, %v; want id %d, %v", seed, step, tag, o.ID, o.tag, ok, want, wantOk)
				}
				if ok && r.IntN(10) == 0 {
					u.restore(o)
					s.m[tag] = want
				}
			case k < 99:
				tag := s.next - uint64(r.IntN(200))
				_, wantOk := s.m[tag]
				list, ok := u.takeUpTo(tag, nil)
				if ok != wantOk {
					t.Fatalf("seed %d step %d: takeUpTo(%d) = %v, want %v", seed, step, tag, ok, wantOk)
				}
				if !ok {
					continue
				}
				if got, want := ids(list), s.upTo(tag); !sameSet(got, want) {
					t.Fatalf("seed %d step %d: takeUpTo(%d) = %v, want %v", seed, step, tag, got, want)
				}
			default:
				if got, want := ids(u.takeAll(nil)), s.upTo(s.next); !sameSet(got, want) {
					t.Fatalf("seed %d step %d: takeAll() = %v, want %v", seed, step, got, want)
				}
			}
			if u.count() != len(s.m) || u.next != s.next {
				t.Fatalf("seed %d step %d: count %d next %d, want %d and %d", seed, step, u.count(), u.next, len(s.m), s.next)
			}
		}
	}
}

func sameSet(a, b []queue.ID) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func TestUnackedKeepsARingShortBehindAStuckDelivery(t *testing.T) {
	var u unacked
	u.init()
	msg := &message.Message{Envelope: &message.Envelope{}}
	for range 1_000_000 {
		u.push([]queue.Delivery{{Msg: msg}}, nil)
		if u.next > 2 {
			u.take(u.next - 1)
		}
	}
	if u.count() != 1 || len(u.ring) > 128 {
		t.Errorf("1 of 1,000,000 outstanding: count %d, ring of %d places, want at most 128", u.count(), len(u.ring))
	}
	if o, ok := u.take(1); !ok || o.tag != 1 {
		t.Errorf("take(1) = %v, %v", o, ok)
	}
}

func TestUnackedSettlesWithoutAllocating(t *testing.T) {
	var u unacked
	u.init()
	batch := make([]queue.Delivery, 64)
	for i := range batch {
		batch[i].Msg = &message.Message{Envelope: &message.Envelope{}}
	}
	list := make([]outstanding, 0, 64)
	u.push(batch, nil)
	u.takeAll(list)
	if got := testing.AllocsPerRun(100, func() {
		u.push(batch, nil)
		u.take(u.next - 64)
		list, _ = u.takeUpTo(u.next-1, list[:0])
	}); got != 0 {
		t.Errorf("%v allocations, want 0", got)
	}
}

func TestALargeAckLeavesNoLargeMemoryBehind(t *testing.T) {
	ch, c, q := newTestChannel(false)
	batch := testBatch(1000, 1)
	for range 200 {
		ch.unacked.push(batch, c)
	}
	if err := ch.settleTags(200_000, true, queue.Accepted); err != nil || q.settled != 200_000 {
		t.Fatalf("settled %d, %v", q.settled, err)
	}
	if list, run := cap(ch.conn.scratch), cap(ch.conn.run); list > keepRing || run > keepRing {
		t.Errorf("room for %d and %d deliveries is kept, want at most %d", list, run, keepRing)
	}
}
