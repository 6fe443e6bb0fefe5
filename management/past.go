package management

import "github.com/leveretmq/leveret/vhost"

// pastFigures are what objects that are gone had counted. They are read before what
// there is: an object that goes meanwhile is then missed once, and never counted
// twice.
type pastFigures struct {
	connections map[string]Past // and channels, by vhost
	vhost.Past
	confirmable uint64 // of all channels
}

func readPast(cfg *Config) pastFigures {
	p := pastFigures{connections: cfg.Connections.Past(), Past: cfg.VHosts.Past()}
	for _, n := range p.connections {
		p.confirmable += n.Confirmable
	}
	return p
}

// byVHost are the counters as collect adds them up.
func (p *pastFigures) byVHost() map[string]*counters {
	t := &totals{vhosts: make(map[string]*figures)}
	for of, st := range p.Queues {
		c := queueCounters(&st)
		c[mPublish] = 0
		t.of(of.VHost).counters.plus(&c)
	}
	for name, n := range p.Exchanges {
		t.of(name).counters[mPublish] += int64(n.Published)
	}
	for name, n := range p.connections {
		c := &t.of(name).counters
		c[mReceived] += int64(n.Received)
		c[mSent] += int64(n.Sent)
		c[mConfirm] += int64(n.Confirmed)
		c[mReturnUnroutable] += int64(n.Returned)
		c[mDropUnroutable] += int64(n.Dropped)
	}
	out := make(map[string]*counters, len(t.vhosts))
	for name, f := range t.vhosts {
		out[name] = &f.counters
	}
	return out
}

// of are the counters of all objects of a kind.
func (p *pastFigures) of(k kind) (sum counters) {
	switch k {
	case aQueue:
		for _, st := range p.Queues {
			c := queueCounters(&st)
			sum.plus(&c)
		}
	case anExchange:
		for _, n := range p.Exchanges {
			c := exchangeCounters(&vhost.ExchangeInfo{Published: n.Published, Routed: n.Routed})
			sum.plus(&c)
		}
	case aConnection:
		for _, n := range p.connections {
			c := connectionCounters(&Connection{Received: n.Received, Sent: n.Sent})
			sum.plus(&c)
		}
	case aChannel:
		for _, n := range p.connections {
			c := channelCounters(n.asChannel())
			sum.plus(&c)
		}
	}
	return sum
}

// asChannel are the counters of channels as if they were one.
func (n *Past) asChannel() *Channel {
	return &Channel{Published: n.Published, Confirmed: n.Confirmed, Returned: n.Returned, Dropped: n.Dropped,
		Delivered: n.Delivered, DeliveredNoAck: n.DeliveredNoAck, Got: n.Got, GotNoAck: n.GotNoAck,
		GetEmpty: n.GetEmpty, Acked: n.Acked, Redelivered: n.Redelivered}
}

// addPast begins a tally with the queues that are gone.
func (t *tally) addPast() {
	for of, st := range t.gone.Queues {
		t.ofType(of.Type).AddCounters(&st)
		sum := t.ends[burial{of.Type, of.Strategy}]
		sum.plus(endsOf(&st))
		t.ends[burial{of.Type, of.Strategy}] = sum
	}
}
