package config

import (
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// environment makes a lookup function of a few variables.
func environment(pairs map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := pairs[name]
		return v, ok
	}
}

func TestFlagWinsOverEnvironmentOverDefault(t *testing.T) {
	c, err := Load(
		map[string]string{"listen": "127.0.0.1:1"},
		environment(map[string]string{
			"LEVERET_LISTEN":     "127.0.0.1:2",
			"LEVERET_DATA_DIR":   "d",
			"LEVERET_LOG_LEVEL":  "debug",
			"LEVERET_LOG_FORMAT": "", // empty is not set
		}))
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:1" {
		t.Errorf("Listen = %s, want the flag's 127.0.0.1:1", c.Listen)
	}
	if c.LogLevel != Debug {
		t.Errorf("LogLevel = %s, want the variable's debug", c.LogLevel)
	}
	if c.LogFormat != Console {
		t.Errorf("LogFormat = %s, want the default console", c.LogFormat)
	}
}

func TestDefaults(t *testing.T) {
	c, err := Load(nil, environment(map[string]string{"LEVERET_IN_MEMORY": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.InMemory = true
	want.ManagementListen, want.PrometheusListen = "127.0.0.1:15672", "127.0.0.1:15692"
	if !reflect.DeepEqual(c, want) {
		t.Errorf("Load = %+v, want %+v", c, want)
	}
}

func TestTinyProfileCollectsGarbageSooner(t *testing.T) {
	for _, tt := range []struct {
		flags map[string]string
		want  int64
	}{
		{map[string]string{"in-memory": "true"}, 48 << 20},
		{map[string]string{"in-memory": "true", "profile": "tiny"}, 8 << 20},
		{map[string]string{"in-memory": "true", "profile": "tiny", "gc-headroom": "1MiB"}, 1 << 20},
	} {
		c, err := Load(tt.flags, environment(nil))
		if err != nil || c.GCHeadroom != tt.want {
			t.Errorf("%v: GCHeadroom = %d, %v, want %d", tt.flags, c.GCHeadroom, err, tt.want)
		}
	}
}

// Every default shown is what Load starts from, unless it is words.
func TestShownDefaultsAreTheDefaults(t *testing.T) {
	c := Default()
	c.ManagementListen, c.PrometheusListen = DefaultManagementListen, DefaultPrometheusListen
	for _, s := range allSettings() {
		if s.Default == "" || s.show != nil {
			continue
		}
		before := c
		if err := s.set(&c, s.Default); err != nil {
			t.Errorf("%s: default %q: %v", s.Name, s.Default, err)
		}
		if !reflect.DeepEqual(c, before) {
			t.Errorf("%s: default %q is not the one that is used", s.Name, s.Default)
		}
	}
}

func TestWrongValuesAreNamed(t *testing.T) {
	for _, tt := range []struct {
		flag, value, want string
	}{
		{"listen", "5672", `--listen "5672": want host:port, as in 127.0.0.1:5672`},
		{"listen", "localhost:amqp", `--listen "localhost:amqp": the port must be a number from 0 to 65535`},
		{"listen", ":70000", `--listen ":70000": the port must be a number from 0 to 65535`},
		{"data-dir", "", `--data-dir "": it must not be empty`},
		{"in-memory", "maybe", `--in-memory "maybe": want true or false`},
		{"durability", "safe", `--durability "safe": want one of [synced relaxed]`},
		{"memory-limit", "much", `--memory-limit "much": want a size such as 512MiB, 2GB or a number of bytes`},
	} {
		_, err := Load(map[string]string{tt.flag: tt.value}, environment(nil))
		if err == nil || err.Error() != tt.want {
			t.Errorf("--%s %q: error %v, want %s", tt.flag, tt.value, err, tt.want)
		}
	}
	_, err := Load(nil, environment(map[string]string{"LEVERET_LOG_LEVEL": "loud"}))
	if want := `LEVERET_LOG_LEVEL="loud": want one of [debug info warn error critical]`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Profiles show what is in memory, and need no password.
func TestProfilesAreForThisMachineOnly(t *testing.T) {
	for _, tt := range []struct {
		address, remote string
		ok              bool
	}{
		{"127.0.0.1:6060", "", true},
		{"127.8.8.8:0", "", true},
		{"[::1]:6060", "", true},
		{"localhost:6060", "", true},
		{"off", "", true},
		{":6060", "", false},
		{"0.0.0.0:6060", "", false},
		{"10.0.0.1:6060", "", false},
		{"profiles.example:6060", "", false},
		{"10.0.0.1:6060", "false", false},
		{"10.0.0.1:6060", "true", true},
	} {
		env := environment(map[string]string{"LEVERET_IN_MEMORY": "1", "LEVERET_PPROF_LISTEN": tt.address, "LEVERET_PPROF_REMOTE": tt.remote})
		_, err := Load(nil, env)
		if (err == nil) != tt.ok {
			t.Errorf("profiles on %s, remote %q: error %v, want one: %v", tt.address, tt.remote, err, !tt.ok)
		}
		if err != nil && !strings.Contains(err.Error(), "pprof.remote") {
			t.Errorf("profiles on %s: error %v, want one that names pprof.remote", tt.address, err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
	}{
		{"1", 1}, {"100 MB", 100_000_000}, {"2GB", 2_000_000_000}, {"1GiB", 1 << 30}, {"512mib", 512 << 20}, {"4k", 4096},
		{"", 0}, {"-1", 0}, {"0", 0}, {"1.5GB", 0}, {"12parsecs", 0}, {"GB", 0}, {"9000000TB", 0},
	} {
		got, err := parseSize(tt.text)
		if got != tt.want || (err == nil) != (tt.want > 0) {
			t.Errorf("parseSize(%q) = %d, %v, want %d", tt.text, got, err, tt.want)
		}
	}
}

func TestDefaultDataDir(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Setenv("HOME", "/home/u")
	}
	dir, err := DefaultDataDir(environment(map[string]string{"XDG_DATA_HOME": t.TempDir()}))
	if err != nil || filepath.Base(dir) != "leveret" {
		t.Errorf("DefaultDataDir = %s, %v, want a folder called leveret", dir, err)
	}
	t.Setenv("HOME", "")
	_, err = DefaultDataDir(environment(map[string]string{"XDG_DATA_HOME": "relative"}))
	if err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("without a home folder: error %v, want one that names --data-dir", err)
	}
}
