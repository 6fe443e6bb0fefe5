//go:build !linux

package amqp

// A poller does nothing on this system: sockets are left to Go's own poller.
type poller struct{}

func (*poller) open() bool   { return false }
func (*poller) close()       {}
func (*poller) add(int)      {}
func (*poller) remove(int)   {}
func (*poller) ready() []int { return nil }
