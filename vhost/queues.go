package vhost

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// QueueDeclare is what queue.declare asks for.
type QueueDeclare struct {
	Name       string // "" for a name made by the broker
	Passive    bool
	Durable    bool
	Exclusive  bool
	AutoDelete bool
	Arguments  frames.Table

	// Imported says that the name may have the reserved prefix amq.: definitions
	// have the queues that a broker named (RabbitMQ 4.0).
	Imported bool
}

const (
	queueTypeArgument  = "x-queue-type"
	deadLetterArgument = "x-dead-letter-exchange"
)

// DeclareQueue makes a queue, or finds it if it is there already, and restarts
// its expiry lease. It returns when the queue is durable, if it is to be.
func (v *VHost) DeclareQueue(by Actor, d QueueDeclare) (queue.Queue, error) {
	d.Name = stripCRLF(d.Name)
	if d.Passive {
		return v.passiveQueue(by, d.Name)
	}
	q, err := v.declareQueue(by, d)
	if err == nil {
		v.set.totals.declared.Add(1)
	}
	return q, err
}

func (v *VHost) declareQueue(by Actor, d QueueDeclare) (queue.Queue, error) {
	d.Durable = d.Durable && !d.Exclusive // RabbitMQ 4.0: an exclusive queue is never durable
	d.Arguments = v.withQueueType(d)
	if err := nameQueue(&d); err != nil {
		return nil, err
	}
	if err := by.MayQueue(Configure, d.Name); err != nil {
		return nil, err
	}
	for {
		if e := v.queueEntry(d.Name); e != nil {
			return v.redeclareQueue(by, e, d)
		}
		spec, err := v.newQueueSpec(by, d)
		if err != nil {
			return nil, err
		}
		q, err := v.createQueue(by, spec)
		if err != errNameTaken {
			return q, err
		}
	}
}

// errNameTaken: another declaration of the name got there first.
var errNameTaken = errors.New("name is taken")

// nameQueue makes a name for a queue without one and refuses reserved ones.
func nameQueue(d *QueueDeclare) error {
	if reserved(d.Name) && !d.Imported {
		return frames.Errorf(frames.AccessRefused, "queue name '%s' contains reserved prefix 'amq.*'", d.Name)
	}
	if d.Name != "" {
		return nil
	}
	if t := queue.QueueType(d.Arguments); t == queue.Quorum || t == queue.Stream {
		return frames.Errorf(frames.PreconditionFailed, "Cannot declare a server-named queue for type rabbit_%s_queue", t)
	}
	var random [16]byte
	rand.Read(random[:]) // never fails
	d.Name = "amq.gen-" + base64.RawURLEncoding.EncodeToString(random[:])
	return nil
}

// withQueueType returns the arguments with x-queue-type: the client's own, or
// the vhost's default, or classic if a queue with these flags cannot be of that
// type (RabbitMQ 4.0).
func (v *VHost) withQueueType(d QueueDeclare) frames.Table {
	t := v.defaultQueueType()
	if !d.Durable || d.Exclusive || d.AutoDelete {
		t = queue.Classic
	}
	return queue.WithQueueType(d.Arguments, t)
}

func (v *VHost) defaultQueueType() string {
	v.mu.RLock()
	t := v.options.DefaultQueueType
	v.mu.RUnlock()
	if t == "" {
		t = v.set.config.DefaultQueueType
	}
	if t == "" {
		t = queue.Classic
	}
	return t
}

func (v *VHost) passiveQueue(by Actor, name string) (queue.Queue, error) {
	e, err := v.accessible(by, name)
	if err != nil {
		return nil, err
	}
	return v.touch(by, e)
}

// redeclareQueue checks a declaration against the queue that is there.
func (v *VHost) redeclareQueue(by Actor, e *queueEntry, d QueueDeclare) (queue.Queue, error) {
	// Exclusivity comes first: a durable mismatch must not hide the true cause.
	d, lax := v.relaxed(e, d)
	if d.Exclusive != e.spec.Exclusive && !lax || e.spec.Exclusive && e.owner != by.Owner() {
		return nil, v.errLocked(d.Name)
	}
	received := queue.Spec{VHost: v.name, Name: d.Name, Durable: d.Durable, AutoDelete: d.AutoDelete,
		Arguments: &queue.Arguments{Table: d.Arguments}}
	if err := e.spec.Equivalent(received); err != nil {
		return nil, err
	}
	return v.touch(by, e)
}

// touch restarts the lease of a queue that was declared again, and waits until
// the queue is durable if its first declaration is still at that.
func (v *VHost) touch(by Actor, e *queueEntry) (queue.Queue, error) {
	e.q.Touch()
	if !e.spec.Durable {
		return e.q, nil
	}
	c := change{v: v}
	c.after(persistence.Queues, definitionKey(v.name, e.spec.Name))
	return e.q, c.finish(by)
}

// newQueueSpec validates the declaration of a new queue, in RabbitMQ's order:
// dead letter exchange, arguments, queue limits.
func (v *VHost) newQueueSpec(by Actor, d QueueDeclare) (queue.Spec, error) {
	if err := v.set.refuseDeprecated(d); err != nil {
		return queue.Spec{}, err
	}
	if err := checkArguments(d.Arguments); err != nil {
		return queue.Spec{}, err
	}
	if arg, ok := d.Arguments.Lookup(deadLetterArgument); ok {
		if dlx, ok := arg.(string); ok { // another type is refused by ParseArguments
			if err := by.MayQueue(Read, d.Name); err != nil {
				return queue.Spec{}, err
			}
			if err := by.MayExchange(Write, dlx); err != nil {
				return queue.Spec{}, err
			}
		}
	}
	spec := queue.Spec{VHost: v.name, Name: d.Name, Durable: d.Durable, Exclusive: d.Exclusive, AutoDelete: d.AutoDelete}
	var err error
	if spec.Arguments, err = v.set.arguments.parse(d.Arguments, spec, false); err != nil {
		return queue.Spec{}, err
	}
	if t := spec.Arguments.Type; v.set.config.Factories[t] == nil {
		return queue.Spec{}, frames.Errorf(frames.PreconditionFailed, "invalid arg '%s' for %s: \"unsupported queue type '%s'\"",
			queueTypeArgument, v.queueName(d.Name), t)
	}
	if err := v.queueLimit(d.Name); err != nil {
		return queue.Spec{}, err
	}
	return spec, v.set.queueLimit(d.Name)
}

// createQueue makes a new queue. It returns errNameTaken if there is one of its
// name by now.
func (v *VHost) createQueue(by Actor, spec queue.Spec) (queue.Queue, error) {
	f, err := queueFilter(spec)
	if err != nil {
		return nil, err
	}
	c := v.change()
	if err := v.roomForQueueLocked(spec.Name); err != nil {
		c.unlock()
		return nil, err
	}
	env, store := v.queueEnv(0)
	q, err := v.set.config.Factories[spec.Arguments.Type](env, spec)
	if err != nil {
		c.unlock()
		return nil, fmt.Errorf("make %s: %w", v.queueName(spec.Name), err)
	}
	e := &queueEntry{q: q, spec: spec, log: store.first(), filter: f, id: newIncarnation(), user: by.User()}
	if spec.Exclusive {
		e.owner = by.Owner()
	}
	v.installQueueLocked(e)
	v.applyNewQueuePolicyLocked(e)
	if spec.Durable {
		c.put(persistence.Queues, definitionKey(v.name, spec.Name), encodeQueue(v, e))
	}
	v.set.totals.created.Add(1)
	c.queueCreated(e)
	c.unlock()
	return q, c.finish(by)
}

// queueFilter is the filter that a queue is declared with, or nil.
func queueFilter(spec queue.Spec) (*filter, error) {
	f, err := recoveredFilter(spec)
	if f != nil && spec.Arguments.Type == queue.Stream {
		return nil, frames.Errorf(frames.PreconditionFailed, "invalid arg '%s' for queue '%s' in vhost '%s' of queue type rabbit_stream_queue",
			filterArgument, spec.Name, spec.VHost)
	}
	return f, err
}

// recoveredFilter is queueFilter for a queue that is there, whatever its type.
func recoveredFilter(spec queue.Spec) (*filter, error) {
	f, err := newFilter(spec.Arguments.Table, false)
	if spec.Arguments.Deduplication != "" {
		return nil, err // the queue itself does it
	}
	return f, err
}

func (v *VHost) roomForQueueLocked(name string) error {
	if v.deleted {
		return v.errGone()
	}
	if v.queues[name] != nil {
		return errNameTaken
	}
	return v.queueLimitLocked(name)
}

func (v *VHost) installQueueLocked(e *queueEntry) {
	v.queues[e.spec.Name] = e
	v.refs.Store(nil)
	if e.owner == nil {
		return
	}
	if v.owned[e.owner] == nil {
		v.owned[e.owner] = make(map[*queueEntry]struct{})
	}
	v.owned[e.owner][e] = struct{}{}
}

// queueEnv is what a queue of this vhost needs of its surroundings. The store in
// it tells which log the queue took.
func (v *VHost) queueEnv(log persistence.LogID) (queue.Env, *watchedStore) {
	store := &watchedStore{Store: v.set.config.Store}
	env := v.env
	env.Store, env.LogID = store, log
	return env, store
}

// DeleteQueue deletes a queue with its messages and bindings, if the condition
// holds, and returns how many messages were ready. A missing one is no error.
func (v *VHost) DeleteQueue(by Actor, name string, cond queue.Condition) (ready int, err error) {
	name = stripCRLF(name)
	if err := by.MayQueue(Configure, name); err != nil {
		return 0, err
	}
	for {
		e := v.queueEntry(name)
		if e == nil {
			c := change{v: v}
			c.after(persistence.Queues, definitionKey(v.name, name))
			return 0, c.finish(by)
		}
		if e.spec.Exclusive && e.owner != by.Owner() {
			return 0, v.errLocked(name)
		}
		if v.beginEnding(e) {
			return v.endQueue(by, e, cond)
		}
	}
}

// beginEnding makes others who look for the queue wait. It is false if the
// queue is being deleted already, or gone.
func (v *VHost) beginEnding(e *queueEntry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if e.ending != nil || v.queues[e.spec.Name] != e {
		return false
	}
	e.ending = make(chan struct{})
	return true
}

// endQueue deletes a queue after beginEnding.
func (v *VHost) endQueue(by Actor, e *queueEntry, cond queue.Condition) (ready int, err error) {
	ready, err = e.q.Delete(cond)
	if errors.Is(err, queue.ErrGone) { // it ended itself at the same time
		err = nil
	}
	c := v.change()
	close(e.ending)
	e.ending = nil
	if err != nil {
		c.unlock()
		return 0, err
	}
	c.removeQueue(e, by.User())
	c.unlock()
	return ready, c.finish(by)
}

// queueEnded is queue.Env.Ended: the queue has deleted itself, because its last
// consumer went or its lease ran out.
func (v *VHost) queueEnded(q queue.Queue, why string) {
	c := v.change()
	e := v.queues[q.Name()]
	if e == nil || e.q != q {
		c.unlock()
		return
	}
	c.removeQueue(e, System.User())
	c.unlock()
	v.log.Debug("queue ended", zap.String("queue", q.Name()), zap.String("why", why))
	if err := c.finish(System); err != nil {
		v.log.Error("an ended queue cannot be removed from the store, and is there again after a restart: repair the disk, and delete the queue then", zap.String("queue", q.Name()), zap.Error(err))
	}
}

// removeQueue takes a queue and its bindings out of the topology, and the
// auto-delete exchanges that have none left. VHost.mu must be held.
func (c *change) removeQueue(e *queueEntry, user string) {
	v := c.v
	if v.queues[e.spec.Name] != e {
		return
	}
	e.gone.Store(true)
	c.rerouted = true
	sources := e.sources
	e.sources = nil
	for _, s := range sources {
		for _, b := range s.from.x.UnbindQueue(e.q) {
			c.bindingGone(s.from, b, user)
		}
		c.removeIfUnused(s.from, user)
	}
	delete(v.queues, e.spec.Name)
	v.refs.Store(nil)
	if owned := v.owned[e.owner]; owned != nil {
		delete(owned, e)
		if len(owned) == 0 {
			delete(v.owned, e.owner)
		}
	}
	if e.spec.Durable {
		c.delete(persistence.Queues, definitionKey(v.name, e.spec.Name))
	}
	v.set.totals.deleted.Add(1)
	v.set.past.queue(v.name, e)
	c.queueDeleted(e, user)
}

// PurgeQueue drops the ready messages of a queue and returns how many those were.
func (v *VHost) PurgeQueue(by Actor, name string) (int, error) {
	if err := by.MayQueue(Read, name); err != nil {
		return 0, err
	}
	q, err := v.Queue(by, name)
	if err != nil {
		return 0, err
	}
	return q.Purge()
}

// ReleaseOwner deletes the exclusive queues of a connection that has ended.
func (v *VHost) ReleaseOwner(owner any) {
	if owner == nil {
		return
	}
	v.mu.RLock()
	list := make([]*queueEntry, 0, len(v.owned[owner]))
	for e := range v.owned[owner] {
		list = append(list, e)
	}
	v.mu.RUnlock()
	if err := v.endQueues(list, System.User()); err != nil {
		v.log.Error("exclusive queues of a connection that has ended cannot be removed from the store, and are there again after a restart: repair the disk, and delete them then", zap.Error(err))
	}
}

// endQueues deletes many queues, whose definitions then go together. Those that
// are being deleted by others are left to them.
func (v *VHost) endQueues(list []*queueEntry, user string) error {
	list = slices.DeleteFunc(list, func(e *queueEntry) bool { return !v.beginEnding(e) })
	errs := make([]error, 0, len(list)+1)
	for _, e := range list {
		if _, err := e.q.Delete(queue.Condition{}); err != nil && !errors.Is(err, queue.ErrGone) {
			errs = append(errs, fmt.Errorf("delete %s: %w", v.queueName(e.spec.Name), err))
		}
	}
	c := v.change()
	for _, e := range list {
		close(e.ending)
		e.ending = nil
		c.removeQueue(e, user)
	}
	c.unlock()
	return errors.Join(append(errs, c.finish(System))...)
}
