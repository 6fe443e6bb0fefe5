package auth

import (
	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// A Limit names something that a user may have only so many of.
type Limit string

// The limits of a user (RabbitMQ 4.0).
const (
	MaxConnections Limit = "max-connections"
	MaxChannels    Limit = "max-channels"
)

// Limit returns a user's limit; ok is false if there is none. A negative number
// was set to say so. 0 lets nothing through.
func (a *Authority) Limit(user string, l Limit) (n int, ok bool) {
	u := a.lookup(user)
	if u == nil {
		return 0, false
	}
	n, ok = u.limits[l]
	return n, ok && n >= 0
}

// SetLimit sets a user's limit. A negative n is no limit.
func (a *Authority) SetLimit(user string, l Limit, n int) error {
	if err := l.check(); err != nil {
		return err
	}
	err := a.change(user, func(u *account) {
		u.limits = u.copyLimits()
		u.limits[l] = n
	})
	if err == nil {
		a.event("user.limits.set", field("name", user), field(string(l), int64(n)))
		a.log.Info("user limit set", zap.String("user", user), zap.String("limit", string(l)), zap.Int("value", n))
	}
	return err
}

// ClearLimit takes a user's limit away.
func (a *Authority) ClearLimit(user string, l Limit) error {
	if err := l.check(); err != nil {
		return err
	}
	err := a.change(user, func(u *account) {
		u.limits = u.copyLimits()
		delete(u.limits, l)
	})
	if err == nil {
		a.event("user.limits.cleared", field("name", user), field("limit", string(l)))
		a.log.Info("user limit cleared", zap.String("user", user), zap.String("limit", string(l)))
	}
	return err
}

func (l Limit) check() error {
	if l == MaxConnections || l == MaxChannels {
		return nil
	}
	return frames.Errorf(frames.PreconditionFailed, "unknown user limit '%s': use %s or %s", l, MaxConnections, MaxChannels)
}
