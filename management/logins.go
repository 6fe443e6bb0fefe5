package management

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailedLogins is how many logins of one user may fail from one address
	// within failedLoginWindow before others are not looked at. All users may
	// come from one address: that of a proxy.
	maxFailedLogins   = 60
	failedLoginWindow = time.Minute
	// maxLoginPeers bounds what is remembered.
	maxLoginPeers = 10_000
)

// logins slows down who guesses passwords. The zero value is ready.
type logins struct {
	mu     sync.Mutex // guards failed; held for one access
	failed map[login]failedLogins
}

// A login is who tries from where.
type login struct {
	user string
	peer netip.Addr
}

type failedLogins struct {
	count int
	since time.Time
}

// blocked says whether too many of these logins have failed lately.
func (l *logins) blocked(who login) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, ok := l.failed[who]
	return ok && f.count >= maxFailedLogins && time.Since(f.since) < failedLoginWindow
}

func (l *logins) fail(who login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil || len(l.failed) >= maxLoginPeers {
		l.failed = make(map[login]failedLogins)
	}
	f := l.failed[who]
	if now := time.Now(); now.Sub(f.since) >= failedLoginWindow {
		f = failedLogins{since: now}
	}
	f.count++
	l.failed[who] = f
}

func (l *logins) succeed(who login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failed, who)
}
