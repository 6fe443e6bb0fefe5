package broker

import (
	"fmt"
	"net"
	"sync/atomic"

	"github.com/leveretmq/leveret/persistence"
)

// A Pulse tells from one look to the next whether a broker makes progress: that
// its acceptors accept and its store commits. One goroutine uses it, between
// Start and Stop.
type Pulse struct {
	store     persistence.Store // immutable
	acceptors []*acceptor       // immutable
	turns     []uint64          // of the acceptors at the last look
	health    persistence.Health
}

// Pulse is for a watchdog.
func (b *Broker) Pulse() *Pulse {
	p := &Pulse{store: b.store, acceptors: b.acceptors, turns: make([]uint64, len(b.acceptors))}
	p.health = p.store.Health()
	return p
}

// Beat looks at the broker. It is an error if something has been waiting since the
// last look that should not: clients that were let in and not taken on, or writes
// that were not committed while the disk has space and works.
func (p *Pulse) Beat() error {
	var stuck error
	for i, a := range p.acceptors {
		turn := a.turn.Load()
		if turn%2 == 1 && turn == p.turns[i] {
			stuck = fmt.Errorf("clients of %s are not accepted any more", a.Addr())
		}
		p.turns[i] = turn
	}
	before, now := p.health, p.store.Health()
	p.health = now
	if now.Err == nil && !now.DiskLow && before.Uncommitted > 0 && now.Uncommitted > 0 && now.Commits == before.Commits {
		stuck = fmt.Errorf("the store does not commit any more: %d bytes are waiting", now.Uncommitted)
	}
	return stuck
}

// An acceptor is a listener that knows whether somebody waits for its clients.
type acceptor struct {
	net.Listener
	turn atomic.Uint64 // even while somebody is in Accept
}

func newAcceptor(l net.Listener) *acceptor {
	a := &acceptor{Listener: l}
	a.turn.Store(1)
	return a
}

// Accept implements net.Listener.
func (a *acceptor) Accept() (net.Conn, error) {
	a.turn.Add(1)
	defer a.turn.Add(1)
	return a.Listener.Accept()
}
