package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// An entry is one line of a configuration file: key = value.
type entry struct {
	key, value string
	file       string
	line       int // from 1; 0 is of no file
}

// where is the place of the entry for messages.
func (e entry) where() string {
	if e.line == 0 {
		return e.file
	}
	return fmt.Sprintf("%s:%d", e.file, e.line)
}

// parseFile reads a file in the syntax of rabbitmq.conf: key = value, a line
// each; # starts a comment unless it is in single quotes. $(NAME) in a value is
// the environment variable. What is right is returned with what is wrong.
func parseFile(name string, env func(string) (string, bool)) ([]entry, error) {
	b, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return parse(name, string(b), env)
}

// readFile reads a file of settings whole. The error says how to go on.
func readFile(name string) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, unreadable(err)
	}
	return b, nil
}

func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("read the configuration: %w; let the user that starts the broker read the file and enter its folders", err)
	}
	return fmt.Errorf("read the configuration: %w; name a file that is there (--config, LEVERET_CONFIG_FILE, RABBITMQ_CONFIG_FILE)", err)
}

func parse(name, text string, env func(string) (string, bool)) ([]entry, error) {
	var entries []entry
	var errs []error
	n := 0
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		n++
		e, found, err := parseLine(line)
		e.file, e.line = name, n
		if err == nil && found {
			e.value, err = substitute(e.value, env)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.where(), err))
			continue
		}
		if found {
			entries = append(entries, e)
		}
	}
	return entries, errors.Join(errs...)
}

// parseLine reads one line. It is not found when the line is blank or a
// comment.
func parseLine(line string) (e entry, found bool, err error) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return e, false, nil
	}
	key, value, ok := strings.Cut(line, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" || strings.ContainsAny(key, " \t#'") {
		return e, false, fmt.Errorf("%q is not a setting: want key = value", shorten(line))
	}
	e.key = key
	e.value, err = parseValue(strings.TrimSpace(value))
	if err != nil {
		return e, false, fmt.Errorf("%s: %w", key, err)
	}
	return e, true, nil
}

// parseValue takes the quotes or the comment off a value.
func parseValue(value string) (string, error) {
	if quoted, ok := strings.CutPrefix(value, "'"); ok {
		inner, after, closed := strings.Cut(quoted, "'")
		after = strings.TrimSpace(after)
		switch {
		case !closed:
			return "", errors.New("the quote ' is not closed")
		case after != "" && after[0] != '#':
			return "", errors.New("there is something after the closing quote '")
		}
		return inner, nil
	}
	value, _, _ = strings.Cut(value, "#")
	value = strings.TrimSpace(value)
	if value == "" {
		return "", errors.New("there is no value; write '' if it is to be empty")
	}
	return value, nil
}

// shorten keeps a secret on a broken line from being shown whole.
func shorten(line string) string {
	if end := strings.IndexAny(line, " \t:"); end >= 0 {
		return line[:end] + " ..."
	}
	return line
}

// substitute replaces each $(NAME) by the environment variable.
func substitute(value string, env func(string) (string, bool)) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(value, "$(")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, ")")
		if !closed {
			return "", errors.New("$( is not closed: want $(NAME) for the environment variable NAME")
		}
		text, set := env(strings.TrimSpace(name))
		if !set {
			return "", fmt.Errorf("the environment variable %s is not set, which $(%s) stands for", name, name)
		}
		out.WriteString(text)
		value = after
	}
}

// findFiles names the files to read, in order: the main one and those of the
// folder conf.d beside it. Later ones win. The notes say what was not found.
func (l *loader) findFiles() (files []string, err error) {
	file, asked := l.first("config", "LEVERET_CONFIG_FILE")
	switch {
	case asked && file == "none":
		return nil, nil
	case asked:
		files = []string{file}
	default:
		if files, err = l.usualFile(); err != nil {
			return nil, err
		}
	}
	more, err := l.moreFiles(files)
	return append(files, more...), err
}

// usualFile is the main file when neither flag nor LEVERET_CONFIG_FILE names
// one: RabbitMQ's variable, which may leave the ending out, or the one in the
// data folder. It may be missing.
func (l *loader) usualFile() ([]string, error) {
	if name, ok := l.variable("RABBITMQ_CONFIG_FILE"); ok {
		for _, candidate := range []string{name + ".conf", name} {
			if maybeFile(candidate) {
				return []string{candidate}, nil
			}
		}
		if isFile(name + ".config") {
			return nil, fmt.Errorf("RABBITMQ_CONFIG_FILE=%q: %s.config has Erlang terms, which are not understood: write its settings into %s.conf as key = value", name, name, name)
		}
		l.note("there is no configuration file " + name + " (RABBITMQ_CONFIG_FILE)")
		if dir := filepath.Join(filepath.Dir(name), "conf.d"); isDir(dir) {
			l.confDir = dir
		}
		return nil, nil
	}
	if l.dataDir == "" {
		return nil, nil
	}
	if name := filepath.Join(l.dataDir, "rabbitmq.conf"); isFile(name) {
		return []string{name}, nil
	}
	if dir := filepath.Join(l.dataDir, "conf.d"); isDir(dir) {
		l.confDir = dir
	}
	return nil, nil
}

// moreFiles are those of conf.d in the order of their names: the folder or
// pattern that a variable names, or the one beside the main file.
func (l *loader) moreFiles(main []string) ([]string, error) {
	pattern, asked := l.variable("LEVERET_CONFIG_FILES")
	if !asked {
		pattern, asked = l.variable("RABBITMQ_CONFIG_FILES")
	}
	if !asked {
		pattern = l.confDir
		if len(main) > 0 {
			pattern = filepath.Join(filepath.Dir(main[0]), "conf.d")
		}
	}
	if pattern == "" {
		return nil, nil
	}
	if isDir(pattern) {
		pattern = filepath.Join(pattern, "*.conf")
	}
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("find the configuration files %s: %w", pattern, err)
	}
	return files, nil // sorted
}

// checkPattern refuses a folder or file that is there but cannot be read: nothing
// would be found, and the broker start without its settings.
func checkPattern(pattern string) error {
	name := pattern
	if strings.ContainsAny(filepath.Base(pattern), "*?[") {
		name = filepath.Dir(pattern)
	}
	f, err := os.Open(name)
	switch {
	case err == nil:
		return f.Close()
	case missing(err):
		return nil
	}
	return unreadable(err)
}

// maybeFile is isFile for names that an operator gives: what cannot be looked at
// counts, so that reading it tells why.
func maybeFile(name string) bool {
	_, err := os.Stat(name)
	return isFile(name) || err != nil && !missing(err)
}

// missing says that a name is nobody's, not that it cannot be looked at.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().Type() != fs.ModeDir
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
