//go:build !unix

package main

import "os"

// resizes never says anything: the size is seen at the next look.
func resizes() (resized <-chan os.Signal, forget func()) { return nil, func() {} }
