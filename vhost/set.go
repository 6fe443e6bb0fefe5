// Package vhost is the topology: vhosts with their exchanges, queues and
// bindings, the rules of declaring and deleting them, policies, limits, and the
// way of a message from its publisher into queues. The rules are the same for
// AMQP, the HTTP API and the import of definitions.
package vhost

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// Config is what a Set needs.
type Config struct {
	Log   *zap.Logger
	Store persistence.Store
	// Spill makes logs for transient messages that do not fit in memory; nil
	// for none (see queue.Env).
	Spill func() (persistence.Log, error)
	// Memory is the budget that all queues share; nil for none.
	Memory *queue.Budget
	// Factories make the queues, by queue type.
	Factories map[string]queue.Factory
	// DefaultQueueType is for vhosts that have none of their own; "" is classic.
	DefaultQueueType string
	// Node is the node's name, for traces and events.
	Node string
	// NoDefaultVHost says not to make the vhost "/" at the first start.
	NoDefaultVHost bool
	// DropPermissions is called when a vhost is being deleted, before it is gone
	// from the store: a crash in between must not leave permissions behind for a
	// later vhost of the name. It may be nil.
	DropPermissions func(by Actor, vhost string) error
	// OnVHostDeleted is called after a vhost was deleted: its connections are
	// to be closed. It may be nil.
	OnVHostDeleted func(name string)
	// OnVHostCreated is called after a vhost was made, with no lock held. It
	// may be nil.
	OnVHostCreated func(v *VHost) error
	// Limits are those of all vhosts together.
	Limits NodeLimits
	// RefuseTransientQueues refuses queues that are neither durable nor
	// exclusive.
	RefuseTransientQueues bool
	// RefuseMasterLocator refuses queues and policies that name a master locator.
	RefuseMasterLocator bool
	// RelaxedQuorumQueues lets quorum queues be declared again as classic ones.
	RelaxedQuorumQueues bool
}

// Options are what a vhost has besides its name.
type Options struct {
	Description string
	Tags        []string
	// DefaultQueueType is for queues declared without a type; "" is the node's.
	DefaultQueueType string
}

// A Set is all vhosts of a broker. Its methods are safe for concurrent use.
type Set struct {
	config      Config
	log         *zap.Logger
	definitions *definitions
	recovered   chan struct{} // closed when Open has brought everything back
	old         []*VHost      // made by an older broker, which gave them no logs; Open's own
	incomplete  bool          // a definition could not be read; likewise
	unroutable  atomic.Uint64 // see Unroutable
	sizes       message.Sizes // of published bodies
	past        pastCounts    // has a lock of its own; see Past

	// events is the exchange amq.rabbitmq.event; nil without the vhost "/".
	events atomic.Pointer[exchange.Exchange]
	logs   atomic.Pointer[exchange.Exchange] // amq.rabbitmq.log of the default vhost, or nil

	totals          queueTotals
	arguments       arguments   // of queues
	federationNoted atomic.Bool // the log has the line that federation is not run

	mu     sync.RWMutex // guards the fields below
	vhosts map[string]*VHost
	ending map[string]chan struct{}   // deleted vhosts by name; closed when all that was in one is gone
	global map[string]json.RawMessage // global parameters by name, as JSON
}

// Open brings back what the store has: vhosts, exchanges, queues with their
// messages, bindings, policies. At the first start it makes the vhost "/".
func Open(cfg Config) (*Set, error) {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	s := &Set{
		config: cfg, log: cfg.Log,
		definitions: newDefinitions(cfg.Store),
		recovered:   make(chan struct{}),
		vhosts:      make(map[string]*VHost),
		ending:      make(map[string]chan struct{}),
		global:      make(map[string]json.RawMessage),
	}
	err := s.recover()
	if err != nil {
		err = fmt.Errorf("recover definitions: %w", err)
	} else if !s.incomplete { // else logs without an owner have one that was not read
		err = cfg.Store.Recovered()
	}
	if err != nil {
		return nil, s.abandon(err)
	}
	if len(s.vhosts) == 0 && !s.incomplete && !cfg.NoDefaultVHost {
		if err := s.Create(defaultVHost, Options{Description: "Default virtual host"}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Unroutable is how many messages were published since the start that reached
// no queue, in all vhosts together.
func (s *Set) Unroutable() uint64 { return s.unroutable.Load() }

// Sizes says how large the bodies of published messages were, in bytes.
func (s *Set) Sizes() message.Distribution { return s.sizes.Snapshot() }

// abandon ends what Open has begun. Timers that wait for the end of the recovery
// find everything stopped.
func (s *Set) abandon(err error) error {
	err = errors.Join(err, s.Stop())
	select {
	case <-s.recovered:
	default:
		close(s.recovered)
	}
	return err
}

// newIncarnation returns a number that tells a thing apart from earlier ones of
// the same name. It is not 0.
func newIncarnation() uint64 { return rand.Uint64() | 1 }

// Get finds a vhost.
func (s *Set) Get(name string) (*VHost, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, ok := s.vhosts[name]
	return v, ok
}

// Names returns the names of all vhosts in order.
func (s *Set) Names() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Sorted(maps.Keys(s.vhosts))
}

// QueueTotals counts what was done to queues since the start, for rates of
// churn. Declared counts every declaration that was answered well, of queues
// that were there, too; passive ones do not count.
type QueueTotals struct{ Declared, Created, Deleted uint64 }

// queueTotals are the counters of QueueTotals.
type queueTotals struct{ declared, created, deleted atomic.Uint64 }

// QueueTotals returns the counters of all vhosts together.
func (s *Set) QueueTotals() QueueTotals {
	return QueueTotals{Declared: s.totals.declared.Load(), Created: s.totals.created.Load(), Deleted: s.totals.deleted.Load()}
}

// all returns the vhosts in order of name.
func (s *Set) all() []*VHost {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.vhosts), func(a, b *VHost) int { return cmp.Compare(a.name, b.name) })
}

// Create is CreateBy of the broker itself.
func (s *Set) Create(name string, o Options) error { return s.CreateBy(System, name, o) }

// endingPatience is how long a vhost waits for the end of one of its name.
const endingPatience = 30 * time.Second

// lockName takes s.mu at a time when no vhost of this name is being deleted:
// definitions of the old one would be taken for the new one's.
func (s *Set) lockName(name string) error {
	for {
		s.mu.Lock()
		ending := s.ending[name]
		if ending == nil {
			return nil
		}
		s.mu.Unlock()
		select {
		case <-ending:
		case <-time.After(endingPatience):
			return frames.Errorf(frames.PreconditionFailed, "vhost '%s' is still being deleted: try again later", name)
		}
	}
}

// CreateBy makes a vhost, or changes the options of the one that is there. While
// one of its name is being deleted it waits, at most endingPatience. The actor is
// who the event names.
func (s *Set) CreateBy(by Actor, name string, o Options) error {
	if err := checkOptions(&o); err != nil {
		return err
	}
	if err := checkKey("a vhost", definitionKey(name)); err != nil {
		return err
	}
	if err := s.lockName(name); err != nil {
		return err
	}
	v := s.vhosts[name]
	isNew := v == nil
	if isNew {
		err := s.vhostLimitLocked(name)
		if err == nil {
			v, err = s.newVHost(name, newIncarnation())
		}
		if err == nil {
			err = v.openLogs(0, 0)
		}
		if err != nil {
			s.mu.Unlock()
			return err
		}
		s.vhosts[name] = v
	}
	c := v.change()
	v.options = o
	c.put(persistence.VHosts, definitionKey(name), encodeVHost(v))
	if isNew {
		c.vhostEvent("vhost.created", by.User())
	}
	c.unlock()
	s.mu.Unlock()
	err := c.finish(by)
	if err == nil && isNew && s.config.OnVHostCreated != nil {
		err = s.config.OnVHostCreated(v)
	}
	return err
}

// checkOptions refuses an unknown default queue type, "undefined" is none
// (RabbitMQ 4.0), and what is too large to be stored.
func checkOptions(o *Options) error {
	switch o.DefaultQueueType {
	case "undefined":
		o.DefaultQueueType = ""
	case "", queue.Classic, queue.Quorum, queue.Stream:
	default:
		return frames.Errorf(frames.PreconditionFailed, "unsupported default queue type '%s'; it is one of classic, quorum and stream", o.DefaultQueueType)
	}
	return checkStored("description and tags", len(encode(o.Description))+len(encode(o.Tags)))
}

// newVHost returns a vhost with the exchanges that are there from the start.
func (s *Set) newVHost(name string, id uint64) (*VHost, error) {
	v := &VHost{
		name: name, id: id, set: s, log: s.log.With(zap.String("vhost", name)),
		exchanges:  make(map[string]*exchangeEntry),
		queues:     make(map[string]*queueEntry),
		owned:      make(map[any]map[*queueEntry]struct{}),
		policies:   policies{user: make(map[string]*Policy), operator: make(map[string]*Policy)},
		limits:     noLimits,
		parameters: make(map[parameterID]json.RawMessage),
	}
	v.env = queue.Env{Log: v.log, Spill: s.config.Spill, Memory: s.config.Memory, DeadLetter: v.deadLetter, Ended: v.queueEnded}
	v.generation.Store(1) // a publisher begins with 0 and so without routes
	if err := v.predeclare(); err != nil {
		return nil, err
	}
	if name == defaultVHost {
		s.events.Store(v.exchanges[eventExchange].x)
		s.logs.Store(v.exchanges[logExchange].x)
	}
	return v, nil
}

// openLogs makes what a vhost keeps besides its queues, or takes it over from
// these logs.
func (v *VHost) openLogs(held, producers persistence.LogID) error {
	if err := v.openHeld(held); err != nil {
		return err
	}
	return v.openProducers(producers)
}

// Delete is DeleteBy of the broker itself.
func (s *Set) Delete(name string) error { return s.DeleteBy(System, name) }

// DeleteBy deletes a vhost with all that is in it, and the permissions for it: 404
// if there is none. Its name is free when all that is done. The actor is who the
// events name.
func (s *Set) DeleteBy(by Actor, name string) error {
	s.mu.Lock()
	v := s.vhosts[name]
	if v == nil {
		s.mu.Unlock()
		return frames.Errorf(frames.NotFound, "no vhost '%s'", name)
	}
	delete(s.vhosts, name)
	ending := make(chan struct{})
	s.ending[name] = ending
	if name == defaultVHost {
		s.events.Store(nil)
		s.logs.Store(nil)
	}
	c := v.change()
	v.deleted = true
	c.delete(persistence.VHosts, definitionKey(name))
	c.vhostEvent("vhost.deleted", by.User())
	c.unlock()
	s.mu.Unlock()
	defer s.freeName(name, ending)
	var errs []error
	if s.config.DropPermissions != nil {
		errs = append(errs, s.config.DropPermissions(by, name))
	}
	// Then the vhost: what is left of it after a crash is of no vhost then.
	errs = append(errs, c.finish(by))
	if s.config.OnVHostDeleted != nil {
		s.config.OnVHostDeleted(name)
	}
	return errors.Join(append(errs, v.clear(by.User()))...)
}

// freeName lets the name of a deleted vhost be used again.
func (s *Set) freeName(name string, ending chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ending, name)
	close(ending)
}

// clear deletes everything in a deleted vhost.
func (v *VHost) clear(user string) error {
	v.mu.RLock()
	queues := slices.Collect(maps.Values(v.queues))
	v.mu.RUnlock()
	errs := []error{v.endQueues(queues, user)}
	c := v.change()
	for _, e := range slices.Collect(maps.Values(v.exchanges)) {
		if !e.builtin {
			c.removeExchange(e, user)
		}
	}
	v.clearParametersLocked(c)
	c.unlock()
	v.held.delete()
	v.producers.log.Drop()
	return errors.Join(append(errs, c.finish(System))...)
}

// Stop stops all queues; what is durable is kept.
func (s *Set) Stop() error {
	var errs []error
	for _, v := range s.all() {
		v.mu.RLock()
		queues := slices.Collect(maps.Values(v.queues))
		exchanges := slices.Collect(maps.Values(v.exchanges))
		v.mu.RUnlock()
		v.held.stop()
		for _, e := range exchanges {
			if e.delayed != nil {
				e.delayed.stop()
			}
		}
		for _, e := range queues {
			if err := e.q.Stop(); err != nil {
				errs = append(errs, fmt.Errorf("stop %s: %w", v.queueName(e.spec.Name), err))
			}
		}
	}
	return errors.Join(errs...)
}
