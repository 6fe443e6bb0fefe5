package main

import (
	"os"
	"runtime"
	"time"
)

// A broker with little to do is cheaper on one processor. Go wakes a second thread
// whenever a goroutine becomes ready while another runs; with a few thousand small
// messages a second that thread finds nothing, and looking for work and going to
// sleep again was a tenth of what a message cost. So while little is used, see lowUse,
// Go schedules on one.
//
// The disk is a reason not to: files are mapped, and a processor that waits for a
// page runs nothing else. Nobody else may wait for that, so while anything is
// written or read Go has all processors.

const (
	// lowUse is the share of one processor below which one is enough, highUse the
	// share above which it is not. One processor does the same with less, so they
	// are well apart.
	lowUse, highUse = 0.6, 0.75
	// calmLooks is how many looks in a row must find little to do.
	calmLooks = 5
	// lookInterval is the time between two looks, idleInterval that while nothing at
	// all is done.
	lookInterval, idleInterval = 100 * time.Millisecond, 500 * time.Millisecond
	idleUse                    = 0.005
)

// A usage is what the process has used so far.
type usage struct {
	cpu  time.Duration
	disk int64 // blocks read and written
}

// tuneProcs follows the load with the number of processors that Go schedules on, for
// as long as the process runs, and says whether there is little to do. It is the
// program's to do, not an embedded broker's, and whoever sets Go's own variable knows
// why.
func tuneProcs(calm func(bool)) {
	if _, ok := processUsage(); !ok || os.Getenv("GOMAXPROCS") != "" || runtime.GOMAXPROCS(0) == 1 {
		return
	}
	set := func(one bool) {
		setProcs(one)
		calm(one)
	}
	go (&procs{set: set}).run()
}

// setProcs has Go schedule on one processor, or on all that it may use, which it
// follows if a container's limit changes.
func setProcs(one bool) {
	if one {
		runtime.GOMAXPROCS(1)
	} else {
		runtime.SetDefaultGOMAXPROCS()
	}
	calmMonitor(one)
}

// procs decides from one look to the next how many processors are needed. One
// goroutine uses it.
type procs struct {
	set  func(one bool)
	one  bool
	calm int // looks in a row that found little to do
}

func (p *procs) run() {
	before, _ := processUsage()
	at := time.Now()
	interval := lookInterval
	for {
		time.Sleep(interval)
		now, _ := processUsage()
		t := time.Now()
		share := float64(now.cpu-before.cpu) / float64(t.Sub(at))
		p.look(share, now.disk != before.disk)
		before, at, interval = now, t, lookInterval
		if share < idleUse {
			interval = idleInterval
		}
	}
}

// look takes in how many processors were used since the last look, and whether the
// disk was.
func (p *procs) look(used float64, disk bool) {
	switch {
	case p.one && (disk || used > highUse):
		p.one, p.calm = false, 0
		p.set(false)
	case p.one:
	case disk || used > lowUse:
		p.calm = 0
	default:
		if p.calm++; p.calm == calmLooks {
			p.one = true
			p.set(true)
		}
	}
}
