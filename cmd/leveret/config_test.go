package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "r.conf")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func runConfigCheck(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append([]string{"leveret", "config", "check"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestConfigCheck(t *testing.T) {
	file := writeConfig(t, "heartbeat = 30\ndefault_pass = sesame\ncluster_formation.x = y\n")
	t.Setenv("LEVERET_CHANNEL_MAX", "7")
	code, out, errs := runConfigCheck(t, "--config", file, "--in-memory")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	for _, want := range []string{"# " + file + ":1 heartbeat", "# LEVERET_CHANNEL_MAX", "# --in-memory", "(hidden)", ":3: cluster_formation.x is accepted and has no effect"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "sesame") || strings.Contains(out, "frame-max") {
		t.Errorf("a password or a default is in\n%s", out)
	}
	if _, out, _ = runConfigCheck(t, "--config", file, "--in-memory", "--all"); !strings.Contains(out, "frame-max") {
		t.Errorf("with --all there are no defaults in\n%s", out)
	}
}

func TestConfigCheckOfAWrongOne(t *testing.T) {
	file := writeConfig(t, "hartbeat = 30\nframe_max = x\n")
	code, out, errs := runConfigCheck(t, "--config", file, "--in-memory", "--json")
	if code != exitConfig {
		t.Errorf("exit code %d, want %d", code, exitConfig)
	}
	for _, want := range []string{file + ":1: there is no setting hartbeat; did you mean heartbeat?", file + ":2: frame_max = x: want"} {
		if !strings.Contains(errs, want) {
			t.Errorf("%q is not in\n%s", want, errs)
		}
	}
	var c checked
	if err := json.Unmarshal([]byte(out), &c); err != nil || c.OK || len(c.Errors) != 2 || len(c.Settings) == 0 {
		t.Errorf("JSON %s: %v", out, err)
	}
}
