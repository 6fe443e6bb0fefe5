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
		name, _, _ := strings.Cut(k.pattern, ".*")
		if !strings.Contains(page, "`"+name) {
			t.Errorf("docs/configuration.md lacks %s", k.pattern)
		}
	}
	for _, v := range rabbitVariables() {
		if !strings.Contains(page, "`"+v.name+"`") {
			t.Errorf("docs/configuration.md lacks %s", v.name)
		}
	}
}
