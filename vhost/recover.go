package vhost

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// definitionVersion is the version of the definitions that are written. It
// changes when an older broker would misread them.
const definitionVersion = 1

// versioned is the part that every definition has.
type versioned struct {
	Version int `json:"v"`
}

func (v *versioned) version() int { return v.Version }

// storedVHost, storedExchange, storedQueue and storedBinding are the definitions
// on disk, as JSON. Arguments are encoded field tables: JSON cannot tell the
// types of the wire apart. Ids are incarnations: a definition whose vhost or
// ends are not of the incarnation it names is a left-over.
type storedVHost struct {
	versioned
	Name             string   `json:"name"`
	ID               uint64   `json:"id"`
	Description      string   `json:"description,omitempty"`
	Tags             []string `json:"tags,omitempty"`
	DefaultQueueType string   `json:"default_queue_type,omitempty"`
	// Held is the log of messages with a delivery delay. A vhost made by a
	// broker without them has none; it gets one.
	Held      persistence.LogID `json:"held_log,omitempty"`
	Producers persistence.LogID `json:"producers_log,omitempty"` // of idempotent publishing; likewise
}

type storedExchange struct {
	versioned
	VHost      string            `json:"vhost"`
	VHostID    uint64            `json:"vhost_id"`
	Name       string            `json:"name"`
	ID         uint64            `json:"id"`
	Type       string            `json:"type"`
	AutoDelete bool              `json:"auto_delete,omitempty"`
	Internal   bool              `json:"internal,omitempty"`
	Arguments  []byte            `json:"arguments,omitempty"`
	User       string            `json:"user,omitempty"`
	Delayed    persistence.LogID `json:"delayed_log,omitempty"`
	Filter     persistence.LogID `json:"filter_log,omitempty"`
}

type storedQueue struct {
	versioned
	VHost      string            `json:"vhost"`
	VHostID    uint64            `json:"vhost_id"`
	Name       string            `json:"name"`
	ID         uint64            `json:"id"`
	AutoDelete bool              `json:"auto_delete,omitempty"`
	Arguments  []byte            `json:"arguments,omitempty"`
	User       string            `json:"user,omitempty"`
	Log        persistence.LogID `json:"log,omitempty"`
	Places     persistence.LogID `json:"places_log,omitempty"`
}

type storedBinding struct {
	versioned
	VHost         string `json:"vhost"`
	Source        string `json:"source"`
	SourceID      uint64 `json:"source_id"`
	Destination   string `json:"destination"`
	DestinationID uint64 `json:"destination_id"`
	ToExchange    bool   `json:"to_exchange,omitempty"`
	Key           string `json:"key,omitempty"`
	Arguments     []byte `json:"arguments,omitempty"`
	Since         uint64 `json:"since,omitempty"` // see exchange.Binding
}

// encode makes the JSON of a definition, which is a struct of this file, or of a part
// of one.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and bytes only
	}
	return b
}

// decode reads a definition of any version up to the present one.
func decode(b []byte, to interface{ version() int }) error {
	var err error
	if f, ok := to.(flat); !ok || !decodeFlat(b, f) {
		err = json.Unmarshal(b, to)
	}
	if v := to.version(); v > definitionVersion { // whatever else could not be read of it
		return fmt.Errorf("version %d was written by a newer broker, this one knows versions up to %d: start the newer one again, or restore a backup",
			v, definitionVersion)
	}
	return unreadable(err)
}

// errUnreadable: a definition cannot be decoded, or asks for what this broker does not
// know.
var errUnreadable = errors.New("unreadable")

// unreadable makes an error, if it is one, errUnreadable.
func unreadable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
}

// maxStored is how much of a definition a client may choose, in bytes: arguments as a
// field table, a parameter's value, the options of a vhost, the latter as they are
// stored: JSON may make six bytes of one. It is less than any
// store refuses, so that nothing is made that could not be kept.
const maxStored = 512 << 10

func checkStored(what string, size int) error {
	if size > maxStored {
		return frames.Errorf(frames.PreconditionFailed, "%s of %d bytes cannot be stored: at most %d are allowed", what, size, maxStored)
	}
	return nil
}

// checkKey refuses a name under whose key nothing can be stored.
func checkKey(what, key string) error {
	if len(key) > persistence.MaxKey {
		return frames.Errorf(frames.PreconditionFailed, "%s under a name of %d bytes cannot be stored: at most %d are allowed; choose a shorter name",
			what, len(key), persistence.MaxKey)
	}
	return nil
}

func checkArguments(t frames.Table) error {
	return checkStored("arguments", len(encodeArguments(t)))
}

func encodeArguments(t frames.Table) []byte {
	if len(t) == 0 {
		return nil
	}
	return frames.AppendTable(nil, t)
}

func decodeArguments(b []byte) (frames.Table, error) {
	if len(b) < 4 {
		return nil, nil
	}
	t, err := frames.ParseTable(b[4:])
	return t, unreadable(err)
}

func encodeVHost(v *VHost) []byte {
	return encode(&storedVHost{versioned{definitionVersion}, v.name, v.id, v.options.Description, v.options.Tags,
		v.options.DefaultQueueType, v.held.logID(), v.producers.log.ID()})
}

func encodeExchange(v *VHost, e *exchangeEntry) []byte {
	s := storedExchange{versioned{definitionVersion}, v.name, v.id, e.x.Name, e.id, e.x.Type,
		e.x.AutoDelete, e.x.Internal, encodeArguments(e.x.Arguments), e.user, 0, e.filter.logID()}
	if e.delayed != nil {
		s.Delayed = e.delayed.logID()
	}
	return encode(&s)
}

func encodeQueue(v *VHost, e *queueEntry) []byte {
	s := storedQueue{versioned{definitionVersion}, v.name, v.id, e.spec.Name, e.id, e.spec.AutoDelete,
		encodeArguments(e.spec.Arguments.Table), e.user, 0, 0}
	if l, ok := e.q.(queue.Logged); ok {
		s.Log = l.LogID()
	}
	if p, ok := e.q.(queue.Placed); ok {
		s.Places = p.PlacesID()
	}
	return encode(&s)
}

func (v *VHost) encodeBinding(from *exchangeEntry, to end, b *exchange.Binding) []byte {
	return encode(&storedBinding{versioned{definitionVersion}, v.name, from.x.Name, from.id, to.name(), to.id(),
		to.exchange != nil, b.Key, encodeArguments(b.Arguments), b.Since})
}

// errStale: a definition is left over from something that was deleted.
var errStale = errors.New("left over")

// recover reads the definitions, then sets the queues going. Dead letters need
// everything: what wants to be routed before the end of it waits (see deadLetter).
func (s *Set) recover() error {
	stale, err := s.readDefinitions()
	if err != nil {
		return err
	}
	if err := s.recoverProducers(); err != nil {
		return fmt.Errorf("producers: %w", err)
	}
	var changed []pending
	if !s.incomplete { // else it may belong to what was not read
		for _, id := range stale {
			changed = append(changed, s.definitions.set(id.kind, id.key, nil))
		}
	}
	for _, v := range s.old {
		changed = append(changed, s.definitions.set(persistence.VHosts, definitionKey(v.name), encodeVHost(v)))
	}
	s.old = nil
	s.startQueues()
	return s.definitions.wait(changed...)
}

// readDefinitions reads them in the order in which they need one another, and
// returns those that are left over. What cannot be decoded must not keep everything
// else from starting.
func (s *Set) readDefinitions() (stale []definitionID, err error) {
	for _, kind := range []struct {
		kind persistence.Kind
		name string
		read func(value []byte) error
	}{
		{persistence.VHosts, "vhost", s.recoverVHost},
		{persistence.Exchanges, "exchange", s.recoverExchange},
		{persistence.Queues, "queue", s.recoverQueue},
		{persistence.Bindings, "binding", s.recoverBinding},
		{persistence.Parameters, "parameter", s.recoverParameter},
	} {
		for key, value := range s.config.Store.All(kind.kind) {
			switch err := kind.read(value); {
			case err == nil:
			case errors.Is(err, errStale):
				s.log.Debug("definition is left over", zap.String("kind", kind.name), zap.String("key", key))
				stale = append(stale, definitionID{kind.kind, key})
			case errors.Is(err, errUnreadable):
				s.incomplete = true
				s.log.Error("a definition cannot be read and is left out; it stays on disk with its messages, and so does all that"+
					" seems left over: restore a backup, or declare it again, which replaces it (of a binding, its queue or exchange;"+
					" what a vhost had is deleted at the start after that)",
					zap.String("kind", kind.name), zap.String("key", key), zap.Error(err))
			default:
				return nil, fmt.Errorf("%s %q: %w", kind.name, key, err)
			}
		}
	}
	return stale, nil
}

// startQueues gives every recovered queue its policy, or none: a queue begins
// to expire messages with that.
func (s *Set) startQueues() {
	var all affected
	for _, v := range s.all() {
		c := v.change()
		v.reapplyLocked(c, System.User())
		all = slices.Grow(all, len(v.queues))
		merged := make(merges)
		for _, e := range v.queues {
			all = append(all, setting{e.q, merged.of(e)})
		}
		c.unlock()
	}
	close(s.recovered)
	all.apply()
}

func (s *Set) recoverVHost(value []byte) error {
	var d storedVHost
	if err := decode(value, &d); err != nil {
		return err
	}
	v, err := s.newVHost(d.Name, d.ID)
	if err == nil {
		err = v.openLogs(d.Held, d.Producers)
	}
	if err != nil {
		return err
	}
	v.options = Options{Description: d.Description, Tags: d.Tags, DefaultQueueType: d.DefaultQueueType}
	s.vhosts[d.Name] = v
	if d.Held == 0 || d.Producers == 0 {
		s.old = append(s.old, v)
	}
	return nil
}

// incarnation finds the vhost of a definition.
func (s *Set) incarnation(name string, id uint64) (*VHost, error) {
	v := s.vhosts[name]
	if v == nil || v.id != id {
		return nil, errStale
	}
	return v, nil
}

func (s *Set) recoverExchange(value []byte) error {
	var d storedExchange
	if err := decode(value, &d); err != nil {
		return err
	}
	v, err := s.incarnation(d.VHost, d.VHostID)
	if err != nil {
		return err
	}
	args, err := decodeArguments(d.Arguments)
	if err != nil {
		return err
	}
	x, f, err := newExchange(exchange.Spec{VHost: d.VHost, Name: d.Name, Type: d.Type, Durable: true,
		AutoDelete: d.AutoDelete, Internal: d.Internal, Arguments: args})
	if err != nil {
		return unreadable(err)
	}
	e := &exchangeEntry{x: x, filter: f, id: d.ID, user: d.User}
	if err := v.makeDelayer(e, d.Delayed); err != nil {
		return err
	}
	if err := v.openFilter(e, d.Filter); err != nil {
		return err
	}
	v.mu.Lock()
	v.exchanges[d.Name] = e
	v.mu.Unlock()
	return nil
}

func (s *Set) recoverQueue(value []byte) error {
	var d storedQueue
	if err := decode(value, &d); err != nil {
		return err
	}
	v, err := s.incarnation(d.VHost, d.VHostID)
	if err != nil {
		return err
	}
	table, err := decodeArguments(d.Arguments)
	if err != nil {
		return err
	}
	spec := queue.Spec{VHost: v.name, Name: d.Name, Durable: true, AutoDelete: d.AutoDelete}
	if spec.Arguments, err = s.arguments.parse(table, spec, true); err != nil {
		return unreadable(err)
	}
	f, err := recoveredFilter(spec)
	if err != nil {
		return unreadable(err)
	}
	factory := s.config.Factories[spec.Arguments.Type]
	if factory == nil {
		return fmt.Errorf("queue type %q is not available", spec.Arguments.Type)
	}
	env, store := v.queueEnv(d.Log)
	env.PlacesID = d.Places
	q, err := factory(env, spec)
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.installQueueLocked(&queueEntry{q: q, spec: spec, log: store.first(), filter: f, id: d.ID, user: d.User})
	v.mu.Unlock()
	return nil
}

func (s *Set) recoverBinding(value []byte) error {
	var d storedBinding
	if err := decode(value, &d); err != nil {
		return err
	}
	v := s.vhosts[d.VHost]
	if v == nil {
		return errStale
	}
	c := v.change()
	defer c.unlock()
	from, to := v.exchanges[d.Source], v.storedEnd(&d)
	if from == nil || from.id != d.SourceID || to == (end{}) || to.id() != d.DestinationID {
		return errStale
	}
	args, err := decodeArguments(d.Arguments)
	if err != nil {
		return err
	}
	b := &exchange.Binding{Key: d.Key, Arguments: args, Since: d.Since}
	b.Queue, b.To = to.raw()
	added, err := from.x.Bind(b)
	if added {
		c.bound(from, to)
	}
	return err
}

// storedEnd finds the destination of a stored binding. VHost.mu must be held.
func (v *VHost) storedEnd(d *storedBinding) end {
	if d.ToExchange {
		return exchangeEnd(v.exchanges[d.Destination])
	}
	return queueEnd(v.queues[d.Destination])
}
