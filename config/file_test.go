package config

import (
	"crypto/tls"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leveretmq/leveret/pattern"
)

// writeFiles makes files in a new folder and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// loadText loads a file with this text, in memory and without conf.d.
func loadText(t *testing.T, text string, variables map[string]string) (Config, error) {
	t.Helper()
	dir := writeFiles(t, map[string]string{"r.conf": text})
	return Load(map[string]string{"in-memory": "true", "config": filepath.Join(dir, "r.conf")}, environment(variables))
}

func TestParse(t *testing.T) {
	env := environment(map[string]string{"PORT": "77", "EMPTY": "", "H": "a#b"})
	for _, tt := range []struct {
		text, key, value, err string
	}{
		{"a.b = c", "a.b", "c", ""},
		{"\ufeffa=c\r", "a", "c", ""},
		{"  a.b=  two words  # comment", "a.b", "two words", ""},
		{"a = 'a#b c'", "a", "a#b c", ""},
		{"a = ' x ' # comment", "a", " x ", ""},
		{"a = ''", "a", "", ""},
		{`a = "q"`, "a", `"q"`, ""},
		{"a = x=y", "a", "x=y", ""},
		{"a = 1$(PORT)2$(EMPTY)", "a", "1772", ""},
		{"a = '$(H)'", "a", "a#b", ""},
		{"# a = b", "", "", ""},
		{"", "", "", ""},
		{"a", "", "", `f:1: "a" is not a setting: want key = value`},
		{"secret words here", "", "", `f:1: "secret ..." is not a setting: want key = value`},
		{"default_pass:sesame", "", "", `f:1: "default_pass ..." is not a setting: want key = value`},
		{"[section]", "", "", `f:1: "[section]" is not a setting: want key = value`},
		{"a b = c", "", "", `f:1: "a ..." is not a setting: want key = value`},
		{"a = ", "", "", "f:1: a: there is no value; write '' if it is to be empty"},
		{"a = 'x", "", "", "f:1: a: the quote ' is not closed"},
		{"a = 'x' y", "", "", "f:1: a: there is something after the closing quote '"},
		{"a = $(NOPE)", "", "", "f:1: the environment variable NOPE is not set, which $(NOPE) stands for"},
		{"a = $(NOPE", "", "", "f:1: $( is not closed: want $(NAME) for the environment variable NAME"},
	} {
		entries, err := parse("f", tt.text, env)
		var got entry
		if len(entries) > 0 {
			got = entries[0]
		}
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got.key != tt.key || got.value != tt.value || text != tt.err {
			t.Errorf("parse(%q) = %q, %q, error %q; want %q, %q, error %q", tt.text, got.key, got.value, text, tt.key, tt.value, tt.err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a = 'b' # c\n$(x)=$(y)")
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := parse("f", text, environment(nil))
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.key == "" || e.line < 1 {
				t.Errorf("parse(%q): entry %+v with error %v", text, e, err)
			}
		}
	})
}

// The main file, then conf.d in order; the last line of a key counts, and only
// that one is looked at.
func TestFilesInOrder(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"rabbitmq.conf":      "heartbeat = nonsense\nchannel_max = 1\nlisteners.tcp.1 = 1111\n",
		"conf.d/20-b.conf":   "channel_max = 3\n",
		"conf.d/10-a.conf":   "channel_max = 2\nheartbeat = 10\nlisteners.tcp.2 = 2222\n",
		"conf.d/notes.txt":   "not a setting",
		"other/1.conf":       "channel_max = 9\n",
		"named.conf":         "channel_max = 8\n",
		"erl/classic.config": "[].",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, tt := range []struct {
		name      string
		flags     map[string]string
		variables map[string]string
		channels  int
		files     []string
	}{
		{"in the data folder", map[string]string{"data-dir": dir}, nil, 3, []string{"rabbitmq.conf", "conf.d/10-a.conf", "conf.d/20-b.conf"}},
		{"flag", map[string]string{"config": in("named.conf"), "data-dir": t.TempDir()}, nil, 3, []string{"named.conf", "conf.d/10-a.conf", "conf.d/20-b.conf"}},
		{"variable", nil, map[string]string{"LEVERET_CONFIG_FILE": in("named.conf"), "RABBITMQ_CONFIG_FILE": "/nowhere", "RABBITMQ_CONFIG_FILES": in("other")}, 9, []string{"named.conf", "other/1.conf"}},
		{"RabbitMQ's, without its ending", nil, map[string]string{"RABBITMQ_CONFIG_FILE": in("named"), "RABBITMQ_CONFIG_FILES": in("other/*.conf")}, 9, []string{"named.conf", "other/1.conf"}},
		{"RabbitMQ's, which is not there", nil, map[string]string{"RABBITMQ_CONFIG_FILE": in("none")}, 3, []string{"conf.d/10-a.conf", "conf.d/20-b.conf"}},
		{"none", map[string]string{"config": "none", "data-dir": dir}, nil, 2047, nil},
		{"none in memory", map[string]string{"in-memory": "true"}, nil, 2047, nil},
	} {
		if tt.variables == nil {
			tt.variables = map[string]string{}
		}
		if tt.flags == nil {
			tt.flags = map[string]string{"in-memory": "true"}
		}
		c, err := Load(tt.flags, environment(tt.variables))
		var want []string
		for _, f := range tt.files {
			want = append(want, in(f))
		}
		if err != nil || c.Limits.ChannelMax != tt.channels || !slices.Equal(c.Files, want) {
			t.Errorf("%s: %d channels of %v, error %v; want %d of %v", tt.name, c.Limits.ChannelMax, c.Files, err, tt.channels, want)
		}
	}
	c, err := Load(map[string]string{"data-dir": dir}, environment(nil))
	if err != nil || c.Listen != ":1111,:2222" || c.Limits.Heartbeat != 10*time.Second {
		t.Errorf("Listen = %s, Heartbeat = %s, error %v; want both listeners and 10s", c.Listen, c.Limits.Heartbeat, err)
	}
	for _, tt := range []struct {
		flags, variables map[string]string
		want             string
	}{
		{map[string]string{"in-memory": "true", "config": in("none")}, nil, "no such file or directory; name a file that is there (--config, LEVERET_CONFIG_FILE, RABBITMQ_CONFIG_FILE)"},
		{map[string]string{"in-memory": "true", "config": dir}, nil, "is a directory; name a file that is there"},
		{map[string]string{"in-memory": "true"}, map[string]string{"RABBITMQ_CONFIG_FILE": in("erl/classic")}, "Erlang terms"},
	} {
		if _, err := Load(tt.flags, environment(tt.variables)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v %v: error %v, want %q in it", tt.flags, tt.variables, err, tt.want)
		}
	}
}

func TestFileThatMayNotBeRead(t *testing.T) {
	err := unreadable(&fs.PathError{Op: "open", Path: "/etc/r.conf", Err: fs.ErrPermission})
	want := "read the configuration: open /etc/r.conf: permission denied; let the user that starts the broker read the file and enter its folders"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// What a name stands for and cannot be read ends the start: a broker without its
// settings would be worse. A link to itself cannot be read by anybody.
func TestNamesThatCannotBeFollowed(t *testing.T) {
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ variable, name, want string }{
		{"RABBITMQ_CONFIG_FILE", loop, loop},
		{"RABBITMQ_ADVANCED_CONFIG_FILE", loop, loop},
		{"RABBITMQ_CONFIG_FILES", filepath.Join(loop, "*.conf"), loop},
		{"RABBITMQ_CONFIG_FILES", loop, loop},
		{"RABBITMQ_CONFIG_FILES", filepath.Join(t.TempDir(), "none", "*.conf"), ""},
	} {
		_, err := Load(map[string]string{"in-memory": "true"}, environment(map[string]string{tt.variable: tt.name}))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), "read the configuration: ") || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s=%s: error %v, want one with %q", tt.variable, tt.name, err, tt.want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	dir := writeFiles(t, map[string]string{"r.conf": "default_user = file\n"})
	flags := map[string]string{"in-memory": "true", "config": "none"}
	variables := map[string]string{}
	for _, step := range []struct {
		add  func()
		want string
	}{
		{func() {}, "guest"},
		{func() { flags["config"] = filepath.Join(dir, "r.conf") }, "file"},
		{func() { variables["RABBITMQ_DEFAULT_USER"] = "rabbitmq" }, "rabbitmq"},
		{func() { variables["LEVERET_DEFAULT_USER"] = "leveret" }, "leveret"},
		{func() { flags["default-user"] = "flag" }, "flag"},
	} {
		step.add()
		c, err := Load(flags, environment(variables))
		if err != nil || c.DefaultUser != step.want {
			t.Errorf("DefaultUser = %s, error %v, want %s", c.DefaultUser, err, step.want)
		}
	}
}

func TestEffective(t *testing.T) {
	dir := writeFiles(t, map[string]string{"r.conf": "\nheartbeat = 30\nlisteners.tcp.1 = 5672\nlisteners.tcp.2 = ::1:5673\n"})
	file := filepath.Join(dir, "r.conf")
	values, c, err := Effective(
		map[string]string{"in-memory": "true", "config": file, "memory-available": "1000MB", "profile": "tiny"},
		environment(map[string]string{"RABBITMQ_DEFAULT_PASS": "sesame", "LEVERET_CHANNEL_MAX": "7"}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.Heartbeat != 30*time.Second || c.Limits.ChannelMax != 7 || c.DefaultPass != "sesame" {
		t.Errorf("Heartbeat %s, ChannelMax %d, DefaultPass %s", c.Limits.Heartbeat, c.Limits.ChannelMax, c.DefaultPass)
	}
	for _, want := range []Value{
		{"heartbeat", "30s", file + ":2 heartbeat"},
		{"listen", ":5672,[::1]:5673", file + ":4 listeners.tcp.2"},
		{"default-pass", "(hidden)", "RABBITMQ_DEFAULT_PASS"},
		{"channel-max", "7", "LEVERET_CHANNEL_MAX"},
		{"in-memory", "true", "--in-memory"},
		{"memory-limit", "600000000", "default"},
		{"gc-headroom", "8388608", "default"},
		{"frame-max", "131072", "default"},
	} {
		if !slices.Contains(values, want) {
			t.Errorf("%+v is not among the values %+v", want, values)
		}
	}
	text := Text(values)
	for _, line := range []string{"heartbeat = 30s  # " + file + ":2 heartbeat\n", "default-pass = (hidden)  # RABBITMQ_DEFAULT_PASS\n"} {
		if !strings.Contains(text, line) || strings.Contains(text, "sesame") {
			t.Errorf("%s\nlacks %q, or shows a password", text, line)
		}
	}
}

// Every key of a whole file, as people write it.
func TestKeys(t *testing.T) {
	memory := map[string]string{"LEVERET_MEMORY_AVAILABLE": "1000MB"}
	for _, tt := range []struct {
		text string
		want func(*Config)
	}{
		{"listeners.tcp.default = 5673", func(c *Config) { c.Listen = ":5673" }},
		{"listeners.tcp.local = 127.0.0.1:5672\nlisteners.tcp.all = :::5672", func(c *Config) { c.Listen = "127.0.0.1:5672,[::]:5672" }},
		{"listeners.tcp.1 = [::1]:1\nlisteners.tcp = none\nlisteners.tcp.2 = 5672", func(c *Config) { c.Listen = "" }},
		{"listeners.ssl.default = 5671\nssl_options.cacertfile = /ca\nssl_options.certfile = /cert\nssl_options.keyfile = /key\nssl_options.password = pw\nssl_options.verify = verify_peer\n" +
			"ssl_options.fail_if_no_peer_cert = true\nssl_options.depth = 3\nssl_options.versions.1 = tlsv1.3\nssl_options.versions.2 = tlsv1.2\nssl_options.versions.3 = tlsv1.1", func(c *Config) {
			c.TLSListen = ":5671"
			c.TLS = TLS{CACert: "/ca", Cert: "/cert", Key: "/key", KeyPassword: "pw", VerifyPeer: true, RequirePeer: true, Depth: 3, Versions: []string{"tlsv1.1", "tlsv1.2", "tlsv1.3"}}
			c.ManagementTLS.Cert, c.ManagementTLS.Key, c.ManagementTLS.KeyPassword = "/cert", "/key", "pw"
			c.PrometheusTLS.Cert, c.PrometheusTLS.Key, c.PrometheusTLS.KeyPassword = "/cert", "/key", "pw"
		}},
		{"ssl_options.certfile = /cert\nssl_options.keyfile = /key", func(c *Config) { // the default port once there is a certificate
			c.TLSListen = "127.0.0.1:5671"
			c.TLS.Cert, c.TLS.Key = "/cert", "/key"
			c.ManagementTLS.Cert, c.ManagementTLS.Key = "/cert", "/key"
			c.PrometheusTLS.Cert, c.PrometheusTLS.Key = "/cert", "/key"
		}},
		{"listeners.ssl = none\nssl_options.certfile = /cert", func(c *Config) {
			c.TLS.Cert, c.ManagementTLS.Cert, c.PrometheusTLS.Cert = "/cert", "/cert", "/cert"
		}},
		{"management.tcp.port = 15673", func(c *Config) { c.ManagementListen = ":15673" }},
		{"management.tcp.ip = ::1", func(c *Config) { c.ManagementListen = "[::1]:15672" }},
		{"management.tcp.ip = 0.0.0.0\nmanagement.tcp.port = 80", func(c *Config) { c.ManagementListen = "0.0.0.0:80" }},
		{"management.listener.port = 80\nmanagement.listener.ip = 127.0.0.1\nmanagement.listener.ssl = false", func(c *Config) { c.ManagementListen = "127.0.0.1:80" }},
		{"management.ssl.port = 15671\nmanagement.ssl.certfile = /c\nmanagement.ssl.keyfile = /k\nmanagement.ssl.versions.1 = tlsv1.3", func(c *Config) {
			c.ManagementListen, c.ManagementTLSListen = "", ":15671"
			c.ManagementTLS = TLS{Cert: "/c", Key: "/k", Depth: 1, Versions: []string{"tlsv1.3"}}
		}},
		{"prometheus.tcp.port = 15692", func(c *Config) { c.PrometheusListen = ":15692" }},
		{"prometheus.tcp.listener = none\nprometheus.tcp.port = 15692", func(c *Config) { c.PrometheusListen = "" }},
		{"pprof.listen = 127.0.0.1:6060", func(c *Config) { c.PprofListen = "127.0.0.1:6060" }},
		{"pprof.listen = :6060\npprof.remote = true", func(c *Config) { c.PprofListen, c.PprofRemote = ":6060", true }},
		{"cluster_name = c\nproduct.name = RabbitMQ\ndefault_queue_type = quorum", func(c *Config) {
			c.ClusterName, c.ProductName, c.DefaultQueueType = "c", "RabbitMQ", "quorum"
		}},
		{"vm_memory_high_watermark.relative = 0.4", func(c *Config) { c.MemoryLimit = 400_000_000 }},
		{"vm_memory_high_watermark.absolute = 512MiB", func(c *Config) { c.MemoryLimit = 512 << 20 }},
		{"disk_free_limit.absolute = 2GB", func(c *Config) { c.DiskFreeLimit = 2_000_000_000 }},
		{"disk_free_limit.relative = 1.5", func(c *Config) { c.DiskFreeLimit = 1_500_000_000 }},
		{"management.load_definitions = /d.json", func(c *Config) { c.LoadDefinitions = "/d.json" }},
		{"default_user = u\ndefault_pass = 'p#w'\ndefault_vhost = v\ndefault_user_tags.monitoring = true\ndefault_user_tags.management = true\ndefault_user_tags.administrator = false\n" +
			"default_permissions.configure = ^c\ndefault_permissions.write = ''\ndefault_permissions.read = .*", func(c *Config) {
			c.DefaultUser, c.DefaultPass, c.DefaultVHost = "u", "p#w", "v"
			c.DefaultTags = []string{"monitoring", "management"}
			c.DefaultPermissions = Permissions{"^c", "^$", ".*"}
		}},
		{"loopback_users.guest = false", func(c *Config) { c.Auth.LoopbackUsers = []string{} }},
		{"loopback_users = none", func(c *Config) { c.Auth.LoopbackUsers = []string{} }},
		{"loopback_users.guest = false\nloopback_users.admin = true\nloopback_users.x = false", func(c *Config) { c.Auth.LoopbackUsers = []string{"admin"} }},
		{"auth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = EXTERNAL\nssl_cert_login_from = common_name\nauth_backends.1 = internal", func(c *Config) {
			c.Auth.Mechanisms, c.Auth.CertName = []string{"PLAIN", "EXTERNAL"}, CommonName
		}},
		{"auth_mechanisms.1 = ANONYMOUS", func(c *Config) { c.Auth.Mechanisms, c.Auth.AnonymousUser = []string{"ANONYMOUS"}, "guest" }},
		{"anonymous_login_user = nobody", func(c *Config) {
			c.Auth.Mechanisms, c.Auth.AnonymousUser = []string{"AMQPLAIN", "PLAIN", "ANONYMOUS"}, "nobody"
		}},
		{"anonymous_login_user = none", func(*Config) {}},
		{"password_hashing_module = rabbit_password_hashing_sha512\ncredential_validator.validation_backend = rabbit_credential_validator_min_password_length\ncredential_validator.min_length = 8\ncredential_validator.regexp = ^x", func(c *Config) {
			c.Auth.PasswordHash, c.Auth.MinPasswordLength, c.Auth.PasswordPattern = "SHA512", 8, "^x"
		}},
		{"management_agent.filter_aggregated_queue_metrics_pattern = ^amq\\.gen", func(c *Config) {
			c.HTTP.UnaggregatedQueues = mustPattern(`^amq\.gen`)
		}},
		{"heartbeat = 0\nframe_max = 0\nchannel_max = 0\nconsumer_max_per_channel = infinity\nmax_message_size = 134217728\nhandshake_timeout = 5000\nconsumer_timeout = 3600000", func(c *Config) {
			c.Limits = Limits{MaxMessageSize: 134217728, HandshakeTimeout: 5 * time.Second, ConsumerTimeout: time.Hour, InitialFrameMax: 8192, TLSTimeout: 5 * time.Second}
		}},
		{"consumer_max_per_channel = 10", func(c *Config) { c.Limits.MaxConsumers = 10 }},
		{"log.console = true\nlog.console.level = warning\nlog.console.formatter = json", func(c *Config) { c.LogLevel, c.LogFormat = Warn, JSON }},
		{"log.console = false\nlog.dir = /logs\nlog.file = a.log\nlog.file.level = debug\nlog.file.formatter = plaintext", func(c *Config) {
			c.LogQuiet, c.LogDir, c.LogFile, c.LogFileLevel = true, "/logs", "/logs/a.log", Debug
		}},
		{"log.file = false", func(*Config) {}},
		{"log.connection.level = debug\nlog.queue.level = none\nlog.console.use_colors = off\nlog.console.stdio = stderr\nlog.console.formatter.time_format = epoch_secs\nlog.console.formatter.level_format = uc4", func(c *Config) {
			c.LogLevels = map[string]LogLevel{"connection": Debug, "queue": Critical}
			c.LogColors, c.LogStderr, c.LogTime, c.LogLevelName = "never", true, "epoch_secs", "uc4"
		}},
		{"log.file.rotation.date = $W0D23\nlog.file.rotation.size = 10MiB\nlog.file.rotation.count = 3\nlog.file.rotation.compress = true\nlog.file.formatter.time_format = rfc3339_T\nlog.file.formatter.level_format = lc", func(c *Config) {
			c.LogRotation = Rotation{Size: 10 << 20, Date: "$W0D23", Count: 3, Compress: true}
			c.LogFileTime, c.LogFileLevelName = "rfc3339_T", "lc"
		}},
		{"log.exchange = false\nlog.exchange.level = debug\nlog.exchange.formatter = json\nlog.file.rotation.size = 0", func(c *Config) {
			c.LogExchange, c.LogExchangeLevel, c.LogExchangeFormat = false, Debug, JSON
		}},
		{"proxy_protocol = true\ntcp_listen_options.backlog = 4096\ntcp_listen_options.nodelay = false\ntcp_listen_options.keepalive = false\ntcp_listen_options.sndbuf = 1000\ntcp_listen_options.recbuf = 2000", func(c *Config) {
			c.TCP = TCP{Backlog: 4096, SendBuffer: 1000, ReceiveBuffer: 2000, Proxy: true}
		}},
		{"connection_max = 1\nchannel_max_per_node = 2\nvhost_max = 3\ncluster_queue_limit = 4\ncluster_exchange_limit = 5\ninitial_frame_max = 16384\nssl_handshake_timeout = 1000", func(c *Config) {
			c.Limits.MaxConnections, c.Limits.MaxNodeChannels, c.Limits.MaxVHosts, c.Limits.MaxQueues, c.Limits.MaxExchanges = 1, 2, 3, 4, 5
			c.Limits.InitialFrameMax, c.Limits.TLSTimeout = 16384, time.Second
		}},
		{"max_connections = infinity", func(*Config) {}},
		{"quorum_queue.property_equivalence.relaxed_checks_on_redeclaration = true", func(c *Config) { c.RelaxedQuorumQueues = true }},
		{"default_users.b.password = 'x=#'\ndefault_users.a.vhost_pattern = ^v\ndefault_users.b.configure = c\ndefault_users.b.write = w\ndefault_users.b.read = ''\ndefault_users.b.tags = monitoring,policymaker", func(c *Config) {
			c.DefaultUsers = []DefaultUser{
				{Name: "a", VHosts: "^v", Permissions: Permissions{".*", ".*", ".*"}},
				{Name: "b", Password: "x=#", VHosts: ".*", Permissions: Permissions{"c", "w", "^$"}, Tags: []string{"monitoring", "policymaker"}},
			}
		}},
		{"default_limits.vhosts.1.pattern = ^v\ndefault_limits.vhosts.1.max_queues = 6\ndefault_limits.vhosts.2.max_connections = 0", func(c *Config) {
			c.DefaultLimits = []DefaultLimits{{"1", "^v", -1, 6}, {"2", ".*", 0, -1}}
		}},
		{"default_policies.operator.p.vhost_pattern = ^v\ndefault_policies.operator.p.queue_pattern = ^q\ndefault_policies.operator.p.apply_to = classic_queues\ndefault_policies.operator.p.expires = 2h\n" +
			"default_policies.operator.p.message_ttl = 1d\ndefault_policies.operator.p.max_length = 100\ndefault_policies.operator.p.max_length_bytes = 1MiB\ndefault_policies.operator.p.delivery_limit = 3\n" +
			"default_policies.operator.p.max_in_memory_length = 7\ndefault_policies.operator.p.max_in_memory_bytes = 1kB\ndefault_policies.operator.p.classic_queues.queue_version = 2", func(c *Config) {
			c.DefaultPolicies = []DefaultPolicy{{"p", "^v", "^q", "classic_queues",
				map[string]int64{"expires": 7_200_000, "message-ttl": 86_400_000, "max-length": 100, "max-length-bytes": 1 << 20, "delivery-limit": 3,
					"max-in-memory-length": 7, "max-in-memory-bytes": 1000, "queue-version": 2}}}
		}},
		{"message_interceptors.incoming.set_header_timestamp.overwrite = true\nmessage_interceptors.incoming.set_header_routing_node.overwrite = false\n" +
			"deprecated_features.permit.transient_nonexcl_queues = false\ndeprecated_features.permit.global_qos = false\ndeprecated_features.permit.queue_master_locator = false\ndeprecated_features.permit.management_metrics_collection = false", func(c *Config) {
			c.Intercept, c.Deprecated, c.HTTP.DisableStats = Intercept{Overwrite, Missing}, Deprecated{TransientQueues: true, GlobalQoS: true, MasterLocator: true}, true
		}},
		{"log.connection.file = /c.log\nlog.connection.rotation.size = 1kB\nlog.connection.rotation.date = $D0\nlog.connection.rotation.count = 2\nlog.file.rotation.compress = true\nlog.file.rotation.size = 9", func(c *Config) {
			c.LogCategoryFiles = map[string]string{"connection": "/c.log"}
			c.LogRotation = Rotation{Size: 9, Count: 5, Compress: true}
			c.LogCategoryRotation = map[string]Rotation{"connection": {Size: 1000, Date: "$D0", Count: 2, Compress: true}}
		}},
		{"log.exchange = true\nlog.exchange.formatter.time_format = epoch_secs\nlog.exchange.formatter.level_format = uc\nlog.exchange.formatter.single_line = on\nlog.exchange.formatter.plaintext.format = $msg!", func(c *Config) {
			c.LogExchangeTime, c.LogExchangeLevelName, c.LogExchangeStyle = "epoch_secs", "uc", LogStyle{SingleLine: true, Pattern: "$msg!"}
		}},
		{"ranch_connection_max = 10\nconnection_max = 20\nmax_connections = infinity", func(c *Config) { c.Limits.MaxConnections = 10 }},
		{"auth_mechanisms.1 = ANONYMOUS\nanonymous_login_user = v\nanonymous_login_pass = p", func(c *Config) {
			c.Auth.Mechanisms, c.Auth.AnonymousUser, c.Auth.AnonymousPass = []string{"ANONYMOUS"}, "v", "p"
		}},
		{"cluster_tags.region = eu\ncluster_tags.env = test\nnode_tags.rack = 1\nproduct.version = 9\nmotd_file = /motd", func(c *Config) {
			c.ClusterTags, c.NodeTags = map[string]string{"region": "eu", "env": "test"}, map[string]string{"rack": "1"}
			c.ProductVersion, c.Motd = "9", "/motd"
		}},
		{"ssl_cert_login_from = subject_alternative_name\nssl_cert_login_san_type = email\nssl_cert_login_san_index = 1", func(c *Config) {
			c.Auth.CertName, c.Auth.AltName, c.Auth.AltIndex = AlternativeName, "email", 1
		}},
		{"management.http_log_dir = /l\nmanagement.restrictions.operator_policy_changes.disabled = true\nmanagement.csp.policy = default-src 'self'\nmanagement.headers.frame_options = none\nmanagement_agent.disable_metrics_collector = true", func(c *Config) {
			c.HTTP.AccessLog, c.HTTP.FixedOperatorPolicies, c.HTTP.DisableStats = "/l", true, true
			c.HTTP.Headers = map[string]string{"Content-Security-Policy": "default-src 'self'", "X-Frame-Options": ""}
		}},
		{"prometheus.ssl.port = 15691\nprometheus.ssl.certfile = /c\nprometheus.ssl.keyfile = /k\nprometheus.path = /m\nprometheus.return_per_object_metrics = true\nprometheus.authentication.enabled = true", func(c *Config) {
			c.PrometheusListen, c.PrometheusTLSListen = "", ":15691"
			c.PrometheusTLS.Cert, c.PrometheusTLS.Key = "/c", "/k"
			c.Metrics = Metrics{"/m", true, true}
		}},
		{"listeners.ssl.1 = 5671\nssl_options.certfile = /c\nssl_options.keyfile = /k\nssl_options.ciphers.1 = ECDHE-RSA-AES128-GCM-SHA256\nssl_options.ciphers.2 = TLS_AES_128_GCM_SHA256\nssl_options.ciphers.3 = DHE-RSA-AES256-SHA", func(c *Config) {
			c.TLSListen = ":5671"
			c.TLS.Cert, c.TLS.Key, c.TLS.Ciphers = "/c", "/k", []string{"ECDHE-RSA-AES128-GCM-SHA256", "TLS_AES_128_GCM_SHA256"}
			c.ManagementTLS.Cert, c.ManagementTLS.Key = "/c", "/k"
			c.PrometheusTLS.Cert, c.PrometheusTLS.Key = "/c", "/k"
			c.Notes = []string{"the cipher suite DHE-RSA-AES256-SHA is not there; it is left out"}
		}},
		{"management.path_prefix = /mq\nmanagement.http.max_body_size = 1000\nmanagement.cors.allow_origins.1 = https://a\nmanagement.cors.allow_origins.2 = https://b\nmanagement.cors.max_age = 60\nmanagement.disable_stats = true\nmanagement.enable_queue_totals = true", func(c *Config) {
			c.HTTP = HTTP{PathPrefix: "/mq", MaxBodySize: 1000, AllowOrigins: []string{"https://a", "https://b"}, CORSMaxAge: time.Minute, DisableStats: true, EnableQueueTotals: true}
		}},
	} {
		got, err := loadText(t, tt.text, memory)
		if err != nil {
			t.Errorf("%s\nerror %v", tt.text, err)
			continue
		}
		want := Default()
		want.InMemory, want.ManagementListen, want.PrometheusListen = true, DefaultManagementListen, DefaultPrometheusListen
		want.MemoryAvailable, want.MemoryLimit = 1_000_000_000, 600_000_000
		tt.want(&want)
		want.File, want.Files = got.File, got.Files
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngives %+v\nwant  %+v", tt.text, got, want)
		}
	}
}

func TestWrongFilesAreNamed(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"\nbogus.key = 1", "r.conf:2: there is no setting bogus.key: correct or remove the line"},
		{"listener.tcp.1 = 5672", "r.conf:1: there is no setting listener.tcp.1; did you mean listeners.tcp.1?"},
		{"log.console.rotation.size = 1", "r.conf:1: log.console.rotation.size = 1: there is no category console; the categories are [default connection channel queue mirroring federation upgrade ra user]"},
		{"log.ra.rotation.count = x", "r.conf:1: log.ra.rotation.count = x: count of ra: want a number from 0 to 10000"},
		{"ssl_options.crl_check = true", "r.conf:1: ssl_options.crl_check = true: " + noRevocation},
		{"management.require_auth_for_api_reference = true", "r.conf:1: management.require_auth_for_api_reference = true: the list of the API's paths is there for everybody: only false is taken"},
		{"hartbeat = 1", "r.conf:1: there is no setting hartbeat; did you mean heartbeat?"},
		{"ssl_options.cafile = x", "r.conf:1: there is no setting ssl_options.cafile; did you mean ssl_options.certfile, ssl_options.keyfile or ssl_options.cacertfile?"},
		{"Heartbeat = 1\nHeartbeat = 2", "r.conf:1: there is no setting Heartbeat; did you mean heartbeat?\nFILEr.conf:2: there is no setting Heartbeat; did you mean heartbeat?"},
		{"heartbeat = 1m", "r.conf:1: heartbeat = 1m: want a number of seconds"},
		{"heartbeat = 70000", "r.conf:1: heartbeat = 70000: want a time such as 500ms, 30s or 10m, at most 18h12m15s"},
		{"listeners.tcp = 5672", "r.conf:1: listeners.tcp = 5672: want none, or a name after the key as in listeners.tcp.1 = 5672"},
		{"listeners.tcp.1 = amqp", "r.conf:1: listeners.tcp.1 = amqp: want a port such as 5672, or an address and a port such as 127.0.0.1:5672 or [::1]:5672"},
		{"listeners.ssl.1 = 5671", "TLS for AMQP needs a certificate and its key: set ssl_options.certfile and ssl_options.keyfile (LEVERET_TLS_CERT, LEVERET_TLS_KEY)"},
		{"management.ssl.port = 15671", "TLS for the HTTP API needs a certificate and its key: set management.ssl.certfile and management.ssl.keyfile (LEVERET_MANAGEMENT_TLS_CERT, LEVERET_MANAGEMENT_TLS_KEY)"},
		{"ssl_options.certfile = c\nssl_options.keyfile = k\nssl_options.verify = verify_peer", "TLS for AMQP is to verify the certificates of clients: set ssl_options.cacertfile (LEVERET_TLS_CA) to those that sign them"},
		{"ssl_options.certfile = c\nssl_options.keyfile = k\nssl_options.fail_if_no_peer_cert = true", "TLS for AMQP is to refuse clients without a certificate, but not to verify it: set ssl_options.verify = verify_peer (LEVERET_TLS_VERIFY) too"},
		{"ssl_options.versions.1 = tlsv1.3\nssl_options.versions.2 = tlsv1.1", "r.conf:2: ssl_options.versions.2 = tlsv1.1: want versions without a gap between them, such as tlsv1.2,tlsv1.3"},
		{"ssl_options.versions.1 = sslv3", "r.conf:1: ssl_options.versions.1 = sslv3: there is no version sslv3: want some of [tlsv1 tlsv1.1 tlsv1.2 tlsv1.3]"},
		{"default_pass = encrypted:abc", "r.conf:1: default_pass is encrypted, and there is no passphrase: put [{rabbit, [{config_entry_decoder, [{passphrase, {file, \"...\"}}]}]}]. into advanced.config, or use $(NAME) to take the password from an environment variable"},
		{"default_permissions.read = (", "r.conf:1: default_permissions.read = (: want a regular expression: missing ) at 1"},
		{"management_agent.filter_aggregated_queue_metrics_pattern = [", "r.conf:1: management_agent.filter_aggregated_queue_metrics_pattern = [: want a regular expression: missing terminating ] for character class at 1"},
		{"auth_mechanisms.1 = GSSAPI", "r.conf:1: auth_mechanisms.1 = GSSAPI: there is no mechanism GSSAPI: want some of [PLAIN AMQPLAIN ANONYMOUS EXTERNAL]"},
		{"auth_backends.1 = ldap", "r.conf:1: auth_backends.1 = ldap: users are kept by the broker itself: only internal is there"},
		// No value is right here, and none is shown.
		{"definitions.https.url = https://u:secret@h/", "r.conf:1: definitions.https.url: definitions are read from local files only: set load_definitions"},
		{"ssl_options.key.RSAPrivateKey = MIIE", "r.conf:1: ssl_options.key.RSAPrivateKey: certificates and keys are read from PEM files: set certfile, keyfile and cacertfile beside it"},
		{"default_users.u.colour = red", "r.conf:1: there is no setting default_users.u.colour; did you mean default_users.u.configure, default_users.u.read or default_users.u.write?"},
		{"default_policies.operator.p.expires = soon", "r.conf:1: default_policies.operator.p.expires = soon: expires of p: want a time such as 500ms, 10m, 2h or 7d"},
		{"default_users.u.password = encrypted:abc", "r.conf:1: default_users.u.password is encrypted, and there is no passphrase: put [{rabbit, [{config_entry_decoder, [{passphrase, {file, \"...\"}}]}]}]. into advanced.config, or use $(NAME) to take the password from an environment variable"},
		{"log.file.rotation.date = daily", "r.conf:1: log.file.rotation.date = daily: want a date such as $D0 for each midnight, $W0D0 for Sundays, $M1D0 for the first of the month, or $H0 for each hour"},
		{"log.queue.level = loud", "r.conf:1: log.queue.level = loud: want debug, info, notice, warning, error, critical or none"},
		{"ssl_options.ciphers.1 = X\nssl_options.certfile = c\nssl_options.keyfile = k", "none of the cipher suites is there: name others, or none for Go's choice: X"},
		{"defalt_pas = x", "r.conf:1: there is no setting defalt_pas; did you mean default_pass?"},
		{"default_uzer = x\nheartbeat = x\nlog.console.level = x", "r.conf:1: there is no setting default_uzer; did you mean default_user?\nFILEr.conf:2: heartbeat = x: want a number of seconds\nFILEr.conf:3: log.console.level = x: want debug, info, notice, warning, error, critical or none"},
		{"max_message_size = 600MiB", "r.conf:1: max_message_size = 600MiB: the largest message may have 512MiB"},
		{"frame_max = 100", "r.conf:1: frame_max = 100: want a number of bytes from 4096 to 2147483647, or 0 for no limit"},
		{"vm_memory_high_watermark.relative = much", "r.conf:1: vm_memory_high_watermark.relative = much: want a part of the memory such as 0.4"},
	} {
		_, err := loadText(t, tt.text, nil)
		if err == nil {
			t.Errorf("%s: no error, want %s", tt.text, tt.want)
			continue
		}
		dir, got, _ := strings.Cut(err.Error(), "r.conf:")
		if got = strings.ReplaceAll(got, dir+"r.conf", "FILEr.conf"); "r.conf:"+got != tt.want && err.Error() != tt.want {
			t.Errorf("%s: error %v, want %s", tt.text, err, tt.want)
		}
	}
}

// RabbitMQ's keys that mean nothing here do not keep the broker from starting.
func TestIdleKeysAreNoted(t *testing.T) {
	c, err := loadText(t, "cluster_formation.k8s.host = h\nreverse_dns_lookups = true\nlog.console.level = debug\nvm_memory_calculation_strategy = rss\ntcp_listen_options.linger.on = true\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, n := range c.Notes {
		_, n, _ = strings.Cut(n, "r.conf:")
		keys = append(keys, n)
	}
	want := []string{
		"1: cluster_formation.k8s.host is accepted and has no effect", "2: reverse_dns_lookups is accepted and has no effect",
		"4: vm_memory_calculation_strategy is accepted and has no effect", "5: tcp_listen_options.linger.on is accepted and has no effect",
	}
	if !slices.Equal(keys, want) {
		t.Errorf("notes %q, want %q", keys, want)
	}
}

func TestEveryKeyHasASetting(t *testing.T) {
	names := map[string]bool{}
	for _, s := range allSettings() {
		if names[s.Name] {
			t.Errorf("two settings are called %s", s.Name)
		}
		names[s.Name] = true
	}
	for _, k := range keys() {
		if !names[k.setting] {
			t.Errorf("%s is for the setting %s, which there is not", k.pattern, k.setting)
		}
	}
	for _, v := range rabbitVariables() {
		if !names[v.setting] {
			t.Errorf("%s is for the setting %s, which there is not", v.name, v.setting)
		}
	}
}

func TestRabbitMQVariables(t *testing.T) {
	secret := filepath.Join(writeFiles(t, map[string]string{"s": "sesame\n"}), "s")
	for _, tt := range []struct {
		variables map[string]string
		got       func(Config) any
		want      any
	}{
		{map[string]string{"RABBITMQ_NODENAME": "rabbit@h"}, func(c Config) any { return c.NodeName }, "rabbit@h"},
		{map[string]string{"RABBITMQ_DEFAULT_USER": "u"}, func(c Config) any { return c.DefaultUser }, "u"},
		{map[string]string{"RABBITMQ_DEFAULT_PASS_FILE": secret}, func(c Config) any { return c.DefaultPass }, "sesame"},
		{map[string]string{"RABBITMQ_DEFAULT_VHOST": "v"}, func(c Config) any { return c.DefaultVHost }, "v"},
		{map[string]string{"RABBITMQ_NODE_PORT": "99"}, func(c Config) any { return c.Listen }, ":99"},
		{map[string]string{"RABBITMQ_NODE_IP_ADDRESS": "::1"}, func(c Config) any { return c.Listen }, "[::1]:5672"},
		{map[string]string{"RABBITMQ_MNESIA_DIR": "/d"}, func(c Config) any { return c.DataDir }, "/d"},
		{map[string]string{"RABBITMQ_MNESIA_BASE": "/b", "RABBITMQ_NODENAME": "r@h"}, func(c Config) any { return c.DataDir }, "/b/r@h"},
		{map[string]string{"RABBITMQ_LOGS": "/l.log"}, func(c Config) any { return c.LogFile }, "/l.log"},
		{map[string]string{"RABBITMQ_LOGS": "-"}, func(c Config) any { return c.LogFile }, ""},
		{map[string]string{"RABBITMQ_LOG": "connection=debug,warning,+json,-color"}, func(c Config) any { return []any{c.LogLevel, c.LogFileLevel, c.LogFormat, c.LogLevels, c.LogColors} }, []any{Warn, Warn, JSON, map[string]LogLevel{"connection": Debug}, "never"}},
		{map[string]string{"RABBITMQ_LOGS": "-stderr"}, func(c Config) any { return c.LogStderr }, true},
		{map[string]string{"RABBITMQ_PID_FILE": "/p", "RABBITMQ_KEEP_PID_FILE_ON_EXIT": "true"}, func(c Config) any { return []any{c.PidFile, c.KeepPidFile} }, []any{"/p", true}},
		{map[string]string{"RABBITMQ_MNESIA_DIR": "/d"}, func(c Config) any { return c.PidFile }, "/d.pid"},
		{map[string]string{"RABBITMQ_VM_MEMORY_HIGH_WATERMARK": "1GiB"}, func(c Config) any { return c.MemoryLimit }, int64(1 << 30)},
		{map[string]string{"RABBITMQ_PRODUCT_VERSION": "9", "RABBITMQ_MOTD_FILE": "/m"}, func(c Config) any { return c.ProductVersion + c.Motd }, "9/m"},
		{map[string]string{"RABBITMQ_SSL_CACERTFILE": "/a", "RABBITMQ_SSL_CERTFILE": "/c", "RABBITMQ_SSL_KEYFILE": "/k", "RABBITMQ_SSL_VERIFY": "verify_peer", "RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT": "true", "RABBITMQ_SSL_DEPTH": "2"},
			func(c Config) any { return []any{c.TLSListen, c.TLS} }, []any{"127.0.0.1:5671",
				TLS{CACert: "/a", Cert: "/c", Key: "/k", VerifyPeer: true, RequirePeer: true, Depth: 2, Versions: []string{"tlsv1.2", "tlsv1.3"}}}},
		{map[string]string{"RABBITMQ_MANAGEMENT_SSL_CERTFILE": "/c", "RABBITMQ_MANAGEMENT_SSL_KEYFILE": "/k"}, func(c Config) any { return c.ManagementTLSListen + " " + c.ManagementTLS.Cert }, ":15671 /c"},
		{map[string]string{"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": `-rabbitmq_management load_definitions "/d.json" +S 2 -rabbit loopback_users [] -rabbit default_vhost <<"v">>`},
			func(c Config) any { return []any{c.LoadDefinitions, c.Auth.LoopbackUsers, c.DefaultVHost} }, []any{"/d.json", []string{}, "v"}},
		{map[string]string{"RABBITMQ_ERLANG_COOKIE": "x"}, func(c Config) any { return c.Notes }, []string{"RABBITMQ_ERLANG_COOKIE is accepted and has no effect"}},
	} {
		flags := map[string]string{"config": "none"}
		tt.variables["XDG_DATA_HOME"] = "/x"
		c, err := Load(flags, environment(tt.variables))
		if err != nil || !reflect.DeepEqual(tt.got(c), tt.want) {
			t.Errorf("%v: %v, error %v, want %v", tt.variables, tt.got(c), err, tt.want)
		}
	}
	c, err := loadText(t, "listeners.tcp.1 = 5000", map[string]string{"RABBITMQ_NODE_PORT": "99"})
	if err != nil || c.Listen != ":5000" {
		t.Errorf("RABBITMQ_NODE_PORT with listeners in a file: Listen = %s, %v, want :5000", c.Listen, err)
	}
	_, err = Load(map[string]string{"in-memory": "true"}, environment(map[string]string{"RABBITMQ_SSL_CERTFILE": "c"}))
	if want := "TLS for AMQP needs a certificate and its key"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Whatever is wrong with it, a secret is not in the message, nor in the list.
func TestSecretsAreNotShown(t *testing.T) {
	const secret = "sesame7"
	text := "default_pass = " + secret + "\ndefault_users.u.password = " + secret + "\nssl_options.password = " + secret + "\nheartbeat = x\n"
	file := filepath.Join(writeFiles(t, map[string]string{"r.conf": text}), "r.conf")
	values, _, err := Effective(map[string]string{"in-memory": "true", "config": file, "default-pass": secret},
		environment(map[string]string{"LEVERET_MANAGEMENT_TLS_KEY_PASSWORD": secret, "RABBITMQ_DEFAULT_PASS": secret, "LEVERET_DEFAULT_USERS": "x." + secret}))
	if err == nil {
		t.Fatal("no error")
	}
	all := err.Error()
	for _, v := range values {
		all += v.Name + v.Value + v.Origin
	}
	if strings.Contains(all, secret) {
		t.Errorf("the password is in %s", all)
	}
	values, _, err = Effective(map[string]string{"in-memory": "true", "config": "none"}, environment(map[string]string{"LEVERET_DEFAULT_USERS": "x.password=" + secret + "\nx.tags=a"}))
	if want := (Value{"default-users", "x.password=(hidden)\nx.tags=a", "LEVERET_DEFAULT_USERS"}); err != nil || !slices.Contains(values, want) {
		t.Errorf("error %v; want %+v among %+v", err, want, values)
	}
}

func TestParseDate(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	now := at("2026-11-29 22:59") // a Sunday
	for _, tt := range []struct{ date, next string }{
		{"$D0", "2026-11-30 00:00"},
		{"$D23", "2026-11-29 23:00"},
		{"$D22H30", "2026-11-30 22:30"},
		{"$H0", "2026-11-29 23:00"},
		{"$H59", "2026-11-29 23:59"},
		{"$W0D22", "2026-12-06 22:00"},
		{"$W5", "2026-12-04 00:00"},
		{"$M1D6", "2026-12-01 06:00"},
		{"$M31D0", "2026-12-31 00:00"},
	} {
		d, err := ParseDate(tt.date)
		if err != nil {
			t.Errorf("%s: %v", tt.date, err)
			continue
		}
		if got := d.Next(now); !got.Equal(at(tt.next)) {
			t.Errorf("%s after %s is %s, want %s", tt.date, now, got, tt.next)
		}
	}
	for _, bad := range []string{"", "$", "D0", "$D24", "$H60", "$W7", "$M0", "$M32", "$X", "$D0 ", "$D000"} {
		if _, err := ParseDate(bad); err == nil {
			t.Errorf("ParseDate(%q): no error", bad)
		}
	}
}

func TestCipherSuite(t *testing.T) {
	for name, want := range map[string]uint16{
		"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-RSA-AES128-GCM-SHA256":           tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-ECDSA-AES256-GCM-SHA384":         tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		"ECDHE-RSA-CHACHA20-POLY1305":           tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		"ECDHE-RSA-AES128-SHA":                  tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
		"ECDHE-RSA-AES128-SHA256":               tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256,
		"AES256-SHA":                            tls.TLS_RSA_WITH_AES_256_CBC_SHA,
		"DES-CBC3-SHA":                          tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA,
		"TLS_AES_256_GCM_SHA384":                tls.TLS_AES_256_GCM_SHA384,
		"NULL":                                  0,
	} {
		if got, ok := CipherSuite(name); got != want || ok != (want != 0) {
			t.Errorf("CipherSuite(%q) = %x, %v, want %x", name, got, ok, want)
		}
	}
}

func mustPattern(expr string) *pattern.Pattern {
	p, err := pattern.Compile(expr)
	if err != nil {
		panic(err)
	}
	return p
}
