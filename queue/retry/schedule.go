// Package retry is what types of queue have in common for messages that come
// back: the order in which they are due again, what the log keeps of them, and
// the header that counts their deliveries.
package retry

import (
	"iter"

	"github.com/leveretmq/leveret/queue"
)

// A Schedule is ids by the time at which they are due, the earliest first; of
// the same time, the lowest first. It takes 16 bytes for each and has no
// pointers. The zero value is empty.
type Schedule struct{ heap []entry }

type entry struct {
	at int64 // Unix milliseconds
	id queue.ID
}

func (e entry) before(o entry) bool { return e.at < o.at || e.at == o.at && e.id < o.id }

// keptEntries is for how many ids an empty schedule keeps memory.
const keptEntries = 64

// Len is how many ids there are.
func (s *Schedule) Len() int { return len(s.heap) }

// First is the id that is due first, and when. There must be one.
func (s *Schedule) First() (at int64, id queue.ID) { return s.heap[0].at, s.heap[0].id }

// Push adds an id.
func (s *Schedule) Push(at int64, id queue.ID) {
	e := entry{at, id}
	h := append(s.heap, e)
	s.heap = h
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

// Pop takes off the first.
func (s *Schedule) Pop() {
	n := len(s.heap) - 1
	last := s.heap[n]
	h := s.heap[:n]
	s.heap = h
	if n == 0 {
		if cap(h) > keptEntries {
			s.heap = nil
		}
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(last) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = last
}

// Remove takes ids off, wherever they are.
func (s *Schedule) Remove(gone func(id queue.ID) bool) {
	old := s.heap
	s.heap = nil
	for _, e := range old {
		if !gone(e.id) {
			s.Push(e.at, e.id)
		}
	}
}

// Next are up to n ids of those that are due first, in order.
func (s *Schedule) Next(n int) []queue.ID {
	ids := make([]queue.ID, 0, min(n, len(s.heap)))
	times := make([]int64, 0, cap(ids))
	for len(ids) < n && len(s.heap) > 0 {
		at, id := s.First()
		s.Pop()
		ids, times = append(ids, id), append(times, at)
	}
	for i, id := range ids {
		s.Push(times[i], id)
	}
	return ids
}

// All are the ids and their times, those that are due late rather before those
// that are due soon. The schedule must not be changed meanwhile.
func (s *Schedule) All() iter.Seq2[int64, queue.ID] {
	return func(yield func(int64, queue.ID) bool) {
		for i := len(s.heap) - 1; i >= 0; i-- {
			if !yield(s.heap[i].at, s.heap[i].id) {
				return
			}
		}
	}
}
