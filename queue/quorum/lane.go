package quorum

import "github.com/leveretmq/leveret/queue"

// A lane is messages that wait and were never handed out, by id:
//
//	head, then those that are away, then tail.
//
// It keeps runs of ids, so a message costs nothing here while its neighbours are
// of the same priority.
type lane struct {
	head runs
	away away
	tail runs // empty unless something is away
	n    int  // of all three

	headSize, tailSize int64 // what the messages of head and tail weigh, in bytes
}

// away is the part of a lane that is not in memory.
type away struct {
	from, to queue.ID // the first and the last; meaningless if there are none
	count    int
	bytes    int64 // of their bodies; an estimate after a restart
	earliest int64 // no expiry of any of them is before; 0 if none expires
}

// push adds the youngest; size is what they weigh, in bytes.
func (l *lane) push(r run, size int64) {
	l.n += r.len()
	if l.tail.n == 0 && l.away.count == 0 {
		l.head.add(r)
		l.headSize += size
		return
	}
	l.tail.add(r)
	l.tailSize += size
}

// front is the oldest, or 0 if that is away. The lane must not be empty.
func (l *lane) front() queue.ID {
	if l.head.n == 0 {
		if l.away.count > 0 {
			return 0
		}
		l.head, l.tail = l.tail, l.head
		l.headSize, l.tailSize = l.tailSize, l.headSize
	}
	return l.head.front()
}

// first is the id of the oldest, away or not; 0 if the lane is empty.
func (l *lane) first() queue.ID {
	switch {
	case l.head.n > 0:
		return l.head.front()
	case l.away.count > 0:
		return l.away.from
	case l.tail.n > 0:
		return l.tail.front()
	}
	return 0
}

// pop takes the oldest off, which must be in head.
func (l *lane) pop(size int64) {
	l.head.pop()
	l.headSize -= size
	l.n--
}

// each calls f with every id that is not away.
func (l *lane) each(f func(id queue.ID)) {
	l.head.each(f)
	l.tail.each(f)
}

// A run is ids that follow one another.
type run struct{ from, to queue.ID }

func (r run) len() int { return int(r.to - r.from + 1) }

// runs are rising ids: a line, first in, first out.
type runs struct {
	list  []run
	first int // the oldest run in list
	n     int // ids
}

func (r *runs) push(id queue.ID) { r.add(run{id, id}) }

func (r *runs) add(u run) {
	r.n += u.len()
	if k := len(r.list); k > r.first && r.list[k-1].to+1 == u.from {
		r.list[k-1].to = u.to
		return
	}
	if r.first > 0 && r.first*2 >= len(r.list) {
		r.list = r.list[:copy(r.list, r.list[r.first:])]
		r.first = 0
	}
	r.list = append(r.list, u)
}

// front is the lowest id; there must be one.
func (r *runs) front() queue.ID { return r.list[r.first].from }

func (r *runs) pop() { r.drop(1) }

// drop takes the n lowest ids off; they must be in one run.
func (r *runs) drop(n int) {
	f := &r.list[r.first]
	r.n -= n
	if f.from += queue.ID(n); f.from <= f.to {
		return
	}
	r.first++
	if r.first == len(r.list) {
		r.first, r.list = 0, r.list[:0]
		if cap(r.list) > keptRuns {
			r.list = nil
		}
	}
}

// keptRuns is how many runs of memory an empty line keeps.
const keptRuns = 64

func (r *runs) each(f func(id queue.ID)) {
	for _, run := range r.list[r.first:] {
		for id := run.from; id <= run.to; id++ {
			f(id)
		}
	}
}

// An idHeap is a heap of ids, the lowest first.
type idHeap []queue.ID

func (h *idHeap) push(id queue.ID) {
	s := append(*h, id)
	*h = s
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if s[up] <= id {
			break
		}
		s[i], s[up] = s[up], id
		i = up
	}
}

// pop takes off the first.
func (h *idHeap) pop() {
	s := *h
	n := len(s) - 1
	last := s[n]
	s = s[:n]
	*h = s
	if n == 0 {
		if cap(s) > keptRuns {
			*h = nil
		}
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && s[child+1] < s[child] {
			child++
		}
		if s[child] >= last {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = last
}
