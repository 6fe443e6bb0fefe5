package config

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// A variable is one of RabbitMQ's environment variables and the setting it is
// for.
type variable struct {
	name    string
	setting string
	convert func(text string) (string, error) // nil takes the text as it is
}

// rabbitVariables are the variables of RabbitMQ's server and of its image that
// mean one setting. Later ones win.
func rabbitVariables() []variable {
	return []variable{
		{name: "RABBITMQ_NODENAME", setting: "node-name"},
		{name: "RABBITMQ_DEFAULT_USER", setting: "default-user"},
		{name: "RABBITMQ_DEFAULT_USER_FILE", setting: "default-user", convert: readSecret},
		{name: "RABBITMQ_DEFAULT_PASS", setting: "default-pass"},
		{name: "RABBITMQ_DEFAULT_PASS_FILE", setting: "default-pass", convert: readSecret},
		{name: "RABBITMQ_DEFAULT_VHOST", setting: "default-vhost"},
		{name: "RABBITMQ_LOG_BASE", setting: "log-dir"},
		{name: "RABBITMQ_PRODUCT_NAME", setting: "product-name"},
	}
}

// idleVariables are those that have no effect here.
func idleVariables() []string {
	return []string{
		"RABBITMQ_ADVANCED_CONFIG_FILE", "RABBITMQ_CONF_ENV_FILE", "RABBITMQ_CTL_ERL_ARGS", "RABBITMQ_DIST_PORT",
		"RABBITMQ_ENABLED_PLUGINS", "RABBITMQ_ENABLED_PLUGINS_FILE", "RABBITMQ_ERLANG_COOKIE", "RABBITMQ_FEATURE_FLAGS",
		"RABBITMQ_FEATURE_FLAGS_FILE", "RABBITMQ_IO_THREAD_POOL_SIZE", "RABBITMQ_KEEP_PID_FILE_ON_EXIT", "RABBITMQ_MOTD_FILE",
		"RABBITMQ_PID_FILE", "RABBITMQ_PLUGINS_DIR", "RABBITMQ_PRODUCT_VERSION", "RABBITMQ_QUORUM_DIR",
		"RABBITMQ_SERVER_ERL_ARGS", "RABBITMQ_SERVER_START_ARGS", "RABBITMQ_STREAM_DIR",
	}
}

// refusedVariables are those of old images, and the key to use instead. The
// image refuses them too: a broker without the TLS that somebody asked for must
// not start.
func refusedVariables() map[string]string {
	refused := map[string]string{"RABBITMQ_VM_MEMORY_HIGH_WATERMARK": "vm_memory_high_watermark.relative"}
	for variable, key := range map[string]string{
		"CACERTFILE": "cacertfile", "CERTFILE": "certfile", "KEYFILE": "keyfile", "DEPTH": "depth",
		"FAIL_IF_NO_PEER_CERT": "fail_if_no_peer_cert", "VERIFY": "verify",
	} {
		refused["RABBITMQ_SSL_"+variable] = "ssl_options." + key
		refused["RABBITMQ_MANAGEMENT_SSL_"+variable] = "management.ssl." + key
	}
	return refused
}

// chooseRabbitMQ takes RabbitMQ's environment variables.
func (l *loader) chooseRabbitMQ() error {
	for name, key := range refusedVariables() {
		if _, set := l.variable(name); set {
			return fmt.Errorf("%s is set but deprecated: set %s in the configuration file instead", name, key)
		}
	}
	for _, name := range idleVariables() {
		if _, set := l.variable(name); set {
			l.note(name + " is accepted and has no effect")
		}
	}
	for _, v := range rabbitVariables() {
		text, set := l.variable(v.name)
		if !set {
			continue
		}
		if v.convert != nil {
			var err error
			if text, err = v.convert(text); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
		l.chooseVariable(v.name, v.setting, text)
	}
	if dir, name, set := l.mnesiaDir(); set && !l.inMemory() {
		l.chooseVariable(name, "data-dir", dir)
	}
	l.chooseNodePort()
	if err := l.chooseErlangArguments(); err != nil {
		return err
	}
	return l.chooseLogs()
}

func (l *loader) inMemory() bool { return l.dataDir == "" }

// chooseVariable takes a variable's text for a setting. The text is not in the
// label: it may be a secret.
func (l *loader) chooseVariable(name, setting, text string) {
	l.chosen[setting] = choice{text: text, origin: name, label: name}
}

// readSecret reads a file with one line, as container runtimes pass secrets.
func readSecret(name string) (string, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// mnesiaDir is where RabbitMQ's variables put the data, and the variable that
// says so.
func (l *loader) mnesiaDir() (dir, variable string, set bool) {
	if dir, set := l.variable("RABBITMQ_MNESIA_DIR"); set {
		return dir, "RABBITMQ_MNESIA_DIR", true
	}
	base, set := l.variable("RABBITMQ_MNESIA_BASE")
	if !set {
		return "", "", false
	}
	node := Config{NodeName: "leveret"}
	if name, named := l.variable("RABBITMQ_NODENAME"); named && setNodeName(&node, name) != nil {
		node.NodeName = "leveret" // what is wrong with it is told later
	}
	return filepath.Join(base, node.NodeName), "RABBITMQ_MNESIA_BASE", true
}

// chooseNodePort takes RabbitMQ's variables for the one listener, which count
// unless a file has any.
func (l *loader) chooseNodePort() {
	host, hostSet := l.variable("RABBITMQ_NODE_IP_ADDRESS")
	port, portSet := l.variable("RABBITMQ_NODE_PORT")
	if _, inFile := l.chosen["listen"]; inFile || !hostSet && !portSet {
		return
	}
	name := "RABBITMQ_NODE_PORT"
	if !portSet {
		name, port = "RABBITMQ_NODE_IP_ADDRESS", "5672"
	}
	l.chooseVariable(name, "listen", net.JoinHostPort(host, port))
}

// chooseLogs takes RABBITMQ_LOGS, a path or - for standard output, and
// RABBITMQ_LOG, levels such as debug or connection=debug.
func (l *loader) chooseLogs() error {
	switch to, set := l.variable("RABBITMQ_LOGS"); {
	case !set || to == "-" || to == "-stdout":
	case to == "-stderr":
		l.note("RABBITMQ_LOGS=-stderr is taken as standard output")
	default:
		l.chooseVariable("RABBITMQ_LOGS", "log-file", to)
	}
	words, _ := l.variable("RABBITMQ_LOG")
	for word := range strings.SplitSeq(words, ",") {
		word = strings.TrimSpace(word)
		switch category, _, isCategory := strings.Cut(word, "="); {
		case word == "" || word == "+color" || word == "-color" || word == "-json":
		case word == "+json":
			l.chooseVariable("RABBITMQ_LOG", "log-format", "json")
		case isCategory:
			l.note("RABBITMQ_LOG: the level of " + category + " alone is accepted and has no effect")
		default:
			level, err := levelWord("", word)
			if err != nil {
				return fmt.Errorf("RABBITMQ_LOG=%q: %w", words, err)
			}
			l.chooseVariable("RABBITMQ_LOG", "log-level", level)
		}
	}
	return nil
}

// chooseErlangArguments takes the settings that compose files pass to Erlang:
// -rabbit KEY VALUE and -rabbitmq_management KEY VALUE. All others mean the
// Erlang machine.
func (l *loader) chooseErlangArguments() error {
	const name = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"
	text, set := l.variable(name)
	if !set {
		return nil
	}
	words := strings.Fields(text)
	for i := 0; i+2 < len(words); i++ {
		if words[i] != "-rabbit" && words[i] != "-rabbitmq_management" {
			continue
		}
		key, value := words[i+1], strings.Trim(words[i+2], `"'<>\`)
		i += 2
		switch key {
		case "load_definitions":
			l.chooseVariable(name, "load-definitions", value)
		case "loopback_users":
			value = strings.Trim(value, "[]")
			if value = strings.Trim(value, `"'<>\`); value == "" {
				value = "none"
			}
			l.chooseVariable(name, "loopback-users", value)
		case "default_user", "default_pass", "default_vhost":
			l.chooseVariable(name, strings.ReplaceAll(key, "_", "-"), value)
		case "consumer_timeout":
			d, err := milliseconds("", value)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", name, key, err)
			}
			l.chooseVariable(name, "consumer-timeout", d)
		default:
			l.note(name + ": " + key + " is accepted and has no effect; set it in the configuration file")
		}
	}
	return nil
}
