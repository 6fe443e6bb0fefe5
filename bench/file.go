package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxScenarioFile is the largest scenario file that is read, in bytes.
const maxScenarioFile = 1 << 20

// ParseScenarios reads a scenario file: YAML, one scenario in each document.
// file is its name for errors, which give the line; a scenario without a name
// gets that of the file.
func ParseScenarios(file string, data []byte) ([]*Scenario, error) {
	if len(data) > maxScenarioFile {
		return nil, fmt.Errorf("%s: %d bytes are too many for a scenario file, at most %d are read", file, len(data), maxScenarioFile)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var all []*Scenario
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		sc, err := scenarioOf(file, &doc)
		if err != nil {
			return nil, err
		}
		all = append(all, sc)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no scenario in it; `leveret bench show fire-1K` prints one to start from", file)
	}
	return all, nil
}

// scenarioOf reads one document.
func scenarioOf(file string, doc *yaml.Node) (*Scenario, error) {
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: a scenario is lines of `key: value`", file, max(doc.Line, 1))
	}
	sc := NewScenario()
	sc.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	settings := Settings()
	seen := map[string]int{}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := pairs[i], pairs[i+1]
		if first := seen[key.Value]; first > 0 {
			return nil, fmt.Errorf("%s:%d: %s is set twice, first in line %d", file, key.Line, key.Value, first)
		}
		seen[key.Value] = key.Line
		if err := setKey(sc, settings, key.Value, value); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, key.Line, err)
		}
	}
	if err := sc.Validate(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, max(doc.Content[0].Line, 1), err)
	}
	return sc, nil
}

func setKey(sc *Scenario, settings []Setting, key string, value *yaml.Node) error {
	var text string
	err := error(nil)
	switch key {
	case "name", "description":
		if text, err = scalar(key, value); err != nil {
			return err
		}
		if key == "description" {
			sc.Description = text
			return nil
		}
		return sc.setName(text)
	}
	for i := range settings {
		if settings[i].Name != key {
			continue
		}
		if text, err = valueText(&settings[i], value); err != nil {
			return err
		}
		return settings[i].Set(sc, text)
	}
	return unknownKey(key, settings)
}

// setName takes a name that can be part of a queue's name and a file's.
func (sc *Scenario) setName(name string) error {
	if name == "" || len(name) > 60 || strings.ContainsFunc(name, func(r rune) bool {
		return !(r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		return fmt.Errorf("name %q: a name has 1 to 60 letters, digits, '-', '_' and '.'", name)
	}
	sc.Name = name
	return nil
}

// valueText is a value as the flag of the same name would be written.
func valueText(s *Setting, value *yaml.Node) (string, error) {
	switch {
	case s.List && value.Kind == yaml.SequenceNode:
		return joined(s.Name, value.Content, 1, ",")
	case s.List && value.Kind == yaml.MappingNode:
		return joined(s.Name, value.Content, 2, "=")
	}
	return scalar(s.Name, value)
}

// joined writes a list with commas, a mapping as name=value with commas.
func joined(key string, nodes []*yaml.Node, step int, sep string) (string, error) {
	var b strings.Builder
	for i, n := range nodes {
		text, err := scalar(key, n)
		if err != nil {
			return "", err
		}
		if strings.ContainsAny(text, ",") {
			return "", fmt.Errorf("%s: %q has a comma in it, which separates values", key, text)
		}
		switch {
		case i > 0 && i%step == 0:
			b.WriteByte(',')
		case i > 0:
			b.WriteString(sep)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func scalar(key string, n *yaml.Node) (string, error) {
	if n.Kind != yaml.ScalarNode {
		return "", fmt.Errorf("%s: line %d is not a single value", key, n.Line)
	}
	return n.Value, nil
}

// unknownKey is the error for a key that does not exist, with the one that was
// probably meant.
func unknownKey(key string, settings []Setting) error {
	names := []string{"name", "description"}
	for _, s := range settings {
		names = append(names, s.Name)
	}
	if near := nearest(key, names); near != "" {
		return fmt.Errorf("unknown key %q; did you mean %q?", key, near)
	}
	return fmt.Errorf("unknown key %q; the keys are the flags of `leveret bench --help`", key)
}

// nearest is the name that differs least from word, "" if none is like it.
func nearest(word string, names []string) string {
	if len(word) > 40 {
		return ""
	}
	best, found := 1+len(word)/3, ""
	for _, n := range names {
		if d := distance(strings.ToLower(strings.ReplaceAll(word, "_", "-")), n); d < best {
			best, found = d, n
		}
	}
	return found
}

// distance counts the letters to insert, remove or change between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
