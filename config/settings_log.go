package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// logSettings are what of the log has a flag.
func logSettings() []Setting {
	return []Setting{
		{Name: "log-level", Default: "info", Usage: "least important `level` to log: debug, info, warn, error or critical",
			set: func(c *Config, s string) error { return setWord(&c.LogLevel, s, Debug, Info, Warn, Error, Critical) }},
		{Name: "log-format", Default: "console", Usage: "`format` of the log: console or json",
			set: func(c *Config, s string) error { return setWord(&c.LogFormat, s, Console, JSON) }},
		{Name: "log-quiet", Default: "false", Switch: true, Usage: "log nothing to standard output",
			set: func(c *Config, s string) error { return setSwitch(&c.LogQuiet, s) }},
		{Name: "log-file", Default: "none", Usage: "`file` to log to as well, or none",
			set: func(c *Config, s string) error { return setTextOrNone(&c.LogFile, s) }},
		{Name: "log-dir", Default: "none", Usage: "`folder` of that file, unless its path is absolute",
			set: func(c *Config, s string) error { return setTextOrNone(&c.LogDir, s) }},
		{Name: "log-file-level", Default: "info", Usage: "least important `level` in that file",
			set: func(c *Config, s string) error {
				return setWord(&c.LogFileLevel, s, Debug, Info, Warn, Error, Critical)
			}},
		{Name: "log-file-format", Default: "console", Usage: "`format` of that file: console or json",
			set: func(c *Config, s string) error { return setWord(&c.LogFileFormat, s, Console, JSON) }},
		{Name: "log-levels", Default: "none", Usage: "`levels` of single categories, as in connection=debug,queue=warn",
			set: func(c *Config, s string) error { return setLevels(&c.LogLevels, s) }},
	}
}

// moreLogSettings are those of the log without a flag.
func moreLogSettings() []Setting {
	return slices.Concat([]Setting{
		{Name: "log-colors", Default: "auto",
			set: func(c *Config, s string) error { return setWord(&c.LogColors, s, "auto", "always", "never") }},
		{Name: "log-stderr", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.LogStderr, s) }},
		{Name: "log-time", Default: "by format",
			set:  func(c *Config, s string) error { return setWord(&c.LogTime, s, timeFormats()...) },
			show: func(*Config) string { return "by format" }},
		{Name: "log-file-time", Default: "by format",
			set:  func(c *Config, s string) error { return setWord(&c.LogFileTime, s, timeFormats()...) },
			show: func(*Config) string { return "by format" }},
		{Name: "log-exchange-time", Default: "by format",
			set:  func(c *Config, s string) error { return setWord(&c.LogExchangeTime, s, timeFormats()...) },
			show: func(*Config) string { return "by format" }},
		{Name: "log-exchange-level-name", Default: "by format",
			set:  func(c *Config, s string) error { return setWord(&c.LogExchangeLevelName, s, levelFormats()...) },
			show: func(*Config) string { return "by format" }},
		{Name: "log-level-name", Default: "by format",
			set:  func(c *Config, s string) error { return setWord(&c.LogLevelName, s, levelFormats()...) },
			show: func(*Config) string { return "by format" }},
		{Name: "log-file-level-name", Default: "by format",
			set:  func(c *Config, s string) error { return setWord(&c.LogFileLevelName, s, levelFormats()...) },
			show: func(*Config) string { return "by format" }},
	}, styleSettings("log", func(c *Config) *LogStyle { return &c.LogStyle }),
		styleSettings("log-file", func(c *Config) *LogStyle { return &c.LogFileStyle }),
		styleSettings("log-exchange", func(c *Config) *LogStyle { return &c.LogExchangeStyle }), logTargetSettings())
}

// logTargetSettings are the files besides the usual one, when they are moved
// away, and the exchange.
func logTargetSettings() []Setting {
	return []Setting{
		{Name: "log-category-files", Default: "none",
			set: func(c *Config, s string) error { return setCategoryFiles(&c.LogCategoryFiles, s) }},
		{Name: "log-rotation-size", Default: "none",
			set: func(c *Config, s string) error { return setSizeOrNone(&c.LogRotation.Size, s) }},
		{Name: "log-rotation-date", Default: "none",
			set: func(c *Config, s string) error { return setRotationDate(&c.LogRotation.Date, s) }},
		{Name: "log-rotation-count", Default: "5",
			set: func(c *Config, s string) error { return setNumber(&c.LogRotation.Count, s, 10_000) }},
		{Name: "log-rotation-compress", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.LogRotation.Compress, s) }},
		// After the rotation of the usual file, which it begins with.
		{Name: "log-category-rotation", Default: "none", set: setCategoryRotation},
		{Name: "log-exchange", Default: "true", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.LogExchange, s) }},
		{Name: "log-exchange-level", Default: "info",
			set: func(c *Config, s string) error {
				return setWord(&c.LogExchangeLevel, s, Debug, Info, Warn, Error, Critical)
			}},
		{Name: "log-exchange-format", Default: "console",
			set: func(c *Config, s string) error { return setWord(&c.LogExchangeFormat, s, Console, JSON) }},
	}
}

// timeFormats are RabbitMQ's names of how times look; "" goes with the format.
func timeFormats() []string {
	return []string{"rfc3339_space", "rfc3339_T", "epoch_usecs", "epoch_secs"}
}

// levelFormats are RabbitMQ's names of how levels look: lower or upper case,
// whole or the first letters.
func levelFormats() []string { return []string{"lc", "uc", "lc3", "uc3", "lc4", "uc4"} }

// Categories are the categories of log lines that can have a level.
func Categories() []string {
	return []string{"default", "connection", "channel", "queue", "mirroring", "federation", "upgrade", "ra", "user"}
}

// setLevels takes category=level with commas in between.
func setLevels(to *map[string]LogLevel, text string) error {
	if text == "none" {
		*to = nil
		return nil
	}
	levels := map[string]LogLevel{}
	for pair := range strings.SplitSeq(text, ",") {
		category, level, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || !slices.Contains(Categories(), category) {
			return fmt.Errorf("want category=level with commas in between; the categories are %v", Categories())
		}
		var l LogLevel
		if err := setWord(&l, level, Debug, Info, Warn, Error, Critical); err != nil {
			return fmt.Errorf("level of %s: %w", category, err)
		}
		levels[category] = l
	}
	*to = levels
	return nil
}

func setRotationDate(to *string, text string) error {
	if text == "none" {
		*to = ""
		return nil
	}
	if _, err := ParseDate(text); err != nil {
		return err
	}
	*to = text
	return nil
}

// setCategoryRotation takes lines CATEGORY.FIELD=VALUE, or the word none.
func setCategoryRotation(c *Config, text string) error {
	c.LogCategoryRotation = nil
	var names []string
	fresh := func(name string) Rotation {
		names = append(names, name)
		return c.LogRotation
	}
	list, err := collect(text, fresh, setRotation)
	if err != nil {
		return err
	}
	for i, name := range names {
		if !slices.Contains(Categories(), name) {
			return fmt.Errorf("there is no category %s; the categories are %v", name, Categories())
		}
		if c.LogCategoryRotation == nil {
			c.LogCategoryRotation = map[string]Rotation{}
		}
		c.LogCategoryRotation[name] = list[i]
	}
	return nil
}

// setRotation takes one field of a rotation.
func setRotation(r *Rotation, f field) error {
	switch f.name {
	case "size":
		text, _ := zeroIsNone("", f.value) // cannot fail
		return setSizeOrNone(&r.Size, text)
	case "date":
		return setRotationDate(&r.Date, f.value)
	case "count":
		return setNumber(&r.Count, f.value, 10_000)
	case "compress":
		return setSwitch(&r.Compress, f.value)
	}
	return errors.New("want size, date, count or compress")
}
