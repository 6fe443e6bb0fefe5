package amqp

import (
	"slices"
	"time"

	"github.com/leveretmq/leveret/queue"
)

// An outstanding is a delivery that the client has not settled.
type outstanding struct {
	queue.Delivery
	c   *consumer // whose it is; of a basic.get too
	at  int64     // when it was delivered, Unix milliseconds
	tag uint64
}

// unacked holds a channel's outstanding deliveries by tag. Tags are dense, so
// it is a ring: settling one is O(1), settling multiple is a range. It is
// guarded by the outbox's lock.
type unacked struct {
	ring []outstanding // power of two; tag t is at t&(len-1); a nil Msg is an empty place
	low  uint64        // every tag below is settled, or in old
	next uint64        // the next tag to be given, from 1
	live int           // in the ring
	// old holds the few that are left behind, so that one delivery that is
	// never settled does not make the ring as long as all that came after it.
	old map[uint64]outstanding
}

// keepRing is the length of ring that is kept when nothing is outstanding.
const keepRing = 1 << 16

func (u *unacked) init() { u.low, u.next = 1, 1 }

// count is how many deliveries are outstanding.
func (u *unacked) count() int { return u.live + len(u.old) }

// skip uses up n tags of deliveries that need no ack.
func (u *unacked) skip(n int) {
	if u.live > 0 && u.next-u.low+uint64(n) > uint64(len(u.ring)) {
		u.grow(n)
	}
	u.next += uint64(n)
	if u.live == 0 {
		u.low = u.next
	}
}

// push gives tags to a batch and remembers it.
func (u *unacked) push(batch []queue.Delivery, c *consumer) {
	if u.live == 0 {
		u.low = u.next
	}
	if need := u.next - u.low + uint64(len(batch)); need > uint64(len(u.ring)) {
		u.grow(len(batch))
	}
	now := time.Now().UnixMilli()
	mask := uint64(len(u.ring) - 1)
	for i := range batch {
		u.ring[u.next&mask] = outstanding{batch[i], c, now, u.next}
		u.next++
	}
	u.live += len(batch)
}

// grow makes place for n more tags: by moving a thin tail to old, or by a
// larger ring.
func (u *unacked) grow(n int) {
	span := int(u.next-u.low) + n
	if u.live < span/4 && len(u.ring) >= 64 {
		u.evict(span / 2)
		span = int(u.next-u.low) + n
	}
	if span <= len(u.ring) {
		return
	}
	size := max(16, len(u.ring))
	for size < span {
		size *= 2
	}
	ring := make([]outstanding, size)
	if len(u.ring) > 0 {
		for t := u.low; t < u.next; t++ {
			ring[t&uint64(size-1)] = u.ring[t&uint64(len(u.ring)-1)]
		}
	}
	u.ring = ring
}

// evict moves what the lowest n tags hold to old.
func (u *unacked) evict(n int) {
	if u.old == nil {
		u.old = make(map[uint64]outstanding)
	}
	mask := uint64(len(u.ring) - 1)
	for end := min(u.low+uint64(n), u.next); u.low < end && u.live > 0; u.low++ {
		if o := &u.ring[u.low&mask]; o.Msg != nil {
			u.old[u.low] = *o
			*o = outstanding{}
			u.live--
		}
	}
	if u.live == 0 {
		u.low = u.next
	}
	u.trim()
}

// take removes one delivery; ok is false for a tag that is not outstanding.
func (u *unacked) take(tag uint64) (o outstanding, ok bool) {
	p := u.place(tag)
	if p == nil {
		o, ok = u.old[tag]
		delete(u.old, tag)
		return o, ok
	}
	o, *p = *p, outstanding{}
	u.live--
	u.trim()
	return o, true
}

// place is where the ring holds the delivery with this tag; nil if it does not.
func (u *unacked) place(tag uint64) *outstanding {
	if u.live == 0 || tag < u.low || tag >= u.next {
		return nil
	}
	if p := &u.ring[tag&uint64(len(u.ring)-1)]; p.Msg != nil {
		return p
	}
	return nil
}

// trim moves low up to the lowest outstanding tag.
func (u *unacked) trim() {
	if u.live == 0 {
		u.low = u.next
		if len(u.ring) > keepRing {
			u.ring = nil
		}
		return
	}
	mask := uint64(len(u.ring) - 1)
	for u.ring[u.low&mask].Msg == nil {
		u.low++
	}
}

// takeUpTo removes all deliveries with a tag up to this one, oldest first, and
// appends them to dst. ok is false if the tag itself is not outstanding; then
// nothing is removed (RabbitMQ 4.0).
func (u *unacked) takeUpTo(tag uint64, dst []outstanding) (_ []outstanding, ok bool) {
	if !u.has(tag) {
		return dst, false
	}
	return u.takeThrough(tag, dst), true
}

// takeThrough is takeUpTo of a tag that was given, outstanding or not.
func (u *unacked) takeThrough(tag uint64, dst []outstanding) []outstanding {
	dst = u.takeOld(tag, dst)
	if u.live == 0 || tag < u.low {
		return dst
	}
	mask := uint64(len(u.ring) - 1)
	for t := u.low; t <= tag; t++ {
		if p := &u.ring[t&mask]; p.Msg != nil {
			dst = append(dst, *p)
			*p = outstanding{}
			u.live--
		}
	}
	u.trim()
	return dst
}

func (u *unacked) has(tag uint64) bool {
	_, left := u.old[tag]
	return left || u.place(tag) != nil
}

func (u *unacked) takeOld(tag uint64, dst []outstanding) []outstanding {
	if len(u.old) == 0 {
		return dst
	}
	var tags []uint64
	for t := range u.old {
		if t <= tag {
			tags = append(tags, t)
		}
	}
	slices.Sort(tags)
	for _, t := range tags {
		dst = append(dst, u.old[t])
		delete(u.old, t)
	}
	return dst
}

// takeAll removes everything, oldest first, and appends it to dst.
func (u *unacked) takeAll(dst []outstanding) []outstanding {
	dst = u.takeOld(u.next, dst)
	if u.live > 0 {
		mask := uint64(len(u.ring) - 1)
		for t := u.low; t < u.next; t++ {
			if p := &u.ring[t&mask]; p.Msg != nil {
				dst = append(dst, *p)
				*p = outstanding{}
			}
		}
	}
	u.live, u.low = 0, u.next
	return dst
}

// restore puts a delivery back that was taken: a rolled-back transaction.
func (u *unacked) restore(o outstanding) {
	if u.old == nil {
		u.old = make(map[uint64]outstanding)
	}
	u.old[o.tag] = o
}
