//go:build !unix

package main

import "io"

// detach is for Unix.
func detach([]string, io.Writer) error {
	return exitf(exitUsage, "-detached is not there on this system: make a service of the program")
}
