package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Load fills a Config. Flags win over variables that start with LEVERET_, those
// over RabbitMQ's, those over the files, and those over the defaults. flags
// holds the flags that were given, by name, as text; env is like os.LookupEnv.
// An empty variable counts as not set. The error names the flag, the variable,
// or the file, line and key that is wrong, and says what it should be; it has a
// line for each, as all are looked at.
func Load(flags map[string]string, env func(string) (string, bool)) (Config, error) {
	l := load(flags, env)
	return l.config, errors.Join(l.errs...)
}

// A Value is one setting as it is in force.
type Value struct {
	Name   string // of the flag, or what follows LEVERET_ in small letters
	Value  string // hidden if it is a secret
	Origin string // default, a flag, a variable, or file, line and key
}

// Effective loads like Load and lists every setting with where it came from, as
// far as it is right.
func Effective(flags map[string]string, env func(string) (string, bool)) ([]Value, Config, error) {
	l := load(flags, env)
	var values []Value
	for _, s := range allSettings() {
		v := Value{Name: s.Name, Value: s.Default, Origin: "default"}
		c, given := l.chosen[s.Name]
		switch {
		case given:
			v.Value, v.Origin = c.text, c.origin
		case s.show != nil:
			v.Value = s.show(&l.config)
		}
		v.Value = s.shown(v.Value)
		values = append(values, v)
	}
	return values, l.config, errors.Join(l.errs...)
}

// Text prints settings, a line each, with where they come from.
func Text(values []Value) string {
	var b strings.Builder
	for _, v := range values {
		value := strings.ReplaceAll(v.Value, "\n", " ")
		fmt.Fprintf(&b, "%s\n", strings.TrimRight(v.Name+" = "+value, " ")+"  # "+v.Origin)
	}
	return b.String()
}

// A choice is the text that won for one setting.
type choice struct {
	text   string
	origin string // for Effective
	label  string // for errors: what was written, and where
}

// A loader gathers what was configured. One goroutine uses it.
type loader struct {
	flags   map[string]string
	env     func(string) (string, bool)
	dataDir string // from flag or environment; "" in memory
	confDir string // where there is no main file
	chosen  map[string]choice
	config  Config
	errs    []error // all that is wrong
	// oldHTTPS says that the older keys of the HTTP API mean TLS (RabbitMQ 4.0:
	// management.listener.ssl).
	oldHTTPS bool
	// passphrase and encryption are those of encrypted values; "" is none.
	passphrase string
	encryption Encryption
}

func load(flags map[string]string, env func(string) (string, bool)) *loader {
	l := &loader{flags: flags, env: env, chosen: map[string]choice{}, config: Default()}
	l.config.ManagementListen, l.config.PrometheusListen = DefaultManagementListen, DefaultPrometheusListen
	l.fail(l.findDataDir())
	l.fail(l.loadFiles())
	l.chooseRabbitMQ()
	l.chooseOwn()
	for _, s := range allSettings() {
		c, given := l.chosen[s.Name]
		if !given {
			continue
		}
		if err := s.set(&l.config, c.text); err != nil {
			l.fail(fmt.Errorf("%s: %w", c.label, err))
		}
	}
	if len(l.errs) == 0 { // what is wrong already would be wrong again
		l.fail(l.finish())
	}
	return l
}

// fail keeps an error; nil is none.
func (l *loader) fail(err error) {
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// note keeps a remark for the log.
func (l *loader) note(text string) { l.config.Notes = append(l.config.Notes, text) }

// variable is an environment variable that is set and not empty.
func (l *loader) variable(name string) (string, bool) {
	text, set := l.env(name)
	return text, set && text != ""
}

// first is a flag, or else a variable.
func (l *loader) first(flag, variable string) (string, bool) {
	if text, given := l.flags[flag]; given {
		return text, true
	}
	return l.variable(variable)
}

// findDataDir finds the data folder before the files are read, as one of them
// may be in it. A file cannot name it.
func (l *loader) findDataDir() error {
	if text, given := l.first("in-memory", "LEVERET_IN_MEMORY"); given {
		var on bool
		if setSwitch(&on, text) == nil && on { // what is wrong is told later
			return nil
		}
	}
	dir, given := l.first("data-dir", "LEVERET_DATA_DIR")
	if !given {
		dir, _, given = l.mnesiaDir()
	}
	if !given {
		var err error
		if dir, err = DefaultDataDir(l.env); err != nil {
			return err
		}
	}
	l.dataDir, l.config.DataDir = dir, dir
	return nil
}

// loadFiles reads the files and takes over what they choose.
func (l *loader) loadFiles() error {
	files, err := l.findFiles()
	if err != nil {
		return err
	}
	l.config.Files = files
	var entries []entry
	for _, name := range files {
		more, err := parseFile(name, l.env)
		l.fail(err)
		entries = append(entries, more...)
	}
	l.chooseEntries(append(entries, l.readAdvanced(l.advancedFile())...))
	return nil
}

// chooseOwn takes LEVERET_ variables and, over them, flags.
func (l *loader) chooseOwn() {
	for _, s := range allSettings() {
		if text, given := l.flags[s.Name]; given {
			l.chosen[s.Name] = choice{text: text, origin: "--" + s.Name, label: fmt.Sprintf("--%s %q", s.Name, s.shown(text))}
			continue
		}
		if text, given := l.variable(s.Env()); given {
			l.chosen[s.Name] = choice{text: text, origin: s.Env(), label: fmt.Sprintf("%s=%q", s.Env(), s.shown(text))}
		}
	}
}

// shown is a value as messages may have it.
func (s Setting) shown(text string) string {
	switch {
	case s.Secret && text != "":
		return "(hidden)"
	case s.Secrets != nil:
		return s.Secrets(text)
	}
	return text
}

// finish fills in what follows from several settings together, and refuses
// those that cannot go together.
func (l *loader) finish() error {
	c := &l.config
	if c.LogFile != "" && c.LogDir != "" && !filepath.IsAbs(c.LogFile) {
		c.LogFile = filepath.Join(c.LogDir, c.LogFile)
	}
	if _, given := l.chosen["tls-listen"]; !given && c.TLS.Cert != "" {
		c.TLSListen = net.JoinHostPort(l.host(), "5671")
		l.chosen["tls-listen"] = choice{text: c.TLSListen, origin: "default with a certificate"}
	}
	if _, given := l.chosen["management-listen"]; !given && c.ManagementTLSListen != "" {
		c.ManagementListen = "" // RabbitMQ 4.0: with HTTPS alone configured there is no HTTP
		l.chosen["management-listen"] = choice{text: "off", origin: "default with HTTPS"}
	}
	if _, given := l.chosen["prometheus-listen"]; !given && c.PrometheusTLSListen != "" {
		c.PrometheusListen = "" // RabbitMQ 4.0: as for the HTTP API
		l.chosen["prometheus-listen"] = choice{text: "off", origin: "default with HTTPS"}
	}
	if origin := l.chosen["data-dir"].origin; c.PidFile == "" && strings.HasPrefix(origin, "RABBITMQ_MNESIA_") && !c.InMemory {
		c.PidFile = c.DataDir + ".pid" // RabbitMQ 4.0: RABBITMQ_PID_FILE
		l.chosen["pid-file"] = choice{text: c.PidFile, origin: "default with " + origin}
	}
	if m, given := l.chosen["memory-limit"]; given && c.MemoryLimit > c.MemoryAvailable {
		l.note(fmt.Sprintf("memory-limit (%s) is %d bytes and there are %d: publishers are not stopped before the memory runs out; 0.6 or 60%% of it is usual",
			m.origin, c.MemoryLimit, c.MemoryAvailable))
	}
	l.matchAnonymous()
	for _, t := range []*TLS{&c.TLS, &c.ManagementTLS, &c.PrometheusTLS} {
		l.fail(l.checkCiphers(t))
	}
	if c.ManagementTLS.Cert == "" && c.ManagementTLS.Key == "" {
		c.ManagementTLS.Cert, c.ManagementTLS.Key, c.ManagementTLS.KeyPassword = c.TLS.Cert, c.TLS.Key, c.TLS.KeyPassword
	}
	if c.PrometheusTLS.Cert == "" && c.PrometheusTLS.Key == "" {
		c.PrometheusTLS.Cert, c.PrometheusTLS.Key, c.PrometheusTLS.KeyPassword = c.TLS.Cert, c.TLS.Key, c.TLS.KeyPassword
	}
	return errors.Join(
		c.checkPprof(),
		c.TLS.check(c.TLSListen != "", "AMQP", "ssl_options", "tls"),
		c.ManagementTLS.check(c.ManagementTLSListen != "", "the HTTP API", "management.ssl", "management-tls"),
		c.PrometheusTLS.check(c.PrometheusTLSListen != "", "the metrics", "prometheus.ssl", "prometheus-tls"))
}

// matchAnonymous makes what was said of anonymous logins whole: who names the
// mechanism gets the user guest, who names the user gets the mechanism, as both
// are defaults of RabbitMQ 4.0.
func (l *loader) matchAnonymous() {
	a := &l.config.Auth
	_, user := l.chosen["anonymous-login-user"]
	_, mechanisms := l.chosen["auth-mechanisms"]
	offered := slices.Contains(a.Mechanisms, "ANONYMOUS")
	switch {
	case offered && !user:
		a.AnonymousUser = "guest"
		l.chosen["anonymous-login-user"] = choice{text: "guest", origin: "default with ANONYMOUS"}
	case a.AnonymousUser != "" && !mechanisms:
		a.Mechanisms = append(a.Mechanisms, "ANONYMOUS")
		l.chosen["auth-mechanisms"] = choice{text: strings.Join(a.Mechanisms, ","), origin: "default with anonymous-login-user"}
	}
}

// host is the host of the first plain listener, for those that follow it.
func (l *loader) host() string {
	for _, address := range Addresses(l.config.Listen) {
		if host, _, err := net.SplitHostPort(address); err == nil {
			return host
		}
	}
	return ""
}

// checkPprof refuses to show profiles to other machines unless that was asked
// for: whoever can read them sees what is in memory, and can slow the broker down.
func (c *Config) checkPprof() error {
	if c.PprofListen == "" || c.PprofRemote {
		return nil
	}
	host, _, err := net.SplitHostPort(c.PprofListen)
	if err != nil {
		return fmt.Errorf("address of the profiles: %w", err)
	}
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.Unmap().IsLoopback() {
		return nil
	}
	return fmt.Errorf("pprof.listen = %s would show profiles to other machines, without a password: "+
		"use 127.0.0.1 and a tunnel, or set pprof.remote = true (LEVERET_PPROF_REMOTE) as well", c.PprofListen)
}

// check refuses a certificate that cannot work. The key and flag say how it is
// called in files and in variables.
func (t TLS) check(used bool, of, key, flag string) error {
	if !used {
		return nil
	}
	variable := Setting{Name: flag}.Env()
	switch {
	case t.Cert == "" || t.Key == "":
		return fmt.Errorf("TLS for %s needs a certificate and its key: set %s.certfile and %s.keyfile (%s_CERT, %s_KEY)", of, key, key, variable, variable)
	case t.VerifyPeer && t.CACert == "":
		return fmt.Errorf("TLS for %s is to verify the certificates of clients: set %s.cacertfile (%s_CA) to those that sign them", of, key, variable)
	case t.RequirePeer && !t.VerifyPeer:
		return fmt.Errorf("TLS for %s is to refuse clients without a certificate, but not to verify it: set %s.verify = verify_peer (%s_VERIFY) too", of, key, variable)
	}
	return nil
}

// DefaultDataDir is the per-user folder for data that is not to be lost:
// leveret below $XDG_DATA_HOME or ~/.local/share, below ~/Library/Application
// Support on macOS, below %LocalAppData% on Windows.
func DefaultDataDir(env func(string) (string, bool)) (string, error) {
	if dir, ok := env("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "leveret"), nil
	}
	if dir, ok := env("LocalAppData"); ok && runtime.GOOS == "windows" {
		return filepath.Join(dir, "leveret"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("no home folder to keep the data in: name a folder with --data-dir or LEVERET_DATA_DIR")
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "leveret"), nil
	}
	return filepath.Join(home, ".local", "share", "leveret"), nil
}
