package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// memoryPerQueue is how much memory the messages of one queue that are under
	// way should take, in bytes.
	memoryPerQueue = 32 << 20
	// maxPrefetch is how many of them there are at most, and so how many may be
	// twice at the target after a kill.
	maxPrefetch = 500
	// ackEvery is how many confirmed messages share an ack at most.
	ackEvery = 100
	// lookEvery is how often a queue that delivers nothing is asked whether it is
	// empty: no broker announces that.
	lookEvery = 50 * time.Millisecond
	// stall is how long a queue that is not empty may deliver nothing.
	stall = 30 * time.Second
	// doubt is how long a queue has to be quiet to be believed that it is empty
	// before as many messages have come as it had.
	doubt = 2 * time.Second
	// goingAway is how long the consumer of a run that was killed may take to
	// disappear at the source.
	goingAway = time.Second
)

// errStop ends a pump in order.
var errStop = errors.New("stop")

// A pump moves the messages of one queue in their order: each is published to
// the target, and acknowledged at the source once the target has confirmed it.
// One goroutine runs it.
type pump struct {
	m *migration
	q *Queue

	source     *amqp.Channel
	deliveries <-chan amqp.Delivery
	gone       chan *amqp.Error // of the source's channel, or nil
	in         entrance
	confirms   chan amqp.Confirmation
	returns    chan amqp.Return
	lost       chan *amqp.Error // of the target's channel, or nil

	unconfirmed []uint64  // the source's delivery tags of what was published, in order
	confirmed   int       // how many are confirmed and not acknowledged
	upTo        uint64    // the tag of the last of them
	refused     error     // by the target: what comes after it is acknowledged one by one
	quiet       time.Time // when something came last
	came        int64     // deliveries
	expected    int64     // how many the queue had

	// empty asks the source whether it has no more; finished says whether all that
	// was to be moved has come, and is nil if only the source can tell.
	empty    func() (bool, error)
	finished func() bool
	// arrived is told of each message, and says whether it is to be moved; nil is
	// all of them.
	arrived func(d *amqp.Delivery) bool
}

// drain moves a classic or quorum queue.
func (m *migration) drain(ctx context.Context, l *link, q *Queue) error {
	others, err := consumersOver(ctx, l, q, 0)
	if err != nil {
		return err
	}
	if there, err := m.lookBoth(l, q); err != nil || !there {
		return err
	}
	if q.Before == 0 {
		q.State = Empty
		if n := q.listed.Unacked; n > 0 && others > 0 {
			q.fail(Busy, "%d messages are with its consumers; stop them and run it again", n)
		}
		return nil
	}
	if others > 0 {
		q.fail(Busy, busyText, others)
		return nil
	}
	for left := q.Before; left > 0; {
		moved := q.Moved
		if err := m.drainOnce(ctx, l, q, left); err != nil || q.State != Moved || q.Moved == moved {
			return err
		}
		// What the source had sent, and was not here yet, is there again.
		if left, err = ready(l.from, q.Name); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	return nil
}

// drainOnce moves what a queue has until it seems to be empty.
func (m *migration) drainOnce(ctx context.Context, l *link, q *Queue, has int64) error {
	p, err := m.newPump(l, q)
	if err != nil {
		return err
	}
	p.expected = has
	p.empty = func() (bool, error) {
		n, err := ready(l.from, q.Name)
		return n == 0, err
	}
	single := q.listed.Arguments["x-single-active-consumer"] == true // RabbitMQ refuses an exclusive consumer of these
	p.deliveries, err = p.source.Consume(q.Name, consumerTag, false, !single, false, false, nil)
	if e, ok := errors.AsType[*amqp.Error](err); ok && e.Code == amqp.AccessRefused && contains(e.Reason, "exclusive") {
		q.fail(Busy, "it has consumers; stop them and run it again")
		return p.close(l)
	}
	if err != nil {
		return errors.Join(err, p.close(l))
	}
	others, err := consumersOver(ctx, l, q, 1)
	if err == nil && others == 0 {
		return p.finish(ctx, l, p.run(ctx))
	}
	if others > 0 {
		q.fail(Busy, busyText, others)
	}
	return errors.Join(err, p.close(l))
}

const (
	consumerTag = "leveret-migrate"
	busyText    = "it has %d consumers; stop them and run it again"
)

// consumersOver is how many consumers more than own a queue has at the source.
// One of a killed run gets the time to go away: as long as it is there, what it
// has would come behind the rest. A quorum queue takes others beside an exclusive
// consumer (RabbitMQ 3.10 and 4.0), so nothing but the count tells.
func consumersOver(ctx context.Context, l *link, q *Queue, own int) (int, error) {
	deadline := time.NewTimer(goingAway)
	defer deadline.Stop()
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		at, err := inspect(l.from, q.Name)
		if err != nil {
			return 0, fmt.Errorf("source: %w", err)
		}
		idle := at.Messages == 0 && q.listed.Ready+q.listed.Unacked == 0
		if at.Consumers <= own || idle {
			return max(at.Consumers-own, 0), nil
		}
		select {
		case <-ctx.Done():
			return at.Consumers - own, nil
		case <-deadline.C:
			return at.Consumers - own, nil
		case <-again.C:
		}
	}
}

// lookBoth counts the queue's messages on both sides, and says whether the target
// has it at all.
func (m *migration) lookBoth(l *link, q *Queue) (there bool, err error) {
	if q.Before, err = ready(l.from, q.Name); err != nil {
		return false, fmt.Errorf("source: %w", err)
	}
	q.After = q.Before
	if q.TargetBefore, err = ready(l.to, q.Name); err == nil {
		return true, nil
	}
	if e, ok := errors.AsType[*amqp.Error](err); ok && e.Code == amqp.NotFound {
		q.fail(Missing, "the target has no such queue; move the definitions, or declare it, and run it again")
		return false, nil
	}
	return false, fmt.Errorf("target: %w", err)
}

// newPump opens the channels.
func (m *migration) newPump(l *link, q *Queue) (*pump, error) {
	p := &pump{m: m, q: q}
	var err error
	if p.source, err = l.from.Channel(); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	prefetch := m.prefetch(q)
	if err := p.source.Qos(prefetch, 0, false); err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	ch, err := l.to.Channel()
	if err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("target: %w", err)
	}
	p.in = entrance{ch: ch, queue: q.Name}
	p.gone = p.source.NotifyClose(make(chan *amqp.Error, 1))
	p.lost = ch.NotifyClose(make(chan *amqp.Error, 1))
	// With room for all that is under way the library never waits for the pump,
	// and a return is there before its confirm.
	p.confirms = ch.NotifyPublish(make(chan amqp.Confirmation, prefetch))
	p.returns = ch.NotifyReturn(make(chan amqp.Return, prefetch))
	return p, nil
}

// prefetch is how many messages of a queue may be under way.
func (m *migration) prefetch(q *Queue) int {
	most := int64(maxPrefetch)
	if m.opts.Prefetch > 0 {
		return int(min(int64(m.opts.Prefetch), most))
	}
	n := q.listed.Ready + q.listed.Unacked
	if n == 0 || q.listed.Bytes == 0 { // nothing is known of their size
		return int(min(most, maxPrefetch/5))
	}
	return int(min(max(memoryPerQueue/max(q.listed.Bytes/n, 1), 1), most))
}

// run moves messages until there are none, ctx ends (errStop), or something
// fails.
func (p *pump) run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	p.quiet = time.Now()
	for {
		if p.finished != nil && len(p.unconfirmed) == 0 && p.finished() {
			return nil
		}
		select {
		case <-ctx.Done():
			return errStop
		case d, open := <-p.deliveries:
			if !open {
				return p.ended("source", p.gone)
			}
			if err := p.forward(context.WithoutCancel(ctx), &d); err != nil { // published, or not: never in doubt
				return err
			}
		case c, open := <-p.confirms:
			if !open {
				return p.ended("target", p.lost)
			}
			if err := p.settle(c); err != nil {
				return err
			}
			if p.refused != nil { // the rest of what is under way may arrive
				return p.await()
			}
		case <-look.C:
			if done, err := p.look(); done || err != nil {
				return err
			}
		}
	}
}

// look says whether a pump that waits for deliveries has waited long enough.
// What the source counts as delivered may still be on its way: so it is asked
// only when nothing has come for a while.
func (p *pump) look() (done bool, err error) {
	enough := lookEvery
	if p.came < p.expected {
		enough = doubt
	}
	if len(p.unconfirmed) > 0 || time.Since(p.quiet) < enough {
		return false, nil
	}
	if done, err := p.empty(); done || err != nil {
		return done, err
	}
	if time.Since(p.quiet) > stall {
		return false, fmt.Errorf("the source has messages and delivers none for %v", stall)
	}
	return false, nil
}

// ended is the reason why a channel of one of the brokers was closed.
func (p *pump) ended(side string, reason <-chan *amqp.Error) error {
	select {
	case e := <-reason:
		if e != nil {
			return fmt.Errorf("%s: %w", side, e)
		}
	default:
	}
	if side == "source" {
		return errors.New("source: the consumer was cancelled; is the queue deleted?")
	}
	return fmt.Errorf("%s: the connection has ended", side)
}

// forward publishes one message.
func (p *pump) forward(ctx context.Context, d *amqp.Delivery) error {
	p.quiet = time.Now()
	p.came++
	if p.arrived != nil && !p.arrived(d) {
		return d.Ack(false)
	}
	if err := p.in.publish(ctx, d, publishing(d, p.q.Type)); err != nil {
		if e, ok := errors.AsType[*amqp.Error](err); ok && e.Code == amqp.ChannelError { // the reason is elsewhere
			return p.ended("target", p.lost)
		}
		return fmt.Errorf("target: %w", err)
	}
	p.unconfirmed = append(p.unconfirmed, d.DeliveryTag)
	return nil
}

// settle takes one confirm, and acknowledges at the source when no other is
// there already. After a return it is not known which message that was: nothing
// more is acknowledged.
func (p *pump) settle(c amqp.Confirmation) error {
	select {
	case r := <-p.returns:
		return fmt.Errorf("target: it returned a message: %s; is the queue deleted there?", r.ReplyText)
	default:
	}
	tag := p.unconfirmed[0]
	p.unconfirmed = p.unconfirmed[1:]
	p.quiet = time.Now()
	if !c.Ack {
		err := p.acknowledge() // what came before it
		p.refused = errors.New("target: it refused a message; is the queue full there, or the disk? see its log")
		return err
	}
	p.upTo = tag
	p.confirmed++
	if p.refused == nil && p.confirmed < ackEvery && len(p.confirms) > 0 {
		return nil
	}
	return p.acknowledge()
}

func (p *pump) acknowledge() error {
	if p.confirmed == 0 {
		return nil
	}
	if err := p.source.Ack(p.upTo, p.refused == nil); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	p.q.Moved += int64(p.confirmed)
	p.m.opts.Watch(Event{Moved: p.confirmed})
	p.confirmed = 0
	return nil
}

// finish ends a pump that has run: it waits for the confirms that are due, so
// that nothing is twice at the target because of an interruption, and gives back
// what was not published.
func (p *pump) finish(ctx context.Context, l *link, err error) error {
	if errors.Is(err, errStop) {
		p.q.fail(Interrupted, "run it again to go on")
		err = p.await()
	} else if err == nil {
		p.q.State = Moved
	}
	err = errors.Join(err, p.acknowledge())
	if ctx.Err() != nil && err != nil {
		p.q.fail(Interrupted, "run it again to go on: %v", err)
	}
	return errors.Join(err, p.close(l))
}

// await takes the confirms of what was published, and says if one was refused.
func (p *pump) await() error {
	for len(p.unconfirmed) > 0 {
		c, open := <-p.confirms // a connection that is silent is cut off, see move
		if !open {
			return p.ended("target", p.lost)
		}
		if err := p.settle(c); err != nil {
			return err
		}
	}
	return p.refused
}

// close closes the channels: what was delivered and not acknowledged is ready
// at the source again when it returns.
func (p *pump) close(l *link) error {
	err := p.in.close(l.to)
	for _, ch := range []*amqp.Channel{p.source, p.in.ch} {
		if e := ch.Close(); e != nil && !errors.Is(e, amqp.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}
