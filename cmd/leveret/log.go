package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/config"
)

// A programLog is the log of the program: to standard output, as RabbitMQ's is
// in a container, and to a file if there is one. Standard error is for the one
// line that says why leveret ended, unless the configuration wants the log
// there.
type programLog struct {
	*zap.Logger
	levels *logLevels
	file   *logFile // nil without one
}

func newLogger(cfg config.Config) (*programLog, error) {
	l := &programLog{}
	var err error
	if l.levels, err = newLogLevels(cfg.LogLevels); err != nil {
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
	if cfg.LogFile != "" {
		if l.file, err = openLogFile(cfg); err != nil {
			return nil, err
		}
		look := logLook{cfg.LogFileFormat, cfg.LogFileTime, cfg.LogFileLevelName, false}
		core, err := l.levels.core(cfg.LogFileLevel, look.encoder(), l.file)
		if err != nil {
			return nil, err
		}
		cores = append(cores, core)
	}
	l.Logger = zap.New(zapcore.NewTee(cores...), zap.AddStacktrace(zapcore.DPanicLevel))
	return l, nil
}

// console is the part of the log that goes to standard output or error.
func (l *programLog) console(cfg config.Config) (zapcore.Core, error) {
	out := os.Stdout
	if cfg.LogStderr {
		out = os.Stderr
	}
	colours := cfg.LogColors == "always" || cfg.LogColors == "auto" && isTerminal(out) && os.Getenv("NO_COLOR") == ""
	look := logLook{cfg.LogFormat, cfg.LogTime, cfg.LogLevelName, colours}
	return l.levels.core(cfg.LogLevel, look.encoder(), zapcore.Lock(out))
}

// reopen opens the file anew: something else may have moved it away.
func (l *programLog) reopen() error {
	if l.file == nil {
		return nil
	}
	return l.file.reopen()
}

// close ends the log. What was logged is in the file.
func (l *programLog) close() {
	_ = l.Sync() // fails on terminals and pipes, which need none
	if l.file != nil {
		_ = l.file.close() // there is nobody left to tell
	}
}

// openLogFile opens the file that is logged to, with its folder.
func openLogFile(cfg config.Config) (*logFile, error) {
	path := cfg.LogFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.LogDir, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of the log file: %w; name another file with log.file", err)
	}
	f, err := newLogFile(path, cfg.LogRotation, time.Now)
	if err != nil {
		return nil, fmt.Errorf("open the log file: %w; name another file with log.file", err)
	}
	return f, nil
}

// A logLook is how lines look.
type logLook struct {
	format    config.LogFormat
	time      string // one of RabbitMQ's formats; "" goes with the format
	levelName string // the same for levels
	colours   bool
}

func (l logLook) encoder() zapcore.Encoder {
	cfg := zap.NewProductionEncoderConfig()
	cfg.TimeKey, cfg.NameKey = "time", "category"
	cfg.EncodeTime = l.timeEncoder()
	cfg.EncodeLevel = l.levelEncoder()
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	if l.format == config.JSON {
		return zapcore.NewJSONEncoder(cfg)
	}
	return zapcore.NewConsoleEncoder(cfg)
}

func (l logLook) timeEncoder() zapcore.TimeEncoder {
	switch {
	case l.time == "rfc3339_space":
		return zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000000-07:00")
	case l.time == "rfc3339_T":
		return zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000-07:00")
	case l.time == "epoch_usecs":
		return func(t time.Time, enc zapcore.PrimitiveArrayEncoder) { enc.AppendInt64(t.UnixMicro()) }
	case l.time == "epoch_secs":
		return zapcore.EpochTimeEncoder
	case l.format == config.JSON:
		return zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000Z07:00")
	}
	return zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000")
}

func (l logLook) levelEncoder() zapcore.LevelEncoder {
	switch {
	case l.levelName != "":
		return l.encodeLevel
	case l.format == config.JSON:
		return zapcore.LowercaseLevelEncoder
	case l.colours:
		return zapcore.CapitalColorLevelEncoder
	}
	return zapcore.CapitalLevelEncoder
}

// encodeLevel writes a level by RabbitMQ's names, such as warning, with as many
// letters as the format says.
func (l logLook) encodeLevel(level zapcore.Level, enc zapcore.PrimitiveArrayEncoder) {
	name := level.String()
	switch {
	case level == zapcore.WarnLevel:
		name = "warning"
	case level >= zapcore.DPanicLevel:
		name = "critical"
	}
	switch {
	case strings.HasSuffix(l.levelName, "3"):
		name = shortLevel(name, 3)
	case strings.HasSuffix(l.levelName, "4"):
		name = shortLevel(name, 4)
	}
	if strings.HasPrefix(l.levelName, "uc") {
		name = strings.ToUpper(name)
	}
	enc.AppendString(name)
}

// shortLevel is a level's name in a few letters.
func shortLevel(name string, letters int) string {
	for _, short := range [][3]string{{"debug", "dbg", "dbug"}, {"info", "inf", "info"}, {"warning", "wrn", "warn"}, {"error", "err", "erro"}, {"critical", "crt", "crit"}} {
		if short[0] == name {
			return short[letters-2]
		}
	}
	return name
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
		l.Warn("there is no file for the message of the day", zap.String("file", name))
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
