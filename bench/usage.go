package bench

import "time"

// A usage is what the broker's processes have used so far.
type usage struct {
	known bool
	cpu   time.Duration // user and system
	rss   int64         // bytes
}
