//go:build !linux

package bench

import (
	"errors"
	"time"
)

// ProcessTree needs /proc.
func ProcessTree(int) ([]int, error) {
	return nil, errors.New("broker-pid: what a process uses can be read on Linux only")
}

func readUsage([]int) usage { return usage{} }

func selfCPU() time.Duration { return 0 }

func pause(d time.Duration) { time.Sleep(d) }
