package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// A programLog is the log of the program: to standard output, as RabbitMQ's is
// in a container, and to files if there are some. Standard error is for the one
// line that says why leveret ended, unless the configuration wants the log
// there.
type programLog struct {
	*zap.Logger
	levels *broker.LogLevels   // immutable
	files  map[string]*logFile // by path; immutable
}

func newLogger(cfg config.Config) (*programLog, error) {
	l := &programLog{files: map[string]*logFile{}}
	var err error
	if l.levels, err = broker.NewLogLevels(cfg.LogLevels); err != nil {
		return nil, err
	}
	var cores []zapcore.Core
	if !cfg.LogQuiet {
		core, err := l.console(cfg)
		if err != nil {
			return nil, err
		}
		cores = append(cores, core)
	}
	toFiles, err := l.openFiles(cfg)
	if err != nil {
		l.close()
		return nil, err
	}
	l.Logger = zap.New(zapcore.NewTee(append(cores, toFiles...)...), zap.AddStacktrace(zapcore.DPanicLevel))
	return l, nil
}

// console is the part of the log that goes to standard output or error.
func (l *programLog) console(cfg config.Config) (zapcore.Core, error) {
	out := os.Stdout
	if cfg.LogStderr {
		out = os.Stderr
	}
	colours := cfg.LogColors == "always" || cfg.LogColors == "auto" && isTerminal(out) && os.Getenv("NO_COLOR") == ""
	look := broker.LogLook{Format: cfg.LogFormat, Time: cfg.LogTime, LevelName: cfg.LogLevelName, Style: cfg.LogStyle, Colours: colours}
	return l.levels.Core(cfg.LogLevel, look.Core(zapcore.Lock(out)))
}

// openFiles are the parts of the log that go to files: one for all categories but
// those that have a file of their own.
func (l *programLog) openFiles(cfg config.Config) ([]zapcore.Core, error) {
	var cores []zapcore.Core
	add := func(path string, rule config.Rotation, takes func(category string) bool) error {
		f, err := l.open(cfg, path, rule)
		if err != nil {
			return err
		}
		look := broker.LogLook{Format: cfg.LogFileFormat, Time: cfg.LogFileTime, LevelName: cfg.LogFileLevelName, Style: cfg.LogFileStyle}
		core, err := l.levels.Core(cfg.LogFileLevel, look.Core(f))
		cores = append(cores, categoryCore{core, takes})
		return err
	}
	if cfg.LogFile != "" {
		err := add(cfg.LogFile, cfg.LogRotation, func(category string) bool { return cfg.LogCategoryFiles[category] == "" })
		if err != nil {
			return cores, err
		}
	}
	for _, own := range slices.Sorted(maps.Keys(cfg.LogCategoryFiles)) {
		rule, given := cfg.LogCategoryRotation[own]
		if !given {
			rule = cfg.LogRotation
		}
		if err := add(cfg.LogCategoryFiles[own], rule, func(category string) bool { return category == own }); err != nil {
			return cores, err
		}
	}
	return cores, nil
}

// open opens a file that is logged to, or takes the one that is open already.
func (l *programLog) open(cfg config.Config, path string, rule config.Rotation) (*logFile, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.LogDir, path)
	}
	if f := l.files[path]; f != nil {
		return f, nil
	}
	f, err := openLogFile(path, rule)
	if err == nil {
		l.files[path] = f
	}
	return f, err
}

// A categoryCore takes the lines of some categories only.
type categoryCore struct {
	zapcore.Core
	takes func(category string) bool
}

// Check implements zapcore.Core.
func (c categoryCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.takes(broker.LogCategory(e)) {
		return ce
	}
	return c.Core.Check(e, ce)
}

// With implements zapcore.Core.
func (c categoryCore) With(fields []zapcore.Field) zapcore.Core {
	return categoryCore{c.Core.With(fields), c.takes}
}

// reopen opens the files anew: something else may have moved them away.
func (l *programLog) reopen() error {
	var err error
	for _, f := range l.files {
		err = errors.Join(err, f.reopen())
	}
	return err
}

// close ends the log. What was logged is in the files.
func (l *programLog) close() {
	if l.Logger != nil {
		_ = l.Sync() // fails on terminals and pipes, which need none
	}
	for _, f := range l.files {
		_ = f.close() // there is nobody left to tell
	}
}

// openLogFile opens a file that is logged to, with its folder.
func openLogFile(path string, rule config.Rotation) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of the log file: %w; name another file with log.file (--log-file, LEVERET_LOG_FILE)", err)
	}
	f, err := newLogFile(path, rule, time.Now)
	if err != nil {
		return nil, fmt.Errorf("open the log file: %w; name another file with log.file (--log-file, LEVERET_LOG_FILE)", err)
	}
	return f, nil
}

// isTerminal says whether the file is a character device, which a terminal is
// and a pipe or a file is not.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// logMotd begins the log with the text of a file.
func (l *programLog) logMotd(name string) error {
	if name == "" {
		return nil
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) { // RabbitMQ 4.0 does without, too
		l.Warn("there is no file for the message of the day: correct motd_file, or leave it out", zap.String("file", name))
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the message of the day: %w; name another file with motd_file", err)
	}
	for line := range strings.Lines(string(b)) {
		l.Info(strings.TrimRight(line, "\r\n"))
	}
	return nil
}
