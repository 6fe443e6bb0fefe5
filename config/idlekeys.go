package config

// A restriction is a key that has no effect, but that must not be passed over
// when its value asks for something that is not there.
type restriction struct {
	pattern string
	allowed []string
	why     string
}

const (
	noRevocation = "lists of revoked certificates are not looked at: only false is there; take certificates of a short life, or delete the user"
	inFiles      = "certificates and keys are read from PEM files: set certfile, keyfile and cacertfile beside it"
)

func restrictions() []restriction {
	return []restriction{
		{"auth_backends.*", []string{"internal", "rabbit_auth_backend_internal"}, "users are kept by the broker itself: only internal is there"},
		{"tcp_listen_options", []string{"none"}, "want none, or a name after the key as in tcp_listen_options.backlog"},
		{"ssl_options", []string{"none"}, "want none, or a name after the key as in ssl_options.certfile"},
		{"management.listener.ssl_opts", []string{"none"}, "want none, or a name after the key as in management.listener.ssl_opts.certfile"},
		{"management.cors.allow_origins", []string{"none"}, "want none, or a name after the key as in management.cors.allow_origins.1"},
		// Whoever sets these counts on them.
		{"ssl_options.crl_check", []string{"false"}, noRevocation},
		{"management.listener.ssl_opts.crl_check", []string{"false"}, noRevocation},
		{"ssl_options.cacerts.*", nil, inFiles},
		{"ssl_options.cert", nil, inFiles},
		{"ssl_options.key.*", nil, inFiles},
		{"management.listener.ssl_opts.cacerts.*", nil, inFiles},
		{"management.listener.ssl_opts.cert", nil, inFiles},
		{"management.listener.ssl_opts.key.*", nil, inFiles},
		{"message_interceptors.outgoing.timestamp.enabled", []string{"false"}, "deliveries get no header of their own: only false is there"},
		{"management.disable_basic_auth", []string{"false"}, "there is no other login: only false is there"},
		{"management.require_auth_for_api_reference", []string{"false"}, "the list of the API's paths is there for everybody: only false is taken"},
		{"definitions.https.url", nil, "definitions are read from local files only: set load_definitions"},
		{"log.syslog", []string{"false"}, "the log goes to standard output and to a file; let the system's log take it from there"},
		{"log.journald", []string{"false"}, "the log goes to standard output and to a file; under systemd standard output is the journal"},
		{"management.listener.ssl", []string{"true", "false"}, "want true or false"}, // see loader.oldHTTPS
		{"queue_types.*.enabled", []string{"true"}, "every type of queue is there: only true is taken; set permissions or policies instead"},
		{"exchange_types.*.enabled", []string{"true"}, "every type of exchange is there: only true is taken"},
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
		"auto_delete_exchanges", "aws.*", "background_gc_enabled", "background_gc_target_interval", "channel_interceptor.*",
		"classic_queue.*", "cluster_formation.*", "cluster_keepalive_interval", "cluster_partition_handling",
		"cluster_partition_handling.*", "collect_statistics",
		"default_worker_pool_size", "delegate_count", "distribution.*", "event_exchange.*", "erlang.*", "hipe_compile", "kernel.*",
		"max_message_size.*", "memory_monitor_interval", "message_store_shutdown_timeout", "metadata_store.*", "mirroring_sync_batch_size",
		"mirroring_sync_max_throughput", "mnesia_table_loading_retry_limit", "mnesia_table_loading_retry_timeout", "net_ticktime",
		"num_acceptors.*", "prevent_startup_if_node_was_reset", "queue_index_embed_msgs_below", "queue_index_max_journal_entries",
		"queue_leader_locator", "queue_master_locator", "quorum_queue.*", "raft.*",
		"reverse_dns_lookups", "runtime_parameters.*", "socket_writer.*", "stream.*", "sysmon_handler.*", "vhost_restart_strategy",
		"vm_memory_calculation_strategy", "vm_memory_high_watermark_paging_ratio",
		// What is not there.
		"consumer_disconnected_timeout", "deprecated_features.permit.*", "default_policies.operator.*.classic_queues.ha_mode",
		"default_policies.operator.*.classic_queues.ha_params", "default_policies.operator.*.classic_queues.ha_sync_mode",
		"tcp_listen_options.buffer", "tcp_listen_options.delay_send", "tcp_listen_options.linger.on", "tcp_listen_options.linger.timeout",
		"tcp_listen_options.exit_on_close", "tcp_listen_options.send_timeout", "tcp_listen_options.send_timeout_close", "tcp_listen_options.dontroute",
		"tcp_listen_options.fd", "tcp_listen_options.port", "tcp_listen_options.priority", "tcp_listen_options.tos",
		"tcp_listen_options.high_msgq_watermark", "tcp_listen_options.high_watermark", "tcp_listen_options.low_msgq_watermark", "tcp_listen_options.low_watermark",
		// TLS: Go chooses well by itself.
		"ssl_allow_poodle_attack", "management.ssl.reuse_sessions", "prometheus.ssl.reuse_sessions", "prometheus.ssl.backlog",
		"management.listener.ssl_opts.client_renegotiation", "management.listener.ssl_opts.dh", "management.listener.ssl_opts.dhfile",
		"management.listener.ssl_opts.honor_cipher_order", "management.listener.ssl_opts.honor_ecc_order", "management.listener.ssl_opts.log_alert",
		"management.listener.ssl_opts.psk_identity", "management.listener.ssl_opts.reuse_sessions", "management.listener.ssl_opts.secure_renegotiate",
		"ssl_options.honor_cipher_order", "ssl_options.honor_ecc_order", "ssl_options.client_renegotiation",
		"ssl_options.secure_renegotiate", "ssl_options.reuse_sessions", "ssl_options.dhfile", "ssl_options.dh", "ssl_options.bypass_pem_cache",
		"ssl_options.hibernate_after", "ssl_options.log_alert", "ssl_options.log_level", "ssl_options.psk_identity", "ssl_options.sni",
		"management.ssl.honor_cipher_order", "management.ssl.honor_ecc_order", "management.ssl.client_renegotiation",
		"management.ssl.secure_renegotiate", "management.ssl.backlog", "management.ssl.compress", "management.ssl.idle_timeout",
		"management.ssl.inactivity_timeout", "management.ssl.request_timeout", "management.ssl.shutdown_timeout", "management.ssl.max_keepalive", "management.ssl.dhfile",
		// Users, definitions.
		"definitions.tls.*", "definitions.https.server",
		"session_max_per_connection", "link_max_per_session",
		// The log.
		"log.console.color_esc_seqs.*", "log.syslog.*", "log.journald.*", "log.error_logger_format_depth",
		"log.summarize_process_state",
		// The HTTP API.
		"management.tcp.backlog", "management.tcp.compress", "management.tcp.idle_timeout", "management.tcp.inactivity_timeout",
		"management.tcp.max_connections", "management.tcp.max_keepalive", "management.tcp.request_timeout", "management.tcp.shutdown_timeout",
		"management.listener.server.*", "management.login_session_timeout",
		"management.sample_retention_policies.*", "management.db_cache_multiplier", "management.delegate_count",
		"management.process_stats_gc_timeout", "management.restrictions.quorum_queue_replica_operations.disabled",
		"prometheus.filter_aggregated_queue_metrics_pattern", // RabbitMQ 4.0: no effect there either
		"prometheus.ssl.compress", "prometheus.ssl.idle_timeout", "prometheus.ssl.inactivity_timeout", "prometheus.ssl.request_timeout",
		"prometheus.ssl.shutdown_timeout", "prometheus.ssl.max_keepalive", "prometheus.ssl.honor_cipher_order", "prometheus.ssl.honor_ecc_order",
		"prometheus.ssl.client_renegotiation", "prometheus.ssl.secure_renegotiate", "prometheus.ssl.dhfile", "prometheus.tcp.compress", "prometheus.tcp.idle_timeout", "prometheus.tcp.inactivity_timeout", "prometheus.tcp.max_keepalive",
		"prometheus.tcp.request_timeout", "prometheus.tcp.shutdown_timeout",
		// Backends and plug-ins, which no key turns on.
		"auth_cache.*", "auth_http.*", "auth_ldap.*", "auth_oauth2.*", "management.oauth_*", "management.oauth_resource_servers.*", "amqp1_0.*", "federation.*",
		"mqtt.*", "shovel.*", "stomp.*", "tracing.*", "trust_store.*", "web_mqtt.*", "web_stomp.*",
	}
}
