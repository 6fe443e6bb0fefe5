package bench

import "sync/atomic"

// Confirms are the publishes of one channel that wait for their confirm. The
// writer adds, the reader settles; what is between sent and settled in ring
// belongs to the reader, the rest to the writer.
type confirms struct {
	window  int64
	sent    atomic.Int64 // number of the last publish, which is its delivery tag
	settled atomic.Int64 // all up to this number have been confirmed or refused
	wanted  atomic.Int64 // the writer sleeps until settled is here, 0 = it does not
	ring    []int64      // when each was due, by number; 0 = settled out of order
}

func newConfirms(window int) *confirms {
	size := 1
	for size <= window {
		size *= 2
	}
	return &confirms{window: int64(window), ring: make([]int64, size)}
}

// room is how many publishes may be sent. Writer only.
func (c *confirms) room() int64 { return c.window - (c.sent.Load() - c.settled.Load()) }

// ask says whether there is room for n publishes. If not, the reader wakes the
// writer when there is. Writer only.
func (c *confirms) ask(n int64) bool {
	if c.room() >= n {
		c.wanted.Store(0)
		return true
	}
	c.wanted.Store(c.sent.Load() - c.window + n)
	return c.room() >= n
}

// add notes when the next n publishes were due. Writer only, before it writes
// them.
func (c *confirms) add(n int, at int64) {
	last := c.sent.Load()
	for i := range int64(n) {
		c.ring[int(last+1+i)&(len(c.ring)-1)] = at
	}
	c.sent.Store(last + int64(n))
}

// settle takes an ack or nack: of all publishes up to tag, or of this one. t, if
// not nil, gets the latencies at the time now. It returns how many were settled
// and whether the writer is to be woken. Reader only.
func (c *confirms) settle(tag int64, multiple bool, now int64, t *tally) (n int64, wakes bool) {
	sent, settled := c.sent.Load(), c.settled.Load()
	if tag > sent {
		return 0, false
	}
	first := tag
	if multiple {
		first = settled + 1
		if tag == 0 { // all so far (spec §1.8.3.13)
			tag = sent
		}
	}
	mask := len(c.ring) - 1
	for i := max(first, settled+1); i <= tag; i++ {
		due := c.ring[int(i)&mask]
		if due == 0 {
			continue
		}
		c.ring[int(i)&mask] = 0
		n++
		if t != nil {
			t.add(now - due)
		}
	}
	for settled < sent && c.ring[int(settled+1)&mask] == 0 {
		settled++
	}
	c.settled.Store(settled)
	wanted := c.wanted.Load()
	return n, wanted != 0 && settled >= wanted
}

// open is how many publishes wait.
func (c *confirms) open() int64 { return c.sent.Load() - c.settled.Load() }
