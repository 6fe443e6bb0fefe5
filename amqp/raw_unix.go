//go:build unix

package amqp

import (
	"errors"
	"syscall"
)

// canWriteNow says whether writeNow works on this system.
const canWriteNow = true

// writeNow writes what a non-blocking socket takes, and returns how much that
// is; 0 after an error.
func writeNow(fd uintptr, b []byte) int {
	for {
		n, err := syscall.Write(int(fd), b)
		if !errors.Is(err, syscall.EINTR) {
			return max(n, 0)
		}
	}
}
