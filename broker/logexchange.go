package broker

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/vhost"
)

// logBacklog is how many log lines may wait to be published; what exceeds it is
// in the log only.
const logBacklog = 256

// A logExchange publishes log lines to amq.rabbitmq.log, with the level as the
// routing key, as RabbitMQ 4.0 does with log.exchange. A line is published by a
// goroutine of its own: whoever logs may hold a lock that publishing needs.
type logExchange struct {
	vhosts  atomic.Pointer[vhost.Set] // nil before Start and after Stop
	entries chan logLine
	levels  *LogLevels // immutable
}

type logLine struct {
	level string
	text  *buffer.Buffer
}

func newLogExchange(broker config.Config) *logExchange {
	levels, err := NewLogLevels(broker.LogLevels)
	if err != nil { // not from a file: config checks those
		levels, _ = NewLogLevels(nil) // cannot fail
	}
	return &logExchange{entries: make(chan logLine, logBacklog), levels: levels}
}

// run publishes until ctx ends.
func (x *logExchange) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-x.entries:
			if set := x.vhosts.Load(); set != nil {
				set.Log(line.level, append([]byte(nil), line.text.Bytes()...))
			}
			line.text.Free()
		}
	}
}

// logCore is the zapcore.Core that feeds a logExchange. What it gets is important
// enough.
type logCore struct {
	x   *logExchange
	enc zapcore.Encoder
}

// Enabled implements zapcore.Core.
func (c *logCore) Enabled(zapcore.Level) bool { return true }

// tee makes a core that feeds the exchange too, as it is configured.
func (x *logExchange) tee(broker config.Config) func(zapcore.Core) zapcore.Core {
	return func(core zapcore.Core) zapcore.Core {
		if !broker.LogExchange {
			return core
		}
		below := &logCore{x: x, enc: logEncoder(broker.LogExchangeFormat)}
		own, err := x.levels.Core(broker.LogExchangeLevel, below)
		if err != nil { // not from a file: config checks those
			return core
		}
		return zapcore.NewTee(core, own)
	}
}

// logEncoder makes the lines.
func logEncoder(format config.LogFormat) zapcore.Encoder {
	cfg := zapcore.EncoderConfig{TimeKey: "time", LevelKey: "level", MessageKey: "msg", NameKey: "category", LineEnding: "\n",
		EncodeTime: zapcore.ISO8601TimeEncoder, EncodeLevel: zapcore.LowercaseLevelEncoder, EncodeDuration: zapcore.StringDurationEncoder}
	if format == config.JSON {
		return zapcore.NewJSONEncoder(cfg)
	}
	return zapcore.NewConsoleEncoder(cfg)
}

// With implements zapcore.Core.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	enc := c.enc.Clone()
	for _, f := range fields {
		f.AddTo(enc)
	}
	return &logCore{x: c.x, enc: enc}
}

// Check implements zapcore.Core: nothing is encoded while nobody listens.
func (c *logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if set := c.x.vhosts.Load(); set != nil && set.LogListening() {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements zapcore.Core.
func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text, err := c.enc.EncodeEntry(e, fields)
	if err != nil {
		return err
	}
	select {
	case c.x.entries <- logLine{levelKey(e.Level), text}:
	default:
		text.Free()
	}
	return nil
}

// Sync implements zapcore.Core.
func (c *logCore) Sync() error { return nil }

// levelKey is the routing key of a level (RabbitMQ 4.0).
func levelKey(l zapcore.Level) string {
	switch {
	case l == zapcore.WarnLevel:
		return "warning"
	case l >= zapcore.DPanicLevel:
		return "critical"
	}
	return l.String()
}
