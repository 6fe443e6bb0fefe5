package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// installed is a machine's "/" with the files of the package.
func installed(t *testing.T) string {
	t.Helper()
	root := shortDir(t)
	for name, text := range map[string]string{
		serviceConfig:  "heartbeat = 7\n",
		serviceDefault: "# comment\nLEVERET_LOG_LEVEL=debug\nLEVERET_HEARTBEET=5s\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, serviceDataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

// variables is an environment; users have folders in home.
func variables(home string, pairs ...string) func(string) (string, bool) {
	set := map[string]string{"XDG_DATA_HOME": home, "LocalAppData": home, "HOME": home}
	for _, pair := range pairs {
		name, v, _ := strings.Cut(pair, "=")
		set[name] = v
	}
	return func(name string) (string, bool) { v, ok := set[name]; return v, ok }
}

// startIn starts a broker with this data folder until the test ends.
func startIn(t *testing.T, dir string) {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.DataDir, cfg.Profile = "127.0.0.1:0", dir, config.Tiny
	b := broker.New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

func TestConfigurationOfTheService(t *testing.T) {
	root := installed(t)
	env := variables(shortDir(t))
	s := findService(root, nil, env)
	_, cfg, err := config.Effective(map[string]string{"frame-max": "8192"}, s.environment(env))
	if err != nil || cfg.DataDir != filepath.Join(root, serviceDataDir) || !slices.Equal(cfg.Files, []string{filepath.Join(root, serviceConfig)}) ||
		cfg.Limits.Heartbeat.Seconds() != 7 || cfg.LogLevel != config.Debug || cfg.Limits.FrameMax != 8192 {
		t.Errorf("error %v, data in %s, files %q, heartbeat %v, level %v, frames %d", err, cfg.DataDir, cfg.Files, cfg.Limits.Heartbeat, cfg.LogLevel, cfg.Limits.FrameMax)
	}
	if remarks := config.Misspelt(s.pairs()); len(remarks) != 1 || !strings.Contains(remarks[0], "LEVERET_HEARTBEAT") {
		t.Errorf("misspelt: %q", remarks)
	}
}

// The service is for who names nothing else.
func TestOtherBrokersThanTheService(t *testing.T) {
	root, home := installed(t), shortDir(t)
	for _, tt := range []struct {
		name  string
		root  string
		flags map[string]string
		env   string
	}{
		{"no package", t.TempDir(), nil, ""},
		{"a folder", root, map[string]string{"data-dir": "/d"}, ""},
		{"a file", root, map[string]string{"config": "none"}, ""},
		{"in memory", root, nil, "LEVERET_IN_MEMORY=true"},
		{"a folder in the environment", root, nil, "LEVERET_DATA_DIR=/d"},
		{"RabbitMQ's folder in the environment", root, nil, "RABBITMQ_MNESIA_BASE=/d"},
		{"a file in the environment", root, nil, "LEVERET_CONFIG_FILE=/f"},
	} {
		if s := findService(tt.root, tt.flags, variables(home, tt.env)); s != nil {
			t.Errorf("%s: %v", tt.name, s)
		}
	}
	startIn(t, filepath.Join(home, "leveret"))
	if s := findService(root, nil, variables(home)); s != nil {
		t.Errorf("with a broker of the user: %v", s)
	}
}

func TestSocketOfTheService(t *testing.T) {
	root, home := installed(t), shortDir(t)
	env := variables(home)
	if path, _ := serviceSocket(root, env); path != "" {
		t.Errorf("no broker runs, and there is %s", path)
	}
	startIn(t, filepath.Join(root, serviceDataDir))
	if path, s := serviceSocket(root, env); path != filepath.Join(root, serviceDataDir, broker.AdminSocket) || s.dataDir() != filepath.Dir(path) {
		t.Errorf("the socket is %q of %v", path, s)
	}
	if path, _ := serviceSocket(root, variables(home, "LEVERET_MANAGEMENT_LISTEN=off")); path == "" {
		t.Error("no socket without an address of an HTTP API")
	}
	if path, _ := serviceSocket(root, variables(home, "LEVERET_MANAGEMENT_LISTEN=127.0.0.1:1")); path != "" {
		t.Errorf("the socket is %q where the environment has an address", path)
	}
}

func FuzzReadVariables(f *testing.F) {
	f.Add("# LEVERET_A=1\n; B=2\nC = 3\n =4\nD\n", "LEVERET_LISTEN", `:5672 "x" 'y'`)
	f.Fuzz(func(t *testing.T, before, name, v string) {
		if name == "" || strings.TrimSpace(name) != name || strings.ContainsAny(name, "=#; \t\n") || strings.Contains(v, "\n") {
			return
		}
		for _, quote := range []string{`"`, "'"} {
			if got := readVariables(before + "\n" + name + "=" + quote + v + quote + "\r\n")[name]; got != v {
				t.Errorf("%q in %s is %q, want %q", name, quote, got, v)
			}
		}
	})
}
