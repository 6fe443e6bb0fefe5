package main

import (
	"syscall"
	"time"
)

// processUsage is what the process has used so far; it is known on Linux only. Pages
// of mapped files count as soon as they are read in or first written to.
func processUsage() (usage, bool) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return usage{}, false
	}
	return usage{time.Duration(r.Utime.Nano() + r.Stime.Nano()), int64(r.Inblock) + int64(r.Oublock)}, true
}
