package broker

import (
	"math"
	"time"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/management"
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

// nodeLimits are the limits of all connections together.
func nodeLimits(l config.Limits) amqp.NodeLimits {
	return amqp.NodeLimits{Connections: l.MaxConnections, Channels: l.MaxNodeChannels}
}

// intercept is what is added to published messages.
func intercept(i config.Intercept) amqp.Intercept {
	return amqp.Intercept{Timestamp: addition(i.Timestamp), RoutingNode: addition(i.RoutingNode)}
}

func addition(a config.Addition) amqp.Addition {
	switch a {
	case config.Missing:
		return amqp.Missing
	case config.Overwrite:
		return amqp.Overwrite
	}
	return amqp.NoAddition
}

// httpOptions are how the HTTP front door behaves.
func httpOptions(c config.Config) management.Options {
	return management.Options{
		AccessLog: c.HTTP.AccessLog, Headers: c.HTTP.Headers, FixedOperatorPolicies: c.HTTP.FixedOperatorPolicies,
		NodeTags: c.NodeTags, ClusterTags: c.ClusterTags, SampleInterval: c.HTTP.SampleInterval, NoRates: c.HTTP.NoRates, UnaggregatedQueues: c.HTTP.UnaggregatedQueues,
		MetricsPath: c.Metrics.Path, MetricsPerObject: c.Metrics.PerObject, MetricsLogin: c.Metrics.Login,
	}
}

// authConfig is how users log in.
func (b *Broker) authConfig() auth.Config {
	a := b.cfg.Auth
	c := auth.Config{
		Log:         b.log.Named("user"),
		DefaultUser: b.cfg.DefaultUser, DefaultPass: b.cfg.DefaultPass, DefaultVHost: b.cfg.DefaultVHost,
		DefaultTags: b.cfg.DefaultTags,
		DefaultPermissions: auth.Permissions{
			Configure: b.cfg.DefaultPermissions.Configure, Write: b.cfg.DefaultPermissions.Write, Read: b.cfg.DefaultPermissions.Read,
		},
		NoDefaultUser: b.cfg.LoadDefinitions != "",
		AltKind:       auth.AltKind(a.AltName), AltIndex: a.AltIndex,
		LoopbackUsers: a.LoopbackUsers, Mechanisms: a.Mechanisms, AnonymousUser: a.AnonymousUser, AnonymousPass: a.AnonymousPass,
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
