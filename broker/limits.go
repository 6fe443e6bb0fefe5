package broker

import (
	"math"
	"time"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/config"
)

// forever is as long as no client waits.
const forever = 100 * 365 * 24 * time.Hour

// The parts below take zero as their default; in a configuration it means that
// there is no limit.

// heartbeat is what clients are offered. Less than a second is offered as 0.
func heartbeat(l config.Limits) time.Duration { return max(l.Heartbeat, 1) }

// frameMax is the largest frame, in bytes. Some clients read it as signed.
func frameMax(l config.Limits) uint32 {
	if l.FrameMax == 0 {
		return math.MaxInt32
	}
	return uint32(l.FrameMax)
}

func channelMax(l config.Limits) uint16 {
	if l.ChannelMax == 0 {
		return math.MaxUint16
	}
	return uint16(l.ChannelMax)
}

func consumerTimeout(l config.Limits) time.Duration {
	if l.ConsumerTimeout == 0 {
		return forever
	}
	return l.ConsumerTimeout
}

// authConfig is how users log in.
func (b *Broker) authConfig() auth.Config {
	a := b.cfg.Auth
	c := auth.Config{
		Log:         b.log,
		DefaultUser: b.cfg.DefaultUser, DefaultPass: b.cfg.DefaultPass, DefaultVHost: b.cfg.DefaultVHost,
		DefaultTags: b.cfg.DefaultTags,
		DefaultPermissions: auth.Permissions{
			Configure: b.cfg.DefaultPermissions.Configure, Write: b.cfg.DefaultPermissions.Write, Read: b.cfg.DefaultPermissions.Read,
		},
		NoDefaultUser: b.cfg.LoadDefinitions != "",
		LoopbackUsers: a.LoopbackUsers, Mechanisms: a.Mechanisms, AnonymousUser: a.AnonymousUser,
		Algorithm: auth.SHA256, MinPasswordLength: a.MinPasswordLength, PasswordPattern: a.PasswordPattern,
	}
	if a.PasswordHash == "SHA512" {
		c.Algorithm = auth.SHA512
	}
	switch a.CertName {
	case config.CommonName:
		c.CertName = auth.CommonName
	case config.AlternativeName:
		c.CertName = auth.AlternativeName
	}
	return c
}
