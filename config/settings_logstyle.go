package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// styleSettings are what is wanted of the lines of one output of the log. They
// have no flag.
func styleSettings(prefix string, of func(*Config) *LogStyle) []Setting {
	return []Setting{
		{Name: prefix + "-single-line", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&of(c).SingleLine, s) }},
		{Name: prefix + "-pattern", Default: "none",
			set: func(c *Config, s string) error { return setLogPattern(&of(c).Pattern, s) }},
		{Name: prefix + "-fields", Default: "none",
			set: func(c *Config, s string) error { return setLogFields(&of(c).Fields, s) }},
		{Name: prefix + "-verbosity", Default: "none",
			set: func(c *Config, s string) error { return setVerbosity(&of(c).Verbosity, s) }},
	}
}

// patternWord is a word of a LogStyle's pattern that something is put in for.
var patternWord = regexp.MustCompile(`\$[a-z_]*`)

// LogWords are the words of a LogStyle's pattern.
func LogWords() []string { return []string{"$time", "$level", "$category", "$pid", "$msg"} }

// setLogPattern takes a line as $time [$level] $msg (RabbitMQ 4.0:
// log.console.formatter.plaintext.format). Without $msg it would say nothing.
func setLogPattern(to *string, text string) error {
	if text == "none" {
		*to = ""
		return nil
	}
	for _, word := range patternWord.FindAllString(text, -1) {
		if !slices.Contains(LogWords(), word) {
			return fmt.Errorf("there is nothing to put in for %s: want some of %v", word, LogWords())
		}
	}
	if strings.Count(text, "$msg") != 1 {
		return errors.New("want $msg once in it: that is what a line says")
	}
	*to = text
	return nil
}

// setLogFields takes NAME:AS with blanks in between; NAME alone keeps its name,
// NAME:- leaves it out, *:- all that are not named (RabbitMQ 4.0:
// log.console.formatter.json.field_map).
func setLogFields(to *[]LogField, text string) error {
	*to = nil
	if text == "none" {
		return nil
	}
	var fields []LogField
	for word := range strings.FieldsSeq(text) {
		name, as, renamed := strings.Cut(word, ":")
		switch {
		case name == "" || renamed && as == "" || strings.Contains(as, ":") || name == "*" && as != "-":
			return errors.New("want NAME, NAME:AS or NAME:- with blanks in between, and *:- to leave out the others")
		case slices.ContainsFunc(fields, func(f LogField) bool { return f.Name == name }):
			return fmt.Errorf("%s is there twice", name)
		case !renamed:
			as = name
		case as == "-":
			as = ""
		}
		fields = append(fields, LogField{name, as})
	}
	*to = fields
	return nil
}

// verbosityLevels are the levels that can have a number.
func verbosityLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// setVerbosity takes LEVEL:NUMBER with blanks in between (RabbitMQ 4.0:
// log.console.formatter.json.verbosity_map).
func setVerbosity(to *map[string]int, text string) error {
	*to = nil
	if text == "none" {
		return nil
	}
	levels := map[string]int{}
	for word := range strings.FieldsSeq(text) {
		level, number, _ := strings.Cut(word, ":")
		n, err := strconv.Atoi(number)
		if err != nil || !slices.Contains(verbosityLevels(), level) {
			return fmt.Errorf("want LEVEL:NUMBER with blanks in between; the levels are %v", verbosityLevels())
		}
		levels[level] = n
	}
	*to = levels
	return nil
}

// setCategoryFiles takes category=file with commas in between.
func setCategoryFiles(to *map[string]string, text string) error {
	if text == "none" {
		*to = nil
		return nil
	}
	files := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		category, file, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if file == "" || !slices.Contains(Categories(), category) {
			return fmt.Errorf("want category=file with commas in between; the categories are %v", Categories())
		}
		files[category] = file
	}
	*to = files
	return nil
}
