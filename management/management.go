// Package management is the HTTP front door: the management API that RabbitMQ's
// tools speak, definitions, health checks, and the rates and histories behind
// its figures.
//
// It is an ordinary client of the layers below: it calls the same functions as
// an AMQP method handler and gets the same errors. Reads take snapshots.
package management

import (
	"context"
	"crypto/x509"
	"errors"
	"log"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// Config is what a Server needs. Log, VHosts, Auth and Store must be there.
type Config struct {
	Log    *zap.Logger
	VHosts *vhost.Set
	Auth   *auth.Authority
	Store  persistence.Store
	// Connections are what clients have open; nil is none.
	Connections Connections
	// Alarms names the resources whose alarm is up: "memory", "disk". Nil asks
	// the store about the disk only.
	Alarms func() []string
	// Certificates are those that the broker's listeners use; nil is none.
	Certificates func() []Certificate
	// Maintenance puts the node into maintenance; nil is not at all.
	Maintenance Maintainer
	// Operator changes settings while the node runs; nil is nobody.
	Operator Operator

	// Node is the node's name; ClusterName is the cluster's until somebody
	// renames it, "" is the node's.
	Node, ClusterName string
	// Product and ProductVersion are ours. CompatibleVersion is the RabbitMQ
	// version that tools choose features by; "" is 4.0.5.
	Product, ProductVersion, CompatibleVersion string
	// DefaultQueueType is for vhosts that have none; "" is classic.
	DefaultQueueType string
	// ConsumerTimeout is how long a delivery may stay unacknowledged where
	// neither queue nor policy says so; 0 is 30 minutes.
	ConsumerTimeout time.Duration
	// DataDir, and the files of configuration and log, are shown for the node.
	DataDir               string
	ConfigFiles, LogFiles []string
	// Settings is the configuration in force, as text for administrators; "" is not
	// known.
	Settings string
	// MemoryLimit is the broker's, in bytes.
	MemoryLimit int64
	// QueueMemory is what waiting messages may take of it; nil is not shown.
	QueueMemory *queue.Budget

	// PathPrefix is put before every path, for instance "/mq"; "" is none.
	PathPrefix string
	// MaxBodySize is the largest request body, in bytes; 0 is 20 MB.
	MaxBodySize int64
	// AllowOrigins are the origins that browsers may call from, or "*"; nil is
	// none (RabbitMQ 4.0: management.cors.allow_origins).
	AllowOrigins []string
	// CORSMaxAge is how long browsers may remember that; 0 is 30 minutes.
	CORSMaxAge time.Duration
	// DisableStats leaves figures out of all answers; EnableQueueTotals keeps
	// the numbers of messages all the same.
	DisableStats, EnableQueueTotals bool
	Options                         Options
}

// Connections is what the API needs of the servers that clients are connected
// to. All are snapshots.
type Connections interface {
	Connections() []Connection
	Channels() []Channel
	Consumers() []Consumer
	// CloseConnection closes the connection with this name; the client gets a
	// 320 with the reason. It says whether there was one.
	CloseConnection(name, reason string) bool
	// Unacked lists deliveries from a queue that their clients have not settled:
	// at most limit of them after the first offset ones, and how many there are.
	Unacked(vhost, queue string, offset, limit int) (page []Unacked, total int)
	// Churn counts what was opened and closed since the start.
	Churn() Churn
	// Past is what connections and channels that are gone had counted, by vhost.
	// One that is in it is in no snapshot that is taken later.
	Past() map[string]Past
	// ConfirmLatency says how long batches of publishes took to be confirmed.
	ConfirmLatency() message.Distribution
}

// An Unacked is a snapshot of one delivery that its client has not settled.
type Unacked struct {
	Connection, User string
	Channel          uint16
	Consumer         string // its tag; "" of a basic.get
	DeliveryTag      uint64
	At               time.Time // when it was delivered
	Redelivered      bool
	Count            uint32 // how often it was delivered before
	Message          *message.Message
}

// Churn counts the connections and channels that were opened and closed since the
// start.
type Churn struct {
	ConnectionsOpened, ConnectionsClosed uint64
	ChannelsOpened, ChannelsClosed       uint64
}

// Past is what connections and channels that are gone had counted.
type Past struct {
	Received, Sent                           uint64 // bytes
	Published, Confirmable                   uint64 // Confirmable are those published on channels that confirm
	Confirmed, Returned, Dropped             uint64
	Delivered, DeliveredNoAck, Got, GotNoAck uint64
	GetEmpty, Acked, Redelivered             uint64
}

// A Connection is a snapshot of one open connection.
type Connection struct {
	Name             string // "peer:port -> host:port"
	UserProvidedName string // the client property connection_name
	User, VHost      string
	Mechanism        string
	Peer, Host       netip.AddrPort
	ConnectedAt      time.Time
	ClientProperties frames.Table
	ChannelMax       uint16
	FrameMax         uint32 // in bytes
	Heartbeat        time.Duration
	Received, Sent   uint64 // bytes
	Reads, Writes    uint64 // of the socket
	Pending          int    // bytes that wait to be written, about
	Channels         int
	TLS              bool
	TLSVersion       string            // "tlsv1.3"; "" without TLS
	TLSCipher        string            // the suite's name; "" without TLS
	PeerCertificate  *x509.Certificate // the client's, verified; nil if there is none
	Blocked          bool              // not read, because of an alarm
}

// A Channel is a snapshot of one open channel.
type Channel struct {
	Connection     string // its name
	Number         uint16
	User, VHost    string
	Prefetch       int // of consumers started from now on; 0 is no limit
	GlobalPrefetch int // of the whole channel; 0 is no limit
	Confirm, Tx    bool
	Closing        bool // the broker has closed it, and the client not said so yet
	Consumers      int
	Unacked        int
	Unconfirmed    int
	Uncommitted    int // published in a transaction that is not committed
	AcksWaiting    int // deliveries settled in it

	// Counters since the channel was opened.
	Published, Confirmed, Returned           uint64
	Confirmable                              uint64 // published since the channel confirms
	Dropped                                  uint64 // neither routed nor to be returned
	Delivered, DeliveredNoAck, Got, GotNoAck uint64
	GetEmpty, Acked, Redelivered             uint64
}

// A Consumer is a snapshot of one consumer.
type Consumer struct {
	Connection, User string
	VHost, Queue     string
	Channel          uint16
	Tag              string
	AckRequired      bool
	Exclusive        bool
	Prefetch         int
	Arguments        frames.Table
}

// noConnections is for a Config without Connections.
type noConnections struct{}

func (noConnections) Connections() []Connection           { return nil }
func (noConnections) Channels() []Channel                 { return nil }
func (noConnections) Consumers() []Consumer               { return nil }
func (noConnections) CloseConnection(string, string) bool { return false }
func (noConnections) Churn() Churn                        { return Churn{} }
func (noConnections) Past() map[string]Past               { return nil }
func (noConnections) ConfirmLatency() message.Distribution {
	return message.Distribution{}
}
func (noConnections) Unacked(string, string, int, int) ([]Unacked, int) {
	return nil, 0
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	if c.Connections == nil {
		c.Connections = noConnections{}
	}
	if c.ClusterName == "" {
		c.ClusterName = c.Node
	}
	if c.Product == "" {
		c.Product = "Leveret"
	}
	if c.CompatibleVersion == "" {
		c.CompatibleVersion = "4.0.5"
	}
	if c.ProductVersion == "" {
		c.ProductVersion = c.CompatibleVersion
	}
	if c.DefaultQueueType == "" {
		c.DefaultQueueType = "classic"
	}
	if c.ConsumerTimeout == 0 {
		c.ConsumerTimeout = 30 * time.Minute
	}
	if c.MaxBodySize == 0 {
		c.MaxBodySize = 20_000_000
	}
	if c.CORSMaxAge == 0 {
		c.CORSMaxAge = 30 * time.Minute
	}
	return c
}

// A Server answers the management API. It is an http.Handler; Serve puts it on
// a listener. Its methods are safe for concurrent use.
type Server struct {
	cfg     Config           // immutable
	log     *zap.Logger      // immutable
	router  *router          // immutable
	files   map[string]*file // immutable
	started time.Time        // immutable

	http    http.Server
	metrics http.Server  // see ServeMetrics
	local   *http.Server // see ServeLocal
	fresh   newcomers    // of all three
	totals  *totalsCollector
	scrapes scrapes
	closing chan struct{} // closed by Shutdown: streams end
	closed  sync.Once
	stop    context.CancelFunc // ends the sampler
	sampler *sampler
	queues  queueLists
	alive   sync.Mutex    // held for one aliveness test
	gzips   sync.Pool     // of *gzip.Writer
	buffers sync.Pool     // of *[]byte; see buffer
	heavy   chan struct{} // held while a long list is made
	streams chan struct{} // held while a client listens to events
	running sync.WaitGroup

	mu        sync.Mutex // guards the fields below; held for one access
	listeners []listener
}

// A listener is one address that the broker listens on.
type listener struct {
	protocol string // amqp, amqp/ssl, http, ...
	addr     netip.AddrPort
}

// maxHeader bounds a request's first line and header, in bytes: who sends them may be
// anybody, and some of it gets into the log.
const maxHeader = 64 << 10

// New returns a server and starts its sampler, which Shutdown ends.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), started: time.Now()}
	s.log = s.cfg.Log
	s.closing = make(chan struct{})
	s.heavy = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/4))
	s.streams = make(chan struct{}, maxStreams)
	s.router = newRouter(s.cfg.PathPrefix, routes())
	s.files = filesBelow(s.router.prefix)
	s.http = http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: debugLog(s.log), ConnState: s.fresh.changed}
	s.local = s.newLocalServer()
	s.totals = newTotalsCollector(s)
	s.metrics = http.Server{Handler: s.metricsHandler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: debugLog(s.log), ConnState: s.fresh.changed}
	s.sampler = newSampler(&s.cfg)
	s.sampler.sample() // what is there now has not just come
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.running.Go(func() { s.sampler.run(ctx) }) // ends with ctx
	return s
}

// debugLog takes what an http.Server has to say: clients that spoke no HTTP or
// failed the TLS handshake, which is for who looks into that.
func debugLog(to *zap.Logger) *log.Logger {
	l, err := zap.NewStdLogAt(to, zap.DebugLevel)
	if err != nil {
		panic(err) // the level is a valid one
	}
	return l
}

// AddListener tells the server of an address that the broker listens on, for
// the overview and the health checks. Protocols are amqp, amqp/ssl, http,
// https, http/prometheus, https/prometheus, clustering.
func (s *Server) AddListener(protocol string, addr net.Addr) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener{protocol, tcp.AddrPort()})
}

func (s *Server) listening() []listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]listener(nil), s.listeners...)
}

// Serve answers requests on l until Shutdown, until ctx ends, or until l fails.
// It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.AddListener("http", l.Addr())
	stop := context.AfterFunc(ctx, func() { s.http.Close() })
	defer stop()
	err := s.http.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown ends the sampler, stops accepting and waits for the requests under
// way; when ctx ends first it cuts them off.
func (s *Server) Shutdown(ctx context.Context) error {
	s.closed.Do(func() { close(s.closing) })
	s.stop()
	s.running.Wait()
	s.fresh.leave()
	var err error
	late := false
	for _, server := range []*http.Server{&s.http, s.local, &s.metrics} {
		e := server.Shutdown(ctx)
		if e == nil {
			continue
		}
		server.Close()
		if errors.Is(e, ctx.Err()) {
			late = true
		} else {
			err = errors.Join(err, e)
		}
	}
	if late {
		s.log.Warn("cutting off HTTP requests that did not end in time")
	}
	return err
}
