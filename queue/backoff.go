package queue

import "math"

// A Backoff says how long a message that came back waits in its queue before it
// is delivered again. The zero value is not at all.
type Backoff struct {
	Delay      int64   // the first wait in milliseconds; not above 0 is none
	Multiplier float64 // each wait is so many times the one before; below 1 counts as 1
	Max        int64   // the longest wait in milliseconds; not above 0 is maxExpiry
	Jitter     float64 // 0 to 1: up to this share of a wait is taken off at random
}

// On says whether there is any wait.
func (b *Backoff) On() bool { return b.Delay > 0 }

// Wait is the wait in milliseconds of a message that has come back n times, from
// 1 on. random is from 0 up to 1, and decides on the jitter.
func (b *Backoff) Wait(n uint32, random float64) int64 {
	if !b.On() || n == 0 {
		return 0
	}
	longest := b.Max
	if longest <= 0 || longest > maxExpiry {
		longest = maxExpiry
	}
	wait := float64(b.Delay)
	if b.Multiplier > 1 {
		wait *= math.Pow(b.Multiplier, float64(n-1)) // may become infinite
	}
	wait = min(wait, float64(longest))
	return int64(math.Round(wait - wait*b.Jitter*random))
}

// backoff joins arguments and policy: each part is the argument's if that is
// set, else the policy's.
func backoff(a Arguments, p Policy) Backoff {
	b := Backoff{Delay: a.RedeliveryDelay, Multiplier: a.RedeliveryMultiplier, Max: a.RedeliveryDelayMax, Jitter: a.RedeliveryJitter}
	if b.Delay == None {
		b.Delay = p.RedeliveryDelay
	}
	if b.Multiplier == 0 {
		b.Multiplier = p.RedeliveryMultiplier
	}
	if b.Max == None {
		b.Max = p.RedeliveryDelayMax
	}
	if b.Jitter < 0 {
		b.Jitter = p.RedeliveryJitter
	}
	b.Jitter = max(0, b.Jitter)
	return b
}

// A TimeoutAction is what becomes of a delivery that was not acknowledged in
// time.
type TimeoutAction uint8

// The actions; TimeoutUnset is CloseChannel by default.
const (
	TimeoutUnset    TimeoutAction = iota
	CloseChannel                  // with 406, as RabbitMQ does
	RequeueDelivery               // only the late one goes back; the channel stays
)

// parseTimeoutAction returns the action of that name, or TimeoutUnset.
func parseTimeoutAction(s string) TimeoutAction {
	switch s {
	case "close":
		return CloseChannel
	case "requeue":
		return RequeueDelivery
	}
	return TimeoutUnset
}
