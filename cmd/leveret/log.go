package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/config"
)

// newLogger makes the log. It goes to standard output, as RabbitMQ's does in a
// container, and to a file if there is one; standard error is for the one line
// that says why leveret ended.
func newLogger(cfg config.Config) (*zap.Logger, error) {
	var cores []zapcore.Core
	if !cfg.LogQuiet {
		core, err := logCore(cfg.LogLevel, encoder(cfg.LogFormat, isTerminal(os.Stdout)), os.Stdout)
		if err != nil {
			return nil, err
		}
		cores = append(cores, core)
	}
	if cfg.LogFile != "" {
		file, err := openLogFile(cfg)
		if err != nil {
			return nil, err
		}
		core, err := logCore(cfg.LogFileLevel, encoder(cfg.LogFileFormat, false), file)
		if err != nil {
			return nil, err
		}
		cores = append(cores, core)
	}
	return zap.New(zapcore.NewTee(cores...), zap.AddStacktrace(zapcore.DPanicLevel)), nil
}

func logCore(level config.LogLevel, enc zapcore.Encoder, out *os.File) (zapcore.Core, error) {
	l, err := zapcore.ParseLevel(string(level))
	if err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	return zapcore.NewCore(enc, zapcore.Lock(out), l), nil
}

// openLogFile opens the file that is logged to; it stays open until the process
// ends. Lines are appended, so that a rotation by copying and truncating works.
func openLogFile(cfg config.Config) (*os.File, error) {
	path := cfg.LogFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(cfg.LogDir, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the folder of the log file: %w; name another file with log.file", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, fmt.Errorf("open the log file: %w; name another file with log.file", err)
	}
	return file, nil
}

// encoder makes lines of this format, with colours if wanted.
func encoder(format config.LogFormat, colours bool) zapcore.Encoder {
	cfg := zap.NewProductionEncoderConfig()
	cfg.TimeKey = "time"
	cfg.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000Z07:00")
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	if format == config.JSON {
		return zapcore.NewJSONEncoder(cfg)
	}
	cfg.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000")
	cfg.EncodeLevel = zapcore.CapitalLevelEncoder
	if colours && os.Getenv("NO_COLOR") == "" {
		cfg.EncodeLevel = zapcore.CapitalColorLevelEncoder
	}
	return zapcore.NewConsoleEncoder(cfg)
}

// isTerminal says whether the file is a character device, which a terminal is
// and a pipe or a file is not.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
