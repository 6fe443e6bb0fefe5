package management

import (
	"net"
	"net/http"
	"sync"
)

// newcomers are the connections that have not asked anything yet. A Shutdown of
// net/http waits for their first request, for five seconds: there may never be one.
type newcomers struct {
	mu       sync.Mutex            // guards the fields below; held for one access
	conns    map[net.Conn]struct{} // nil while there are none
	unwanted bool                  // the server stops
}

// changed is an http.Server's ConnState.
func (n *newcomers) changed(c net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(n.conns, c)
	case n.unwanted:
		c.Close()
	default:
		if n.conns == nil {
			n.conns = make(map[net.Conn]struct{})
		}
		n.conns[c] = struct{}{}
	}
}

// leave closes them, and those that come from now on.
func (n *newcomers) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unwanted = true
	for c := range n.conns {
		c.Close()
	}
}
