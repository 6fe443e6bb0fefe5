package vhost

import (
	"time"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// BindQueue binds a queue to an exchange. The same binding again is no error.
func (v *VHost) BindQueue(by Actor, queue, exchange, key string, args frames.Table) error {
	queue, exchange = stripCRLF(queue), stripCRLF(exchange)
	if err := v.mayBindQueue(by, queue, exchange, key); err != nil {
		return err
	}
	if v.exchangeEntry(exchange) == nil {
		return v.errNoExchange(exchange)
	}
	q, err := v.accessible(by, queue)
	if err != nil {
		return err
	}
	c := v.change()
	from := v.exchanges[exchange]
	if from == nil {
		c.unlock()
		return v.errNoExchange(exchange)
	}
	if v.queues[queue] != q || q.ending != nil { // deleted meanwhile
		c.unlock()
		return v.errNoQueue(queue)
	}
	return c.bind(from, queueEnd(q), key, args, by)
}

// mayBindQueue makes the checks that come before existence, in RabbitMQ's order.
func (v *VHost) mayBindQueue(by Actor, queue, exchange, key string) error {
	if err := by.MayQueue(Write, queue); err != nil {
		return err
	}
	return v.maySource(by, exchange, key)
}

// maySource checks the source of a binding.
func (v *VHost) maySource(by Actor, exchange, key string) error {
	if exchange == "" {
		return errDefaultExchange()
	}
	if err := by.MayExchange(Read, exchange); err != nil {
		return err
	}
	if e := v.exchangeEntry(exchange); e != nil && e.x.Type == "topic" {
		return by.MayTopic(Read, exchange, key)
	}
	return nil
}

// UnbindQueue removes a binding. A missing binding, queue or exchange is no
// error, also where the queue is exclusive to another connection (RabbitMQ 4.0).
func (v *VHost) UnbindQueue(by Actor, queue, exchange, key string, args frames.Table) error {
	queue, exchange = stripCRLF(queue), stripCRLF(exchange)
	if err := v.mayBindQueue(by, queue, exchange, key); err != nil {
		return err
	}
	c := v.change()
	from, q := v.exchanges[exchange], v.queues[queue]
	if from == nil || q == nil {
		c.unlock()
		return nil
	}
	if q.spec.Exclusive && q.owner != by.Owner() {
		bound := from.x.Has(q.q, key, args)
		c.unlock()
		if bound {
			return v.errLocked(queue)
		}
		return nil
	}
	return c.unbind(from, queueEnd(q), key, args, by)
}

// BindExchange binds an exchange to another one. Messages go from source to
// destination.
func (v *VHost) BindExchange(by Actor, destination, source, key string, args frames.Table) error {
	destination, source = stripCRLF(destination), stripCRLF(source)
	if err := v.mayBindExchange(by, destination, source, key); err != nil {
		return err
	}
	c, err := v.changeLive()
	if err != nil {
		return err
	}
	from, to := v.exchanges[source], v.exchanges[destination]
	if from == nil || to == nil {
		c.unlock()
		if from == nil {
			return v.errNoExchange(source)
		}
		return v.errNoExchange(destination)
	}
	return c.bind(from, exchangeEnd(to), key, args, by)
}

// UnbindExchange removes a binding between exchanges. A missing binding or
// exchange is no error.
func (v *VHost) UnbindExchange(by Actor, destination, source, key string, args frames.Table) error {
	destination, source = stripCRLF(destination), stripCRLF(source)
	if err := v.mayBindExchange(by, destination, source, key); err != nil {
		return err
	}
	c, err := v.changeLive()
	if err != nil {
		return err
	}
	from, to := v.exchanges[source], v.exchanges[destination]
	if from == nil || to == nil {
		c.unlock()
		return nil
	}
	return c.unbind(from, exchangeEnd(to), key, args, by)
}

func (v *VHost) mayBindExchange(by Actor, destination, source, key string) error {
	if err := by.MayExchange(Write, destination); err != nil {
		return err
	}
	if destination == "" {
		return errDefaultExchange()
	}
	return v.maySource(by, source, key)
}

// An end is the destination of a binding: one of the fields is nil.
type end struct {
	queue    *queueEntry
	exchange *exchangeEntry
}

func queueEnd(e *queueEntry) end       { return end{queue: e} }
func exchangeEnd(e *exchangeEntry) end { return end{exchange: e} }

func (t end) durable() bool {
	if t.queue != nil {
		return t.queue.spec.Durable
	}
	return t.exchange.x.Durable
}

func (t end) id() uint64 {
	if t.queue != nil {
		return t.queue.id
	}
	return t.exchange.id
}

func (t end) name() string {
	if t.queue != nil {
		return t.queue.spec.Name
	}
	return t.exchange.x.Name
}

// kind is the destination's kind in events and the HTTP API.
func (t end) kind() string {
	if t.queue != nil {
		return "queue"
	}
	return "exchange"
}

// raw is the destination as the exchange knows it.
func (t end) raw() (queue.Queue, *exchange.Exchange) {
	if t.queue != nil {
		return t.queue.q, nil
	}
	return nil, t.exchange.x
}

// endOf finds the entry of a binding's destination. VHost.mu must be held.
// An entry leaves its map only after its bindings have gone.
func (v *VHost) endOf(b *exchange.Binding) end {
	if b.Queue != nil {
		return queueEnd(v.queues[b.Queue.Name()])
	}
	return exchangeEnd(v.exchanges[b.To.Name])
}

// bind adds a binding and ends the operation.
func (c *change) bind(from *exchangeEntry, to end, key string, args frames.Table, by Actor) error {
	if err := checkArguments(args); err != nil {
		c.unlock()
		return err
	}
	b := &exchange.Binding{Key: key, Arguments: args}
	b.Queue, b.To = to.raw()
	if from.x.Ages() {
		b.Since = uint64(time.Now().UnixNano())
	}
	added, err := from.x.Bind(b)
	if err != nil {
		c.unlock()
		return err
	}
	c.awaitEnds(from, to)
	if !added {
		if stored(from, to) {
			c.after(persistence.Bindings, c.v.bindingKey(from, to, key, args))
		}
		c.unlock()
		return c.finish(by)
	}
	c.bound(from, to)
	if stored(from, to) {
		c.put(persistence.Bindings, c.v.bindingKey(from, to, key, args), c.v.encodeBinding(from, to, b))
	}
	c.bindingEvent("binding.created", from, to, key, args, by.User())
	c.unlock()
	c.v.replayHistory(from, to)
	return c.finish(by)
}

// bound notes a new binding in the topology.
func (c *change) bound(from *exchangeEntry, to end) {
	if to.queue != nil {
		to.queue.sources = addSource(to.queue.sources, from)
	} else {
		to.exchange.sources = addSource(to.exchange.sources, from)
	}
	c.rerouted = true
}

// stored says whether a binding is durable: both ends are (RabbitMQ 4.0).
func stored(from *exchangeEntry, to end) bool { return from.x.Durable && to.durable() }

// awaitEnds makes a durable binding's operation wait for its ends' definitions.
func (c *change) awaitEnds(from *exchangeEntry, to end) {
	if !stored(from, to) {
		return
	}
	if !from.builtin {
		c.after(persistence.Exchanges, definitionKey(c.v.name, from.x.Name))
	}
	switch {
	case to.queue != nil:
		c.after(persistence.Queues, definitionKey(c.v.name, to.name()))
	case !to.exchange.builtin:
		c.after(persistence.Exchanges, definitionKey(c.v.name, to.name()))
	}
}

// unbind removes a binding and ends the operation.
func (c *change) unbind(from *exchangeEntry, to end, key string, args frames.Table, by Actor) error {
	q, x := to.raw()
	b := from.x.Unbind(q, x, key, args)
	if b == nil {
		if stored(from, to) {
			c.after(persistence.Bindings, c.v.bindingKey(from, to, key, args))
		}
		c.unlock()
		return c.finish(by)
	}
	c.bindingGone(from, b, by.User())
	c.removeIfUnused(from, by.User())
	c.unlock()
	return c.finish(by)
}

// bindingGone notes that a binding was removed from its exchange. VHost.mu must
// be held.
func (c *change) bindingGone(from *exchangeEntry, b *exchange.Binding, user string) {
	c.rerouted = true
	to := c.v.endOf(b)
	c.unbound(from, to, b, user)
}

func (c *change) unbound(from *exchangeEntry, to end, b *exchange.Binding, user string) {
	if to.queue != nil {
		to.queue.sources = dropSource(to.queue.sources, from, 1)
	} else {
		to.exchange.sources = dropSource(to.exchange.sources, from, 1)
	}
	if stored(from, to) {
		c.delete(persistence.Bindings, c.v.bindingKey(from, to, b.Key, b.Arguments))
	}
	c.bindingEvent("binding.deleted", from, to, b.Key, b.Arguments, user)
}

// bindingKey is the key of a binding's definition.
func (v *VHost) bindingKey(from *exchangeEntry, to end, key string, args frames.Table) string {
	var encoded []byte
	if len(args) > 0 {
		encoded = frames.AppendTable(nil, args.Sorted())
	}
	return definitionKey(v.name, from.x.Name, to.kind(), to.name(), key, digest(encoded))
}

// replayHistory gives a newly bound destination the messages that an exchange of
// type x-recent-history has kept.
func (v *VHost) replayHistory(from *exchangeEntry, to end) {
	history := from.x.History()
	if len(history) == 0 {
		return
	}
	p := v.borrow()
	defer v.giveBack(p)
	for _, m := range history {
		p.replay(to, m)
	}
	p.Flush()
}
