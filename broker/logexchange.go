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
	content string     // the type of lines; immutable
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
	x := &logExchange{entries: make(chan logLine, logBacklog), levels: levels, content: "text/plain"}
	if broker.LogExchangeFormat == config.JSON { // RabbitMQ 4.0
		x.content = "application/json"
	}
	return x
}

// run publishes until ctx ends.
func (x *logExchange) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case line := <-x.entries:
			if set := x.vhosts.Load(); set != nil {
				set.Log(line.level, x.content, append([]byte(nil), line.text.Bytes()...))
			}
			line.text.Free()
		}
	}
}

// logCore is the zapcore.Core that feeds a logExchange. It takes everything: what
// is around it has looked already.
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
		look := LogLook{Format: broker.LogExchangeFormat, Time: broker.LogExchangeTime, LevelName: broker.LogExchangeLevelName, Style: broker.LogExchangeStyle}
		below := listeningCore{look.around(&logCore{x: x, enc: look.encoder()}), x}
		own, err := x.levels.Core(broker.LogExchangeLevel, below)
		if err != nil { // not from a file: config checks those
			return core
		}
		return zapcore.NewTee(core, own)
	}
}

// A listeningCore takes lines while somebody listens at the exchange: nothing is
// encoded for nobody.
type listeningCore struct {
	zapcore.Core
	x *logExchange
}

// Check implements zapcore.Core.
func (c listeningCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if set := c.x.vhosts.Load(); set != nil && set.LogListening() {
		return c.Core.Check(e, ce)
	}
	return ce
}

// With implements zapcore.Core.
func (c listeningCore) With(fields []zapcore.Field) zapcore.Core {
	return listeningCore{c.Core.With(fields), c.x}
}

// With implements zapcore.Core.
func (c *logCore) With(fields []zapcore.Field) zapcore.Core {
	enc := c.enc.Clone()
	for _, f := range fields {
		f.AddTo(enc)
	}
	return &logCore{x: c.x, enc: enc}
}

// Check implements zapcore.Core.
func (c *logCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, c)
}

// Write implements zapcore.Core.
func (c *logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text, err := c.enc.EncodeEntry(e, fields)
	if err != nil {
		return err
	}
	select {
	case c.x.entries <- logLine{levelName(e.Level), text}:
	default:
		text.Free()
	}
	return nil
}

// Sync implements zapcore.Core.
func (c *logCore) Sync() error { return nil }
