package vhost

import (
	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/message"
)

// A detour is what one message meets on its way of exchanges that delay messages
// or drop duplicates, behind the one where it was published.
type detour struct {
	on      bool       // a message is being routed
	into    []*delayer // where it has to wait
	dropped bool       // it was a duplicate somewhere: as good as routed
	by      waiter     // its publisher
}

// routeFrom routes through an exchange. One on the way that delays the message is
// a target of its own.
func (p *Publisher) routeFrom(x *exchange.Exchange, m *message.Message) {
	d := &p.detour
	d.on = true
	x.Route(m, p, &p.matches)
	d.on = false
	for i, to := range d.into {
		p.targets = append(p.targets, p.insideOf(to))
		d.into[i] = nil
	}
	d.into = d.into[:0]
}

// Alternate is exchange.Guide's.
func (p *Publisher) Alternate(name string) *exchange.Exchange {
	if name == "" { // the default exchange cannot be one
		return nil
	}
	e := p.v.exchangeEntry(name)
	if e == nil {
		return nil
	}
	return e.x
}

// Enter is exchange.Guide's: a duplicate goes no further, and neither does now
// what has to wait (the community plugins for RabbitMQ). An exchange's history is
// replayed without asking.
func (p *Publisher) Enter(x *exchange.Exchange, m *message.Message) bool {
	if !p.detour.on {
		return true
	}
	e := p.v.exchangeEntry(x.Name)
	if e == nil || e.x != x {
		return true // it was deleted meanwhile, and so were its bindings
	}
	if e.filter != nil && !p.Again && hasHeaders(m) && p.duplicate(e.filter, headerFields(m), m.Time, p.detour.by) {
		p.detour.dropped = true
		return false
	}
	if e.delayed == nil {
		return true
	}
	if _, waits := x.Delay(m); !waits {
		return true
	}
	p.detour.into = append(p.detour.into, e.delayed)
	return false
}

// tookDuplicate says whether the message that was just routed was a duplicate
// somewhere, and forgets it.
func (d *detour) tookDuplicate() bool {
	dropped := d.dropped
	d.dropped = false
	return dropped
}

// insideOf returns the slot of a delayed exchange.
func (p *Publisher) insideOf(d *delayer) *batchSlot {
	if s := p.inside[d]; s != nil {
		return s
	}
	if p.inside == nil {
		p.inside = make(map[*delayer]*batchSlot)
	}
	s := &batchSlot{to: d}
	p.inside[d] = s
	return s
}
