package auth

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailures is how many logins of one user may fail from one address
	// within failureWindow before more are not looked at. Others are not kept
	// waiting: all users may come from one address, that of a proxy, and one
	// user from many.
	maxFailures   = 60
	failureWindow = time.Minute
	// maxGuessers bounds what is remembered: about 150 bytes for each.
	maxGuessers = 10_000
)

// guesses stops who guesses passwords, for all front doors together. The zero
// value is ready.
type guesses struct {
	mu     sync.Mutex // guards failed; held for one access, and for a sweep when it is full
	failed map[guesser]failures
}

// A guesser is who is tried from where. The name is hashed: who sends it is nobody
// yet, and it may be as long as a request.
type guesser struct {
	user [sha256.Size]byte
	peer netip.Addr
}

func newGuesser(user string, peer netip.Addr) guesser {
	return guesser{sha256.Sum256([]byte(user)), peer.Unmap()}
}

type failures struct {
	count int
	since time.Time
}

// blocked says whether too many of these logins have failed lately.
func (g *guesses) blocked(who guesser) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, ok := g.failed[who]
	return ok && f.count >= maxFailures && time.Since(f.since) < failureWindow
}

func (g *guesses) fail(who guesser) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	f, known := g.failed[who]
	if !known && len(g.failed) >= maxGuessers {
		g.sweepLocked(now)
	}
	if g.failed == nil {
		g.failed = make(map[guesser]failures)
	}
	if now.Sub(f.since) >= failureWindow {
		f = failures{since: now}
	}
	f.count++
	g.failed[who] = f
}

func (g *guesses) succeed(who guesser) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.failed, who)
}

// sweepLocked makes room: what is over is forgotten, and of the rest first who
// has failed least, so that nobody is let off by trying many names.
func (g *guesses) sweepLocked(now time.Time) {
	for least := 0; len(g.failed) > maxGuessers*3/4; least++ {
		for who, f := range g.failed {
			if now.Sub(f.since) >= failureWindow || f.count <= least {
				delete(g.failed, who)
			}
		}
	}
}
