package broker

import (
	"context"
	"net"

	"github.com/leveretmq/leveret/config"
)

// listenTCP opens a listener with the options of its sockets.
func listenTCP(network, address string, o config.TCP) (net.Listener, error) {
	cfg := net.ListenConfig{}
	if !o.KeepAlive {
		cfg.KeepAlive = -1
	}
	l, err := cfg.Listen(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	if o.Backlog > 0 {
		if err := setBacklog(l, o.Backlog); err != nil {
			_ = l.Close() // nobody has connected
			return nil, err
		}
	}
	if o.NoDelay && o.SendBuffer == 0 && o.ReceiveBuffer == 0 { // what Go does by itself
		return l, nil
	}
	return socketListener{l, o}, nil
}

// A socketListener sets the options of what it accepts.
type socketListener struct {
	net.Listener
	options config.TCP
}

// Accept implements net.Listener.
func (l socketListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	tcp, ok := c.(*net.TCPConn)
	if err != nil || !ok {
		return c, err
	}
	// A socket whose options cannot be set is closed already: its first read
	// says so.
	_ = tcp.SetNoDelay(l.options.NoDelay)
	if l.options.SendBuffer > 0 {
		_ = tcp.SetWriteBuffer(l.options.SendBuffer)
	}
	if l.options.ReceiveBuffer > 0 {
		_ = tcp.SetReadBuffer(l.options.ReceiveBuffer)
	}
	return tcp, nil
}
