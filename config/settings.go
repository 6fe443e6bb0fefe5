package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// A Setting is one field of a Config as operators see it: a flag and an
// environment variable with the same meaning.
type Setting struct {
	// Name is the flag without its dashes.
	Name string
	// Usage is one line of help; a `word` in it names the value.
	Usage string
	// Default is the default as an operator would write it.
	Default string
	// Switch says that the value is true or false and the flag may stand
	// alone.
	Switch bool

	set func(c *Config, text string) error
}

// Env is the environment variable that means the same as the flag.
func (s Setting) Env() string {
	return "LEVERET_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Settings lists all settings in the order of the help, in which they also
// take effect: a profile comes before what it has a default of its own for.
func Settings() []Setting {
	return []Setting{
		{Name: "listen", Default: "127.0.0.1:5672", Usage: "`address` that AMQP clients connect to, host:port; port 0 takes a free one",
			set: func(c *Config, s string) error { return setAddress(&c.Listen, s) }},
		{Name: "data-dir", Default: "per-user data folder", Usage: "`folder` of everything that survives a restart",
			set: func(c *Config, s string) error { return setText(&c.DataDir, s) }},
		{Name: "in-memory", Default: "false", Switch: true, Usage: "write nothing to disk; everything is gone after a stop",
			set: func(c *Config, s string) error { return setSwitch(&c.InMemory, s) }},
		{Name: "durability", Default: "synced", Usage: "what a confirm promises, `synced or relaxed`: survives a power cut, or only the death of the process",
			set: func(c *Config, s string) error { return setWord(&c.Durability, s, Synced, Relaxed) }},
		{Name: "profile", Default: "server", Usage: "what to be good at, `server or tiny`: throughput, or little memory and small files",
			set: setProfile},
		{Name: "disk-free-limit", Default: "by profile", Usage: "free `space` on the data folder's disk below which publishers are stopped, as in 2GB or 512MiB",
			set: func(c *Config, s string) error { return setSize(&c.DiskFreeLimit, s) }},
		{Name: "memory-limit", Default: "60 % of this machine's or container's", Usage: "`memory` the broker may take, as in 2GB or 512MiB",
			set: func(c *Config, s string) error { return setSize(&c.MemoryLimit, s) }},
		{Name: "queue-memory", Default: "32MiB", Usage: "`memory` that waiting messages may take; what exceeds it waits on disk (16MiB with the profile tiny)",
			set: func(c *Config, s string) error { return setSize(&c.QueueMemory, s) }},
		{Name: "gc-headroom", Default: "48MiB", Usage: "`memory` that the heap grows by before the garbage collector runs (8MiB with the profile tiny)",
			set: func(c *Config, s string) error { return setSize(&c.GCHeadroom, s) }},
		{Name: "default-user", Default: "guest", Usage: "`name` of the administrator made when the data folder is empty",
			set: func(c *Config, s string) error { return setText(&c.DefaultUser, s) }},
		{Name: "default-pass", Default: "guest", Usage: "`password` of that administrator",
			set: func(c *Config, s string) error { return setText(&c.DefaultPass, s) }},
		{Name: "product-name", Default: "Leveret", Usage: "`name` that clients are told; some look for RabbitMQ",
			set: func(c *Config, s string) error { return setText(&c.ProductName, s) }},
		{Name: "management-listen", Default: DefaultManagementListen, Usage: "`address` of the HTTP API, or off",
			set: func(c *Config, s string) error { return setAddressOrOff(&c.ManagementListen, s) }},
		{Name: "prometheus-listen", Default: "off", Usage: "`address` of the Prometheus metrics (not served yet)",
			set: func(c *Config, s string) error { return setAddressOrOff(&c.PrometheusListen, s) }},
		{Name: "log-level", Default: "info", Usage: "least important `level` to log: debug, info, warn or error",
			set: func(c *Config, s string) error { return setWord(&c.LogLevel, s, Debug, Info, Warn, Error) }},
		{Name: "log-format", Default: "console", Usage: "`format` of the log: console or json",
			set: func(c *Config, s string) error { return setWord(&c.LogFormat, s, Console, JSON) }},
	}
}

// setAddress takes host:port. The host may be empty (all interfaces) or a
// name; whether it can be listened on is found out by listening.
func setAddress(to *string, text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return errors.New("want host:port, as in 127.0.0.1:5672")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New("the port must be a number from 0 to 65535")
	}
	*to = text
	return nil
}

// setAddressOrOff takes host:port, or the word off.
func setAddressOrOff(to *string, text string) error {
	if text == "off" {
		*to = ""
		return nil
	}
	return setAddress(to, text)
}

func setText(to *string, text string) error {
	if text == "" {
		return errors.New("it must not be empty")
	}
	*to = text
	return nil
}

func setSwitch(to *bool, text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("want true or false")
	}
	*to = on
	return nil
}

// setWord takes one of a few words.
func setWord[T ~string](to *T, text string, words ...T) error {
	if !slices.Contains(words, T(text)) {
		return fmt.Errorf("want one of %v", words)
	}
	*to = T(text)
	return nil
}

// setProfile takes a profile, and with it the garbage collector's pace and the
// memory of queues: on a small machine memory is worth more than the time to
// collect it and to read messages back.
func setProfile(c *Config, text string) error {
	if err := setWord(&c.Profile, text, Server, Tiny); err != nil {
		return err
	}
	if c.Profile == Tiny {
		c.GCHeadroom = 8 << 20
		c.QueueMemory = 16 << 20
	}
	return nil
}

// setSize takes a number of bytes with an optional unit.
func setSize(to *int64, text string) error {
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	*to = n
	return nil
}

// sizeUnits are the units of a size in lower case. RabbitMQ 4.0: kB, MB, GB
// and TB are powers of 1000; KiB, MiB, GiB and TiB, also as one letter or two,
// are powers of 1024.
var sizeUnits = map[string]int64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
}

// parseSize reads a positive size such as 512MiB, 2GB or 1000000.
func parseSize(text string) (int64, error) {
	bad := errors.New("want a size such as 512MiB, 2GB or a number of bytes")
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, known := sizeUnits[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n <= 0 || n > (1<<62)/unit {
		return 0, bad
	}
	return n * unit, nil
}
