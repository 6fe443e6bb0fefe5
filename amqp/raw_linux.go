package amqp

import (
	"io"
	"os"
	"runtime"
	"syscall"

	"github.com/leveretmq/leveret/frames"
)

// canBeQuiet says whether readQuietly and writeQuietly work on this system.
const canBeQuiet = true

// readQuietly reads what a non-blocking socket has, without telling Go. It is not done
// if that is nothing.
func readQuietly(fd uintptr, b []byte) (n int, done bool, err error) {
	got, errno := quietly(syscall.SYS_READ, fd, b)
	switch {
	case errno == syscall.EAGAIN:
		return 0, false, nil
	case errno != 0:
		return 0, true, os.NewSyscallError("read", errno)
	case got == 0:
		return 0, true, io.EOF
	}
	return got, true, nil
}

// writeQuietly is writeNow without telling Go.
func writeQuietly(fd uintptr, b []byte) int {
	n, errno := quietly(syscall.SYS_WRITE, fd, b)
	if errno != 0 {
		return 0
	}
	return n
}

// quietly makes a system call that never waits.
func quietly(call, fd uintptr, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(call, fd, frames.Address(b), uintptr(len(b)))
		runtime.KeepAlive(b)
		if errno != syscall.EINTR {
			return int(n), errno
		}
	}
}
