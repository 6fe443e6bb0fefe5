package vhost

import (
	"maps"
	"sync"

	"github.com/leveretmq/leveret/queue"
)

// Past is what queues and exchanges that are gone had counted since the start, so
// that totals are exact however short they lived.
type Past struct {
	// Queues have their counters only.
	Queues    map[PastQueues]queue.Status
	Exchanges map[string]PastExchanges // by vhost
}

// PastQueues is what queues that are gone are told apart by.
type PastQueues struct {
	VHost, Type string
	Strategy    string // for dead letters; see queue.DeadLetterStrategy
}

// PastExchanges are the counters of exchanges that are gone.
type PastExchanges struct{ Published, Routed uint64 }

// maxPastVHosts bounds the vhosts that the past is told apart by; what was in others
// goes under "".
const maxPastVHosts = 1000

// pastCounts gathers the past. Its lock is a leaf but for that of the queue that is
// asked for its counters. The zero value is ready.
type pastCounts struct {
	mu     sync.Mutex // guards the fields below; held for one addition
	vhosts map[string]struct{}
	Past
}

// Past is what queues and exchanges that are gone had counted. One is in no listing
// any more, or about to leave them, when it comes in here: read this first, and then
// what there is.
func (s *Set) Past() Past {
	p := &s.past
	p.mu.Lock()
	defer p.mu.Unlock()
	return Past{Queues: maps.Clone(p.Queues), Exchanges: maps.Clone(p.Exchanges)}
}

// ofLocked is the vhost that a past goes under. p.mu must be held.
func (p *pastCounts) ofLocked(vhost string) string {
	if p.vhosts == nil {
		p.vhosts = make(map[string]struct{})
		p.Queues = make(map[PastQueues]queue.Status)
		p.Exchanges = make(map[string]PastExchanges)
	}
	if _, known := p.vhosts[vhost]; known {
		return vhost
	}
	if len(p.vhosts) >= maxPastVHosts {
		return ""
	}
	p.vhosts[vhost] = struct{}{}
	return vhost
}

// queue takes in a queue that is gone.
func (p *pastCounts) queue(vhost string, e *queueEntry) {
	st := e.q.Status()
	p.mu.Lock()
	defer p.mu.Unlock()
	of := PastQueues{p.ofLocked(vhost), e.spec.Arguments.Type, queue.DeadLetterStrategy(*e.spec.Arguments, st.Policy)}
	sum := p.Queues[of]
	sum.AddCounters(&st)
	p.Queues[of] = sum
}

// exchange takes in an exchange that is gone.
func (p *pastCounts) exchange(vhost string, e *exchangeEntry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.ofLocked(vhost)
	sum := p.Exchanges[of]
	sum.Published += e.published.Load()
	sum.Routed += e.routed.Load()
	p.Exchanges[of] = sum
}
