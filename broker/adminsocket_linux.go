package broker

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerUser is the user that the process at the other end had when it
// connected.
func peerUser(c net.Conn) (uid int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn() // a Unix socket has one
	if err != nil {
		return -1, err
	}
	uid = -1
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, e := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if failed = e; e == nil {
			uid = int(cred.Uid)
		}
	})
	if err == nil {
		err = failed
	}
	return uid, err
}
