package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leveretmq/leveret/frames"
)

// A topology is what a scenario publishes to and consumes from, declared over a
// connection of its own.
type topology struct {
	sc     *Scenario
	c      *conn
	made   []string // queues to delete at the end
	madeEx bool     // the exchange is to be deleted at the end
	bound  []binding
	nextCh uint16
}

// A binding ties a queue, by its number, to the exchange.
type binding struct {
	queue int
	key   string
}

// declare declares all that the scenario needs.
func declare(ctx context.Context, b *Broker, sc *Scenario) (*topology, error) {
	c, err := dial(ctx, b, sc.Heartbeat, 4096)
	if err != nil {
		return nil, err
	}
	t := &topology{sc: sc, c: c, bound: sc.bindings()}
	if err := t.openChannel(); err != nil {
		c.cut()
		return nil, err
	}
	if sc.Predeclared {
		return t, nil
	}
	if err := t.declareAll(); err != nil {
		return nil, errors.Join(err, t.remove())
	}
	return t, nil
}

// openChannel opens the next channel; the broker has closed the one before.
func (t *topology) openChannel() error {
	t.nextCh++
	return t.c.openChannel(t.nextCh)
}

func (t *topology) declareAll() error {
	for i := range t.sc.Queues {
		if err := t.declareQueue(t.sc.queueName(i)); err != nil {
			return err
		}
	}
	if t.sc.exchangeName() == "" {
		return nil
	}
	if err := t.declareExchange(); err != nil {
		return err
	}
	for _, b := range t.bound {
		if err := t.bind(b); err != nil {
			return fmt.Errorf("bind %s to %s: %w", t.sc.queueName(b.queue), t.sc.exchangeName(), err)
		}
	}
	return nil
}

// declareQueue declares a queue. One of our own names is made anew; one that
// the user has named stays if it is there.
func (t *topology) declareQueue(name string) error {
	if t.sc.Queue == "" {
		if _, err := call[*frames.QueueDeleteOk](t.c, t.nextCh, &frames.QueueDelete{Queue: name}); err != nil {
			return fmt.Errorf("delete queue %s: %w", name, err)
		}
	} else if there, err := t.exists(name); err != nil || there {
		return err
	}
	_, err := call[*frames.QueueDeclareOk](t.c, t.nextCh, &frames.QueueDeclare{Queue: name, Durable: t.sc.Durable, Arguments: t.sc.queueArguments()})
	if err != nil {
		return fmt.Errorf("declare queue %s: %w", name, err)
	}
	t.made = append(t.made, name)
	return nil
}

// exists asks for a queue by a passive declaration.
func (t *topology) exists(name string) (bool, error) {
	_, err := t.depth(name)
	if e, ok := errors.AsType[*closedError](err); ok && e.code == uint16(frames.NotFound) {
		if _, err := t.c.sock.Write(frames.AppendMethod(nil, t.nextCh, &frames.ChannelCloseOk{})); err != nil {
			return false, err
		}
		return false, t.openChannel()
	}
	return err == nil, err
}

// depth is how many messages of a queue are ready.
func (t *topology) depth(name string) (int64, error) {
	ok, err := call[*frames.QueueDeclareOk](t.c, t.nextCh, &frames.QueueDeclare{Queue: name, Passive: true})
	if err != nil {
		return 0, fmt.Errorf("queue %s: %w", name, err)
	}
	return int64(ok.MessageCount), nil
}

// queueArguments are the arguments of a declaration.
func (sc *Scenario) queueArguments() frames.Table {
	args := append(frames.Table(nil), sc.QueueArgs...)
	if sc.QueueType != "" {
		args = args.Set("x-queue-type", sc.QueueType)
	}
	return args
}

// declareExchange declares the exchange. One that is named without a type must
// be there.
func (t *topology) declareExchange() error {
	name, kind := t.sc.exchangeName(), t.sc.ExchangeType
	m := &frames.ExchangeDeclare{Exchange: name, Type: kind, Durable: t.sc.Durable}
	if kind == "" {
		m.Passive = true
	} else if t.sc.Exchange == "" {
		if _, err := call[*frames.ExchangeDeleteOk](t.c, t.nextCh, &frames.ExchangeDelete{Exchange: name}); err != nil {
			return fmt.Errorf("delete exchange %s: %w", name, err)
		}
		t.madeEx = true
	}
	if _, err := call[*frames.ExchangeDeclareOk](t.c, t.nextCh, m); err != nil {
		return fmt.Errorf("declare exchange %s: %w", name, err)
	}
	return nil
}

func (t *topology) bind(b binding) error {
	m := &frames.QueueBind{Queue: t.sc.queueName(b.queue), Exchange: t.sc.exchangeName(), RoutingKey: b.key}
	if t.sc.ExchangeType == "headers" {
		m.Arguments = frames.Table{{Name: "x-match", Value: "all"}, {Name: headerName, Value: b.key}}
	}
	_, err := call[*frames.QueueBindOk](t.c, t.nextCh, m)
	return err
}

// headerName is the header that a headers exchange looks at.
const headerName = "bench-key"

// remove deletes what declare made, unless it is to stay, and ends the
// connection.
func (t *topology) remove() error {
	if t.sc.Keep {
		return t.c.goodbye()
	}
	var first error
	for _, q := range t.made {
		if _, err := call[*frames.QueueDeleteOk](t.c, t.nextCh, &frames.QueueDelete{Queue: q}); err != nil {
			first = fmt.Errorf("delete queue %s: %w", q, err)
			break
		}
	}
	if first == nil && t.madeEx {
		_, first = call[*frames.ExchangeDeleteOk](t.c, t.nextCh, &frames.ExchangeDelete{Exchange: t.sc.exchangeName()})
	}
	if first != nil {
		t.c.cut()
		return first
	}
	return t.c.goodbye()
}

// bindings are the bindings of the queues to the exchange, in turn.
func (sc *Scenario) bindings() []binding {
	if sc.exchangeName() == "" {
		return nil
	}
	n := sc.Bindings
	if n == 0 {
		n = sc.Queues
	}
	all := make([]binding, n)
	for i := range all {
		all[i] = binding{queue: i % sc.Queues, key: "bench.0"}
		switch {
		case len(sc.BindingKeys) > 0:
			all[i].key = numbered(sc.BindingKeys, i)
		case len(sc.RoutingKeys) > 0:
			all[i].key = numbered(sc.RoutingKeys, i)
		default:
			all[i].key = sc.queueName(i % sc.Queues)
		}
	}
	return all
}

// routingKey is that of message i, counted from 0, over all publishers.
func (sc *Scenario) routingKey(i int) string {
	n := i % sc.keyCount()
	if len(sc.RoutingKeys) > 0 {
		return strings.ReplaceAll(sc.RoutingKeys[i%len(sc.RoutingKeys)], "%d", fmt.Sprint(n))
	}
	return sc.queueName(n)
}

func (sc *Scenario) keyCount() int {
	if sc.Keys > 0 {
		return sc.Keys
	}
	return sc.Queues
}

func numbered(patterns []string, i int) string {
	return strings.ReplaceAll(patterns[i%len(patterns)], "%d", fmt.Sprint(i))
}
