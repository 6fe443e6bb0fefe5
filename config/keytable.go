package config

import "slices"

// keys are all keys of the file that act.
func keys() []key {
	return slices.Concat(listenerKeys(), nodeKeys(), authKeys(), seedKeys(), limitKeys(), messageKeys(), managementKeys(), metricsKeys(), logKeys(),
		tlsKeys("ssl_options", "tls"), tlsKeys("management.ssl", "management-tls"), tlsKeys("management.listener.ssl_opts", "management-tls"),
		tlsKeys("prometheus.ssl", "prometheus-tls"))
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
		{"prometheus.ssl.listener", "prometheus-tls-listen", onlyNone, nil},
		{"prometheus.ssl.port", "prometheus-tls-listen", nil, setPort},
		{"prometheus.ssl.ip", "prometheus-tls-listen", nil, setHost("15691")},
		{"proxy_protocol", "proxy-protocol", boolean, nil},
		{"tcp_listen_options.backlog", "tcp-backlog", nil, nil},
		{"tcp_listen_options.nodelay", "tcp-nodelay", boolean, nil},
		{"tcp_listen_options.keepalive", "tcp-keepalive", boolean, nil},
		{"tcp_listen_options.sndbuf", "tcp-send-buffer", nil, nil},
		{"tcp_listen_options.recbuf", "tcp-receive-buffer", nil, nil},
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
		{prefix + ".password", setting + "-key-password", nil, nil},
		{prefix + ".verify", setting + "-verify", nil, nil},
		{prefix + ".fail_if_no_peer_cert", setting + "-require-cert", boolean, nil},
		{prefix + ".depth", setting + "-depth", nil, nil},
		{prefix + ".versions.*", setting + "-versions", nil, addWord},
		{prefix + ".ciphers.*", setting + "-ciphers", nil, addWord},
	}
}

func nodeKeys() []key {
	return []key{
		{"cluster_name", "cluster-name", nil, nil},
		{"cluster_tags.*", "cluster-tags", pair, addWord},
		{"node_tags.*", "node-tags", pair, addWord},
		{"product.name", "product-name", nil, nil},
		{"product.version", "product-version", nil, nil},
		{"motd_file", "motd-file", nil, nil},
		{"total_memory_available_override_value", "memory-available", nil, nil},
		{"vm_memory_high_watermark.relative", "memory-limit", share, nil},
		{"vm_memory_high_watermark.absolute", "memory-limit", nil, nil},
		{"disk_free_limit.absolute", "disk-free-limit", nil, nil},
		{"disk_free_limit.relative", "disk-free-limit", share, nil},
		{"default_queue_type", "default-queue-type", nil, nil},
		{"load_definitions", "load-definitions", nil, nil},
		{"management.load_definitions", "load-definitions", nil, nil},
		{"definitions.local.path", "load-definitions", nil, nil},
		{"definitions.skip_if_unchanged", "definitions-skip-unchanged", boolean, nil},
		{"definitions.hashing.algorithm", "definitions-hash", nil, nil},
	}
}

func authKeys() []key {
	return []key{
		{"default_user", "default-user", nil, nil},
		{"default_pass", "default-pass", nil, nil},
		{"default_vhost", "default-vhost", nil, nil},
		{"default_user_tags.*", "default-tags", nameIfTrue, addName},
		{"default_permissions.configure", "default-permissions-configure", nil, nil},
		{"default_permissions.read", "default-permissions-read", nil, nil},
		{"default_permissions.write", "default-permissions-write", nil, nil},
		{"loopback_users", "loopback-users", none, nil},
		{"loopback_users.*", "loopback-users", nameIfTrue, addName},
		{"auth_mechanisms.*", "auth-mechanisms", nil, addWord},
		{"anonymous_login_user", "anonymous-login-user", nil, nil},
		{"anonymous_login_pass", "anonymous-login-pass", nil, nil},
		{"ssl_cert_login_from", "cert-login-from", nil, nil},
		{"ssl_cert_login_san_type", "cert-login-san-type", nil, nil},
		{"ssl_cert_login_san_index", "cert-login-san-index", nil, nil},
		{"password_hashing_module", "password-hash", hash, nil},
		{"credential_validator.min_length", "min-password-length", nil, nil},
		{"credential_validator.regexp", "password-pattern", nil, nil},
	}
}

// seedKeys are what vhosts get when they are made.
func seedKeys() []key {
	var list []key
	for _, f := range []string{"vhost_pattern", "configure", "read", "write", "tags"} {
		list = append(list, key{"default_users.*." + f, "default-users", fieldLine(f), addLine})
	}
	list = append(list, key{"default_users.*.password", "default-users", passwordLine, addLine})
	for _, f := range []string{"pattern", "max_connections", "max_queues"} {
		list = append(list, key{"default_limits.vhosts.*." + f, "default-limits", fieldLine(f), addLine})
	}
	for _, f := range []string{"vhost_pattern", "queue_pattern", "apply_to", "expires", "message_ttl", "max_length", "max_length_bytes", "delivery_limit", "max_in_memory_length", "max_in_memory_bytes"} {
		list = append(list, key{"default_policies.operator.*." + f, "default-policies", fieldLine(f), addLine})
	}
	list = append(list, key{"default_policies.operator.*.classic_queues.queue_version", "default-policies", fieldLine("queue_version"), addLine})
	return list
}

// messageKeys are what becomes of messages.
func messageKeys() []key {
	return []key{
		{"message_interceptors.incoming.set_header_timestamp.overwrite", "add-timestamp", addition, nil},
		{"message_interceptors.incoming.set_header_routing_node.overwrite", "add-routing-node", addition, nil},
		{"deprecated_features.permit.transient_nonexcl_queues", "refuse-transient-queues", not, nil},
		{"quorum_queue.property_equivalence.relaxed_checks_on_redeclaration", "relaxed-quorum-queues", boolean, nil},
		{"deprecated_features.permit.queue_master_locator", "refuse-master-locator", not, nil},
		{"deprecated_features.permit.global_qos", "ignore-global-qos", not, nil},
		{"deprecated_features.permit.management_metrics_collection", "management-disable-stats", not, nil},
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
		{"initial_frame_max", "initial-frame-max", nil, nil},
		{"ssl_handshake_timeout", "tls-handshake-timeout", milliseconds, nil},
		{"connection_max", "connection-max", nil, least},
		{"max_connections", "connection-max", nil, least},
		{"ranch_connection_max", "connection-max", nil, least},
		{"channel_max_per_node", "channel-max-per-node", nil, nil},
		{"vhost_max", "vhost-max", nil, nil},
		{"cluster_queue_limit", "queue-limit", nil, nil},
		{"cluster_exchange_limit", "exchange-limit", nil, nil},
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
		{"management_agent.disable_metrics_collector", "management-disable-stats", boolean, nil},
		{"management_agent.filter_aggregated_queue_metrics_pattern", "management-unaggregated-queues", nil, nil},
		{"management.rates_mode", "management-rates", ratesMode, nil},
		{"collect_statistics_interval", "statistics-interval", milliseconds, nil},
		{"management.http_log_dir", "management-access-log", nil, nil},
		{"management.restrictions.operator_policy_changes.disabled", "management-fixed-operator-policies", boolean, nil},
		{"management.csp.policy", "management-headers", headerLine("Content-Security-Policy"), addLine},
		{"management.hsts.policy", "management-headers", headerLine("Strict-Transport-Security"), addLine},
		{"management.headers.content_type_options", "management-headers", headerLine("X-Content-Type-Options"), addLine},
		{"management.headers.xss_protection", "management-headers", headerLine("X-XSS-Protection"), addLine},
		{"management.headers.frame_options", "management-headers", headerLine("X-Frame-Options"), addLine},
		{"management.headers.referrer_policy", "management-headers", headerLine("Referrer-Policy"), addLine},
	}
}

func metricsKeys() []key {
	return []key{
		{"prometheus.path", "prometheus-path", nil, nil},
		{"prometheus.return_per_object_metrics", "prometheus-per-object", boolean, nil},
		{"prometheus.authentication.enabled", "prometheus-login", boolean, nil},
	}
}

func logKeys() []key {
	list := []key{
		{"log.console", "log-quiet", not, nil},
		{"log.console.level", "log-level", levelWord, nil},
		{"log.console.stdio", "log-stderr", stdio, nil},
		{"log.console.use_colors", "log-colors", colours, nil},
		{"log.console.formatter", "log-format", formatWord, nil},
		{"log.console.formatter.time_format", "log-time", nil, nil},
		{"log.console.formatter.level_format", "log-level-name", nil, nil},
		{"log.dir", "log-dir", nil, nil},
		{"log.file", "log-file", pathOrFalse, nil},
		{"log.file.level", "log-file-level", levelWord, nil},
		{"log.file.formatter", "log-file-format", formatWord, nil},
		{"log.file.formatter.time_format", "log-file-time", nil, nil},
		{"log.file.formatter.level_format", "log-file-level-name", nil, nil},
		{"log.file.rotation.date", "log-rotation-date", nil, nil},
		{"log.file.rotation.size", "log-rotation-size", zeroIsNone, nil},
		{"log.file.rotation.count", "log-rotation-count", nil, nil},
		{"log.file.rotation.compress", "log-rotation-compress", boolean, nil},
		{"log.exchange", "log-exchange", boolean, nil},
		{"log.exchange.level", "log-exchange-level", levelWord, nil},
		{"log.exchange.formatter", "log-exchange-format", formatWord, nil},
		{"log.exchange.formatter.time_format", "log-exchange-time", nil, nil},
		{"log.exchange.formatter.level_format", "log-exchange-level-name", nil, nil},
	}
	for _, out := range [][2]string{{"console", "log"}, {"file", "log-file"}, {"exchange", "log-exchange"}} {
		key, setting := "log."+out[0]+".formatter.", out[1]
		list = append(list, styleKeys(key, setting)...)
	}
	for _, c := range Categories() {
		list = append(list,
			key{"log." + c + ".level", "log-levels", categoryLevel(c), addWord},
			key{"log." + c + ".file", "log-category-files", categoryFile(c), addWord})
	}
	return append(list, rotationKeys()...)
}

// rotationKeys are when files of single categories are moved away.
func rotationKeys() []key {
	var list []key
	for _, field := range []string{"size", "date", "count", "compress"} {
		list = append(list, key{"log.*.rotation." + field, "log-category-rotation", rotationLine(field), addLine})
	}
	return list
}

// styleKeys are what is wanted of the lines of one output.
func styleKeys(prefix, setting string) []key {
	return []key{
		{prefix + "single_line", setting + "-single-line", boolean, nil},
		{prefix + "plaintext.format", setting + "-pattern", nil, nil},
		{prefix + "json.field_map", setting + "-fields", nil, nil},
		{prefix + "json.verbosity_map", setting + "-verbosity", nil, nil},
	}
}
