package config

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
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
		{name: "RABBITMQ_PRODUCT_VERSION", setting: "product-version"},
		{name: "RABBITMQ_MOTD_FILE", setting: "motd-file"},
		{name: "RABBITMQ_PID_FILE", setting: "pid-file"},
		{name: "RABBITMQ_KEEP_PID_FILE_ON_EXIT", setting: "keep-pid-file"},
		{name: "RABBITMQ_VM_MEMORY_HIGH_WATERMARK", setting: "memory-limit", convert: watermark},
	}
}

// tlsVariables are those of older images for one certificate.
func tlsVariables(prefix, setting string) []variable {
	return []variable{
		{name: prefix + "CACERTFILE", setting: setting + "-ca"},
		{name: prefix + "CERTFILE", setting: setting + "-cert"},
		{name: prefix + "KEYFILE", setting: setting + "-key"},
		{name: prefix + "DEPTH", setting: setting + "-depth"},
		{name: prefix + "FAIL_IF_NO_PEER_CERT", setting: setting + "-require-cert"},
		{name: prefix + "VERIFY", setting: setting + "-verify"},
	}
}

// watermark takes a part of the memory such as 0.4, or a size.
func watermark(text string) (string, error) {
	if part, err := share("", text); err == nil {
		return part, nil
	}
	_, err := parseSize(text)
	return text, err
}

// idleVariables are those that have no effect here.
func idleVariables() []string {
	return []string{
		"RABBITMQ_CONF_ENV_FILE", "RABBITMQ_CTL_ERL_ARGS", "RABBITMQ_DIST_PORT",
		"RABBITMQ_ERLANG_COOKIE", "RABBITMQ_FEATURE_FLAGS",
		"RABBITMQ_FEATURE_FLAGS_FILE", "RABBITMQ_IO_THREAD_POOL_SIZE",
		"RABBITMQ_PLUGINS_DIR", "RABBITMQ_QUORUM_DIR",
		"RABBITMQ_SERVER_ERL_ARGS", "RABBITMQ_SERVER_START_ARGS", "RABBITMQ_STREAM_DIR",
		"RABBITMQ_USE_LONGNAME",
	}
}

// chooseRabbitMQ takes RabbitMQ's environment variables.
func (l *loader) chooseRabbitMQ() {
	for _, name := range idleVariables() {
		if _, set := l.variable(name); set {
			l.note(name + " is accepted and has no effect")
		}
	}
	for _, v := range rabbitVariables() {
		l.chooseRabbitVariable(v)
	}
	l.chooseTLS()
	if dir, name, set := l.mnesiaDir(); set && !l.inMemory() {
		l.chooseVariable(name, "data-dir", dir)
	}
	l.chooseNodePort()
	l.fail(l.choosePlugins())
	l.chooseErlangArguments()
	l.fail(l.chooseLogs())
}

func (l *loader) chooseRabbitVariable(v variable) {
	text, set := l.variable(v.name)
	if !set {
		return
	}
	if v.convert != nil {
		var err error
		if text, err = v.convert(text); err != nil {
			l.fail(fmt.Errorf("%s: %w", v.name, err))
			return
		}
	}
	l.chooseVariable(v.name, v.setting, text)
}

// chooseTLS takes the variables of older images for TLS, and the listener for
// HTTPS that goes with a certificate there.
func (l *loader) chooseTLS() {
	for _, v := range tlsVariables("RABBITMQ_SSL_", "tls") {
		l.chooseRabbitVariable(v)
	}
	for _, v := range tlsVariables("RABBITMQ_MANAGEMENT_SSL_", "management-tls") {
		l.chooseRabbitVariable(v)
	}
	const name = "RABBITMQ_MANAGEMENT_SSL_CERTFILE"
	if _, set := l.variable(name); !set {
		return
	}
	if _, given := l.chosen["management-tls-listen"]; !given {
		l.chooseVariable(name, "management-tls-listen", ":15671")
	}
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
// RABBITMQ_LOG, words such as debug, connection=debug, +json or -color.
func (l *loader) chooseLogs() error {
	switch to, set := l.variable("RABBITMQ_LOGS"); {
	case !set || to == "-" || to == "-stdout":
	case to == "-stderr":
		l.chooseVariable("RABBITMQ_LOGS", "log-stderr", "true")
	default:
		l.chooseVariable("RABBITMQ_LOGS", "log-file", to)
	}
	words, _ := l.variable("RABBITMQ_LOG")
	for word := range strings.SplitSeq(words, ",") {
		if err := l.chooseLogWord(strings.TrimSpace(word)); err != nil {
			return fmt.Errorf("RABBITMQ_LOG=%q: %w", words, err)
		}
	}
	return nil
}

// chooseLogWord takes one word of RABBITMQ_LOG.
func (l *loader) chooseLogWord(word string) error {
	const name = "RABBITMQ_LOG"
	switch word {
	case "":
		return nil
	case "+color":
		l.chooseVariable(name, "log-colors", "always")
		return nil
	case "-color":
		l.chooseVariable(name, "log-colors", "never")
		return nil
	case "+json":
		l.chooseVariable(name, "log-format", "json")
		return nil
	case "-json":
		l.chooseVariable(name, "log-format", "console")
		return nil
	}
	category, level, isCategory := strings.Cut(word, "=")
	if !isCategory {
		level = word
	}
	level, err := levelWord("", level)
	if err != nil {
		return err
	}
	if !isCategory {
		l.chooseVariable(name, "log-level", level)
		l.chooseVariable(name, "log-file-level", level)
		return nil
	}
	if !slices.Contains(Categories(), category) { // RabbitMQ 4.0 takes any
		l.note(name + ": there is no category " + category + "; its level has no effect")
		return nil
	}
	l.chooseVariable(name, "log-levels", addWord(l.chosen["log-levels"].text, category+"="+level))
	return nil
}

// chooseErlangArguments takes the settings that compose files pass to Erlang:
// -rabbit KEY VALUE and -rabbitmq_management KEY VALUE, as advanced.config has
// them. All others mean the Erlang machine.
func (l *loader) chooseErlangArguments() {
	const name = "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS"
	text, set := l.variable(name)
	if !set {
		return
	}
	var entries []entry
	words := strings.Fields(text)
	for i := 0; i+2 < len(words); i++ {
		prefix, ours := applications()[strings.TrimPrefix(words[i], "-")]
		if !ours || words[i][0] != '-' {
			continue
		}
		key, value := words[i+1], erlArgument(words[i+2])
		i += 2
		lines, err := confLines(prefix, key, value)
		if err != nil {
			l.note(name + ": " + key + " is accepted and has no effect; set it in the configuration file")
			continue
		}
		for _, line := range lines {
			entries = append(entries, entry{key: line[0], value: line[1], file: name})
		}
	}
	// They win over the files: nothing is added to what those say.
	for _, e := range entries {
		for _, k := range keys() {
			if _, ok := match(k.pattern, e.key); ok {
				delete(l.chosen, k.setting)
			}
		}
	}
	l.chooseEntries(entries)
}

// erlArgument is the term that a word on Erlang's command line stands for, with
// what is left of the quotes that shells want.
func erlArgument(word string) erlTerm {
	bare := strings.Trim(word, "\\'")
	t, err := parseErlang(bare)
	if err != nil || t.kind == erlAtom && strings.Contains(bare, ".") {
		return erlTerm{kind: erlText, text: strings.Trim(word, `"'<>\`)}
	}
	return t
}
