// Package broker is the whole broker as one value: it builds the parts from a
// config.Config, starts them in order and stops them in reverse. A program
// that embeds a broker needs this package and config only.
package broker

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/management"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/vhost"
)

// A Broker is one node. It is started once and stopped once; Start and Stop
// are called one after the other, from any goroutine.
type Broker struct {
	// LogLevel changes what is logged, for SetLogLevel. It is set before Start,
	// by whoever made the log; nil is a log that cannot be changed.
	LogLevel func(category, level string) error
	// Settings is the configuration as text, for administrators who ask for it over
	// the HTTP API. It is set before Start; "" is not known.
	Settings string
	// Opened is called by Start once the data directory is this broker's alone, before
	// what is in it is recovered. It is set before Start; nil is nothing to do. Its
	// error ends the start.
	Opened func() error

	cfg    config.Config // immutable
	log    *zap.Logger   // immutable
	logs   *logExchange  // immutable
	failed chan error    // immutable; capacity 1
	calm   atomic.Bool   // the server's, too

	resetting sync.Mutex // held by a reset, for seconds or more; a second one does not wait

	// The parts below are set by Start and taken down by Stop, in this order
	// and the reverse. What Start did not reach is nil.
	store              persistence.Store
	spill              *spill // nil without a disk
	authority          *auth.Authority
	vhosts             *vhost.Set
	listeners          []amqpListener // at least one
	acceptors          []*acceptor    // of the listeners
	server             *amqp.Server
	alarms             *alarms
	apiListener        net.Listener       // nil if there is no HTTP API without TLS
	apiTLSListener     net.Listener       // nil if there is none with TLS
	metricsListener    net.Listener       // nil if there are no metrics without TLS
	metricsTLSListener net.Listener       // nil if there are none with TLS
	adminListener      *adminListener     // nil in memory, or if the socket cannot be
	pprofListener      net.Listener       // nil if there are no profiles
	api                *management.Server // nil if there is none of these, and nothing to import
	suspendable        []*suspendable     // what is below the listeners
	certificates       []*certificate     // of listeners with TLS
	cancel             context.CancelFunc // ends the goroutines
	running            sync.WaitGroup     // the acceptors, the alarms, the log exchange, the HTTP API
	stopping           atomic.Bool
}

// New makes a broker that is not started yet. It logs nothing if log is nil.
func New(cfg config.Config, log *zap.Logger) *Broker {
	if log == nil {
		log = zap.NewNop()
	}
	logs := newLogExchange(cfg)
	return &Broker{cfg: cfg, log: log.WithOptions(zap.WrapCore(logs.tee(cfg))), logs: logs, failed: make(chan error, 1)}
}

// Start opens the data directory, recovers what is in it, and accepts clients
// when it returns. The address is the one it listens on, or the first of them:
// with port 0 in the configuration, the port it got. After an error nothing is
// left running.
func (b *Broker) Start() (net.Addr, error) {
	began := time.Now()
	b.logSettings()
	if err := b.build(); err != nil {
		b.closeListeners()
		b.server = nil
		return nil, errors.Join(err, b.stopManagement(context.Background()), b.close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.running.Go(func() { b.alarms.run(ctx) })
	b.running.Go(func() { b.logs.run(ctx) })
	b.logs.vhosts.Store(b.vhosts)
	b.watchCertificates(ctx)
	b.startManagement(ctx)
	if l := b.pprofListener; l != nil {
		b.running.Go(func() { serveProfiles(ctx, l, b.log) })
	}
	b.acceptAll(ctx)
	// Tools that start a broker wait for this line of RabbitMQ's.
	b.log.Info("Server startup complete; 0 plugins started.", zap.Int64("ms", time.Since(began).Milliseconds()))
	return b.listeners[0].Addr(), nil
}

// SetCalm says that there is little to do for now, as far as the program sees, or that
// there is more. It only makes things cheaper (see amqp.Config), and may be called at any
// time, before Start and after Stop, too.
func (b *Broker) SetCalm(calm bool) { b.calm.Store(calm) }

// Failed gets the reason if the broker ceases to accept clients by itself. It
// must be stopped all the same.
func (b *Broker) Failed() <-chan error { return b.failed }

// Stop ends the broker in order: it accepts no more clients, closes the
// connections with 320 and waits for them until ctx ends, returns what they
// had not acknowledged to the queues, commits and closes the store. What was
// confirmed is safe whatever Stop returns.
func (b *Broker) Stop(ctx context.Context) error {
	if b.server == nil {
		return errors.New("the broker is not running")
	}
	b.log.Info("stopping")
	b.stopping.Store(true)
	err := b.stopManagement(ctx)
	b.server.Shutdown(ctx)
	b.logs.vhosts.Store(nil)
	b.cancel()
	b.running.Wait()
	b.server = nil
	err = errors.Join(err, b.close())
	b.log.Info("stopped")
	return err
}

// SetLogLevel changes the level of what is logged while the broker runs: of one
// category of lines (config.Categories), or with the category "" of all.
func (b *Broker) SetLogLevel(category, level string) error {
	if b.LogLevel == nil {
		return errors.New("the level of this log cannot be changed while the broker runs")
	}
	if err := b.LogLevel(category, level); err != nil {
		return err
	}
	if err := b.logs.levels.Set(category, level); err != nil {
		return err
	}
	b.log.Info("log level changed", zap.String("of", cmp.Or(category, "all")), zap.String("level", level))
	return nil
}

// close takes down what lies under the server, topmost first.
func (b *Broker) close() error {
	var err error
	if b.vhosts != nil {
		err = b.vhosts.Stop()
		b.vhosts = nil
	}
	err = errors.Join(err, b.spill.close())
	b.spill = nil
	if b.store != nil {
		err = errors.Join(err, b.store.Close())
		b.store = nil
	}
	return err
}

// fewFiles is a limit of open files that a broker soon meets.
const fewFiles = 4096

// logSettings says what an operator may want to know of a start.
func (b *Broker) logSettings() {
	data := b.cfg.DataDir
	if b.cfg.InMemory {
		data = "none: in memory, nothing survives a stop"
	}
	b.log.Info("starting Leveret "+Version(),
		zap.String("data-dir", data),
		zap.Strings("config-files", b.cfg.Files),
		zap.String("durability", string(b.cfg.Durability)),
		zap.String("profile", string(b.cfg.Profile)),
		zap.Int64("memory-limit", b.cfg.MemoryLimit))
	if n, ok := openFilesLimit(); ok {
		b.log.Info("open files and sockets are limited", zap.Uint64("limit", n))
		if n < fewFiles {
			b.log.Warn("few clients can connect: raise the limit of open files (ulimit -n, LimitNOFILE in systemd, --ulimit nofile in docker)", zap.Uint64("limit", n))
		}
	}
	for _, note := range b.cfg.Notes {
		b.log.Info(note)
	}
}
