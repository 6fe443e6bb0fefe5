package main

import (
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/broker"
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

// logged runs lines through a log with this configuration and returns the file.
func logged(t *testing.T, cfg config.Config, lines func(l *programLog)) string {
	t.Helper()
	cfg.LogQuiet, cfg.LogFile = true, filepath.Join(t.TempDir(), "l.log")
	l, err := newLogger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	lines(l)
	l.close()
	b, err := os.ReadFile(cfg.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestLogLevelsOfCategories(t *testing.T) {
	cfg := config.Default()
	cfg.LogFileFormat = config.JSON
	cfg.LogLevels = map[string]config.LogLevel{"connection": config.Error, "queue": config.Debug}
	speak := func(l *programLog, text string) {
		l.Named("connection").With(zap.String("k", "v")).Info("connection " + text)
		l.Named("queue").Debug("queue " + text)
		l.Named("user").Debug("user " + text)
		l.Info("default " + text)
	}
	text := logged(t, cfg, func(l *programLog) {
		speak(l, "first")
		for _, change := range [][2]string{{"user", "debug"}, {"default", "none"}} {
			if err := l.levels.Set(change[0], change[1]); err != nil {
				t.Error(err)
			}
		}
		speak(l, "second")
		if err := l.levels.Set("", "warning"); err != nil {
			t.Error(err)
		}
		speak(l, "third")
		if err := l.levels.Set("", "debug"); err != nil {
			t.Error(err)
		}
		speak(l, "fourth")
	})
	for line, want := range map[string]bool{
		"connection first": false, "queue first": true, "user first": false, "default first": true,
		"connection second": false, "queue second": true, "user second": true, "default second": false,
		"connection third": false, "queue third": false, "user third": false, "default third": false,
		"connection fourth": true, "queue fourth": true, "user fourth": true, "default fourth": true,
	} {
		if got := strings.Contains(text, line); got != want {
			t.Errorf("%q in the log: %v, want %v", line, got, want)
		}
	}
	if !strings.Contains(text, `"category":"queue"`) {
		t.Errorf("no category in %s", text)
	}
	l, err := broker.NewLogLevels(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Set("quue", "debug"); err == nil || !strings.Contains(err.Error(), "queue") {
		t.Errorf("a wrong category: error %v, want one that lists them", err)
	}
	if err := l.Set("", "loud"); err == nil || !strings.Contains(err.Error(), "warning") {
		t.Errorf("a wrong level: error %v, want one that lists them", err)
	}
}

func TestLogLooks(t *testing.T) {
	for _, tt := range []struct {
		time, level, want string
	}{
		{"rfc3339_space", "lc", `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d\twarning\t`},
		{"rfc3339_T", "uc", `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d\tWARNING\t`},
		{"epoch_usecs", "uc3", `^\d{16}\tWRN\t`},
		{"epoch_secs", "lc4", `^\d\S+\twarn\t`},
		{"", "", `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\tWARN\t`},
	} {
		cfg := config.Default()
		cfg.LogFileTime, cfg.LogFileLevelName = tt.time, tt.level
		text := logged(t, cfg, func(l *programLog) { l.Warn("w") })
		if !regexp.MustCompile(tt.want).MatchString(text) {
			t.Errorf("%s %s: %q, want %s", tt.time, tt.level, text, tt.want)
		}
	}
}

// Lines of a log that is styled as rabbitmq.conf can say it.
func TestLogStyles(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for name, tt := range map[string]struct {
		format config.LogFormat
		style  config.LogStyle
		want   string // regular expression of all
	}{
		"single line":  {config.Console, config.LogStyle{SingleLine: true}, `^\S+ \S+\tWARN\tuser\tone, two\t\{"a": 1, "b": "x"\}\n$`},
		"several":      {config.Console, config.LogStyle{}, `(?s)^\S+ \S+\tWARN\tuser\tone\ntwo\t\{"a": 1, "b": "x"\}\n$`},
		"pattern":      {config.Console, config.LogStyle{Pattern: "$level|$category|$pid|$time: <$msg>", SingleLine: true}, `^WARN\|user\|` + pid + `\|\S+ \S+: <one, two\t\{"a": 1, "b": "x"\}>\n$`},
		"renamed":      {config.JSON, config.LogStyle{Fields: []config.LogField{{Name: "time", As: "ts"}, {Name: "msg", As: "message"}, {Name: "a", As: "A"}, {Name: "level"}}}, `^\{"ts":"[^"]+","category":"user","message":"one\\ntwo","A":1,"b":"x"\}\n$`},
		"nothing else": {config.JSON, config.LogStyle{Fields: []config.LogField{{Name: "b", As: "b"}, {Name: "level", As: "level"}, {Name: "*"}}}, `^\{"level":"warn","b":"x"\}\n$`},
		"verbosity":    {config.JSON, config.LogStyle{Verbosity: map[string]int{"warning": 4}}, `^\{.*"msg":"one\\ntwo","a":1,"verbosity":4,"b":"x"\}\n$`},
	} {
		cfg := config.Default()
		cfg.LogFileFormat, cfg.LogFileStyle = tt.format, tt.style
		text := logged(t, cfg, func(l *programLog) { l.Named("user").With(zap.Int("a", 1)).Warn("one\ntwo", zap.String("b", "x")) })
		if !regexp.MustCompile(tt.want).MatchString(text) {
			t.Errorf("%s: %q, want %s", name, text, tt.want)
		}
	}
}

// The lines of a category can have a file of their own, which is opened anew with
// the other.
func TestFilesOfCategories(t *testing.T) {
	cfg := config.Default()
	dir := t.TempDir()
	cfg.LogQuiet, cfg.LogDir, cfg.LogFile = true, dir, "all.log"
	cfg.LogFileStyle.Pattern = "$msg"
	cfg.LogCategoryFiles = map[string]string{"connection": "conn.log", "channel": filepath.Join(dir, "conn.log")}
	l, err := newLogger(cfg)
	if err != nil {
		t.Fatal(err)
	}
	speak := func(n string) {
		for _, category := range []string{"connection", "channel", "queue"} {
			l.Named(category).Info(category + n)
		}
	}
	speak("1")
	for _, name := range []string{"all.log", "conn.log"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, name+".moved")); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.reopen(); err != nil {
		t.Fatal(err)
	}
	speak("2")
	l.close()
	want := map[string]string{"all.log.moved": "queue1\n", "conn.log.moved": "connection1\nchannel1\n", "all.log": "queue2\n", "conn.log": "connection2\nchannel2\n"}
	if got := filesIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

func TestLogRotation(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rule  config.Rotation
		lines []string // "+24h" moves the clock
		want  map[string]string
	}{
		{"size", config.Rotation{Size: 4, Count: 2}, []string{"aa\n", "b\n", "cc\n", "dd\n"}, map[string]string{"l": "dd\n", "l.0": "cc\n", "l.1": "b\n"}},
		{"a long line", config.Rotation{Size: 4, Count: 2}, []string{"aaaaaaa\n", "b\n"}, map[string]string{"l": "b\n", "l.0": "aaaaaaa\n"}},
		{"no old ones", config.Rotation{Size: 4}, []string{"aaa\n", "bbb\n"}, map[string]string{"l": "bbb\n"}},
		{"date", config.Rotation{Date: "$D0", Count: 3}, []string{"a\n", "b\n", "+24h", "c\n", "d\n"}, map[string]string{"l": "c\nd\n", "l.0": "a\nb\n"}},
		{"never", config.Rotation{Count: 3}, []string{"a\n", "+24h", "b\n"}, map[string]string{"l": "a\nb\n"}},
	} {
		dir := t.TempDir()
		now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
		f, err := newLogFile(filepath.Join(dir, "l"), tt.rule, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range tt.lines {
			if d, err := time.ParseDuration(line); err == nil {
				now = now.Add(d)
				continue
			}
			if _, err := f.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
		if got := filesIn(t, dir); !maps.Equal(got, tt.want) {
			t.Errorf("%s: files %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLogRotationCompresses(t *testing.T) {
	dir := t.TempDir()
	f, err := newLogFile(filepath.Join(dir, "l"), config.Rotation{Size: 4, Count: 3, Compress: true}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"aaa\n", "bbb\n", "ccc\n", "ddd\n", "eee\n"} {
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	files := filesIn(t, dir)
	if files["l"] != "eee\n" || files["l.0"] != "ddd\n" || len(files) != 4 {
		t.Errorf("files %q, want l, l.0, l.1.gz and l.2.gz", files)
	}
	for name, want := range map[string]string{"l.1.gz": "ccc\n", "l.2.gz": "bbb\n"} {
		z, err := gzip.NewReader(strings.NewReader(files[name]))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, err := io.ReadAll(z); err != nil || string(got) != want {
			t.Errorf("%s has %q, error %v, want %q", name, got, err, want)
		}
	}
}

// An old file that cannot be compressed is no reason to stay with the one in use.
func TestLogRotationWithoutCompressing(t *testing.T) {
	dir := t.TempDir()
	f, err := newLogFile(filepath.Join(dir, "l"), config.Rotation{Size: 4, Count: 5, Compress: true}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"aaa\n", "bbb\n", "ccc\n", "ddd\n"} {
		if line == "ccc\n" { // it is moved along: in the way of the first that is compressed
			if err := os.Mkdir(filepath.Join(dir, "l.0.gz"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"l": "ddd\n", "l.0": "ccc\n", "l.2": "aaa\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s has %q, error %v, want %q", name, got, err, want)
		}
	}
}

// Another program may move the file: SIGHUP makes a new one.
func TestLogFileIsReopened(t *testing.T) {
	dir := t.TempDir()
	f, err := newLogFile(filepath.Join(dir, "l"), config.Rotation{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte("a\n"))
	if err := os.Rename(filepath.Join(dir, "l"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if err := f.reopen(); err != nil {
		t.Fatal(err)
	}
	_, _ = f.Write([]byte("b\n"))
	_ = f.close()
	if got := filesIn(t, dir); !maps.Equal(got, map[string]string{"l": "b\n", "moved": "a\n"}) {
		t.Errorf("files %q", got)
	}
}

func TestPidFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sub", "x.pid")
	p := pidFile{name: name}
	if err := p.remove(); err != nil {
		t.Errorf("one that was not written: %v", err)
	}
	if err := p.write(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || strings.TrimSpace(string(b)) != strconv.Itoa(os.Getpid()) {
		t.Errorf("the file has %q, error %v", b, err)
	}
	for range 2 { // something else may have taken it away
		if err := p.remove(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(name); err == nil {
			t.Error("the file is there after remove")
		}
	}
	p.keep = true
	if p.write() != nil || p.remove() != nil {
		t.Fatal("writing it again fails")
	}
	if _, err := os.Stat(name); err != nil {
		t.Errorf("the file that is to be kept: %v", err)
	}
}
