// Package amqp is the AMQP 0-9-1 front door: listeners, the handshake,
// connections, channels, method handlers, deliveries, confirms and
// transactions. It holds all protocol state, and only that.
package amqp

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// A Config is what a Server needs. Zero values of the limits are RabbitMQ's
// defaults.
type Config struct {
	Log    *zap.Logger
	VHosts *vhost.Set
	Auth   *auth.Authority
	// Wait blocks while one of these stores is behind. A connection that has given
	// them something to write calls it before it reads on.
	Wait func(context.Context, queue.Writes) error

	// Product, Version, Platform and ClusterName are shown in connection.start.
	// Clients read product and version and change their behaviour.
	Product, Version, Platform, ClusterName string
	// Node is the name in error texts and traces.
	Node string

	ChannelMax       uint16        // offered in tune; 0 is 2047
	FrameMax         uint32        // offered in tune, in bytes; 0 is 131072
	Heartbeat        time.Duration // offered in tune; 0 is 60 s
	HandshakeTimeout time.Duration // from accept to connection.open-ok; 0 is 10 s
	MaxMessageSize   int           // largest body, in bytes; 0 is 16 MiB
	ConsumerTimeout  time.Duration // how long a delivery may stay unacknowledged; 0 is 30 min
	MaxConsumers     int           // per channel; 0 is no limit
	// InitialFrameMax is the largest frame before tuning, in bytes; 0 is 8192.
	InitialFrameMax uint32
	TLSTimeout      time.Duration // of the TLS handshake; 0 is 5 s
	NodeLimits      NodeLimits
	Intercept       Intercept
	IgnoreGlobalQoS bool // basic.qos with global is taken as without
	// Calm is true while there is little to do, as far as the program sees; nil if nobody
	// looks. It only makes things cheaper, and may change at any time.
	Calm *atomic.Bool
}

func (c Config) withDefaults() Config {
	if c.ChannelMax == 0 {
		c.ChannelMax = 2047
	}
	if c.FrameMax == 0 {
		c.FrameMax = 131072
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = 60 * time.Second
	}
	if c.InitialFrameMax == 0 {
		c.InitialFrameMax = 8192
	}
	if c.TLSTimeout == 0 {
		c.TLSTimeout = 5 * time.Second
	}
	if c.HandshakeTimeout == 0 {
		c.HandshakeTimeout = 10 * time.Second
	}
	if c.MaxMessageSize == 0 {
		c.MaxMessageSize = 16 << 20
	}
	if c.ConsumerTimeout == 0 {
		c.ConsumerTimeout = 30 * time.Minute
	}
	if c.Product == "" {
		c.Product = "Leveret"
	}
	if c.Platform == "" {
		c.Platform = runtime.Version()
	}
	if c.ClusterName == "" {
		c.ClusterName = c.Node
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Calm == nil {
		c.Calm = new(atomic.Bool)
	}
	return c
}

// A Server accepts and serves AMQP 0-9-1 connections.
type Server struct {
	cfg Config // immutable
	log *zap.Logger

	start     []byte  // the connection.start frame; immutable
	certStart []byte  // the same for a client with a verified certificate; immutable
	replies   replies // direct reply-to consumers
	alarms    alarms  // memory and disk
	pushes    pushes  // connections that readers will write to
	lookout   lookout // sockets of running connections
	users     userCounts
	wg        sync.WaitGroup
	stopped   atomic.Bool
	nextID    atomic.Uint64

	maintenance maintenance

	// mu guards the fields below. It is held for one map access.
	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
}

// NewServer returns a server that serves nothing yet.
func NewServer(cfg Config) *Server {
	s := &Server{
		cfg:       cfg.withDefaults(),
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*conn]struct{}),
	}
	s.log = s.cfg.Log
	s.start = s.startFrame(s.cfg.Auth.Mechanisms())
	s.certStart = s.startFrame(s.cfg.Auth.CertMechanisms())
	s.replies.init()
	s.users = userCounts{auth: s.cfg.Auth, counts: make(map[string]*userCount)}
	s.users.node = nodeCounts{limits: s.cfg.NodeLimits, name: s.cfg.Node}
	return s
}

// Serve accepts connections on l until Shutdown, or until l fails. It closes l.
// Cancelling ctx ends it, and closes the sockets of all connections.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.addListener(l) {
		return l.Close()
	}
	stop := context.AfterFunc(ctx, func() {
		l.Close()
		s.cutOff()
	})
	defer stop()
	for {
		sock, err := l.Accept()
		if err != nil {
			if s.stopped.Load() || ctx.Err() != nil {
				return nil
			}
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				continue
			}
			if temporary(err) { // out of file descriptors: others will be closed
				s.log.Error("a connection cannot be accepted; it is tried again: raise the limit of open files if that is reached (ulimit -n, LimitNOFILE in systemd, --ulimit nofile in docker)", zap.Error(err))
				waitOr(ctx, 100*time.Millisecond)
				continue
			}
			return err
		}
		s.wg.Go(func() { s.serveConn(ctx, sock) })
	}
}

func waitOr(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

// serveConn runs one connection to its end.
func (s *Server) serveConn(ctx context.Context, sock net.Conn) {
	c := newConn(s, sock)
	waits, cancel := context.WithCancel(context.Background()) // cutOff does what a child of ctx would, for less
	defer cancel()
	c.interrupt, c.interrupted = cancel, waits.Done()
	s.mu.Lock()
	if s.stopped.Load() || ctx.Err() != nil {
		s.mu.Unlock()
		sock.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	c.serve(waits)
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	if i := c.info.Load(); i != nil {
		s.users.past.connection(i.VHost, c.received.Load(), c.sent.Load())
	}
}

// cutOff closes the sockets of all connections, and ends what they wait for.
func (s *Server) cutOff() {
	for _, c := range s.connections() {
		c.interrupt()
		c.sock.Close()
	}
}

// connections is a snapshot of the open connections.
func (s *Server) connections() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	return list
}

// Shutdown stops accepting, tells every client that the broker stops (320) and
// waits until the connections have ended. Clients that do not answer are cut off
// after a while, and all that are left when ctx ends.
func (s *Server) Shutdown(ctx context.Context) {
	s.stopped.Store(true)
	s.mu.Lock()
	for l := range s.listeners {
		l.Close()
	}
	s.mu.Unlock()
	s.closeWhere(func(*conn) bool { return true },
		frames.Unboundf(frames.ConnectionForced, "broker forced connection closure with reason 'shutdown'"))
	done := make(chan struct{})
	go func() { // ends when the last connection has, which ctx sees to
		s.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.log.Warn("cutting off connections that did not close in time", zap.Int("connections", len(s.connections())))
	s.cutOff()
	<-done
}

// closeWhere closes the connections that match, with an error of the broker's.
func (s *Server) closeWhere(match func(*conn) bool, e *frames.Error) {
	for _, c := range s.connections() {
		if match(c) {
			c.force(e)
		}
	}
}

// CloseVHost closes the connections to a vhost that was deleted.
func (s *Server) CloseVHost(name string) {
	s.closeWhere(func(c *conn) bool { return c.vhostName() == name },
		frames.Unboundf(frames.ConnectionForced, "vhost '%s' is deleted", name))
}

// CloseUser closes the connections of a user that was deleted.
func (s *Server) CloseUser(name string) {
	s.closeWhere(func(c *conn) bool { return c.userName() == name },
		frames.Unboundf(frames.ConnectionForced, "user '%s' is deleted", name))
}
