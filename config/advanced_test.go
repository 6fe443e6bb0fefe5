package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// loadAdvanced loads a folder with both files, in memory.
func loadAdvanced(t *testing.T, conf, advanced string, variables map[string]string) (Config, string, error) {
	t.Helper()
	dir := writeFiles(t, map[string]string{"rabbitmq.conf": conf, "advanced.config": advanced})
	c, err := Load(map[string]string{"in-memory": "true", "config": filepath.Join(dir, "rabbitmq.conf")}, environment(variables))
	return c, dir, err
}

// What rabbitmq.conf says too is overridden (RabbitMQ 4.0).
func TestAdvancedConfig(t *testing.T) {
	const text = `%% as in RabbitMQ's guide
[
 {rabbit, [
   {tcp_listeners, [5672, {"127.0.0.1", 5673}]},
   {heartbeat, 17}, {frame_max, 262_144}, {channel_max, 100},
   {consumer_timeout, undefined},
   {loopback_users, []},
   {default_user, <<"app">>}, {default_pass, <<"p\"w">>}, {default_user_tags, [management, monitoring]},
   {default_permissions, [<<"^a">>, <<"^b">>, <<".*">>]},
   {vm_memory_high_watermark, {absolute, "2GiB"}},
   {disk_free_limit, {mem_relative, 0.5}}, % of the memory
   {ssl_options, [{versions, ['tlsv1.3']}, {verify, verify_none}]},
   {tcp_listen_options, [binary, {packet, raw}, {reuseaddr, true}, {backlog, 4096}, {nodelay, true}, {linger, {true, 0}}]},
   {log, [{console, [{level, debug}]}, {file, [{file, "l.log"}]}]},
   {credit_flow_default_credit, {400, 200}},
   {auth_backends, [rabbit_auth_backend_internal]}
 ]},
 {rabbitmq_management, [{listener, [{port, 15999}, {ip, "127.0.0.1"}]}, {rates_mode, none}, {cors_allow_origins, ["https://a"]}]},
 {kernel, [{net_ticktime, 120}]},
 {ra, []}
].
`
	c, dir, err := loadAdvanced(t, "heartbeat = 5\nmax_message_size = 1000000\n", text, map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what      string
		got, want any
	}{
		{"listeners", c.Listen, ":5672,127.0.0.1:5673"},
		{"heartbeat", c.Limits.Heartbeat, 17 * time.Second},
		{"frame_max", c.Limits.FrameMax, int64(262144)},
		{"channel_max", c.Limits.ChannelMax, 100},
		{"max_message_size of rabbitmq.conf", c.Limits.MaxMessageSize, int64(1000000)},
		{"consumer_timeout", c.Limits.ConsumerTimeout, time.Duration(0)},
		{"loopback_users", len(c.Auth.LoopbackUsers), 0},
		{"default_user", c.DefaultUser + " " + c.DefaultPass, `app p"w`},
		{"default_user_tags", c.DefaultTags, []string{"management", "monitoring"}},
		{"default_permissions", c.DefaultPermissions, Permissions{Configure: "^a", Write: "^b", Read: ".*"}},
		{"memory", c.MemoryLimit, int64(2 << 30)},
		{"disk", c.DiskFreeLimit, c.MemoryAvailable / 2},
		{"versions", c.TLS.Versions, []string{"tlsv1.3"}},
		{"backlog", c.TCP.Backlog, 4096},
		{"log", string(c.LogLevel) + " " + c.LogFile, "debug l.log"},
		{"HTTP", c.ManagementListen, "127.0.0.1:15999"},
		{"rates", c.HTTP.NoRates, true},
		{"origins", c.HTTP.AllowOrigins, []string{"https://a"}},
		{"files", c.Files, []string{filepath.Join(dir, "rabbitmq.conf"), filepath.Join(dir, "advanced.config")}},
	} {
		if !reflect.DeepEqual(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, tt.got, tt.want)
		}
	}
	for _, want := range []string{"advanced.config:15: credit_flow_default_credit of rabbit is accepted and has no effect", "advanced.config:19: the settings of kernel are accepted and have no effect"} {
		if !slices.ContainsFunc(c.Notes, func(n string) bool { return strings.HasSuffix(n, want) }) {
			t.Errorf("notes %q lack %q", c.Notes, want)
		}
	}
}

func TestEmptyAdvancedConfig(t *testing.T) {
	for _, text := range []string{"[].", " % nothing\n", "[\n].\n% end\n", "[{rabbit, []}]."} {
		c, _, err := loadAdvanced(t, "heartbeat = 5\n", text, map[string]string{})
		if err != nil || c.Limits.Heartbeat != 5*time.Second || len(c.Notes) > 0 {
			t.Errorf("%q: heartbeat %v, notes %q, error %v", text, c.Limits.Heartbeat, c.Notes, err)
		}
	}
}

func TestWrongAdvancedConfig(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"[{rabbit, [{heartbeat, 5}]}", "advanced.config: line 1: want a comma or ]"},
		{"[{rabbit, [\n{heartbeat, \"5}]}].", `advanced.config: line 2: the quote " is not closed`},
		{"[{rabbit, [{heartbeat, soon}]}].", "advanced.config:1: heartbeat = soon: want a number of seconds"},
		{"[\n{rabbit, [{nosuch, 1}]}].", "advanced.config:2: nosuch of rabbit: rabbitmq.conf has no key nosuch for it"},
		{"[{rabbit, [{auth_backends, [rabbit_auth_backend_ldap]}]}].", "users are kept by the broker itself"},
		{"[{rabbit, [{auth_backends, [{rabbit_auth_backend_ldap, rabbit_auth_backend_internal}]}]}].", "auth_backends.1.authn = rabbit_auth_backend_ldap: users are kept by the broker itself"},
		{"[{rabbit, [{auth_backends, [{rabbit_auth_backend_internal, rabbit_auth_backend_ldap}]}]}].", "auth_backends.1.authz = rabbit_auth_backend_ldap: users are kept by the broker itself"},
		{"[{rabbit, [{auth_backends, [{rabbit_auth_backend_internal, [rabbit_auth_backend_ldap]}]}]}].", "auth_backends.1.authz = : users are kept by the broker itself"},
		{"[{rabbit, [{auth_backends, []}]}].", "advanced.config:1: auth_backends of rabbit: want a list such as [rabbit_auth_backend_internal]"},
		{"[{rabbit, [{auth_backends, rabbit_auth_backend_ldap}]}].", "want a list such as [rabbit_auth_backend_internal]"},
		{"[{rabbit, [{default_pass, {encrypted, <<\"x\">>}}]}].", "advanced.config:1: default_pass is encrypted, and there is no passphrase"},
		{"[{rabbit, [{default_pass, {encrypted, <<\"x\">>}}, {config_entry_decoder, [{passphrase, <<\"p\">>}]}]}].", "advanced.config:1: default_pass: it is no encrypted value"},
		{"[{rabbit, [{config_entry_decoder, [{passphrase, prompt}]}]}].", "nobody is asked for it"},
		{"[{rabbit, [{config_entry_decoder, [{cipher, rot13}]}]}].", "the cipher rot13 is not supported: want aes_256_cbc, aes_192_cbc or aes_128_cbc"},
		{"[{rabbit, [{config_entry_decoder, [{passphrase, {file, \"/nosuch\"}}]}]}].", "read the passphrase: open /nosuch"},
		{"rabbit.", "want a list such as"},
		{"[rabbit].", "want {rabbit, [{KEY, VALUE}]}"},
		{"[]. []", "there is something after the end"},
	} {
		_, _, err := loadAdvanced(t, "", tt.text, map[string]string{})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\nerror %v, want %q in it", tt.text, err, tt.want)
		}
	}
}

func TestAdvancedConfigIsFound(t *testing.T) {
	dir := writeFiles(t, map[string]string{"advanced.config": "[{rabbit, [{heartbeat, 9}]}].", "other.config": "[{rabbit, [{heartbeat, 8}]}]."})
	for _, tt := range []struct {
		name      string
		variables map[string]string
		want      time.Duration
	}{
		{"beside a main file that is not there", map[string]string{"RABBITMQ_CONFIG_FILE": filepath.Join(dir, "rabbitmq")}, 9 * time.Second},
		{"named without its ending", map[string]string{"RABBITMQ_ADVANCED_CONFIG_FILE": filepath.Join(dir, "other")}, 8 * time.Second},
		{"missing", map[string]string{"RABBITMQ_ADVANCED_CONFIG_FILE": filepath.Join(dir, "none")}, time.Minute},
	} {
		c, err := Load(map[string]string{"in-memory": "true"}, environment(tt.variables))
		if err != nil || c.Limits.Heartbeat != tt.want {
			t.Errorf("%s: heartbeat %v, error %v; want %v", tt.name, c.Limits.Heartbeat, err, tt.want)
		}
	}
}

// What compose files pass to Erlang is taken as advanced.config has it, and wins
// over the files.
func TestErlangArguments(t *testing.T) {
	const args = `-rabbit log_levels [{connection,error}] -rabbit heartbeat 11 -kernel x y -rabbit vm_memory_high_watermark 0.25 ` +
		`-rabbit tcp_listeners [5999] -rabbitmq_management path_prefix '"/mq"' -rabbit loopback_users [] -rabbit disk_free_limit 2147483648 +P 1000`
	c, _, err := loadAdvanced(t, "heartbeat = 5\nlisteners.tcp.1 = 127.0.0.1:5672\n", "[].", map[string]string{"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": args})
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.Heartbeat != 11*time.Second || c.Listen != ":5999" || c.HTTP.PathPrefix != "/mq" || len(c.Auth.LoopbackUsers) != 0 ||
		c.DiskFreeLimit != 2147483648 || c.MemoryLimit != c.MemoryAvailable/4 {
		t.Errorf("got heartbeat %v, listen %s, prefix %s, loopback users %q, disk %d, memory %d of %d", c.Limits.Heartbeat, c.Listen, c.HTTP.PathPrefix,
			c.Auth.LoopbackUsers, c.DiskFreeLimit, c.MemoryLimit, c.MemoryAvailable)
	}
}

func FuzzParseErlang(f *testing.F) {
	for _, seed := range []string{"[].", `[{a,"b\n",<<"c"/utf8>>,'D',-1.5e3}].`, "[[[", "{a,}", "%\n[]", "<<>>", "1.", `"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		term, err := parseErlang(text)
		if err != nil {
			return
		}
		// What is there is found again: each text is a part of what was read, but
		// for escapes and the like.
		var walk func(erlTerm)
		walk = func(e erlTerm) {
			if (e.kind == erlList || e.kind == erlTuple) != (e.items != nil) {
				t.Errorf("%q: term %+v", text, e)
			}
			if e.line < 1 || e.line > 1+strings.Count(text, "\n") {
				t.Errorf("%q: line %d", text, e.line)
			}
			for _, item := range e.items {
				walk(item)
			}
		}
		walk(term)
	})
}
