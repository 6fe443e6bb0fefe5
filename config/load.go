package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Load fills a Config: flags win over environment variables, and those over
// the defaults. flags holds the flags that were given, by name, as text; env
// is like os.LookupEnv. An empty variable counts as not set. The error names
// the flag or variable that is wrong and says what it should be.
func Load(flags map[string]string, env func(string) (string, bool)) (Config, error) {
	c := Default()
	c.ManagementListen = DefaultManagementListen
	for _, s := range Settings() {
		if text, given := flags[s.Name]; given {
			if err := s.set(&c, text); err != nil {
				return c, fmt.Errorf("--%s %q: %w", s.Name, text, err)
			}
			continue
		}
		if text, given := env(s.Env()); given && text != "" {
			if err := s.set(&c, text); err != nil {
				return c, fmt.Errorf("%s=%q: %w", s.Env(), text, err)
			}
		}
	}
	if c.DataDir != "" || c.InMemory {
		return c, nil
	}
	var err error
	c.DataDir, err = DefaultDataDir(env)
	return c, err
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
