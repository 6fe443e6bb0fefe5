package config

import (
	"slices"
	"strings"
	"testing"
)

func TestMisspelt(t *testing.T) {
	for variable, want := range map[string]string{
		"LEVERET_DURABILTY=relaxed":        "LEVERET_DURABILITY?",
		"LEVERET_HEARTBEET=5s":             "LEVERET_HEARTBEAT?",
		"RABBITMQ_DEFALT_USER=x":           "RABBITMQ_DEFAULT_USER?",
		"RABBITMQ_DEFAULT_PASSS=x":         "RABBITMQ_DEFAULT_PASS?",
		"RABBITMQ_NODE_NAME=x":             "RABBITMQ_NODENAME?",
		"LEVERET_DURABILITY=relaxed":       "", // there is that one
		"LEVERET_URL=http://x":             "", // the client's
		"RABBITMQ_USE_LONGNAME=true":       "", // has a remark of its own
		"RABBITMQ_PORT_5672_TCP=tcp://x":   "", // an orchestrator's
		"RABBITMQ_SERVICE_HOST=10.0.0.1":   "",
		"RABBITMQ_SSL_VERIFY=verify_peer":  "",
		"RABBITMQ_ENABLED_PLUGINS_FILE=/x": "",
		"DEFALT_USER=x":                    "",
	} {
		got := Misspelt([]string{"HOME=/root", variable})
		if want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || want == "" || !strings.HasSuffix(got[0], want) {
			t.Errorf("%s: remarks %q, want one that ends with %q", variable, got, want)
		}
	}
}

// Each variable that Load looks at is known.
func TestKnownVariables(t *testing.T) {
	known := knownVariables()
	asked := func(name string) (string, bool) {
		if (strings.HasPrefix(name, "LEVERET_") || strings.HasPrefix(name, "RABBITMQ_")) && !slices.Contains(known, name) {
			t.Errorf("%s is looked at and not known", name)
		}
		return "", false
	}
	if _, err := Load(nil, asked); err != nil {
		t.Fatal(err)
	}
}

func TestMoreMemoryThanThereIs(t *testing.T) {
	for text, want := range map[string]int{"40": 1, "0.4": 0, "1": 0} {
		c, err := Load(nil, environment(map[string]string{"RABBITMQ_VM_MEMORY_HIGH_WATERMARK": text, "LEVERET_DATA_DIR": t.TempDir()}))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Notes) != want || want == 1 && !strings.Contains(c.Notes[0], "RABBITMQ_VM_MEMORY_HIGH_WATERMARK") {
			t.Errorf("watermark %s: notes %q, want %d", text, c.Notes, want)
		}
	}
}
