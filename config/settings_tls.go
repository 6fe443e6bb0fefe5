package config

// tlsSettings are those of one certificate; the first three are all that most
// need.
func tlsSettings(prefix string, of func(*Config) *TLS) []Setting {
	return []Setting{
		{Name: prefix + "-cert", Usage: "`file` with the certificate for TLS, and those between it and its root",
			set: func(c *Config, s string) error { return setText(&of(c).Cert, s) }},
		{Name: prefix + "-key", Usage: "`file` with the key of that certificate",
			set: func(c *Config, s string) error { return setText(&of(c).Key, s) }},
		{Name: prefix + "-ca", Usage: "`file` with the certificates that sign those of clients",
			set: func(c *Config, s string) error { return setText(&of(c).CACert, s) }},
		{Name: prefix + "-key-password", Usage: "`password` of that key", Secret: true,
			set: func(c *Config, s string) error { return setText(&of(c).KeyPassword, s) }},
		{Name: prefix + "-verify", Default: "verify_none", Usage: "`whether` to ask clients for a certificate: verify_peer or verify_none",
			set: func(c *Config, s string) error { return setVerify(of(c), s) }},
		{Name: prefix + "-require-cert", Default: "false", Switch: true, Usage: "refuse clients without a certificate",
			set: func(c *Config, s string) error { return setSwitch(&of(c).RequirePeer, s) }},
		{Name: prefix + "-depth", Default: "1", Usage: "`number` of certificates between a client's and the root",
			set: func(c *Config, s string) error { return setNumber(&of(c).Depth, s, 100) }},
		{Name: prefix + "-ciphers", Default: "chosen by Go", Usage: "`suites` below TLS 1.3",
			set:  func(c *Config, s string) error { return setList(&of(c).Ciphers, s) },
			show: func(*Config) string { return "chosen by Go" }},
		{Name: prefix + "-versions", Default: "tlsv1.2,tlsv1.3", Usage: "`versions` of TLS",
			set: func(c *Config, s string) error { return setVersions(&of(c).Versions, s) }},
	}
}

// socketSettings are the sockets of AMQP clients. They have no flag.
func socketSettings() []Setting {
	return []Setting{
		{Name: "proxy-protocol", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.TCP.Proxy, s) }},
		{Name: "tcp-backlog", Default: "0",
			set: func(c *Config, s string) error { return setNumber(&c.TCP.Backlog, s, 1<<20) }},
		{Name: "tcp-nodelay", Default: "true", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.TCP.NoDelay, s) }},
		{Name: "tcp-keepalive", Default: "true", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.TCP.KeepAlive, s) }},
		{Name: "tcp-send-buffer", Default: "0",
			set: func(c *Config, s string) error { return setNumber(&c.TCP.SendBuffer, s, 1<<30) }},
		{Name: "tcp-receive-buffer", Default: "0",
			set: func(c *Config, s string) error { return setNumber(&c.TCP.ReceiveBuffer, s, 1<<30) }},
	}
}

// metricsSettings are how the metrics answer. They have no flag.
func metricsSettings() []Setting {
	return []Setting{
		{Name: "prometheus-tls-listen", Default: "off",
			set: func(c *Config, s string) error { return setAddressOrOff(&c.PrometheusTLSListen, s) }},
		{Name: "prometheus-path", Default: "/metrics",
			set:  func(c *Config, s string) error { return setPath(&c.Metrics.Path, s) },
			show: func(*Config) string { return "/metrics" }},
		{Name: "prometheus-per-object", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.Metrics.PerObject, s) }},
		{Name: "prometheus-login", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.Metrics.Login, s) }},
	}
}
