package classic

// The sizes of a deque's chunks, in values: they double from the smallest to
// the largest, and an empty deque keeps one of up to keptChunk.
const (
	smallestChunk = 8
	largestChunk  = 256
	keptChunk     = 64
)

// A deque is a line of values, first in, first out. It is made of chunks, so
// that a long one grows and shrinks without copying. The zero value is empty.
type deque[T any] struct {
	head, tail *chunk[T]
	spare      *chunk[T] // a used one of the largest size, for the next turn
	first      int       // the oldest value's place in head
	n          int
}

// A chunk has as many values as items is long; its capacity does not change.
type chunk[T any] struct {
	items []T
	next  *chunk[T]
}

func (d *deque[T]) push(v T) { *d.slot() = v }

// slot adds a value and returns its place, to be filled.
func (d *deque[T]) slot() *T {
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
func (d *deque[T]) grow() *chunk[T] {
	c := d.spare
	d.spare = nil
	if c == nil {
		size := smallestChunk
		if d.tail != nil {
			size = min(2*cap(d.tail.items), largestChunk)
		}
		c = &chunk[T]{items: make([]T, 0, size)}
	}
	if d.tail == nil {
		d.head = c
	} else {
		d.tail.next = c
	}
	d.tail = c
	return c
}

// join moves all values of other, of which none was ever taken off, behind those
// of d. It copies none.
func (d *deque[T]) join(other *deque[T]) {
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
	*other = deque[T]{}
}

// front is the oldest value, in its place; the deque must not be empty.
func (d *deque[T]) front() *T { return &d.head.items[d.first] }

// run is the oldest values, in their places, as far as they are in one piece.
func (d *deque[T]) run() []T {
	if d.n == 0 {
		return nil
	}
	return d.head.items[d.first:]
}

// pop takes the oldest value off; the deque must not be empty.
func (d *deque[T]) pop() T {
	v := *d.front()
	d.drop(1)
	return v
}

// drop takes the n oldest values off; they must be in one run.
func (d *deque[T]) drop(n int) {
	c := d.head
	clear(c.items[d.first : d.first+n])
	d.first += n
	d.n -= n
	if d.first == len(c.items) {
		d.leave(c)
	}
}

// leave goes on to the chunk after c, which is used up.
func (d *deque[T]) leave(c *chunk[T]) {
	d.first = 0
	c.items = c.items[:0]
	if c.next != nil {
		d.head, c.next = c.next, nil
		if cap(c.items) == largestChunk {
			d.spare = c
		}
		return
	}
	d.spare = nil
	if cap(c.items) > keptChunk {
		d.head, d.tail = nil, nil
	}
}
