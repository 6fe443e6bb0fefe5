package amqp

import "sync"

// Past is what connections and channels that are gone had counted, so that totals
// are exact however short a connection lived.
type Past struct {
	Received, Sent                           uint64 // bytes
	Published, Confirmable                   uint64 // Confirmable are those published on channels that confirm
	Confirmed, Returned, Dropped             uint64
	Delivered, DeliveredNoAck, Got, GotNoAck uint64
	GetEmpty, Acked, Redelivered             uint64
}

// maxPastVHosts bounds the vhosts that the past is told apart by; what was in others
// goes under "".
const maxPastVHosts = 1000

// pastCounts gathers the past by vhost. The zero value is ready.
type pastCounts struct {
	mu      sync.Mutex // guards byVHost; a leaf, held for one addition
	byVHost map[string]*Past
}

// Past is what connections and channels that are gone had counted, by vhost. A
// connection or a channel is in no snapshot any more when it comes in here.
func (s *Server) Past() map[string]Past {
	p := &s.users.past
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]Past, len(p.byVHost))
	for vhost, n := range p.byVHost {
		out[vhost] = *n
	}
	return out
}

// ofLocked is where a vhost's past is. p.mu must be held.
func (p *pastCounts) ofLocked(vhost string) *Past {
	n := p.byVHost[vhost]
	if n != nil {
		return n
	}
	if p.byVHost == nil {
		p.byVHost = make(map[string]*Past)
	}
	if len(p.byVHost) >= maxPastVHosts {
		vhost = ""
	}
	if n = p.byVHost[vhost]; n == nil {
		n = &Past{}
		p.byVHost[vhost] = n
	}
	return n
}

// channel takes in a channel that is gone.
func (p *pastCounts) channel(vhost string, n *channelCounts) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.ofLocked(vhost)
	sum.Published += n.published.Load()
	sum.Confirmable += n.confirmable.Load()
	sum.Confirmed += n.confirmed.Load()
	sum.Returned += n.returned.Load()
	sum.Dropped += n.dropped.Load()
	sum.Delivered += n.delivered.Load()
	sum.DeliveredNoAck += n.deliveredNoAck.Load()
	sum.Got += n.got.Load()
	sum.GotNoAck += n.gotNoAck.Load()
	sum.GetEmpty += n.getEmpty.Load()
	sum.Acked += n.acked.Load()
	sum.Redelivered += n.redelivered.Load()
}

// connection takes in the bytes of a connection that is gone.
func (p *pastCounts) connection(vhost string, received, sent uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.ofLocked(vhost)
	sum.Received += received
	sum.Sent += sent
}
