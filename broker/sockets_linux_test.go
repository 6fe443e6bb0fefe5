package broker

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leveretmq/leveret/config"
)

// The system is told how many connections may wait to be accepted: it shows that
// for a listener in place of what has been acknowledged.
func TestBacklog(t *testing.T) {
	l, err := listenTCP("tcp", "127.0.0.1:0", config.TCP{Backlog: 7, NoDelay: true, KeepAlive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	var infoErr error
	if err := raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil || infoErr != nil {
		t.Fatal(err, infoErr)
	}
	if info.Sacked != 7 {
		t.Errorf("%d connections may wait, want 7", info.Sacked)
	}
}
