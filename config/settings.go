package config

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Setting is one field of a Config as operators see it: a flag and an
// environment variable with the same meaning, and often a key of the
// configuration file.
type Setting struct {
	// Name is the flag without its dashes.
	Name string
	// Usage is one line of help; a `word` in it names the value.
	Usage string
	// Default is the default as an operator would write it.
	Default string
	// Switch says that the value is true or false and the flag may stand
	// alone.
	Switch bool
	// Secret says that the value must not be shown.
	Secret bool

	// Secrets says that parts of the value must not be shown.
	Secrets func(text string) string

	env string // the environment variable, if it is not made of the name
	set func(c *Config, text string) error
	// show tells a default that Default has no value for; nil if it has.
	show func(c *Config) string
}

// Env is the environment variable that means the same as the flag.
func (s Setting) Env() string {
	if s.env != "" {
		return s.env
	}
	return "LEVERET_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Settings lists the settings that have a flag, in the order of the help.
func Settings() []Setting {
	return slices.Concat(nodeSettings(), listenerSettings(), firstStartSettings(), logSettings())
}

// allSettings are Settings and those without a flag, in the order in which they
// take effect: a profile comes before what it has a default of its own for.
func allSettings() []Setting {
	return slices.Concat(Settings(), moreNodeSettings(), moreLogSettings(), authSettings(), seedSettings(), limitSettings(),
		messageSettings(), socketSettings(), httpSettings(), metricsSettings(),
		tlsSettings("tls", func(c *Config) *TLS { return &c.TLS })[3:],
		tlsSettings("management-tls", func(c *Config) *TLS { return &c.ManagementTLS }),
		tlsSettings("prometheus-tls", func(c *Config) *TLS { return &c.PrometheusTLS }))
}

// nodeSettings are the data, and the size of the machine.
func nodeSettings() []Setting {
	return []Setting{
		{Name: "config", env: "LEVERET_CONFIG_FILE", Default: "rabbitmq.conf in the data folder", Usage: "`file` of settings in the syntax of rabbitmq.conf",
			set:  func(c *Config, s string) error { return setText(&c.File, s) },
			show: func(c *Config) string { return strings.Join(c.Files, " ") }},
		{Name: "data-dir", Default: "per-user data folder", Usage: "`folder` of everything that survives a restart",
			set:  func(c *Config, s string) error { return setText(&c.DataDir, s) },
			show: func(c *Config) string { return c.DataDir }},
		{Name: "in-memory", Default: "false", Switch: true, Usage: "write nothing to disk; everything is gone after a stop",
			set: func(c *Config, s string) error { return setSwitch(&c.InMemory, s) }},
		{Name: "durability", Default: "synced", Usage: "what a confirm promises, `synced or relaxed`: survives a power cut, or only the death of the process",
			set: func(c *Config, s string) error { return setWord(&c.Durability, s, Synced, Relaxed) }},
		{Name: "profile", Default: "server", Usage: "what to be good at, `server or tiny`: throughput, or little memory and small files",
			set: setProfile},
		{Name: "memory-available", Default: "this machine's or container's", Usage: "`memory` that limits in percent are a part of, as in 8GiB",
			set:  setMemoryAvailable,
			show: func(c *Config) string { return strconv.FormatInt(c.MemoryAvailable, 10) }},
		{Name: "memory-limit", Default: "60 % of this machine's or container's", Usage: "`memory` the broker may take, as in 2GB, 512MiB or 40%",
			set:  func(c *Config, s string) error { return setShare(&c.MemoryLimit, s, c.MemoryAvailable) },
			show: func(c *Config) string { return strconv.FormatInt(c.MemoryLimit, 10) }},
		{Name: "disk-free-limit", Default: "by profile", Usage: "free `space` on the data folder's disk below which publishers are stopped, as in 2GB or 512MiB; 150% is of the memory",
			set:  func(c *Config, s string) error { return setShare(&c.DiskFreeLimit, s, c.MemoryAvailable) },
			show: func(*Config) string { return "by profile" }},
		{Name: "queue-memory", Default: "32MiB", Usage: "`memory` that waiting messages may take; what exceeds it waits on disk (16MiB with the profile tiny)",
			set:  func(c *Config, s string) error { return setSize(&c.QueueMemory, s) },
			show: func(c *Config) string { return strconv.FormatInt(c.QueueMemory, 10) }},
		{Name: "gc-headroom", Default: "48MiB", Usage: "`memory` that the heap grows by before the garbage collector runs (8MiB with the profile tiny); two thirds more while the disk is not used",
			set:  func(c *Config, s string) error { return setSize(&c.GCHeadroom, s) },
			show: func(c *Config) string { return strconv.FormatInt(c.GCHeadroom, 10) }},
		{Name: "node-name", Default: "leveret@ and the machine's name", Usage: "`name` of the node, as in rabbit@host",
			set:  setNodeName,
			show: func(*Config) string { return "leveret@ and the machine's name" }},
		{Name: "cluster-name", Default: "the node's name", Usage: "`name` that clients and the HTTP API show",
			set:  func(c *Config, s string) error { return setText(&c.ClusterName, s) },
			show: func(*Config) string { return "the node's name" }},
		{Name: "product-name", Default: "Leveret", Usage: "`name` that clients are told; some look for RabbitMQ",
			set: func(c *Config, s string) error { return setText(&c.ProductName, s) }},
	}
}

// listenerSettings are the addresses, and the certificate that most need.
func listenerSettings() []Setting {
	return slices.Concat([]Setting{
		{Name: "listen", Default: "127.0.0.1:5672", Usage: "`addresses` that AMQP clients connect to, host:port with commas in between, or off; port 0 takes a free one",
			set: func(c *Config, s string) error { return setAddresses(&c.Listen, s) }},
		{Name: "tls-listen", Default: "off", Usage: "`addresses` for AMQP with TLS, or off; port 5671 once there is a certificate",
			set: func(c *Config, s string) error { return setAddresses(&c.TLSListen, s) }},
		{Name: "management-listen", Default: DefaultManagementListen, Usage: "`address` of the HTTP API, or off",
			set: func(c *Config, s string) error { return setAddressOrOff(&c.ManagementListen, s) }},
		{Name: "management-tls-listen", Default: "off", Usage: "`address` of the HTTP API with TLS, or off",
			set: func(c *Config, s string) error { return setAddressOrOff(&c.ManagementTLSListen, s) }},
		{Name: "prometheus-listen", Default: DefaultPrometheusListen, Usage: "`address` of the Prometheus metrics, or off",
			set: func(c *Config, s string) error { return setAddressOrOff(&c.PrometheusListen, s) }},
		{Name: "pprof-listen", Default: "off", Usage: "`address` of CPU and memory profiles of the program, or off; one of this machine only",
			set: func(c *Config, s string) error { return setAddressOrOff(&c.PprofListen, s) }},
	}, tlsSettings("tls", func(c *Config) *TLS { return &c.TLS })[:3])
}

// firstStartSettings are what an empty data folder is filled with, and
// definitions.
func firstStartSettings() []Setting {
	return []Setting{
		{Name: "default-user", Default: "guest", Usage: "`name` of the administrator made when the data folder is empty",
			set: func(c *Config, s string) error { return setText(&c.DefaultUser, s) }},
		{Name: "default-pass", Default: "guest", Secret: true, Usage: "`password` of that administrator",
			set: func(c *Config, s string) error { return setText(&c.DefaultPass, s) }},
		{Name: "default-vhost", Default: "/", Usage: "`name` of the vhost made with it",
			set: func(c *Config, s string) error { return setText(&c.DefaultVHost, s) }},
		{Name: "load-definitions", Default: "none", Usage: "`file` or folder of definitions to import at every start; then there is no default user or vhost",
			set: func(c *Config, s string) error { return setTextOrNone(&c.LoadDefinitions, s) }},
	}
}

// authSettings are how users log in. They have no flag.
func authSettings() []Setting {
	return []Setting{
		{Name: "default-tags", Default: "administrator",
			set: func(c *Config, s string) error { return setList(&c.DefaultTags, s) }},
		{Name: "default-permissions-configure", Default: ".*",
			set: func(c *Config, s string) error { return setPattern(&c.DefaultPermissions.Configure, s) }},
		{Name: "default-permissions-write", Default: ".*",
			set: func(c *Config, s string) error { return setPattern(&c.DefaultPermissions.Write, s) }},
		{Name: "default-permissions-read", Default: ".*",
			set: func(c *Config, s string) error { return setPattern(&c.DefaultPermissions.Read, s) }},
		{Name: "loopback-users", Default: "guest",
			set: func(c *Config, s string) error { return setList(&c.Auth.LoopbackUsers, s) }},
		{Name: "auth-mechanisms", Default: "AMQPLAIN,PLAIN",
			set: func(c *Config, s string) error { return setMechanisms(&c.Auth.Mechanisms, s) }},
		{Name: "anonymous-login-user", Default: "none",
			set: func(c *Config, s string) error { return setTextOrNone(&c.Auth.AnonymousUser, s) }},
		{Name: "anonymous-login-pass", Default: "any", Secret: true,
			set:  func(c *Config, s string) error { return setText(&c.Auth.AnonymousPass, s) },
			show: func(*Config) string { return "" }},
		{Name: "cert-login-from", Default: "distinguished_name",
			set: func(c *Config, s string) error {
				return setWord(&c.Auth.CertName, s, DistinguishedName, CommonName, AlternativeName)
			}},
		{Name: "cert-login-san-type", Default: "dns",
			set: func(c *Config, s string) error { return setWord(&c.Auth.AltName, s, "dns", "ip", "email", "uri") }},
		{Name: "cert-login-san-index", Default: "0",
			set: func(c *Config, s string) error { return setNumber(&c.Auth.AltIndex, s, 100) }},
		{Name: "password-hash", Default: "SHA256",
			set: func(c *Config, s string) error { return setWord(&c.Auth.PasswordHash, s, "SHA256", "SHA512") }},
		{Name: "min-password-length", Default: "0",
			set: func(c *Config, s string) error { return setNumber(&c.Auth.MinPasswordLength, s, 1<<16) }},
		{Name: "password-pattern", Default: "none",
			set: func(c *Config, s string) error { return setPatternOrNone(&c.Auth.PasswordPattern, s) }},
	}
}

// limitSettings are what one connection may do. They have no flag.
func limitSettings() []Setting {
	return []Setting{
		{Name: "heartbeat", Default: "60s",
			set: func(c *Config, s string) error { return setDuration(&c.Limits.Heartbeat, s, 65535*time.Second) }},
		{Name: "frame-max", Default: "131072", set: setFrameMax},
		{Name: "channel-max", Default: "2047",
			set: func(c *Config, s string) error { return setNumber(&c.Limits.ChannelMax, s, 65535) }},
		{Name: "consumer-max-per-channel", Default: "infinity",
			set: func(c *Config, s string) error { return setNumberOrInfinity(&c.Limits.MaxConsumers, s) }},
		{Name: "max-message-size", Default: "16MiB", set: setMaxMessageSize},
		{Name: "handshake-timeout", Default: "10s",
			set: func(c *Config, s string) error { return setPositiveDuration(&c.Limits.HandshakeTimeout, s) }},
		{Name: "initial-frame-max", Default: "8192", set: setInitialFrameMax},
		{Name: "tls-handshake-timeout", Default: "5s",
			set: func(c *Config, s string) error { return setPositiveDuration(&c.Limits.TLSTimeout, s) }},
		{Name: "connection-max", Default: "infinity",
			set: func(c *Config, s string) error { return setNumberOrInfinity(&c.Limits.MaxConnections, s) }},
		{Name: "channel-max-per-node", Default: "infinity",
			set: func(c *Config, s string) error { return setNumberOrInfinity(&c.Limits.MaxNodeChannels, s) }},
		{Name: "vhost-max", Default: "infinity",
			set: func(c *Config, s string) error { return setNumberOrInfinity(&c.Limits.MaxVHosts, s) }},
		{Name: "queue-limit", Default: "infinity",
			set: func(c *Config, s string) error { return setNumberOrInfinity(&c.Limits.MaxQueues, s) }},
		{Name: "exchange-limit", Default: "infinity",
			set: func(c *Config, s string) error { return setNumberOrInfinity(&c.Limits.MaxExchanges, s) }},
		{Name: "consumer-timeout", Default: "30m",
			set: func(c *Config, s string) error {
				return setDuration(&c.Limits.ConsumerTimeout, s, 100*365*24*time.Hour)
			}},
		{Name: "default-queue-type", Default: "classic",
			set: func(c *Config, s string) error {
				return setWord(&c.DefaultQueueType, s, "classic", "quorum", "stream")
			}},
	}
}

// httpSettings are how the HTTP API answers. They have no flag.
func httpSettings() []Setting {
	return []Setting{
		{Name: "management-path-prefix", Default: "none",
			set: func(c *Config, s string) error { return setTextOrNone(&c.HTTP.PathPrefix, s) }},
		{Name: "management-max-body-size", Default: "20MB",
			set:  func(c *Config, s string) error { return setSize(&c.HTTP.MaxBodySize, s) },
			show: func(*Config) string { return "20MB" }},
		{Name: "management-cors-origins", Default: "none",
			set: func(c *Config, s string) error { return setList(&c.HTTP.AllowOrigins, s) }},
		{Name: "management-cors-max-age", Default: "30m",
			set:  func(c *Config, s string) error { return setPositiveDuration(&c.HTTP.CORSMaxAge, s) },
			show: func(*Config) string { return "30m" }},
		{Name: "management-disable-stats", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.HTTP.DisableStats, s) }},
		{Name: "statistics-interval", Default: "5s",
			set:  func(c *Config, s string) error { return setSampleInterval(&c.HTTP.SampleInterval, s) },
			show: func(*Config) string { return "5s" }},
		{Name: "management-rates", Default: "true", Switch: true,
			set: func(c *Config, s string) error {
				var on bool
				err := setSwitch(&on, s)
				c.HTTP.NoRates = !on
				return err
			}},
		{Name: "pprof-remote", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.PprofRemote, s) }},
		{Name: "management-enable-queue-totals", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.HTTP.EnableQueueTotals, s) }},
		{Name: "management-access-log", Default: "none",
			set: func(c *Config, s string) error { return setTextOrNone(&c.HTTP.AccessLog, s) }},
		{Name: "management-headers", Default: "none",
			set: func(c *Config, s string) error { return setHeaders(&c.HTTP.Headers, s) }},
		{Name: "management-fixed-operator-policies", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.HTTP.FixedOperatorPolicies, s) }},
		{Name: "management-unaggregated-queues", Default: "none",
			set: func(c *Config, s string) error { return setCompiledOrNone(&c.HTTP.UnaggregatedQueues, s) }},
	}
}
