package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A list of plug-ins turns off what RabbitMQ would not have started.
func TestListsOfPlugins(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"both":    "[rabbitmq_management,rabbitmq_prometheus].\n",
		"neither": "% nothing\n[ ].\n",
		"metrics": "[rabbitmq_mqtt, 'rabbitmq_prometheus'].",
		"r.conf":  "management.tcp.port = 15672\n",
	})
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, tt := range map[string]struct {
		variables           map[string]string
		management, metrics string
		notes               int
	}{
		"none":            {nil, ":15672", DefaultPrometheusListen, 0},
		"all":             {map[string]string{"RABBITMQ_ENABLED_PLUGINS": "ALL", "RABBITMQ_ENABLED_PLUGINS_FILE": in("neither")}, ":15672", DefaultPrometheusListen, 0},
		"variable":        {map[string]string{"RABBITMQ_ENABLED_PLUGINS": "rabbitmq_management,rabbitmq_shovel", "RABBITMQ_ENABLED_PLUGINS_FILE": in("metrics")}, ":15672", "", 1},
		"with management": {map[string]string{"RABBITMQ_ENABLED_PLUGINS": "rabbitmq_top"}, ":15672", "", 0},
		"both":            {map[string]string{"RABBITMQ_ENABLED_PLUGINS_FILE": in("both")}, ":15672", DefaultPrometheusListen, 0},
		"neither":         {map[string]string{"RABBITMQ_ENABLED_PLUGINS_FILE": in("neither")}, "", "", 0},
		"metrics":         {map[string]string{"RABBITMQ_ENABLED_PLUGINS_FILE": in("metrics")}, "", DefaultPrometheusListen, 1},
		"missing":         {map[string]string{"RABBITMQ_ENABLED_PLUGINS_FILE": in("no such file")}, ":15672", DefaultPrometheusListen, 1},
		"own wins":        {map[string]string{"RABBITMQ_ENABLED_PLUGINS_FILE": in("neither"), "LEVERET_MANAGEMENT_LISTEN": "127.0.0.1:1"}, "127.0.0.1:1", "", 0},
	} {
		c, err := Load(map[string]string{"in-memory": "true", "config": in("r.conf")}, environment(tt.variables))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.ManagementListen != tt.management || c.PrometheusListen != tt.metrics || len(c.Notes) != tt.notes {
			t.Errorf("%s: the HTTP API at %q, metrics at %q, notes %q; want %q, %q, %d notes", name, c.ManagementListen, c.PrometheusListen, c.Notes, tt.management, tt.metrics, tt.notes)
		}
	}
}

func TestWrongListsOfPlugins(t *testing.T) {
	for _, text := range []string{"", "rabbitmq_management", "[rabbitmq_management]", "[rabbitmq_management,].", "[a b].", "[Atom]."} {
		if names, err := pluginFile(text); err == nil || !strings.Contains(err.Error(), "rabbitmq_management") {
			t.Errorf("%q: %q, error %v; want an error that shows a list", text, names, err)
		}
	}
	_, err := loadText(t, "", map[string]string{"RABBITMQ_ENABLED_PLUGINS": "a;b"})
	if err == nil || !strings.Contains(err.Error(), "RABBITMQ_ENABLED_PLUGINS: ") {
		t.Errorf("error %v, want one that names the variable", err)
	}
}

// What is read can be written, and is read the same again.
func FuzzPluginFile(f *testing.F) {
	f.Add("[rabbitmq_management,rabbitmq_prometheus].\n")
	f.Add("%x\n['a'].")
	f.Fuzz(func(t *testing.T, text string) {
		names, err := pluginFile(text)
		if err != nil {
			return
		}
		again, err := pluginFile("[" + strings.Join(names, ",") + "].")
		if err != nil || !slices.Equal(names, again) {
			t.Errorf("%q is read as %q, and then as %q, error %v", text, names, again, err)
		}
	})
}
