package main

import (
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The files and the user of the package's service, as packaging/leveret.service has
// them.
const (
	serviceDataDir = "var/lib/leveret"
	serviceConfig  = "etc/leveret/leveret.conf"
	serviceDefault = "etc/default/leveret"
	serviceUser    = "leveret"
)

// brokerFlags and brokerVariables are the settings that say which broker is meant.
var (
	brokerFlags     = []string{"data-dir", "in-memory", "config"}
	brokerVariables = []string{
		"LEVERET_DATA_DIR", "LEVERET_IN_MEMORY", "LEVERET_CONFIG_FILE", "RABBITMQ_CONFIG_FILE", "RABBITMQ_MNESIA_DIR", "RABBITMQ_MNESIA_BASE",
	}
)

// A service is the environment of the broker that the package runs; nil is none.
type service map[string]string

// findService is the service of this machine, for a command that names no other
// broker, by a flag or a variable or as its user has one that runs. It is nil for
// who may not read the service's configuration: others than root ask the HTTP API.
// root is "/".
func findService(root string, flags map[string]string, env func(string) (string, bool)) service {
	for _, name := range brokerFlags {
		if _, given := flags[name]; given {
			return nil
		}
	}
	for _, name := range brokerVariables {
		if v, _ := env(name); v != "" {
			return nil
		}
	}
	dir, file := filepath.Join(root, serviceDataDir), filepath.Join(root, serviceConfig)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	if _, err := os.ReadFile(file); err != nil {
		return nil
	}
	if adminSocket("", env) != "" {
		return nil
	}
	s := service{"LEVERET_DATA_DIR": dir, "LEVERET_CONFIG_FILE": file}
	text, err := os.ReadFile(filepath.Join(root, serviceDefault))
	if err == nil { // else it has none: the unit goes without, too
		maps.Copy(s, readVariables(string(text)))
	}
	return s
}

// serviceSocket is the socket of this machine's service, "" if there is none that
// answers, or if the environment has the address of a broker.
func serviceSocket(root string, env func(string) (string, bool)) (path string, s service) {
	if listen, _ := env("LEVERET_MANAGEMENT_LISTEN"); listen != "" && listen != "off" {
		return "", nil
	}
	if s = findService(root, nil, env); s == nil {
		return "", nil
	}
	if path = adminSocket(s.dataDir(), env); path == "" {
		return "", nil
	}
	return path, s
}

// environment is env with the service's variables below it.
func (s service) environment(env func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := env(name); ok && v != "" {
			return v, true
		}
		v, ok := s[name]
		return v, ok
	}
}

// pairs are the variables as os.Environ has them.
func (s service) pairs() []string {
	var list []string
	for name, v := range s {
		list = append(list, name+"="+v)
	}
	slices.Sort(list)
	return list
}

// dataDir is the folder of the data.
func (s service) dataDir() string { return s["LEVERET_DATA_DIR"] }

// readVariables reads the lines NAME=VALUE of a systemd EnvironmentFile, with or
// without quotes. What it cannot read it passes over, as systemd does.
func readVariables(text string) map[string]string {
	variables := map[string]string{}
	for line := range strings.Lines(text) {
		name, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || name == "" || strings.ContainsAny(name, "#; \t") {
			continue
		}
		if n := len(v); n > 1 && (v[0] == '"' || v[0] == '\'') && v[n-1] == v[0] {
			v = v[1 : n-1]
		}
		variables[name] = v
	}
	return variables
}

// remark says which broker it is.
func (s service) remark() string {
	return fmt.Sprintf("this is the service, with its data in %s; --data-dir and --config name others", s.dataDir())
}

// uid is the number of the service's user, otherwise if there is none.
func (s service) uid(otherwise int) int {
	u, err := user.Lookup(serviceUser)
	if err != nil {
		return otherwise
	}
	n, err := strconv.Atoi(u.Uid)
	if err != nil { // on Windows
		return otherwise
	}
	return n
}

// nameService tells people which broker it is, as nothing that they gave says so.
// RabbitMQ's tools print what they are known for.
func (s *session) nameService() {
	if s.api.service != nil && s.cmd.Root().Name() == "leveret" && !s.opts.quiet && !s.opts.silent && !machineReadable(s.opts.formatter) {
		s.warn("the broker of the service, with its data in %s:", s.api.service.dataDir())
	}
}
