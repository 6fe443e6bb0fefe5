package config

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// advancedFile is RabbitMQ's file with Erlang terms: the one that a variable
// names, or advanced.config where the main file is looked for. It may be missing.
func (l *loader) advancedFile() string {
	if name, set := l.variable("RABBITMQ_ADVANCED_CONFIG_FILE"); set {
		for _, candidate := range []string{name, name + ".config"} {
			if maybeFile(candidate) {
				return candidate
			}
		}
		l.note("there is no file " + name + " (RABBITMQ_ADVANCED_CONFIG_FILE)")
		return ""
	}
	dir := l.dataDir
	if name, set := l.variable("RABBITMQ_CONFIG_FILE"); set {
		dir = filepath.Dir(name)
	}
	if name, asked := l.first("config", "LEVERET_CONFIG_FILE"); asked {
		if name == "none" {
			return ""
		}
		dir = filepath.Dir(name)
	}
	if name := filepath.Join(dir, "advanced.config"); dir != "" && isFile(name) {
		return name
	}
	return ""
}

// readAdvanced reads such a file as lines of the other ones, over which they win
// (RabbitMQ 4.0).
func (l *loader) readAdvanced(name string) []entry {
	if name == "" {
		return nil
	}
	b, err := readFile(name)
	if err != nil {
		l.fail(err)
		return nil
	}
	if strings.TrimSpace(erlComment.ReplaceAllString(string(b), "")) == "" {
		return nil
	}
	t, err := parseErlang(string(b))
	if err == nil && t.kind != erlList {
		//lint:ignore ST1005 the full stop is part of the form
		err = errors.New("want a list such as [{rabbit, [{heartbeat, 30}]}].")
	}
	if err != nil {
		l.fail(fmt.Errorf("%s: %w", name, err))
		return nil
	}
	l.config.Files = append(l.config.Files, name)
	var entries []entry
	for _, app := range t.items {
		more, err := l.application(name, app)
		l.fail(err)
		entries = append(entries, more...)
	}
	return entries
}

// applications are those of RabbitMQ's whose settings mean something here, and
// what their keys begin with in rabbitmq.conf.
func applications() map[string]string {
	return map[string]string{"rabbit": "", "rabbitmq_management": "management.", "rabbitmq_management_agent": "management_agent.", "rabbitmq_prometheus": "prometheus."}
}

// application takes the settings of {NAME, [{KEY, VALUE}...]}.
func (l *loader) application(file string, app erlTerm) ([]entry, error) {
	if app.kind != erlTuple || len(app.items) != 2 || app.items[1].kind != erlList {
		return nil, fmt.Errorf("%s:%d: want {rabbit, [{KEY, VALUE}]}", file, app.line)
	}
	name := app.items[0].text
	prefix, ours := applications()[name]
	if !ours {
		if len(app.items[1].items) > 0 {
			l.note(fmt.Sprintf("%s:%d: the settings of %s are accepted and have no effect", file, app.line, name))
		}
		return nil, nil
	}
	var entries []entry
	var errs []error
	for _, pair := range app.items[1].items {
		more, err := l.pair(file, name, prefix, pair)
		if err != nil {
			errs = append(errs, err)
		}
		entries = append(entries, more...)
	}
	return entries, errors.Join(errs...)
}

// pair takes {KEY, VALUE}, a setting of an application.
func (l *loader) pair(file, app, prefix string, pair erlTerm) ([]entry, error) {
	if pair.kind != erlTuple || len(pair.items) != 2 {
		return nil, fmt.Errorf("%s:%d: want {KEY, VALUE}", file, pair.line)
	}
	key, value := pair.items[0].text, pair.items[1]
	setting := fmt.Sprintf("%s:%d: %s of %s", file, pair.line, key, app)
	if app == "rabbit" && key == "config_entry_decoder" {
		if err := l.takeDecoder(value); err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
		return nil, nil
	}
	lines, err := confLines(prefix, key, value)
	if errors.Is(err, errErlangOnly) {
		l.note(setting + " is accepted and has no effect")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	var entries []entry
	for _, line := range lines {
		entries = append(entries, entry{key: line[0], value: line[1], file: file, line: pair.line})
	}
	return entries, nil
}

// errErlangOnly says that a setting is of Erlang's machinery.
var errErlangOnly = errors.New("it has no effect here")

// errNotUnderstood says that a value has a form of its own.
var errNotUnderstood = errors.New("this value is not understood: write what you mean into rabbitmq.conf, or remove it")

// erlangOnly are keys that rabbitmq.conf has not, of things that are not here.
func erlangOnly() []string {
	return []string{
		"channel_operation_timeout", "channel_tick_interval", "cluster_nodes", "credit_flow_default_credit",
		"dead_letter_worker_consumer_prefetch", "dead_letter_worker_publisher_confirm_timeout", "default_consumer_prefetch", "feature_flags_file",
		"fhc_read_buffering", "fhc_write_buffering", "file_handles_high_watermark", "forced_feature_flags_on_init", "halt_on_upgrade_failure",
		"lazy_queue_explicit_gc_run_operation_threshold", "log_levels", "mirroring_flow_control", "msg_store_credit_disc_bound", "msg_store_file_size_limit",
		"msg_store_index_module", "msg_store_io_batch_size", "peer_discovery_backend", "queue_explicit_gc_run_operation_threshold",
		"queue_index_max_journal_entries", "quorum_cluster_size", "quorum_commands_soft_limit", "quorum_tick_interval", "rabbit_mgmt_db_cache_multiplier",
		"stats_event_max_backlog", "tcp_listen_options_linger", "trace_vhosts", "track_auth_attempt_source", "tracking_execution_timeout",
		"process_stats_gc_timeout", "sample_retention_policies", "stats_gc_interval", "db_cache_multiplier",
	}
}

// renamed are keys that rabbitmq.conf has under another name.
func renamed() map[string]string {
	return map[string]string{
		"num_tcp_acceptors": "num_acceptors.tcp", "num_ssl_acceptors": "num_acceptors.ssl", "writer_gc_threshold": "socket_writer.gc_threshold",
		"product_name": "product.name", "product_version": "product.version", "log_root": "log.dir",
		"msg_store_shutdown_timeout": "message_store_shutdown_timeout", "classic_queue_default_version": "classic_queue.default_version",
		"quorum_compute_checksums":                 "quorum_queue.compute_checksums",
		"quorum_relaxed_checks_on_redeclaration":   "quorum_queue.property_equivalence.relaxed_checks_on_redeclaration",
		"management.tcp_config":                    "management.tcp",
		"management.ssl_config":                    "management.ssl",
		"management.max_http_body_size":            "management.http.max_body_size",
		"management.cors_allow_origins":            "management.cors.allow_origins",
		"management.cors_max_age":                  "management.cors.max_age",
		"prometheus.tcp_config":                    "prometheus.tcp",
		"prometheus.ssl_config":                    "prometheus.ssl",
		"permit_deprecated_features":               "deprecated_features.permit",
		"vm_memory_high_watermark.mem_relative":    "vm_memory_high_watermark.relative",
		"disk_free_limit.mem_relative":             "disk_free_limit.relative",
		"definitions.hashing_algorithm":            "definitions.hashing.algorithm",
		"definitions.local_path":                   "definitions.local.path",
		"log.file.date":                            "log.file.rotation.date",
		"log.file.size":                            "log.file.rotation.size",
		"log.file.count":                           "log.file.rotation.count",
		"log.console.enabled":                      "log.console",
		"log.exchange.enabled":                     "log.exchange",
		"log.file.file":                            "log.file",
		"management.tcp.cowboy_opts":               "management.tcp",
		"management.ssl.cowboy_opts":               "management.ssl",
		"prometheus.tcp.cowboy_opts":               "prometheus.tcp",
		"quorum_membership_reconciliation_enabled": "quorum_queue.continuous_membership_reconciliation.enabled",
	}
}

// confLines are the lines KEY, VALUE of rabbitmq.conf that mean a setting of
// advanced.config.
func confLines(prefix, key string, value erlTerm) ([][2]string, error) {
	whole := prefix + key
	if slices.Contains(erlangOnly(), key) {
		return nil, errErlangOnly
	}
	whole = cmp.Or(renamed()[whole], whole)
	switch whole {
	case "tcp_listeners":
		return listenerLines("listeners.tcp", value)
	case "ssl_listeners":
		return listenerLines("listeners.ssl", value)
	case "auth_backends":
		return backendLines(value)
	case "loopback_users":
		return nameLines(whole, value)
	case "default_user_tags":
		lines, err := nameLines(whole, value)
		return slices.DeleteFunc(lines, func(l [2]string) bool { return l[0] == whole }), err
	case "default_permissions":
		return permissionLines(value)
	case "vm_memory_high_watermark", "disk_free_limit":
		return memoryLines(whole, value)
	case "tcp_listen_options":
		// What Erlang's sockets need besides has no key.
		value.items = slices.DeleteFunc(slices.Clone(value.items), func(t erlTerm) bool {
			return t.kind == erlAtom || len(t.items) == 2 && slices.Contains([]string{"packet", "reuseaddr", "active", "reuseport"}, t.items[0].text)
		})
	case "consumer_timeout":
		if value.text == "undefined" || value.text == "infinity" {
			return [][2]string{{whole, "0"}}, nil
		}
	}
	return nestedLines(whole, value)
}

// nestedLines makes a line of a value, one of each pair in a list of pairs, and
// numbered ones of the items of another list.
func nestedLines(key string, value erlTerm) ([][2]string, error) {
	switch value.kind {
	case erlList:
	case erlTuple:
		if len(value.items) == 2 && value.items[0].text == "encrypted" && value.items[1].kind == erlText && known(key) {
			return [][2]string{{key, encryptedPrefix + value.items[1].text}}, nil
		}
		return nil, errNotUnderstood
	default:
		if !known(key) {
			return nil, fmt.Errorf("rabbitmq.conf has no key %s for it: write what you mean there, or remove it", key)
		}
		return [][2]string{{key, value.text}}, nil
	}
	var lines [][2]string
	for i, item := range value.items {
		name, inner := strconv.Itoa(i+1), item
		if item.kind == erlTuple {
			if len(item.items) != 2 || item.items[0].kind != erlAtom {
				return nil, errNotUnderstood
			}
			if key == "tcp_listen_options" && item.items[0].text == "linger" && item.items[1].kind == erlTuple {
				continue // {linger, {true, 0}}: as tcp_listen_options.linger.on, which has no effect
			}
			name, inner = item.items[0].text, item.items[1]
		}
		more, err := nestedLines(cmp.Or(renamed()[key+"."+name], key+"."+name), inner)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

// listenerLines takes ports and {HOST, PORT}.
func listenerLines(key string, value erlTerm) ([][2]string, error) {
	if value.kind != erlList {
		return nil, errors.New(`want a list such as [5672] or [{"127.0.0.1", 5672}]`)
	}
	if len(value.items) == 0 {
		return [][2]string{{key, "none"}}, nil
	}
	var lines [][2]string
	for i, item := range value.items {
		text := item.text
		if item.kind == erlTuple && len(item.items) == 2 {
			text = item.items[0].text + ":" + item.items[1].text
		}
		lines = append(lines, [2]string{key + "." + strconv.Itoa(i+1), text})
	}
	return lines, nil
}

// backendLines takes backends, and {BACKEND, BACKEND} for logins and permissions.
func backendLines(value erlTerm) ([][2]string, error) {
	if value.kind != erlList || len(value.items) == 0 { // without a line nobody would look at them
		return nil, errors.New("want a list such as [rabbit_auth_backend_internal]")
	}
	var lines [][2]string
	for i, item := range value.items {
		key := "auth_backends." + strconv.Itoa(i+1)
		if item.kind == erlTuple && len(item.items) == 2 {
			lines = append(lines, [2]string{key + ".authn", item.items[0].text}, [2]string{key + ".authz", item.items[1].text})
			continue
		}
		lines = append(lines, [2]string{key, item.text})
	}
	return lines, nil
}

// nameLines takes a list of names.
func nameLines(key string, value erlTerm) ([][2]string, error) {
	if value.kind != erlList {
		return nil, errors.New(`want a list such as [<<"guest">>]`)
	}
	if len(value.items) == 0 {
		return [][2]string{{key, "none"}}, nil
	}
	var lines [][2]string
	for _, item := range value.items {
		lines = append(lines, [2]string{key + "." + item.text, "true"})
	}
	return lines, nil
}

// permissionLines takes three patterns.
func permissionLines(value erlTerm) ([][2]string, error) {
	if len(value.items) != 3 {
		return nil, errors.New(`want three patterns such as [<<".*">>, <<".*">>, <<".*">>]`)
	}
	var lines [][2]string
	for i, name := range []string{"configure", "write", "read"} {
		lines = append(lines, [2]string{"default_permissions." + name, value.items[i].text})
	}
	return lines, nil
}

// memoryLines takes a part of the memory or {absolute, SIZE} for the memory, and
// a size or {mem_relative, PART} for the disk.
func memoryLines(key string, value erlTerm) ([][2]string, error) {
	switch {
	case value.kind == erlTuple && len(value.items) == 2:
		name := key + "." + value.items[0].text
		return [][2]string{{cmp.Or(renamed()[name], name), value.items[1].text}}, nil
	case value.kind == erlList || value.kind == erlTuple:
		return nil, errors.New("want a number, or a tuple such as {absolute, 2147483648}")
	case key == "disk_free_limit":
		return [][2]string{{key + ".absolute", value.text}}, nil
	}
	return [][2]string{{key + ".relative", value.text}}, nil
}
