//go:build !unix

package main

import (
	"errors"
	"os"
)

// processRuns says whether there is a process of this number.
func processRuns(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release() // it was only looked for
	return true
}

// terminate asks a process to end, which this system has no way for.
func terminate(int) error { return errors.New("this system cannot ask a process to end in order") }
