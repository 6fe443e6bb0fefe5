package auth

import "sync/atomic"

// Attempts counts logins since the start.
type Attempts struct{ Succeeded, Failed uint64 }

// attempts are the counters of Attempts, by where logins come from.
type attempts struct{ sasl, http attemptCount }

type attemptCount struct{ succeeded, failed atomic.Uint64 }

func (n *attemptCount) count(err error) {
	if err == nil {
		n.succeeded.Add(1)
	} else {
		n.failed.Add(1)
	}
}

func (n *attemptCount) snapshot() Attempts { return Attempts{n.succeeded.Load(), n.failed.Load()} }

// Attempts counts the logins of Login, which are a protocol's, and those of
// Authenticate, which are requests over HTTP. ResetAttempts makes both 0.
func (a *Authority) Attempts() (protocol, http Attempts) {
	return a.attempts.sasl.snapshot(), a.attempts.http.snapshot()
}

// ResetAttempts makes the counts of Attempts begin anew.
func (a *Authority) ResetAttempts() {
	for _, n := range []*attemptCount{&a.attempts.sasl, &a.attempts.http} {
		n.succeeded.Store(0)
		n.failed.Store(0)
	}
}
