package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A key is one of rabbitmq.conf and the setting it is for.
type key struct {
	// pattern is the key, or ends in .* for any name there.
	pattern string
	setting string
	// convert makes the setting's text of the file's; nil takes it as it is.
	// name is what stands for the *.
	convert func(name, text string) (string, error)
	// merge adds to what earlier lines have made, which is "" at first; nil
	// replaces it.
	merge func(have, text string) string
}

// keys are all keys of the file that act.
func keys() []key {
	return slices.Concat(listenerKeys(), nodeKeys(), authKeys(), limitKeys(), managementKeys(), logKeys(),
		tlsKeys("ssl_options", "tls"), tlsKeys("management.ssl", "management-tls"))
}

func listenerKeys() []key {
	return []key{
		{"listeners.tcp", "listen", onlyNone, nil},
		{"listeners.tcp.*", "listen", address, addAddress},
		{"listeners.ssl", "tls-listen", onlyNone, nil},
		{"listeners.ssl.*", "tls-listen", address, addAddress},
		{"management.tcp.port", "management-listen", nil, setPort},
		{"management.tcp.ip", "management-listen", nil, setHost("15672")},
		{"management.listener.port", "management-listen", nil, setPort},
		{"management.listener.ip", "management-listen", nil, setHost("15672")},
		{"management.ssl.port", "management-tls-listen", nil, setPort},
		{"management.ssl.ip", "management-tls-listen", nil, setHost("15671")},
		{"prometheus.tcp.listener", "prometheus-listen", onlyNone, nil},
		{"prometheus.tcp.port", "prometheus-listen", nil, setPort},
		{"prometheus.tcp.ip", "prometheus-listen", nil, setHost("15692")},
		{"pprof.listen", "pprof-listen", nil, nil},
		{"pprof.remote", "pprof-remote", boolean, nil},
	}
}

// tlsKeys are those of one certificate.
func tlsKeys(prefix, setting string) []key {
	return []key{
		{prefix + ".cacertfile", setting + "-ca", nil, nil},
		{prefix + ".certfile", setting + "-cert", nil, nil},
		{prefix + ".keyfile", setting + "-key", nil, nil},
		{prefix + ".password", setting + "-key-password", plain, nil},
		{prefix + ".verify", setting + "-verify", nil, nil},
		{prefix + ".fail_if_no_peer_cert", setting + "-require-cert", boolean, nil},
		{prefix + ".depth", setting + "-depth", nil, nil},
		{prefix + ".versions.*", setting + "-versions", nil, addWord},
	}
}

func nodeKeys() []key {
	return []key{
		{"cluster_name", "cluster-name", nil, nil},
		{"product.name", "product-name", nil, nil},
		{"total_memory_available_override_value", "memory-available", nil, nil},
		{"vm_memory_high_watermark.relative", "memory-limit", share, nil},
		{"vm_memory_high_watermark.absolute", "memory-limit", nil, nil},
		{"disk_free_limit.absolute", "disk-free-limit", nil, nil},
		{"disk_free_limit.relative", "disk-free-limit", share, nil},
		{"default_queue_type", "default-queue-type", nil, nil},
		{"load_definitions", "load-definitions", nil, nil},
		{"management.load_definitions", "load-definitions", nil, nil},
		{"definitions.local.path", "load-definitions", nil, nil},
	}
}

func authKeys() []key {
	return []key{
		{"default_user", "default-user", nil, nil},
		{"default_pass", "default-pass", plain, nil},
		{"default_vhost", "default-vhost", nil, nil},
		{"default_user_tags.*", "default-tags", nameIfTrue, addName},
		{"default_permissions.configure", "default-permissions-configure", nil, nil},
		{"default_permissions.read", "default-permissions-read", nil, nil},
		{"default_permissions.write", "default-permissions-write", nil, nil},
		{"loopback_users", "loopback-users", none, nil},
		{"loopback_users.*", "loopback-users", nameIfTrue, addName},
		{"auth_mechanisms.*", "auth-mechanisms", nil, addWord},
		{"anonymous_login_user", "anonymous-login-user", nil, nil},
		{"ssl_cert_login_from", "cert-login-from", nil, nil},
		{"password_hashing_module", "password-hash", hash, nil},
		{"credential_validator.min_length", "min-password-length", nil, nil},
		{"credential_validator.regexp", "password-pattern", nil, nil},
	}
}

func limitKeys() []key {
	return []key{
		{"heartbeat", "heartbeat", seconds, nil},
		{"frame_max", "frame-max", nil, nil},
		{"channel_max", "channel-max", nil, nil},
		{"max_channels_per_connection", "channel-max", nil, nil},
		{"consumer_max_per_channel", "consumer-max-per-channel", nil, nil},
		{"max_message_size", "max-message-size", nil, nil},
		{"handshake_timeout", "handshake-timeout", milliseconds, nil},
		{"consumer_timeout", "consumer-timeout", milliseconds, nil},
	}
}

func managementKeys() []key {
	return []key{
		{"management.path_prefix", "management-path-prefix", nil, nil},
		{"management.http.max_body_size", "management-max-body-size", nil, nil},
		{"management.cors.allow_origins.*", "management-cors-origins", nil, addWord},
		{"management.cors.max_age", "management-cors-max-age", seconds, nil},
		{"management.disable_stats", "management-disable-stats", boolean, nil},
		{"management.enable_queue_totals", "management-enable-queue-totals", boolean, nil},
	}
}

func logKeys() []key {
	return []key{
		{"log.console", "log-quiet", not, nil},
		{"log.console.level", "log-level", levelWord, nil},
		{"log.console.formatter", "log-format", formatWord, nil},
		{"log.dir", "log-dir", nil, nil},
		{"log.file", "log-file", pathOrFalse, nil},
		{"log.file.level", "log-file-level", levelWord, nil},
		{"log.file.formatter", "log-file-format", formatWord, nil},
	}
}

// A restriction is a key that has no effect, but that must not be passed over
// when its value asks for something that is not there.
type restriction struct {
	pattern string
	allowed []string
	why     string
}

func restrictions() []restriction {
	return []restriction{
		{"auth_backends.*", []string{"internal", "rabbit_auth_backend_internal"}, "users are kept by the broker itself: only internal is there"},
		{"proxy_protocol", []string{"false"}, "the PROXY protocol is not understood: only false is there"},
		{"management.listener.ssl", []string{"false"}, "set management.ssl.port, management.ssl.certfile and management.ssl.keyfile instead"},
		{"definitions.import_backend", []string{"local_filesystem", "rabbit_definitions_import_local_filesystem"}, "definitions are read from local files only"},
		{"credential_validator.validation_backend", []string{
			"rabbit_credential_validator_accept_everything", "rabbit_credential_validator_min_password_length", "rabbit_credential_validator_password_regexp",
		}, "set credential_validator.min_length or credential_validator.regexp"},
	}
}

// idleKeys are RabbitMQ's keys that are accepted and have no effect.
func idleKeys() []string {
	return []string{
		// What could not matter here: Erlang, its clustering, its disk formats.
		"auto_delete_exchanges", "background_gc_enabled", "background_gc_target_interval", "channel_interceptor.*",
		"classic_queue.*", "cluster_exchange_limit", "cluster_formation.*", "cluster_keepalive_interval", "cluster_partition_handling",
		"cluster_partition_handling.*", "cluster_queue_limit", "cluster_tags.*", "collect_statistics", "collect_statistics_interval",
		"delegate_count", "distribution.*", "erlang.*", "exchange_types.*", "hipe_compile", "initial_frame_max", "kernel.*",
		"max_message_size.*", "memory_monitor_interval", "message_store_shutdown_timeout", "metadata_store.*", "mirroring_sync_batch_size",
		"mirroring_sync_max_throughput", "mnesia_table_loading_retry_limit", "mnesia_table_loading_retry_timeout", "net_ticktime",
		"node_tags.*", "num_acceptors.*", "prevent_startup_if_node_was_reset", "queue_index_embed_msgs_below", "queue_index_max_journal_entries",
		"queue_leader_locator", "queue_master_locator", "queue_types.*", "quorum_queue.*", "raft.*", "ranch_connection_max",
		"reverse_dns_lookups", "runtime_parameters.*", "socket_writer.*", "stream.*", "sysmon_handler.*", "vhost_restart_strategy",
		"vm_memory_calculation_strategy", "vm_memory_high_watermark_paging_ratio",
		// What is not there yet.
		"channel_max_per_node", "connection_max", "consumer_disconnected_timeout", "default_limits.*", "default_policies.*", "default_users.*",
		"deprecated_features.*", "max_connections", "message_interceptors.*", "ssl_cert_login_san_index", "ssl_cert_login_san_type",
		"ssl_handshake_timeout", "tcp_listen_options.*", "vhost_max",
		// TLS: Go chooses well by itself.
		"ssl_options.ciphers.*", "ssl_options.honor_cipher_order", "ssl_options.honor_ecc_order", "ssl_options.client_renegotiation",
		"ssl_options.secure_renegotiate", "ssl_options.reuse_sessions", "ssl_options.dhfile", "ssl_options.dh", "ssl_options.bypass_pem_cache",
		"ssl_options.hibernate_after", "ssl_options.log_alert", "ssl_options.log_level", "ssl_options.psk_identity", "ssl_options.sni",
		"management.ssl.ciphers.*", "management.ssl.honor_cipher_order", "management.ssl.honor_ecc_order", "management.ssl.client_renegotiation",
		"management.ssl.secure_renegotiate", "management.ssl.backlog", "management.ssl.compress", "management.ssl.idle_timeout",
		"management.ssl.inactivity_timeout", "management.ssl.request_timeout", "management.ssl.shutdown_timeout", "management.ssl.max_keepalive", "management.ssl.dhfile",
		// Users, definitions.
		"anonymous_login_pass", "definitions.skip_if_unchanged", "definitions.hashing.*", "definitions.tls.*", "definitions.https.*",
		"session_max_per_connection", "link_max_per_session",
		// The log.
		"log.*.level", "log.*.file", "log.console.stdio", "log.console.use_colors", "log.console.formatter.*", "log.file.rotation.*", "log.file.formatter.*",
		"log.exchange", "log.exchange.*", "log.syslog", "log.syslog.*", "log.journald", "log.journald.*", "log.error_logger_format_depth",
		"log.summarize_process_state", "motd_file", "product.version",
		// The HTTP API.
		"management.tcp.backlog", "management.tcp.compress", "management.tcp.idle_timeout", "management.tcp.inactivity_timeout",
		"management.tcp.max_connections", "management.tcp.max_keepalive", "management.tcp.request_timeout", "management.tcp.shutdown_timeout",
		"management.listener.server.*", "management.listener.ssl_opts.*", "management.http_log_dir", "management.login_session_timeout", "management.csp.*", "management.hsts.*",
		"management.headers.*", "management.rates_mode", "management.sample_retention_policies.*", "management.db_cache_multiplier", "management.delegate_count",
		"management.process_stats_gc_timeout", "management.restrictions.*", "management.disable_basic_auth", "management.require_auth_for_api_reference", "management_agent.*",
		"prometheus.authentication.*", "prometheus.filter_aggregated_queue_metrics_pattern", "prometheus.path", "prometheus.return_per_object_metrics",
		"prometheus.ssl.*", "prometheus.tcp.compress", "prometheus.tcp.idle_timeout", "prometheus.tcp.inactivity_timeout", "prometheus.tcp.max_keepalive",
		"prometheus.tcp.request_timeout", "prometheus.tcp.shutdown_timeout",
		// Backends and plug-ins, which no key turns on.
		"auth_cache.*", "auth_http.*", "auth_ldap.*", "auth_oauth2.*", "management.oauth_*", "management.oauth_resource_servers.*", "amqp1_0.*", "federation.*",
		"mqtt.*", "shovel.*", "stomp.*", "tracing.*", "trust_store.*", "web_mqtt.*", "web_stomp.*",
	}
}

// match says whether a pattern covers a key, and what stands for its *. A * at
// the end takes one name or more, elsewhere exactly one.
func match(pattern, key string) (name string, ok bool) {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return "", pattern == key
	}
	rest, ok := strings.CutPrefix(key, before)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(rest, after)
	return name, ok && name != "" && (after == "" || !strings.Contains(name, "."))
}

// chooseEntries takes over what the files say. Of a key that is there twice the
// last one counts (RabbitMQ 4.0).
func (l *loader) chooseEntries(entries []entry) error {
	last := map[string]int{}
	for i, e := range entries {
		last[e.key] = i
	}
	for i, e := range entries {
		if last[e.key] != i {
			if !known(e.key) {
				return unknown(e)
			}
			continue
		}
		if err := l.chooseEntry(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) chooseEntry(e entry) error {
	for _, k := range keys() {
		if name, ok := match(k.pattern, e.key); ok {
			return l.chooseKey(k, name, e)
		}
	}
	for _, r := range restrictions() {
		if _, ok := match(r.pattern, e.key); ok {
			if !slices.Contains(r.allowed, e.value) {
				return fmt.Errorf("%s: %s = %s: %s", e.where(), e.key, e.value, r.why)
			}
			return nil
		}
	}
	if !known(e.key) {
		return unknown(e)
	}
	l.note(e.where() + ": " + e.key + " is accepted and has no effect")
	return nil
}

func (l *loader) chooseKey(k key, name string, e entry) error {
	label := fmt.Sprintf("%s: %s = %s", e.where(), e.key, e.value)
	if secret(k.setting) {
		label = fmt.Sprintf("%s: %s", e.where(), e.key)
	}
	text := e.value
	if k.convert != nil {
		var err error
		if text, err = k.convert(name, text); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
	}
	if k.merge != nil {
		text = k.merge(l.chosen[k.setting].text, text)
	}
	l.chosen[k.setting] = choice{text: text, origin: e.where() + " " + e.key, label: label}
	return nil
}

// secret says whether a setting's value must not be shown.
func secret(setting string) bool {
	for _, s := range allSettings() {
		if s.Name == setting {
			return s.Secret
		}
	}
	return false
}

// patterns lists every key there is, those that act first.
func patterns() []string {
	var list []string
	for _, k := range keys() {
		list = append(list, k.pattern)
	}
	for _, r := range restrictions() {
		list = append(list, r.pattern)
	}
	return append(list, idleKeys()...)
}

func known(key string) bool {
	return slices.ContainsFunc(patterns(), func(p string) bool {
		_, ok := match(p, key)
		return ok
	})
}

// unknown is the error of a key that there is not, with the one that may have
// been meant.
func unknown(e entry) error {
	if near, ok := nearest(e.key); ok {
		return fmt.Errorf("%s: there is no setting %s; did you mean %s?", e.where(), e.key, near)
	}
	return fmt.Errorf("%s: there is no setting %s: correct or remove the line", e.where(), e.key)
}

// nearest is the key that differs least, if it is not too different; one that
// acts if there is any.
func nearest(wrong string) (string, bool) {
	all := patterns()
	acting := len(keys())
	if near, ok := nearestOf(wrong, all[:acting]); ok {
		return near, true
	}
	return nearestOf(wrong, all[acting:])
}

func nearestOf(wrong string, patterns []string) (string, bool) {
	last := wrong[strings.LastIndex(wrong, ".")+1:]
	best, least := "", len(wrong)/3+1
	for _, p := range patterns {
		candidate := strings.ReplaceAll(p, "*", last)
		if d := distance(wrong, candidate); d < least {
			best, least = candidate, d
		}
	}
	return best, best != ""
}

// distance is how many bytes must be put in, taken out or replaced to make b
// of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// onlyNone takes none, which turns a listener off.
func onlyNone(_, text string) (string, error) {
	if text != "none" {
		return "", errors.New("want none, or a name after the key as in listeners.tcp.1 = 5672")
	}
	return "off", nil
}

func none(_, text string) (string, error) {
	if text != "none" {
		return "", errors.New("want none, or a name after the key and true or false")
	}
	return text, nil
}

// address takes a port, which means all interfaces, or an address and a port;
// IPv6 addresses may do without brackets (RabbitMQ 4.0).
func address(_, text string) (string, error) {
	host, port := "", text
	if i := strings.LastIndex(text, ":"); i >= 0 {
		host, port = text[:i], text[i+1:]
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", errors.New("want a port such as 5672, or an address and a port such as 127.0.0.1:5672 or [::1]:5672")
	}
	return net.JoinHostPort(host, port), nil
}

// addAddress adds an address, unless none has turned them all off.
func addAddress(have, text string) string {
	if have == "off" {
		return have
	}
	return addWord(have, text)
}

func addWord(have, text string) string {
	if have == "" {
		return text
	}
	return have + "," + text
}

// addName adds a name; "" is one that is not to be in the list.
func addName(have, text string) string {
	switch {
	case text == "" && have == "", have == "none" && text == "":
		return "none"
	case text == "":
		return have
	case have == "none":
		return text
	}
	return addWord(have, text)
}

func nameIfTrue(name, text string) (string, error) {
	on, err := boolean("", text)
	if err != nil || on != "true" {
		return "", err
	}
	return name, nil
}

// setPort and setHost make an address of keys for its parts, unless none has
// turned it off. Without a host it is all interfaces.
func setPort(have, port string) string {
	if have == "off" {
		return have
	}
	host, _, _ := net.SplitHostPort(have) // "" at first
	return net.JoinHostPort(host, port)
}

func setHost(port string) func(have, host string) string {
	return func(have, host string) string {
		if have == "off" {
			return have
		}
		if _, p, err := net.SplitHostPort(have); err == nil {
			return net.JoinHostPort(host, p)
		}
		return net.JoinHostPort(host, port)
	}
}

// plain takes a password that is not encrypted.
func plain(_, text string) (string, error) {
	if strings.HasPrefix(text, "encrypted:") {
		return "", errors.New("encrypted values cannot be decrypted: use $(NAME) to take the password from an environment variable")
	}
	return text, nil
}

func boolean(_, text string) (string, error) {
	switch text {
	case "true", "on":
		return "true", nil
	case "false", "off":
		return "false", nil
	}
	return "", errors.New("want true or false")
}

func not(_, text string) (string, error) {
	on, err := boolean("", text)
	if on == "true" {
		return "false", err
	}
	return "true", err
}

// share takes a part of the memory such as 0.4.
func share(_, text string) (string, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0 && f <= 100) {
		return "", errors.New("want a part of the memory such as 0.4")
	}
	return strconv.FormatFloat(f*100, 'f', -1, 64) + "%", nil
}

func seconds(_, text string) (string, error) { return duration(text, time.Second, "seconds") }

func milliseconds(_, text string) (string, error) {
	return duration(text, time.Millisecond, "milliseconds")
}

func duration(text string, unit time.Duration, name string) (string, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(100*365*24*time.Hour/unit) {
		return "", errors.New("want a number of " + name)
	}
	return (time.Duration(n) * unit).String(), nil
}

// levelWord takes RabbitMQ's name of a level. What is above error is error.
func levelWord(_, text string) (string, error) {
	switch text {
	case "debug", "info", "error":
		return text, nil
	case "notice":
		return "info", nil
	case "warning", "warn":
		return "warn", nil
	case "critical", "alert", "emergency", "none":
		return "error", nil
	}
	return "", errors.New("want debug, info, notice, warning, error, critical or none")
}

func formatWord(_, text string) (string, error) {
	switch text {
	case "plaintext":
		return "console", nil
	case "json":
		return text, nil
	}
	return "", errors.New("want plaintext or json")
}

func pathOrFalse(_, text string) (string, error) {
	if text == "false" {
		return "none", nil
	}
	return filepath.Clean(text), nil
}

func hash(_, text string) (string, error) {
	switch text {
	case "rabbit_password_hashing_sha256":
		return "SHA256", nil
	case "rabbit_password_hashing_sha512":
		return "SHA512", nil
	}
	return "", errors.New("want rabbit_password_hashing_sha256 or rabbit_password_hashing_sha512")
}
