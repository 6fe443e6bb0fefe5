package broker

import (
	"os"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/config"
)

// A LogLook is how the lines of one output of the log look.
type LogLook struct {
	Format    config.LogFormat
	Time      string // one of RabbitMQ's formats; "" goes with the format
	LevelName string // the same for levels
	Style     config.LogStyle
	Colours   bool
}

// Core makes a core that writes everything, in this look.
func (l LogLook) Core(out zapcore.WriteSyncer) zapcore.Core {
	return l.around(zapcore.NewCore(l.encoder(), out, zapcore.DebugLevel))
}

// around is what the look needs besides an encoder of its own, around a core that
// takes everything.
func (l LogLook) around(core zapcore.Core) zapcore.Core {
	if l.Format != config.JSON && l.Style.SingleLine {
		return singleLineCore{core}
	}
	if l.Format == config.JSON && (len(l.Style.Fields) > 0 || len(l.Style.Verbosity) > 0) {
		return fieldsCore{core, l.Style}
	}
	return core
}

func (l LogLook) encoder() zapcore.Encoder {
	cfg := zap.NewProductionEncoderConfig()
	cfg.TimeKey, cfg.NameKey = "time", "category"
	cfg.EncodeTime = l.timeEncoder()
	cfg.EncodeLevel = l.levelEncoder()
	cfg.EncodeDuration = zapcore.StringDurationEncoder
	switch {
	case l.Format == config.JSON:
		for _, key := range []*string{&cfg.TimeKey, &cfg.LevelKey, &cfg.NameKey, &cfg.MessageKey, &cfg.StacktraceKey} {
			*key = shownAs(l.Style.Fields, *key) // "" is left out
		}
		return zapcore.NewJSONEncoder(cfg)
	case l.Style.Pattern != "":
		return newPatternEncoder(l.Style.Pattern, cfg)
	}
	return zapcore.NewConsoleEncoder(cfg)
}

func (l LogLook) timeEncoder() zapcore.TimeEncoder {
	switch {
	case l.Time == "rfc3339_space":
		return zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000000-07:00")
	case l.Time == "rfc3339_T":
		return zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000-07:00")
	case l.Time == "epoch_usecs":
		return func(t time.Time, enc zapcore.PrimitiveArrayEncoder) { enc.AppendInt64(t.UnixMicro()) }
	case l.Time == "epoch_secs":
		return zapcore.EpochTimeEncoder
	case l.Format == config.JSON:
		return zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000Z07:00")
	}
	return zapcore.TimeEncoderOfLayout("2006-01-02 15:04:05.000")
}

func (l LogLook) levelEncoder() zapcore.LevelEncoder {
	switch {
	case l.LevelName != "":
		return l.encodeLevel
	case l.Format == config.JSON:
		return zapcore.LowercaseLevelEncoder
	case l.Colours:
		return zapcore.CapitalColorLevelEncoder
	}
	return zapcore.CapitalLevelEncoder
}

// encodeLevel writes a level by RabbitMQ's names, such as warning, with as many
// letters as the format says.
func (l LogLook) encodeLevel(level zapcore.Level, enc zapcore.PrimitiveArrayEncoder) {
	name := levelName(level)
	switch {
	case strings.HasSuffix(l.LevelName, "3"):
		name = shortLevel(name, 3)
	case strings.HasSuffix(l.LevelName, "4"):
		name = shortLevel(name, 4)
	}
	if strings.HasPrefix(l.LevelName, "uc") {
		name = strings.ToUpper(name)
	}
	enc.AppendString(name)
}

// levelName is RabbitMQ's name of a level.
func levelName(level zapcore.Level) string {
	switch {
	case level == zapcore.WarnLevel:
		return "warning"
	case level >= zapcore.DPanicLevel:
		return "critical"
	}
	return level.String()
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

// shownAs is the name that a member of a line is shown by; "" is not at all.
func shownAs(fields []config.LogField, name string) string {
	others := name
	for _, f := range fields {
		switch f.Name {
		case name:
			return f.As
		case "*":
			others = f.As
		}
	}
	return others
}

// A fieldsCore renames members of a line or leaves them out, and adds a number
// for the level (RabbitMQ 4.0: json.field_map, json.verbosity_map).
type fieldsCore struct {
	zapcore.Core // takes everything
	style        config.LogStyle
}

// With implements zapcore.Core.
func (c fieldsCore) With(fields []zapcore.Field) zapcore.Core {
	return fieldsCore{c.Core.With(c.shown(fields)), c.style}
}

// Check implements zapcore.Core.
func (c fieldsCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, c)
}

// Write implements zapcore.Core.
func (c fieldsCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if n, ok := c.style.Verbosity[levelName(e.Level)]; ok {
		fields = append([]zapcore.Field{zap.Int("verbosity", n)}, fields...)
	}
	return c.Core.Write(e, c.shown(fields))
}

func (c fieldsCore) shown(fields []zapcore.Field) []zapcore.Field {
	list := make([]zapcore.Field, 0, len(fields))
	for _, f := range fields {
		if f.Key = shownAs(c.style.Fields, f.Key); f.Key != "" {
			list = append(list, f)
		}
	}
	return list
}

// A singleLineCore takes line breaks out of messages (RabbitMQ 4.0: single_line).
// JSON has none in any case.
type singleLineCore struct{ zapcore.Core }

// With implements zapcore.Core.
func (c singleLineCore) With(fields []zapcore.Field) zapcore.Core {
	return singleLineCore{c.Core.With(fields)}
}

// Check implements zapcore.Core.
func (c singleLineCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return ce.AddCore(e, c)
}

// Write implements zapcore.Core.
func (c singleLineCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	e.Message = singleLine(e.Message)
	e.Stack = singleLine(e.Stack)
	return c.Core.Write(e, fields)
}

func singleLine(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\n", ", ")
}

// A patternEncoder writes a line as a pattern says (RabbitMQ 4.0:
// plaintext.format). The fields of a line follow its message.
type patternEncoder struct {
	zapcore.Encoder                 // writes $msg
	before, after   string          // immutable
	time, level     zapcore.Encoder // write nothing else; immutable
	lines           buffer.Pool
}

func newPatternEncoder(pattern string, cfg zapcore.EncoderConfig) zapcore.Encoder {
	cfg.SkipLineEnding = true
	before, after, _ := strings.Cut(pattern, "$msg")
	message, time, level := cfg, cfg, cfg
	message.TimeKey, message.LevelKey, message.NameKey = "", "", ""
	time.LevelKey, time.NameKey, time.MessageKey, time.CallerKey, time.StacktraceKey = "", "", "", "", ""
	level.TimeKey, level.NameKey, level.MessageKey, level.CallerKey, level.StacktraceKey = "", "", "", "", ""
	return patternEncoder{zapcore.NewConsoleEncoder(message), before, after,
		zapcore.NewConsoleEncoder(time), zapcore.NewConsoleEncoder(level), buffer.NewPool()}
}

// Clone implements zapcore.Encoder.
func (p patternEncoder) Clone() zapcore.Encoder {
	p.Encoder = p.Encoder.Clone()
	return p
}

// EncodeEntry implements zapcore.Encoder.
func (p patternEncoder) EncodeEntry(e zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	message, err := encoded(p.Encoder, e, fields)
	if err != nil {
		return nil, err
	}
	time, err := encoded(p.time, e, nil)
	if err != nil {
		return nil, err
	}
	level, err := encoded(p.level, e, nil)
	if err != nil {
		return nil, err
	}
	words := strings.NewReplacer("$time", time, "$level", level, "$category", LogCategory(e), "$pid", strconv.Itoa(os.Getpid()))
	line := p.lines.Get()
	line.AppendString(words.Replace(p.before))
	line.AppendString(message)
	line.AppendString(words.Replace(p.after))
	line.AppendString(zapcore.DefaultLineEnding)
	return line, nil
}

// encoded is what an encoder writes.
func encoded(enc zapcore.Encoder, e zapcore.Entry, fields []zapcore.Field) (string, error) {
	b, err := enc.EncodeEntry(e, fields)
	if err != nil {
		return "", err
	}
	defer b.Free()
	return b.String(), nil
}
