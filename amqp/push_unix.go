//go:build unix && !linux

package amqp

import (
	"errors"
	"syscall"
)

// canWriteNow and canReadNow say whether writeNow and readNow work on this
// system.
const (
	canWriteNow = true
	canReadNow  = false
)

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

func readNow(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.ENOSYS }
