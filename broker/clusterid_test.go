package broker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/config"
)

// clusterID is the global parameter internal_cluster_id.
func clusterID(t *testing.T, b *Broker) string {
	t.Helper()
	var id string
	if err := json.Unmarshal(b.vhosts.Globals()["internal_cluster_id"], &id); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestClusterIDStaysAndAResetMakesAnother(t *testing.T) {
	cfg := testConfig(t)
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	first := clusterID(t, b)
	if !strings.HasPrefix(first, "leveret-cluster-id-") || len(first) != len("leveret-cluster-id-")+22 {
		t.Errorf("the id is %q", first)
	}
	if other := clusterID(t, start(t, func(*config.Config) {})); other == first {
		t.Errorf("two brokers have the id %q", first)
	}
	stop(t, b)
	b = start(t, func(c *config.Config) { c.InMemory, c.DataDir = false, cfg.DataDir })
	if got := clusterID(t, b); got != first {
		t.Errorf("after a restart the id is %q, want %q", got, first)
	}
	if err := (operator{b}).Reset(); err != nil {
		t.Fatal(err)
	}
	if got := clusterID(t, b); got == first || got == "" {
		t.Errorf("after a reset the id is %q, want another than %q", got, first)
	}
}

func TestDefinitionsMayBringTheClusterID(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d.json")
	if err := os.WriteFile(file, []byte(`{"global_parameters": [{"name": "internal_cluster_id", "value": "theirs"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := clusterID(t, start(t, func(c *config.Config) { c.LoadDefinitions = file })); got != "theirs" {
		t.Errorf("the id is %q, want that of the definitions", got)
	}
}
