//go:build !unix

package amqp

import "syscall"

// canWriteNow and canReadNow say whether writeNow and readNow work on this
// system.
const (
	canWriteNow = false
	canReadNow  = false
)

func writeNow(uintptr, []byte) int { return 0 }

func readNow(uintptr, []byte) (int, syscall.Errno) { return 0, syscall.EINVAL }
