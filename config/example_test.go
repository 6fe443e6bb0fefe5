package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// settingLine is a line of the example that is a setting but for its #.
var settingLine = regexp.MustCompile(`(?m)^#([a-z_]+(?:\.[A-Za-z0-9_]+)* = .+)$`)

func exampleFile(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../packaging/leveret.conf.example")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// As it is, the example changes nothing; each of its lines can be used.
func TestExampleFile(t *testing.T) {
	text := exampleFile(t)
	entries, err := parse("example", text, environment(nil))
	if err != nil || len(entries) > 0 {
		t.Errorf("it sets %v, error %v; want nothing", entries, err)
	}
	c, err := loadText(t, settingLine.ReplaceAllString(text, "$1"), nil)
	if err != nil {
		t.Errorf("without the #: %v", err)
	}
	for _, n := range c.Notes {
		t.Errorf("without the #: %s", n)
	}
}

func TestExampleFileHasEveryKey(t *testing.T) {
	text := exampleFile(t)
	var there []string
	for _, m := range settingLine.FindAllStringSubmatch(text, -1) {
		key, _, _ := strings.Cut(m[1], " ")
		there = append(there, key)
	}
	for _, k := range keys() {
		found := strings.Contains(text, k.pattern+" = none") // in the words
		for _, key := range there {
			_, fits := match(k.pattern, key)
			found = found || fits
		}
		if !found {
			t.Errorf("packaging/leveret.conf.example lacks %s", k.pattern)
		}
	}
}
