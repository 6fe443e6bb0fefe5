package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

// pluginListeners are the listeners that RabbitMQ's plug-ins open.
func pluginListeners() map[string][]string {
	return map[string][]string{
		"management-listen": {"rabbitmq_management"}, "management-tls-listen": {"rabbitmq_management"},
		"prometheus-listen": {"rabbitmq_prometheus"}, "prometheus-tls-listen": {"rabbitmq_prometheus"},
	}
}

// needManagement are plug-ins that enable rabbitmq_management with them.
func needManagement() []string {
	return []string{"rabbitmq_federation_management", "rabbitmq_shovel_management", "rabbitmq_stream_management", "rabbitmq_top", "rabbitmq_tracing"}
}

// missingPlugins are those whose protocol or login is not there: clients would
// wait for them in vain.
func missingPlugins() []string {
	return []string{
		"rabbitmq_auth_backend_http", "rabbitmq_auth_backend_ldap", "rabbitmq_auth_backend_oauth2", "rabbitmq_federation", "rabbitmq_mqtt",
		"rabbitmq_shovel", "rabbitmq_stomp", "rabbitmq_stream", "rabbitmq_tracing", "rabbitmq_trust_store", "rabbitmq_web_mqtt", "rabbitmq_web_stomp",
	}
}

// choosePlugins takes RabbitMQ's list of plug-ins. What it does not have among the
// HTTP API and the metrics is off, whatever the files say of their addresses, as
// in RabbitMQ; what it has beyond them is told in the log.
func (l *loader) choosePlugins() error {
	plugins, variable, err := l.plugins()
	if err != nil || plugins == nil {
		return err
	}
	if slices.ContainsFunc(plugins, func(p string) bool { return slices.Contains(needManagement(), p) }) {
		plugins = append(plugins, "rabbitmq_management")
	}
	for setting, needs := range pluginListeners() {
		if !slices.Contains(plugins, needs[0]) {
			l.chosen[setting] = choice{text: "off", origin: variable + " without " + needs[0], label: variable}
		}
	}
	for _, p := range plugins {
		if slices.Contains(missingPlugins(), p) {
			l.note(variable + ": " + p + " has no effect: what it does is not there")
		}
	}
	return nil
}

// plugins is the list and the variable it comes from; nil if all that is there is
// to be on.
func (l *loader) plugins() (list []string, variable string, err error) {
	variable = "RABBITMQ_ENABLED_PLUGINS"
	if text, set := l.variable(variable); set {
		if text == "ALL" {
			return nil, variable, nil
		}
		list, err = pluginNames(text)
		return list, variable, labelled(variable, err)
	}
	variable = "RABBITMQ_ENABLED_PLUGINS_FILE"
	name, set := l.variable(variable)
	if !set {
		return nil, variable, nil
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		l.note(variable + ": there is no file " + name + "; the HTTP API and the metrics are on")
		return nil, variable, nil
	}
	if err != nil {
		return nil, variable, labelled(variable, err)
	}
	list, err = pluginFile(string(b))
	return list, variable, labelled(variable+"="+name, err)
}

// labelled says where an error comes from.
func labelled(label string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", label, err)
}

var (
	pluginName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	erlComment = regexp.MustCompile(`(?m)%.*$`)
)

// pluginFile reads an Erlang list of names, such as
// [rabbitmq_management,rabbitmq_prometheus].
func pluginFile(text string) ([]string, error) {
	text = strings.TrimSpace(erlComment.ReplaceAllString(text, ""))
	inner, begins := strings.CutPrefix(text, "[")
	inner, ends := strings.CutSuffix(strings.TrimSpace(strings.TrimSuffix(inner, ".")), "]")
	if !begins || !ends || !strings.HasSuffix(text, ".") {
		return nil, errors.New("want a list such as [rabbitmq_management,rabbitmq_prometheus]. with a full stop")
	}
	return pluginNames(inner)
}

// pluginNames cuts names with commas in between. The list is not nil.
func pluginNames(text string) ([]string, error) {
	names := []string{}
	for name := range strings.SplitSeq(text, ",") {
		name = strings.Trim(strings.TrimSpace(name), "'")
		switch {
		case name == "" && strings.TrimSpace(text) == "":
		case !pluginName.MatchString(name):
			return nil, errors.New("want names of plug-ins with commas in between, such as rabbitmq_management,rabbitmq_prometheus")
		default:
			names = append(names, name)
		}
	}
	return names, nil
}
