package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/config"
)

func TestLogFile(t *testing.T) {
	cfg := config.Default()
	cfg.LogQuiet = true
	cfg.LogDir, cfg.LogFile = t.TempDir(), filepath.Join("sub", "leveret.log")
	cfg.LogFileLevel, cfg.LogFileFormat = config.Warn, config.JSON
	for _, line := range []string{"first", "second"} { // a second start appends
		log, err := newLogger(cfg)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("too unimportant")
		log.Warn(line)
	}
	b, err := os.ReadFile(filepath.Join(cfg.LogDir, cfg.LogFile))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"msg":"first"`) || !strings.Contains(lines[1], `"msg":"second"`) {
		t.Errorf("the file has %q, want the two warnings as JSON", lines)
	}
}

func TestLogFileThatCannotBeOpened(t *testing.T) {
	cfg := config.Default()
	cfg.LogFile = "/dev/null/leveret.log"
	if _, err := newLogger(cfg); err == nil || !strings.Contains(err.Error(), "log.file") {
		t.Errorf("error %v, want one that names log.file", err)
	}
}
