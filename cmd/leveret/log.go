package main

import (
	"fmt"
	"os"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/config"
)

// newLogger makes the log. It goes to standard output, as RabbitMQ's does in a
// container; standard error is for the one line that says why leveret ended.
func newLogger(cfg config.Config) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(string(cfg.LogLevel))
	if err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	out := zapcore.Lock(os.Stdout)
	return zap.New(zapcore.NewCore(encoder(cfg.LogFormat), out, level), zap.AddStacktrace(zapcore.DPanicLevel)), nil
}

func encoder(format config.LogFormat) zapcore.Encoder {
	cfg := zap.NewProductionEncoderConfig()
	cfg.TimeKey = "time"
	cfg.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000Z07:00")
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	if format == config.JSON {
		return zapcore.NewJSONEncoder(cfg)
	}
	cfg.EncodeTime = zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000")
	cfg.EncodeLevel = zapcore.CapitalLevelEncoder
	if isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" {
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
