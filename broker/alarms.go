package broker

import (
	"cmp"
	"context"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

const (
	// memoryHigh and memoryClear are the parts of the memory limit, in percent,
	// at which the memory alarm is set and cleared. Nearer to the limit the
	// garbage collector would take most of the time.
	memoryHigh  = 80
	memoryClear = 75
	// Nothing announces that memory fills up. It is looked at again when it
	// could have filled up at fillRate, in bytes per second, but within these
	// bounds. RabbitMQ 4.0 looks every 2.5 s.
	fillRate     = 1 << 30
	shortestLook = 50 * time.Millisecond
	longestLook  = 2500 * time.Millisecond
)

// alarms raises and clears the alarms that stop publishers. One goroutine runs
// it; it alone touches the fields, but for the last ones.
type alarms struct {
	server *amqp.Server
	store  persistence.Store
	vhosts *vhost.Set
	budget *queue.Budget
	limit  int64 // of memory, in bytes, until it is changed
	inUse  func() int64
	log    *zap.Logger

	memory, disk, failed bool // what was said last

	changed atomic.Int64  // the limit that an operator has set; 0 is none
	stop    atomic.Bool   // the limit is 0: publishers are stopped whatever is in use
	look    chan struct{} // has one when memory is to be looked at now; capacity 1; nil is never
}

// run watches the store and the memory until ctx ends.
func (a *alarms) run(ctx context.Context) {
	changed := a.store.Watch()
	a.checkStore()
	timer := time.NewTimer(shortestLook)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			a.checkStore()
		case <-a.look:
			timer.Reset(a.checkMemory())
		case <-timer.C:
			timer.Reset(a.checkMemory())
		}
	}
}

// checkStore blocks publishers while the disk is nearly full, and for good once
// the store has failed: what they send could not be kept.
func (a *alarms) checkStore() {
	h := a.store.Health()
	if h.Err != nil && !a.failed {
		a.failed = true
		a.log.Error("the store has failed: nothing is confirmed any more and publishers are blocked; "+
			"free or repair the disk and restart the broker", zap.Error(h.Err))
	}
	low := h.DiskLow || h.Err != nil
	if low == a.disk {
		return
	}
	a.disk = low
	a.server.SetAlarm("disk", low)
	switch {
	case h.Err != nil:
	case low:
		a.log.Warn("disk alarm set: publishers are blocked until space is free again",
			zap.Int64("free", h.DiskFree), zap.Int64("limit", h.DiskLimit))
	default:
		a.log.Info("disk alarm cleared", zap.Int64("free", h.DiskFree), zap.Int64("limit", h.DiskLimit))
	}
}

// memoryLimit is the limit in force, in bytes. Any goroutine may ask.
func (a *alarms) memoryLimit() int64 {
	if a.stop.Load() {
		return 0
	}
	return cmp.Or(a.changed.Load(), a.limit)
}

// setMemoryLimit changes the limit, in bytes, and has memory looked at now. It
// returns the last one that was not 0. Any goroutine may call it.
func (a *alarms) setMemoryLimit(bytes int64) (before int64) {
	before = cmp.Or(a.changed.Load(), a.limit)
	if bytes > 0 {
		a.changed.Store(bytes)
	}
	a.stop.Store(bytes == 0)
	select {
	case a.look <- struct{}{}:
	default: // it will be already
	}
	return before
}

// checkMemory blocks publishers while the process takes more memory than it
// may, and says when to look again.
func (a *alarms) checkMemory() time.Duration {
	if a.budget.Exceeded() {
		a.pageOut()
	}
	used := a.inUse()
	limit := a.memoryLimit()
	threshold := limit / 100 * memoryHigh
	if a.memory {
		threshold = limit / 100 * memoryClear
	}
	if high := limit == 0 || used > threshold; high != a.memory {
		a.setMemory(high, used)
	}
	if a.memory {
		return shortestLook
	}
	toFill := time.Duration(float64(threshold-used) / fillRate * float64(time.Second))
	return min(max(toFill, shortestLook), longestLook)
}

func (a *alarms) setMemory(high bool, used int64) {
	a.memory = high
	a.server.SetAlarm("memory", high)
	limit := a.memoryLimit()
	switch {
	case high && limit == 0:
		a.log.Warn("memory alarm set: publishers are blocked until set_vm_memory_high_watermark is more than 0", zap.Int64("used", used))
	case high:
		a.log.Warn("memory alarm set: publishers are blocked until memory is free again", zap.Int64("used", used), zap.Int64("limit", limit))
	default:
		a.log.Info("memory alarm cleared", zap.Int64("used", used), zap.Int64("limit", limit))
	}
}

// pageOut makes idle queues give up what they keep in memory. Queues in use do
// so by themselves.
func (a *alarms) pageOut() {
	for _, name := range a.vhosts.Names() {
		v, ok := a.vhosts.Get(name)
		if !ok { // deleted meanwhile
			continue
		}
		for q := range v.Queues() {
			if p, ok := q.Queue.(interface{ PageOut() }); ok {
				p.PageOut()
			}
		}
	}
}

// memoryInUse is what the last garbage collection found alive, in bytes. It is
// never old when it matters: the nearer the limit, the more often it runs.
func memoryInUse() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}
