package vhost

import (
	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
)

// Exchanges that the broker itself publishes to.
const (
	traceExchange = "amq.rabbitmq.trace"
	eventExchange = "amq.rabbitmq.event"
	logExchange   = "amq.rabbitmq.log"
)

// defaultVHost is the vhost that is made at the first start. The exchanges of
// events and log lines are there only.
const defaultVHost = "/"

const (
	alternateArgument = "alternate-exchange"
	delayedType       = "x-delayed-message"
)

// predeclared lists the exchanges that every vhost has from the start
// (RabbitMQ 4.0). All are durable.
func predeclared(vhost string) []exchange.Spec {
	list := []exchange.Spec{
		{Name: "", Type: "direct"},
		{Name: "amq.direct", Type: "direct"},
		{Name: "amq.fanout", Type: "fanout"},
		{Name: "amq.headers", Type: "headers"},
		{Name: "amq.match", Type: "headers"},
		{Name: "amq.topic", Type: "topic"},
		{Name: traceExchange, Type: "topic", Internal: true},
	}
	if vhost == defaultVHost {
		list = append(list,
			exchange.Spec{Name: eventExchange, Type: "topic", Internal: true},
			exchange.Spec{Name: logExchange, Type: "topic", Internal: true})
	}
	for i := range list {
		list[i].Durable = true
		list[i].VHost = vhost
	}
	return list
}

// predeclare makes the exchanges that are there from the start.
func (v *VHost) predeclare() error {
	for _, spec := range predeclared(v.name) {
		x, err := exchange.New(spec)
		if err != nil {
			return err
		}
		v.exchanges[spec.Name] = &exchangeEntry{x: x, id: v.id, builtin: true, user: System.User()}
	}
	return nil
}

// ExchangeDeclare is what exchange.declare asks for.
type ExchangeDeclare struct {
	Name, Type string
	Passive    bool
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  frames.Table
}

// DeclareExchange makes an exchange, or says that it is there already. It
// returns when the exchange is durable, if it is to be.
func (v *VHost) DeclareExchange(by Actor, d ExchangeDeclare) error {
	d.Name = stripCRLF(d.Name)
	if d.Passive {
		return v.passiveExchange(by, d.Name)
	}
	spec := exchange.Spec{VHost: v.name, Name: d.Name, Type: d.Type, Durable: d.Durable,
		AutoDelete: d.AutoDelete, Internal: d.Internal, Arguments: d.Arguments}
	if !KnownExchangeType(d.Type) {
		return exchange.ErrUnknownType(d.Type)
	}
	if d.Name == "" {
		return errDefaultExchange()
	}
	if err := by.MayExchange(Configure, d.Name); err != nil {
		return err
	}
	if e := v.exchangeEntry(d.Name); e != nil {
		return v.redeclareExchange(by, e, spec)
	}
	return v.createExchange(by, spec)
}

func (v *VHost) passiveExchange(by Actor, name string) error {
	if name == "" {
		return errDefaultExchange()
	}
	e := v.exchangeEntry(name)
	if e == nil {
		return v.errNoExchange(name)
	}
	return v.awaitExchange(by, e)
}

func errDefaultExchange() error {
	return frames.Errorf(frames.AccessRefused, "operation not permitted on the default exchange")
}

func (v *VHost) redeclareExchange(by Actor, e *exchangeEntry, spec exchange.Spec) error {
	if err := equivalentExchange(e.x, spec); err != nil {
		return err
	}
	return v.awaitExchange(by, e)
}

// awaitExchange waits until the definition of an exchange that is there is durable.
func (v *VHost) awaitExchange(by Actor, e *exchangeEntry) error {
	if e.builtin || !e.x.Durable {
		return nil
	}
	c := change{v: v}
	c.after(persistence.Exchanges, definitionKey(v.name, e.x.Name))
	return c.finish(by)
}

// createExchange makes a new exchange. With an alternate exchange the user
// needs more than configure (RabbitMQ 4.0).
func (v *VHost) createExchange(by Actor, spec exchange.Spec) error {
	if reserved(spec.Name) {
		return frames.Errorf(frames.AccessRefused, "exchange name '%s' contains reserved prefix 'amq.*'", spec.Name)
	}
	if err := checkArguments(spec.Arguments); err != nil {
		return err
	}
	arg, _ := spec.Arguments.Lookup(alternateArgument)
	if alternate, ok := arg.(string); ok { // another type is refused by New
		if err := by.MayExchange(Read, spec.Name); err != nil {
			return err
		}
		if err := by.MayExchange(Write, alternate); err != nil {
			return err
		}
	}
	if err := v.set.exchangeLimit(spec.Name); err != nil {
		return err
	}
	x, f, err := newExchange(spec)
	if err != nil {
		return err
	}
	e := &exchangeEntry{x: x, filter: f, id: newIncarnation(), user: by.User()}
	if err := v.makeDelayer(e, 0); err != nil {
		return err
	}
	if err := v.openFilter(e, 0); err != nil {
		return err
	}
	there, err := v.installExchange(by, e)
	if there != nil || err != nil {
		e.drop()
	}
	if there != nil {
		return v.redeclareExchange(by, there, spec)
	}
	return err
}

// installExchange puts a new exchange into the topology, unless another one of
// its name got there first: it returns that.
func (v *VHost) installExchange(by Actor, e *exchangeEntry) (there *exchangeEntry, err error) {
	c := v.change()
	if v.deleted {
		c.unlock()
		return nil, v.errGone()
	}
	name := e.x.Name
	if there = v.exchanges[name]; there != nil {
		c.unlock()
		return there, nil
	}
	v.exchanges[name] = e
	v.applyExchangePolicyLocked(e)
	c.rerouted = true // it may be somebody's alternate exchange
	if e.x.Durable {
		c.put(persistence.Exchanges, definitionKey(v.name, name), encodeExchange(v, e))
	}
	c.exchangeCreated(e)
	c.unlock()
	return nil, c.finish(by)
}

// openFilter gives the filter of a durable exchange a log, if its ids are to
// survive a restart.
func (v *VHost) openFilter(e *exchangeEntry, id persistence.LogID) error {
	if e.filter == nil || !e.filter.disk || !e.x.Durable {
		return nil
	}
	return e.filter.open(v.set.config.Store, id)
}

// drop ends what an exchange keeps besides its bindings.
func (e *exchangeEntry) drop() {
	if e.delayed != nil {
		e.delayed.delete()
	}
	if e.filter != nil && e.filter.log != nil {
		e.filter.log.Drop()
	}
}

// DeleteExchange deletes an exchange with all its bindings. A missing one is no
// error.
func (v *VHost) DeleteExchange(by Actor, name string, ifUnused bool) error {
	name = stripCRLF(name)
	if name == "" {
		return errDefaultExchange()
	}
	if reserved(name) {
		return frames.Errorf(frames.AccessRefused, "deletion of system %s not allowed", v.exchangeName(name))
	}
	if err := by.MayExchange(Configure, name); err != nil {
		return err
	}
	c := v.change()
	e := v.exchanges[name]
	if e == nil {
		c.after(persistence.Exchanges, definitionKey(v.name, name))
		c.unlock()
		return c.finish(by)
	}
	if ifUnused && !e.x.Empty() {
		c.unlock()
		return frames.Errorf(frames.PreconditionFailed, "%s in use", v.exchangeName(name))
	}
	c.removeExchange(e, by.User())
	c.unlock()
	return c.finish(by)
}

// removeExchange takes an exchange and its bindings out of the topology, and
// the auto-delete exchanges that have none left. VHost.mu must be held.
func (c *change) removeExchange(e *exchangeEntry, user string) {
	v := c.v
	if e.removed {
		return
	}
	e.removed = true
	c.rerouted = true
	if e.x.Durable {
		c.delete(persistence.Exchanges, definitionKey(v.name, e.x.Name))
	}
	c.dropped = append(c.dropped, e)
	for _, b := range e.x.Bindings() {
		e.x.Unbind(b.Queue, b.To, b.Key, b.Arguments)
		c.bindingGone(e, b, user)
	}
	sources := e.sources
	e.sources = nil
	for _, s := range sources {
		for _, b := range s.from.x.UnbindExchange(e.x) {
			c.bindingGone(s.from, b, user)
		}
		c.removeIfUnused(s.from, user)
	}
	delete(v.exchanges, e.x.Name)
	v.set.past.exchange(v.name, e)
	c.exchangeDeleted(e, user)
}

// removeIfUnused ends an auto-delete exchange whose last binding has gone.
func (c *change) removeIfUnused(e *exchangeEntry, user string) {
	if e.x.AutoDelete && e.x.Empty() {
		c.removeExchange(e, user)
	}
}
