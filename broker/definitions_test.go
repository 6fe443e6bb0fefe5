package broker

import (
	"os"
	"path/filepath"
	"testing"
)

// What was deleted after an import stays deleted while the file is the same, if
// the configuration says so (RabbitMQ 4.0: definitions.skip_if_unchanged).
func TestUnchangedDefinitionsAreSkipped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := testConfig(t)
	cfg.LoadDefinitions, cfg.DefinitionsHash = file, "sha512"
	has := func(when string, skip, want bool, then func(b *Broker)) {
		t.Helper()
		cfg.SkipUnchanged = skip
		b := New(cfg, nil)
		if _, err := b.Start(); err != nil {
			t.Fatal(err)
		}
		defer stop(t, b)
		if _, there := b.vhosts.Get("v"); there != want {
			t.Errorf("%s the vhost is there: %v, want %v", when, there, want)
		}
		if then != nil {
			then(b)
		}
	}
	remove := func(b *Broker) {
		if err := b.vhosts.Delete("v"); err != nil {
			t.Error(err)
		}
	}
	write(`{"vhosts":[{"name":"v"}]}`)
	has("first", true, true, remove)
	has("unchanged", true, false, nil)
	has("unchanged but not to be skipped", false, true, remove)
	write(`{"vhosts":[{"name":"v"},{"name":"w"}]}`)
	has("changed", true, true, nil)
}
