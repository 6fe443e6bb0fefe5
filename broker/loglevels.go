package broker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/config"
)

// LogLevels decide what is logged, and can be changed while the broker runs. A
// line's category is the name of its logger, or the last part of it. Methods are
// safe for concurrent use.
type LogLevels struct {
	mu      sync.Mutex // held for a change
	current atomic.Pointer[levelSet]
}

// A levelSet is immutable.
type levelSet struct {
	// all is for every output and category, in place of the outputs' own; nil
	// if nobody has set it.
	all        *zapcore.Level
	categories map[string]zapcore.Level
}

// NewLogLevels takes the levels of those categories that have one of their own.
func NewLogLevels(configured map[string]config.LogLevel) (*LogLevels, error) {
	set := &levelSet{categories: map[string]zapcore.Level{}}
	for category, level := range configured {
		parsed, err := parseLevel(string(level))
		if err != nil {
			return nil, fmt.Errorf("log level of %s: %w", category, err)
		}
		set.categories[category] = parsed
	}
	l := &LogLevels{}
	l.current.Store(set)
	return l, nil
}

// Set changes the level of one category, or with the category "" of everything,
// which takes the place of what was set before. Levels are RabbitMQ's or ours.
func (l *LogLevels) Set(category, level string) error {
	parsed, err := parseLevel(level)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if category == "" {
		l.current.Store(&levelSet{all: &parsed})
		return nil
	}
	if !slices.Contains(config.Categories(), category) {
		return fmt.Errorf("there is no category %q of log lines; the categories are %s", category, strings.Join(config.Categories(), " "))
	}
	old := l.current.Load()
	next := &levelSet{all: old.all, categories: maps.Clone(old.categories)}
	if next.categories == nil {
		next.categories = map[string]zapcore.Level{}
	}
	next.categories[category] = parsed
	l.current.Store(next)
	return nil
}

// parseLevel takes the name of a level (RabbitMQ 4.0: set_log_level).
func parseLevel(name string) (zapcore.Level, error) {
	switch name {
	case "debug":
		return zapcore.DebugLevel, nil
	case "info", "notice":
		return zapcore.InfoLevel, nil
	case "warn", "warning":
		return zapcore.WarnLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "critical", "alert", "emergency", "none":
		return zapcore.DPanicLevel, nil
	}
	return 0, fmt.Errorf("there is no log level %q: want debug, info, notice, warning, error, critical or none", name)
}

// Core makes a core that gives the one below, which takes everything, what these
// levels let through; level is the output's own.
func (l *LogLevels) Core(level config.LogLevel, below zapcore.Core) (zapcore.Core, error) {
	own, err := parseLevel(string(level))
	if err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	return &levelCore{Core: below, own: own, levels: l}, nil
}

// A levelCore is a core whose level depends on the category.
type levelCore struct {
	zapcore.Core // lets everything through
	own          zapcore.Level
	levels       *LogLevels
}

// Enabled implements zapcore.Core: whether some category logs at this level.
func (c *levelCore) Enabled(level zapcore.Level) bool {
	set := c.levels.current.Load()
	if level >= set.of("default", c.own) {
		return true
	}
	for _, l := range set.categories {
		if level >= l {
			return true
		}
	}
	return false
}

// of is the level of a category.
func (s *levelSet) of(category string, own zapcore.Level) zapcore.Level {
	if l, ok := s.categories[category]; ok {
		return l
	}
	if s.all != nil {
		return *s.all
	}
	return own
}

// LogCategory is the category of a line.
func LogCategory(e zapcore.Entry) string {
	return cmp.Or(e.LoggerName[strings.LastIndexByte(e.LoggerName, '.')+1:], "default")
}

// Check implements zapcore.Core.
func (c *levelCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if e.Level < c.levels.current.Load().of(LogCategory(e), c.own) {
		return ce
	}
	return c.Core.Check(e, ce)
}

// With implements zapcore.Core.
func (c *levelCore) With(fields []zapcore.Field) zapcore.Core {
	return &levelCore{Core: c.Core.With(fields), own: c.own, levels: c.levels}
}
