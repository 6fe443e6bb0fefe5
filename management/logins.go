package management

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailedLogins is how many logins may fail from one address within
	// failedLoginWindow before others from there are not looked at.
	maxFailedLogins   = 60
	failedLoginWindow = time.Minute
	// maxLoginPeers bounds the addresses that are remembered.
	maxLoginPeers = 10_000
)

// logins slows down who guesses passwords. The zero value is ready.
type logins struct {
	mu    sync.Mutex // guards peers; held for one access
	peers map[netip.Addr]failedLogins
}

type failedLogins struct {
	count int
	since time.Time
}

// blocked says whether too many logins from the address have failed lately.
func (l *logins) blocked(peer netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.peers[peer]
	return ok && f.count >= maxFailedLogins && time.Since(f.since) < failedLoginWindow
}

func (l *logins) failed(peer netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.peers == nil || len(l.peers) >= maxLoginPeers {
		l.peers = make(map[netip.Addr]failedLogins)
	}
	f := l.peers[peer]
	if now := time.Now(); now.Sub(f.since) >= failedLoginWindow {
		f = failedLogins{since: now}
	}
	f.count++
	l.peers[peer] = f
}

func (l *logins) succeeded(peer netip.Addr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.peers, peer)
}
