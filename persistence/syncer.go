package persistence

import "time"

// A syncer is the goroutine that makes durable what Relaxed has confirmed
// already. It sleeps while there is nothing to sync.
type syncer struct {
	s      *Disk
	wakeup chan struct{} // capacity 1
}

// relaxedDelay is how long a commit may be only in the operating system's
// memory, but for the time the sync itself takes.
const relaxedDelay = 200 * time.Millisecond

// committed says that there is something to sync. It is called by the committer.
func (y *syncer) committed() {
	if y.s.opts.Durability != Relaxed {
		return
	}
	select {
	case y.wakeup <- struct{}{}:
	default:
	}
}

// run ends when Close has been called: closing the engine syncs the rest.
func (y *syncer) run() {
	timer := time.NewTimer(relaxedDelay)
	defer timer.Stop()
	for {
		select {
		case <-y.wakeup:
		case <-y.s.stop:
			return
		}
		timer.Reset(relaxedDelay / 2) // more joins it
		select {
		case <-timer.C:
		case <-y.s.stop:
			return
		}
		if err := y.s.eng.sync(); err != nil {
			y.s.stopFor(err)
			return
		}
	}
}
