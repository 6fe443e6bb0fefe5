//go:build unix

package broker

import (
	"errors"
	"net"
	"syscall"
)

// setBacklog sets how many connections may wait to be accepted: listen(2) may be
// called again for that.
func setBacklog(l net.Listener, n int) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var listenErr error
	err = raw.Control(func(fd uintptr) { listenErr = syscall.Listen(int(fd), n) })
	return errors.Join(err, listenErr)
}

// openFilesLimit is how many files and sockets the process may have open. Go has
// raised it to the most there may be when the process started.
func openFilesLimit() (n uint64, ok bool) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, false
	}
	return uint64(r.Cur), true
}
