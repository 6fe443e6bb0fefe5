//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes says when the terminal changes its size, until forget is called.
func resizes() (resized <-chan os.Signal, forget func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}
