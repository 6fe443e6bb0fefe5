package amqp

import (
	"syscall"
	"unsafe"
)

// canWriteNow and canReadNow say whether writeNow and readNow work on this
// system.
const (
	canWriteNow = true
	canReadNow  = true
)

// writeNow writes what a non-blocking socket takes, and returns how much that
// is; 0 after an error.
//
// Go's scheduler is not told of this call, nor of readNow's. Else each first one
// after some rest would wake its monitor, a thread that would then look every 20
// microseconds for calls that take long; these do not.
func writeNow(fd uintptr, b []byte) int {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n)
		case syscall.EINTR:
		default:
			return 0
		}
	}
}

// readNow reads what a non-blocking socket has; EAGAIN if it has nothing.
func readNow(fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
