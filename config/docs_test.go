package config

import (
	"os"
	"strings"
	"testing"
)

func configurationPage(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The examples of the documentation are files that load.
func TestDocumentedExamplesLoad(t *testing.T) {
	blocks := strings.Split(configurationPage(t), "```")
	examples := 0
	for _, block := range blocks {
		text, ok := strings.CutPrefix(block, "ini\n")
		if !ok {
			continue
		}
		examples++
		c, err := loadText(t, text, nil)
		if err != nil {
			t.Errorf("example %d: %v", examples, err)
		}
		if examples == 1 && (c.DefaultPass != "a # in it" || c.TLSListen != ":5671" || len(c.Notes) > 0) {
			t.Errorf("the first example gives DefaultPass %q, TLSListen %q, notes %q", c.DefaultPass, c.TLSListen, c.Notes)
		}
	}
	if examples < 2 {
		t.Errorf("%d examples found, want 2 or more", examples)
	}
}

func TestEveryKeyIsDocumented(t *testing.T) {
	page := configurationPage(t)
	for _, k := range keys() {
		if !documented(page, k.pattern) {
			t.Errorf("docs/configuration.md lacks %s", k.pattern)
		}
	}
	for _, v := range rabbitVariables() {
		if !strings.Contains(page, "`"+v.name+"`") {
			t.Errorf("docs/configuration.md lacks %s", v.name)
		}
	}
}

// documented says whether a key is on the page: whole, with N or NAME in place of
// a *, or as .field behind another field of the same.
func documented(page, pattern string) bool {
	whole := strings.TrimSuffix(pattern, ".*")
	before, after, _ := strings.Cut(whole, "*")
	if strings.Contains(page, "`"+before) && strings.Contains(page, after+"`") {
		return true
	}
	parts := strings.Split(whole, ".")
	last := "`." + parts[len(parts)-1]
	return strings.Contains(page, "`"+strings.Join(parts[:len(parts)-1], ".")+".") && (strings.Contains(page, last+"`") || strings.Contains(page, last+".N`"))
}
