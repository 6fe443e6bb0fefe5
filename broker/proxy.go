package broker

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	proxyproto "github.com/pires/go-proxyproto"
	"go.uber.org/zap"
)

// A proxyListener accepts connections that begin with a header of the PROXY
// protocol, version 1 or 2: the addresses in it take the place of the proxy's.
// Others are closed. Headers are read beside one another, so that a slow one
// keeps nobody waiting.
type proxyListener struct {
	net.Listener
	timeout  time.Duration // for the header; immutable
	log      *zap.Logger   // immutable
	accepted chan accepted
	done     chan struct{}  // closed by Close
	running  sync.WaitGroup // the acceptor, and a goroutine for each header

	mu      sync.Mutex // guards the fields below; held for one access
	closed  bool
	waiting map[net.Conn]struct{} // for their header
}

type accepted struct {
	conn net.Conn
	err  error
}

// newProxyListener takes a listener over. Close ends its goroutines.
func newProxyListener(l net.Listener, timeout time.Duration, log *zap.Logger) *proxyListener {
	p := &proxyListener{
		Listener: l, timeout: timeout, log: log,
		accepted: make(chan accepted), done: make(chan struct{}), waiting: make(map[net.Conn]struct{}),
	}
	p.running.Go(p.run)
	return p
}

// Accept implements net.Listener.
func (p *proxyListener) Accept() (net.Conn, error) {
	select {
	case a := <-p.accepted:
		return a.conn, a.err
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections whose header has not come are
// closed, too.
func (p *proxyListener) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return net.ErrClosed
	}
	p.closed = true
	close(p.done)
	err := p.Listener.Close()
	for c := range p.waiting {
		_ = c.Close() // nobody speaks to it yet
	}
	p.mu.Unlock()
	p.running.Wait()
	return err
}

// run accepts until the listener is closed. An error is handed to whoever
// accepts from this listener, who knows whether to go on.
func (p *proxyListener) run() {
	for {
		c, err := p.Listener.Accept()
		if err != nil {
			p.hand(nil, err)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		if !p.wait(c) {
			_ = c.Close()
			return
		}
		p.running.Go(func() { p.readHeader(c) })
	}
}

// wait notes that a connection's header is to come, unless all is over.
func (p *proxyListener) wait(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.waiting[c] = struct{}{}
	}
	return !p.closed
}

// readHeader takes the header off a connection and hands it on.
func (p *proxyListener) readHeader(c net.Conn) {
	proxied, err := p.proxied(c)
	p.mu.Lock()
	delete(p.waiting, c)
	p.mu.Unlock()
	switch {
	case err == nil:
		p.hand(proxied, nil)
		return
	case !errors.Is(err, io.EOF): // a health check that only connects is no error
		p.log.Warn("closing connection: with proxy_protocol it must begin with a header of the PROXY protocol",
			zap.Stringer("peer", c.RemoteAddr()), zap.Error(err))
	}
	_ = c.Close() // it was never open for AMQP
}

// maxProxyHeader is the longest header that is taken, in bytes: the fixed part of
// version 2, the addresses and some more fields.
const maxProxyHeader = 4 << 10

// proxied reads the header. It is io.EOF if nothing came.
func (p *proxyListener) proxied(c net.Conn) (*proxiedConn, error) {
	if err := c.SetReadDeadline(time.Now().Add(p.timeout)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(io.LimitReader(c, maxProxyHeader), 256)
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	h, err := proxyproto.Read(r)
	if err != nil {
		return nil, err
	}
	pc := &proxiedConn{Conn: c, peer: c.RemoteAddr(), host: c.LocalAddr()}
	if rest, err := r.Peek(r.Buffered()); err == nil {
		pc.rest = append(pc.rest, rest...)
	}
	source, isTCP := h.SourceAddr.(*net.TCPAddr)
	if destination, ok := h.DestinationAddr.(*net.TCPAddr); ok && isTCP && !h.Command.IsLocal() { // else it is the proxy itself
		pc.peer, pc.host = source, destination
	}
	return pc, c.SetReadDeadline(time.Time{})
}

// A proxiedConn is a connection behind its header.
type proxiedConn struct {
	net.Conn
	peer, host net.Addr // immutable
	rest       []byte   // came with the header; the reader's
}

// Read implements net.Conn.
func (c *proxiedConn) Read(b []byte) (int, error) {
	if len(c.rest) > 0 {
		n := copy(b, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// RemoteAddr implements net.Conn: who the proxy says the client is.
func (c *proxiedConn) RemoteAddr() net.Addr { return c.peer }

// ProxyAddr is where the connection really comes from. Only a proxy on this host
// can say that the client is on it, too.
func (c *proxiedConn) ProxyAddr() net.Addr { return c.Conn.RemoteAddr() }

// LocalAddr implements net.Conn.
func (c *proxiedConn) LocalAddr() net.Addr { return c.host }

// hand gives a result to Accept, or closes the connection if nobody accepts any
// more.
func (p *proxyListener) hand(c net.Conn, err error) {
	select {
	case p.accepted <- accepted{c, err}:
	case <-p.done:
		if c != nil {
			_ = c.Close()
		}
	}
}
