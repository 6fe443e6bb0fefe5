package broker

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/classic"
	"github.com/leveretmq/leveret/queue/quorum"
	"github.com/leveretmq/leveret/queue/stream"
	"github.com/leveretmq/leveret/vhost"
)

// compatibleVersion is the version clients are told: they choose what they may
// use by comparing it with RabbitMQ's.
const compatibleVersion = "4.0.5"

// build makes the parts from the bottom up and opens the listeners.
func (b *Broker) build() error {
	var err error
	if b.store, err = openStore(b.cfg, b.log); err != nil {
		return err
	}
	if b.Opened != nil {
		if err := b.Opened(); err != nil {
			return err
		}
	}
	if b.spill, err = newSpill(b.cfg, b.log); err != nil {
		return err
	}
	if b.authority, err = auth.New(b.authConfig(), b.store); err != nil {
		return fmt.Errorf("read users: %w", err)
	}
	memory := queue.NewBudget(b.cfg.QueueMemory)
	if b.vhosts, err = vhost.Open(b.vhostConfig(memory)); err != nil {
		return fmt.Errorf("recover the queues: %w", err)
	}
	if err := b.makeDefaultVHost(); err != nil {
		return err
	}
	if err := b.openListeners(); err != nil {
		return err
	}
	if b.pprofListener, err = openProfiles(b.cfg.PprofListen); err != nil {
		return err
	}
	b.server = amqp.NewServer(b.serverConfig())
	b.authority.OnUserDeleted = b.server.CloseUser
	b.authority.OnEvent = b.vhosts.Event
	b.alarms = &alarms{
		server: b.server, store: b.store, vhosts: b.vhosts, budget: memory,
		limit: b.cfg.MemoryLimit, inUse: memoryInUse, log: b.log, look: make(chan struct{}, 1),
	}
	if err := b.buildManagement(memory); err != nil {
		return err
	}
	if err := b.importDefinitions(); err != nil {
		return err
	}
	return b.giveClusterID()
}

// vhostConfig is what the vhosts get; memory is the budget of all queues.
func (b *Broker) vhostConfig(memory *queue.Budget) vhost.Config {
	c := vhost.Config{
		Log:       b.log.Named("queue"),
		Store:     b.store,
		Memory:    memory,
		Factories: factories(),
		Node:      b.nodeName(),
		// A vhost by another name may be the default, or definitions bring them.
		NoDefaultVHost:   true,
		DefaultQueueType: b.cfg.DefaultQueueType,
		DropPermissions: func(by vhost.Actor, name string) error {
			return b.authority.As(by.User()).DropVHost(name)
		},
		// Nobody deletes a vhost before there is a server.
		OnVHostDeleted: func(name string) { b.server.CloseVHost(name) },
		OnVHostCreated: seed{b.cfg, b.authority, b.log}.plant,
		Limits:         vhost.NodeLimits{VHosts: b.cfg.Limits.MaxVHosts, Queues: b.cfg.Limits.MaxQueues, Exchanges: b.cfg.Limits.MaxExchanges},

		RefuseTransientQueues: b.cfg.Deprecated.TransientQueues, RefuseMasterLocator: b.cfg.Deprecated.MasterLocator,
		RelaxedQuorumQueues: b.cfg.RelaxedQuorumQueues,
	}
	if b.spill != nil {
		c.Spill = b.spill.log
	}
	return c
}

// serverConfig is what the AMQP server gets.
func (b *Broker) serverConfig() amqp.Config {
	return amqp.Config{
		Log:     b.log.Named("connection"),
		VHosts:  b.vhosts,
		Auth:    b.authority,
		Wait:    b.waitStores,
		Product: b.cfg.ProductName,
		Version: compatibleVersion,
		Node:    b.nodeName(), ClusterName: b.cfg.ClusterName,
		Heartbeat: heartbeat(b.cfg.Limits), FrameMax: frameMax(b.cfg.Limits), ChannelMax: channelMax(b.cfg.Limits),
		HandshakeTimeout: b.cfg.Limits.HandshakeTimeout, ConsumerTimeout: consumerTimeout(b.cfg.Limits),
		MaxMessageSize: int(b.cfg.Limits.MaxMessageSize), MaxConsumers: b.cfg.Limits.MaxConsumers,
		InitialFrameMax: uint32(b.cfg.Limits.InitialFrameMax), TLSTimeout: b.cfg.Limits.TLSTimeout, NodeLimits: nodeLimits(b.cfg.Limits),
		Intercept: intercept(b.cfg.Intercept), IgnoreGlobalQoS: b.cfg.Deprecated.GlobalQoS,
		Calm: &b.calm,
	}
}

// makeDefaultVHost makes the default vhost at the first start, unless
// definitions say which there are.
func (b *Broker) makeDefaultVHost() error {
	if len(b.vhosts.Names()) > 0 || b.cfg.LoadDefinitions != "" {
		return nil
	}
	return b.vhosts.Create(cmp.Or(b.cfg.DefaultVHost, "/"), vhost.Options{Description: "Default virtual host"})
}

// factories are the queue types by the name that x-queue-type has.
func factories() map[string]queue.Factory {
	return map[string]queue.Factory{
		queue.Classic: classic.New,
		queue.Quorum:  quorum.New,
		queue.Stream:  stream.New,
	}
}

// otherFolder is the way out when the data folder cannot be used.
const otherFolder = "name another folder with --data-dir (LEVERET_DATA_DIR)"

// openStore opens the store in the data directory, or one in memory.
func openStore(cfg config.Config, log *zap.Logger) (persistence.Store, error) {
	if cfg.InMemory {
		return persistence.NewMemory(), nil
	}
	if err := os.MkdirAll(cfg.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w; %s", err, otherFolder)
	}
	store, err := persistence.Open(storeOptions(cfg, filepath.Join(cfg.DataDir, "store"), log))
	if err != nil {
		return nil, storeError(cfg.DataDir, err)
	}
	return store, nil
}

// storeError says why the store in a data directory cannot be opened, and where it
// is known what to do.
func storeError(dir string, err error) error {
	switch {
	case errors.Is(err, persistence.ErrLocked):
		return fmt.Errorf("data directory in use: another broker works in %s; stop that one or %s", dir, otherFolder)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("open data directory %s: %w; %s", dir, err, ownerAdvice(dir))
	}
	return fmt.Errorf("open data directory %s: %w", dir, err)
}

// storeOptions sets up a store in this folder.
func storeOptions(cfg config.Config, dir string, log *zap.Logger) persistence.Options {
	o := persistence.Options{Dir: dir, Log: log, DiskLimit: cfg.DiskFreeLimit}
	if cfg.Profile == config.Server {
		o.Profile = persistence.Server
	}
	if cfg.Durability == config.Relaxed {
		o.Durability = persistence.Relaxed
	}
	return o
}

// nodeName is what the node calls itself, as in RabbitMQ's rabbit@host.
func (b *Broker) nodeName() string {
	if b.cfg.NodeName != "" {
		return b.cfg.NodeName
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	short, _, _ := strings.Cut(host, ".")
	return "leveret@" + short
}

// release is the version, which the linker of a release sets; nothing else does.
var release string

// Version is the version of this build: of the release, the module, or the
// checkout it was built in.
func Version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
