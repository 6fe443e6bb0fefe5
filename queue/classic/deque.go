package classic

import "sync"

// The sizes of a deque's chunks, in items: they double from the smallest to
// the largest, and an empty deque keeps one of up to keptChunk.
const (
	smallestChunk = 8
	largestChunk  = 256
	keptChunk     = 64
)

// A deque is a line of items, first in, first out. It is made of chunks, so
// that a long one grows and shrinks without copying. The zero value is empty.
type deque struct {
	head, tail *chunk
	first      int // the oldest item's place in head
	n          int
}

// A chunk has as many items as the slice is long; its capacity does not change.
type chunk struct {
	items []item
	next  *chunk
}

// used are empty chunks of the largest size, of all queues: one that grows and
// shrinks all the time need not allocate.
var used sync.Pool

func (d *deque) push(v item) { *d.slot() = v }

// slot adds an item and returns its place, to be filled.
func (d *deque) slot() *item {
	c := d.tail
	if c == nil || len(c.items) == cap(c.items) {
		c = d.grow()
	}
	n := len(c.items)
	c.items = c.items[:n+1]
	d.n++
	return &c.items[n]
}

// grow adds a chunk at the end.
func (d *deque) grow() *chunk {
	size := smallestChunk
	if d.tail != nil {
		size = min(2*cap(d.tail.items), largestChunk)
	}
	c := newChunk(size)
	if d.tail == nil {
		d.head = c
	} else {
		d.tail.next = c
	}
	d.tail = c
	return c
}

func newChunk(size int) *chunk {
	if size == largestChunk {
		if c, ok := used.Get().(*chunk); ok {
			return c
		}
	}
	return &chunk{items: make([]item, 0, size)}
}

// join moves all items of other, of which none was ever taken off, behind those
// of d. It copies none.
func (d *deque) join(other *deque) {
	switch {
	case other.n == 0:
		return
	case d.n == 0:
		d.head, d.first = other.head, 0
	default:
		d.tail.next = other.head
	}
	d.tail = other.tail
	d.n += other.n
	*other = deque{}
}

// front is the oldest item, in its place; the deque must not be empty.
func (d *deque) front() *item { return &d.head.items[d.first] }

// run is the oldest items, in their places, as far as they are in one piece.
func (d *deque) run() []item {
	if d.n == 0 {
		return nil
	}
	return d.head.items[d.first:]
}

// pop takes the oldest item off; the deque must not be empty.
func (d *deque) pop() item {
	v := *d.front()
	d.drop(1)
	return v
}

// drop takes the n oldest items off; they must be in one run.
func (d *deque) drop(n int) {
	c := d.head
	clear(c.items[d.first : d.first+n])
	d.first += n
	d.n -= n
	if d.first == len(c.items) {
		d.leave(c)
	}
}

// leave goes on to the chunk after c, which is used up.
func (d *deque) leave(c *chunk) {
	d.first = 0
	c.items = c.items[:0]
	switch {
	case c.next != nil:
		d.head, c.next = c.next, nil
	case cap(c.items) > keptChunk:
		d.head, d.tail = nil, nil
	default:
		return // it stays for the next item
	}
	if cap(c.items) == largestChunk {
		used.Put(c)
	}
}
