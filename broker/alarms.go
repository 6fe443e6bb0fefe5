package broker

import (
	"context"
	"runtime/metrics"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/persistence"
)

const (
	// memoryInterval is how often the memory in use is looked at; nothing
	// announces it. RabbitMQ 4.0 does so every 2.5 s.
	memoryInterval = time.Second
	// memoryClear is the part of the limit, in percent, that memory must fall
	// below to end an alarm, so that it does not flicker.
	memoryClear = 95
)

// alarms raises and clears the alarms that stop publishers. One goroutine runs
// it; it alone touches the fields.
type alarms struct {
	server *amqp.Server
	store  persistence.Store
	limit  int64 // of memory, in bytes
	inUse  func() int64
	log    *zap.Logger

	memory, disk, failed bool
}

// run watches the store and the memory until ctx ends.
func (a *alarms) run(ctx context.Context) {
	tick := time.NewTicker(memoryInterval)
	defer tick.Stop()
	a.checkStore()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.store.Watch():
			a.checkStore()
		case <-tick.C:
			a.checkMemory()
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

// checkMemory blocks publishers while the process takes more memory than it may.
func (a *alarms) checkMemory() {
	used := a.inUse()
	high := used > a.limit
	if a.memory {
		high = used > a.limit/100*memoryClear
	}
	if high == a.memory {
		return
	}
	a.memory = high
	a.server.SetAlarm("memory", high)
	if high {
		a.log.Warn("memory alarm set: publishers are blocked until memory is free again", zap.Int64("used", used), zap.Int64("limit", a.limit))
	} else {
		a.log.Info("memory alarm cleared", zap.Int64("used", used), zap.Int64("limit", a.limit))
	}
}

// memoryInUse is what the Go runtime has of the system and has not given back,
// in bytes. Pages of mapped files are not in it: the system takes them back
// when it needs them.
func memoryInUse() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}
