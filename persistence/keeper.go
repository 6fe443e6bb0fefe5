package persistence

import (
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// A keeper is the goroutine that looks after space and files. It sleeps until
// a commit, a dead chunk or a timer that one of them set gives it something to do.
type keeper struct {
	s      *Disk
	wakeup chan struct{} // capacity 1

	written atomic.Int64 // bytes since the free space was looked at
	dead    atomic.Int64 // bytes of dead chunks since the last pass
	rotated atomic.Bool  // there are new files
	merge   atomic.Bool
	read    atomic.Int64 // bytes of records loaded since their pages were released
}

const (
	// freeStep is how much is written between two looks at the free space, in bytes.
	freeStep = 16 << 20
	// lowInterval is how often free space is looked at while it is low.
	lowInterval = time.Second
	// readStep is how much is loaded before the pages that took are released, in
	// bytes: they count as the process's memory, although the system may take them.
	readStep = 8 << 20
	// quiet is how long nothing is written before less than a pass's worth of
	// dead chunks is looked at.
	quiet = 30 * time.Second
	// settleFiles is what Badger is given to flush and compact before collection.
	settleFiles = 200 * time.Millisecond
	// paddingShare is how many memtables of padding force one out; once its size is too little.
	paddingShare = 1.4
	// wholeFile is the share of a file that must be dead for it to be collected.
	// What is missing to 1 is less than one value: nothing is ever moved.
	wholeFile = 0.99999
	// mostFile is the share to go on with when whole files are not enough: Badger
	// looks only at the file with the most garbage, and one that has a few live
	// values left holds up all others. Markers make the moving safe.
	mostFile = 0.75
	// startShare is the same for the pass at the start, which also takes files
	// whose statistics were lost in a crash.
	startShare = 0.5
)

// committed says that so many bytes were committed. It is called by the committer.
func (k *keeper) committed(bytes int64) {
	wake := k.written.Add(bytes) >= freeStep
	if k.s.eng.rotated() {
		k.rotated.Store(true)
		wake = true
	}
	if wake {
		k.wake()
	}
}

// loaded says that so many bytes of records were read from the files.
func (k *keeper) loaded(bytes int64) {
	if n := k.read.Add(bytes); n >= readStep && n-bytes < readStep {
		k.wake()
	}
}

// died says that a chunk of so many bytes is dead.
func (k *keeper) died(bytes int64) {
	if k.dead.Add(bytes) >= k.threshold() {
		k.wake()
	}
}

// threshold is how many dead bytes start a pass.
func (k *keeper) threshold() int64 { return max(k.s.opts.gcStep, k.s.live.Load()/4) }

func (k *keeper) wake() {
	select {
	case k.wakeup <- struct{}{}:
	default:
	}
}

// run ends when Close has been called.
func (k *keeper) run() {
	defer k.s.wg.Done()
	k.s.eng.advise()
	k.collect(startShare)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(k.interval())
		select {
		case <-k.wakeup:
			k.work(false)
		case <-timer.C:
			k.work(true)
		case <-k.s.stop:
			return
		}
	}
}

// interval is when the keeper has to look again by itself.
func (k *keeper) interval() time.Duration {
	switch {
	case k.s.diskLow.Load():
		return lowInterval
	case k.dead.Load() >= k.s.sizes.vlog:
		return quiet
	}
	return time.Hour
}

// work does what there is to do. waited is true if the interval passed first.
func (k *keeper) work(waited bool) {
	k.releaseLoaded()
	if k.rotated.Swap(false) {
		k.s.eng.advise()
	}
	if k.written.Load() >= freeStep || k.s.diskLow.Load() {
		k.look()
	}
	if k.merge.Swap(false) {
		k.mergeRuns()
	}
	dead := k.dead.Load()
	if dead >= k.threshold() || waited && dead >= k.s.sizes.vlog {
		k.pass()
	}
}

// releaseLoaded releases the pages of what was loaded, if that is much. It is
// called in the middle of a pass too: a pass may take a second, in which a queue
// that is drained has 100 MB loaded.
func (k *keeper) releaseLoaded() {
	if k.read.Load() >= readStep {
		k.read.Store(0)
		k.rotated.Store(false) // release does what advise does
		k.s.eng.release()
	}
}

// look measures the free space. The alarm goes off below the limit and is
// called off at a tenth above it.
func (k *keeper) look() {
	k.written.Store(0)
	free, err := k.s.opts.diskFree(k.s.opts.Dir)
	if err != nil {
		k.s.opts.Log.Warn("the free disk space cannot be measured: the figure before stays; see that the folder is there and can be read", zap.String("dir", k.s.opts.Dir), zap.Error(err))
		return
	}
	k.measured(free)
}

// measured takes in how much space is free. The committer calls it too: it must
// not depend on a keeper that may be waiting for a commit.
func (k *keeper) measured(free int64) {
	k.s.diskFree.Store(free)
	limit := k.s.limit()
	switch low := &k.s.diskLow; {
	case free < limit && low.CompareAndSwap(false, true):
		k.s.opts.Log.Warn("free disk space is low, publishers are stopped: free some, or lower the limit (disk_free_limit)", zap.String("dir", k.s.opts.Dir), zap.Int64("free", free), zap.Int64("limit", limit))
	case free >= limit+limit/10 && low.CompareAndSwap(true, false):
		k.s.opts.Log.Info("free disk space is back", zap.Int64("free", free))
	}
	k.s.signal()
}

// pass returns the space of dead chunks to the system.
func (k *keeper) pass() {
	if k.reclaim() && k.relocate() {
		k.reclaim()
	}
	k.look()
}

// reclaim collects the files that hold only dead chunks. It returns false if
// the store is being closed, or has failed.
func (k *keeper) reclaim() bool {
	k.dead.Store(0)
	if k.pad() != nil || !k.pause(settleFiles) {
		return false
	}
	k.collect(wholeFile)
	if k.crowded(2) && k.s.roomy() {
		k.collect(mostFile) // moves what is live
		k.collect(wholeFile)
	}
	k.s.eng.advise()
	return true
}

// crowded reports whether the files take more than so many times what is live,
// and what is normal between two passes.
func (k *keeper) crowded(times int64) bool {
	live := 0.0
	for _, ck := range k.s.liveChunks() {
		live += float64(ck.size) * ck.liveShare()
	}
	return k.s.eng.used() > times*int64(live)+k.s.opts.gcStep+3*k.s.sizes.vlog
}

// pad writes so much padding that the memtable is flushed: only a flushed
// deletion is compacted, and only a compacted one counts as garbage.
func (k *keeper) pad() error {
	value := make([]byte, k.s.lim.value-64)
	n := int(paddingShare*float64(k.s.lim.memtable))/len(value) + 1
	for n > 0 {
		var writes []write
		room := min(k.s.lim.inline/2, 64<<10)
		for room > len(value) && n > 0 {
			writes = append(writes, write{key: fmt.Appendf(nil, "%c%d", keyPadding, n%128), val: value})
			room -= len(value)
			n--
		}
		if err := k.s.do(writes); err != nil {
			return err
		}
		k.releaseLoaded()
	}
	return nil
}

func (k *keeper) collect(share float64) {
	if err := k.s.eng.reclaim(share); err != nil {
		k.s.opts.Log.Warn("the disk space of settled records cannot be returned; it is tried again: look at the disk if this line comes back", zap.Error(err))
	}
}

// pause waits, but for releasing what is loaded meanwhile. It returns false if the
// store is being closed.
func (k *keeper) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	woken := false
	for {
		select {
		case <-k.wakeup:
			woken = true
			k.releaseLoaded()
		case <-t.C:
			if woken {
				k.wake() // there may be more to do than that
			}
			return true
		case <-k.s.stop:
			return false
		}
	}
}
