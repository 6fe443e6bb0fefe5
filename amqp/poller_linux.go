package amqp

import "syscall"

// A poller asks Linux for sockets with something to read. Its owner's lock guards it.
type poller struct {
	fd     int
	events [64]syscall.EpollEvent
	fds    []int // scratch of ready
}

// edge is EPOLLET, which package syscall has as a negative number: what has come is
// reported once.
const edge = 1 << 31

func (p *poller) open() bool {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	p.fd = fd
	return err == nil
}

func (p *poller) close() { syscall.Close(p.fd) }

func (p *poller) add(fd int) {
	// An error leaves the socket to Go's own poller.
	_ = syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN | edge, Fd: int32(fd)})
}

func (p *poller) remove(fd int) {
	_ = syscall.EpollCtl(p.fd, syscall.EPOLL_CTL_DEL, fd, nil) // closing the socket does the same
}

// ready returns up to 64 sockets that have got something since they were last
// returned; the slice is good until the next call.
func (p *poller) ready() []int {
	n, err := syscall.EpollWait(p.fd, p.events[:], 0)
	if err != nil {
		return nil // interrupted, or not open
	}
	p.fds = p.fds[:0]
	for i := range p.events[:n] {
		p.fds = append(p.fds, int(p.events[i].Fd))
	}
	return p.fds
}
