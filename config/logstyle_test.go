package config

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLogStyleKeys(t *testing.T) {
	c, err := loadText(t, `log.console.formatter.single_line = on
log.console.formatter.plaintext.format = $time [$level] $pid $msg
log.file.formatter.json.field_map = time:ts level msg:message pid:- *:-
log.file.formatter.json.verbosity_map = debug:7 warning:4
log.connection.file = c.log
log.queue.file = /var/log/q.log
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := c.LogStyle; !s.SingleLine || s.Pattern != "$time [$level] $pid $msg" || s.Fields != nil || s.Verbosity != nil {
		t.Errorf("the console's style is %+v", s)
	}
	fields := []LogField{{"time", "ts"}, {"level", "level"}, {"msg", "message"}, {"pid", ""}, {"*", ""}}
	if s := c.LogFileStyle; s.SingleLine || s.Pattern != "" || !slices.Equal(s.Fields, fields) || !maps.Equal(s.Verbosity, map[string]int{"debug": 7, "warning": 4}) {
		t.Errorf("the file's style is %+v", s)
	}
	if want := map[string]string{"connection": "c.log", "queue": "/var/log/q.log"}; !maps.Equal(c.LogCategoryFiles, want) {
		t.Errorf("files of categories %v, want %v", c.LogCategoryFiles, want)
	}
	if len(c.Notes) > 0 {
		t.Errorf("notes %q, want none", c.Notes)
	}
}

func TestWrongLogStyles(t *testing.T) {
	for line, want := range map[string]string{
		"log.console.formatter.single_line = yes":               "true or false",
		"log.console.formatter.plaintext.format = $time [$lvl]": "$lvl",
		"log.console.formatter.plaintext.format = $time":        "$msg once",
		"log.file.formatter.plaintext.format = $msg $msg":       "$msg once",
		"log.console.formatter.json.field_map = a:":             "NAME:AS",
		"log.console.formatter.json.field_map = *:x":            "NAME:AS",
		"log.console.formatter.json.field_map = a:b a:c":        "a is there twice",
		"log.console.formatter.json.verbosity_map = loud:1":     "LEVEL:NUMBER",
		"log.console.formatter.json.verbosity_map = debug":      "LEVEL:NUMBER",
		"log.connection.file = a,b":                             "commas",
		"management.rates_mode = some":                          "basic, detailed or none",
		"collect_statistics_interval = 10":                      "100ms",
		"queue_types.stream.enabled = false":                    "every type of queue",
		"exchange_types.local_random.enabled = false":           "every type of exchange",
		"management.listener.ssl = true":                        "management.listener.port",
		"management.listener.ssl = maybe":                       "true or false",
	} {
		if _, err := loadText(t, line+"\n", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", line, err, want)
		}
	}
}

func TestStatisticsKeys(t *testing.T) {
	for text, want := range map[string]struct {
		interval time.Duration
		noRates  bool
		notes    int
	}{
		"": {0, false, 0},
		"collect_statistics_interval = 30000\nmanagement.rates_mode = none\n": {30 * time.Second, true, 0},
		"management.rates_mode = basic\n":                                     {0, false, 0},
		"management.rates_mode = detailed\n":                                  {0, false, 1},
		"queue_types.stream.enabled = true\n":                                 {0, false, 0},
	} {
		c, err := loadText(t, text, nil)
		if err != nil || c.HTTP.SampleInterval != want.interval || c.HTTP.NoRates != want.noRates || len(c.Notes) != want.notes {
			t.Errorf("%q: every %s, no rates %v, notes %q, error %v; want %+v", text, c.HTTP.SampleInterval, c.HTTP.NoRates, c.Notes, err, want)
		}
	}
}

// The older keys of the HTTP API mean TLS if one of them says so.
func TestOlderKeysOfHTTPS(t *testing.T) {
	const tls = "management.listener.ssl_opts.certfile = c\nmanagement.listener.ssl_opts.keyfile = k\n"
	for text, want := range map[string][2]string{
		"management.listener.port = 1\nmanagement.listener.ssl = false\n":                                          {":1", ""},
		"management.listener.port = 1\nmanagement.listener.ip = 127.0.0.1\nmanagement.listener.ssl = true\n" + tls: {"", "127.0.0.1:1"},
		"management.listener.ssl = true\nmanagement.listener.port = 1\nmanagement.tcp.port = 2\n" + tls:            {":2", ":1"},
		"management.listener.ssl = true\nmanagement.listener.port = 1\nmanagement.listener.ssl = false\n":          {":1", ""},
	} {
		c, err := loadText(t, text, nil)
		if err != nil || c.ManagementListen != want[0] || c.ManagementTLSListen != want[1] {
			t.Errorf("%q: HTTP at %q, HTTPS at %q, error %v; want %q", text, c.ManagementListen, c.ManagementTLSListen, err, want)
		}
	}
}

// Whatever a style is, it is taken or refused, and what is taken has its words.
func FuzzLogStyle(f *testing.F) {
	f.Add("time:ts level *:-")
	f.Add("debug:7 info:6")
	f.Add("$time [$level] $msg")
	f.Fuzz(func(t *testing.T, text string) {
		var s LogStyle
		if setLogFields(&s.Fields, text) == nil && len(s.Fields) > len(strings.Fields(text)) {
			t.Errorf("%q has more fields than words: %v", text, s.Fields)
		}
		if setVerbosity(&s.Verbosity, text) == nil && len(s.Verbosity) > len(strings.Fields(text)) {
			t.Errorf("%q has more levels than words: %v", text, s.Verbosity)
		}
		if setLogPattern(&s.Pattern, text) == nil && s.Pattern != "" && strings.Count(s.Pattern, "$msg") != 1 {
			t.Errorf("%q is taken as a line", text)
		}
	})
}
