package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/leveretmq/leveret/config"
)

// Limits of the pace that a collector gets, in percent of the live heap.
const (
	slowestPace = 1000
	fastestPace = 50
)

// tuneGC sets the garbage collector's pace and the memory at which it hurries.
// It is the program's to do, not an embedded broker's. The Go runtime's own
// variables win: who sets them knows why.
//
// A fixed percentage would fit one load only: a broker that passes messages on
// has a live heap of a few megabytes and would collect hundreds of times a
// second, one with a backlog would let garbage grow to a multiple of it. So the
// heap gets a fixed headroom, and the percentage follows from what is live.
func tuneGC(cfg config.Config) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cfg.MemoryLimit)
	}
	if os.Getenv("GOGC") == "" {
		p := &pacer{headroom: cfg.GCHeadroom}
		p.afterGC(nil)
	}
}

// A pacer sets the pace anew after each collection. The collector's own
// goroutine runs it.
//
// While the disk is used, pages of the store's files are in memory, too, up to some
// 50 MB. While it is not, the heap has a part of that: with 80 MiB of headroom
// instead of 48 fire-1K takes 5 % less and topic-1000 4 to 8 %.
type pacer struct {
	headroom int64 // how far the heap may grow before it is collected, in bytes
	percent  int
	disk     int64     // what was read and written when somebody last looked, see usage
	used     time.Time // when that was last seen to have changed
}

// stillAfter is how long the disk is not used before the heap has more headroom. A
// store that is drained writes several times in that time.
const stillAfter = time.Second

// cycle is garbage at once: that it was collected says that a collection ended.
type cycle struct{ _ [16]byte }

func (p *pacer) afterGC(*struct{}) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	headroom := p.headroom
	if u, known := processUsage(); known {
		headroom = p.headroomNow(u.disk, time.Now())
	}
	if percent := pace(int64(s[0].Value.Uint64()), headroom); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new(cycle), p.afterGC, nil)
}

// headroomNow is the headroom after so much was read and written.
func (p *pacer) headroomNow(disk int64, now time.Time) int64 {
	if disk != p.disk {
		p.disk, p.used = disk, now
	}
	if now.Sub(p.used) < stillAfter {
		return p.headroom
	}
	return p.headroom + p.headroom*2/3
}

// pace is the percentage that gives a live heap of so many bytes its headroom.
// It moves in steps, as each change stops the world for a moment.
func pace(live, headroom int64) int {
	percent := slowestPace
	if live > 0 {
		percent = int(min(slowestPace, headroom*100/live))
	}
	return max(percent/25*25, fastestPace)
}
