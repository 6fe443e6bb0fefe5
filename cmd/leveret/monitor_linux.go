package main

import (
	"os"
	"slices"
	"strconv"
)

// Slacks of Go's monitor thread: by how much Linux may let it sleep longer than it wants
// to, in nanoseconds. usualSlack is Linux's own.
const (
	usualSlack = "50000"
	calmSlack  = "500000"
)

// calmMonitor lets Go's monitor thread sleep longer while there is little to do, or not.
// It wakes every 70 microseconds to see whether another thread is stuck in a system call,
// a tenth of what a broker with a few thousand messages a second used. What it would find
// waits up to half a millisecond more, which is why it is for calm times only.
//
// Linux lets nobody but root, or who has CAP_SYS_NICE, do that; a broker of others goes
// without.
func calmMonitor(calm bool) {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(threads) < 2 {
		return
	}
	var ids []int
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	monitor := strconv.Itoa(ids[1]) // the first that Go starts, before any of the program's
	slack := usualSlack
	if calm {
		slack = calmSlack
	}
	_ = os.WriteFile("/proc/"+monitor+"/timerslack_ns", []byte(slack), 0)
}
