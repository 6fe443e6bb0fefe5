package bench

import "time"

// A clock reads nanoseconds since the Unix epoch that never step back. Two
// processes of one machine agree, so that one can measure what the other sent,
// unless the system's clock is set between their starts.
type clock struct {
	start time.Time
	wall  int64
}

func newClock() clock {
	t := time.Now()
	return clock{start: t, wall: t.UnixNano()}
}

func (c clock) now() int64 { return c.wall + int64(time.Since(c.start)) }
