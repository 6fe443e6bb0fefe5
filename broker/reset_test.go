package broker

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/vhost"
)

// fill gives a broker what a reset has to take away.
func fill(t *testing.T, b *Broker) {
	t.Helper()
	if err := b.vhosts.Create("other", vhost.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.authority.PutUser("other", auth.Secret{Password: "a long password"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"g", "cluster_name"} {
		if err := b.vhosts.SetGlobal(name, json.RawMessage(`"x"`)); err != nil {
			t.Fatal(err)
		}
	}
}

// state is the names of vhosts, users and global parameters.
func state(b *Broker) string {
	var names []string
	for u := range b.authority.Users() {
		names = append(names, u.Name)
	}
	globals := slices.Sorted(maps.Keys(b.vhosts.Globals()))
	return strings.Join(b.vhosts.Names(), " ") + "; " + strings.Join(names, " ") + "; " + strings.Join(globals, " ")
}

// A reset makes what the broker's own configuration says.
func TestResetMakesTheConfiguredUser(t *testing.T) {
	b := start(t, func(c *config.Config) {
		c.DefaultUser, c.DefaultPass, c.DefaultVHost, c.DefaultTags = "root", "pw", "main", []string{"monitoring"}
		c.DefaultPermissions = config.Permissions{Configure: "^a", Write: ".*", Read: ".*"}
	})
	fill(t, b)
	if err := (operator{b}).Reset(); err != nil {
		t.Fatal(err)
	}
	if got, want := state(b), "main; root; cluster_name internal_cluster_id"; got != want {
		t.Errorf("after a reset there are %q, want %q", got, want)
	}
	if u, _ := b.authority.User("root"); !slices.Equal(u.Tags, []string{"monitoring"}) {
		t.Errorf("the user has the tags %q", u.Tags)
	}
	for p := range b.authority.Permissions("root", "main") {
		if p.Configure != "^a" {
			t.Errorf("the user may configure %q", p.Configure)
		}
	}
	if _, err := dial(t, b, "root:pw", "main"); err != nil {
		t.Errorf("the user cannot log in: %v", err)
	}
}

// Definitions take the place of a default user.
func TestResetImportsDefinitions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d.json")
	text := `{"vhosts":[{"name":"v"}],"users":[{"name":"u","password":"p","tags":""}],"permissions":[{"user":"u","vhost":"v","configure":".*","write":".*","read":".*"}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, skip := range []bool{false, true} {
		b := start(t, func(c *config.Config) { c.LoadDefinitions, c.SkipUnchanged = file, skip })
		fill(t, b)
		if err := (operator{b}).Reset(); err != nil {
			t.Fatal(err)
		}
		if got, want := state(b), "v; u; cluster_name"; !strings.HasPrefix(got, want) {
			t.Errorf("after a reset there are %q, want %q", got, want)
		}
	}
}

// Definitions that cannot be read any more are no reason to lose what there is.
func TestResetChecksDefinitions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("{}")
	b := start(t, func(c *config.Config) { c.LoadDefinitions = file })
	fill(t, b)
	before := state(b)
	refused := func(why string) {
		t.Helper()
		err := (operator{b}).Reset()
		if err == nil || !strings.Contains(err.Error(), "nothing was deleted") || !strings.Contains(err.Error(), why) || state(b) != before {
			t.Errorf("error %v, and there are %q; want an error with %q and %q", err, state(b), why, before)
		}
	}
	for text, why := range map[string]string{
		"{\n\"users\":[{},]}":            "d.json: line 2",
		"[]":                             "d.json: no JSON object",
		`{"vhosts":{"name":"v"}}`:        "vhosts must be a list",
		`{"vhosts":[],"queues":["q"]}`:   "item 0 of queues must be an object",
		`{"vhosts":[{"name":"v"}]} null`: "d.json: no single JSON object",
	} {
		write(text)
		refused(why)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("no such file")
}

// A default user that may not be made any more is no reason to lose the others.
func TestResetChecksFirst(t *testing.T) {
	dir := t.TempDir()
	onDisk := func(c *config.Config) { c.InMemory, c.DataDir = false, dir }
	stop(t, startOnce(t, onDisk))
	b := start(t, func(c *config.Config) { onDisk(c); c.Auth.MinPasswordLength = 10 })
	fill(t, b)
	before := state(b)
	if err := (operator{b}).Reset(); err == nil || !strings.Contains(err.Error(), "nothing was deleted") || state(b) != before {
		t.Errorf("error %v, and there are %q; want an error and %q", err, state(b), before)
	}
}

// A reset whose client has gone goes on: a second one would delete what it makes.
func TestOneResetAtATime(t *testing.T) {
	b := start(t, func(*config.Config) {})
	fill(t, b)
	before := state(b)
	b.resetting.Lock()
	if err := (operator{b}).Reset(); err == nil || !strings.Contains(err.Error(), "a reset is under way") || state(b) != before {
		t.Errorf("error %v, and there are %q; want an error and %q", err, state(b), before)
	}
	b.resetting.Unlock()
	if err := b.deleteVHosts([]string{"gone", "other"}); err != nil || slices.Contains(b.vhosts.Names(), "other") {
		t.Errorf("error %v, and there are %q; want none, and no vhost other", err, b.vhosts.Names())
	}
	if err := (operator{b}).Reset(); err != nil {
		t.Error(err)
	}
}

// startOnce is start for a broker that the test itself stops.
func startOnce(t *testing.T, change func(*config.Config)) *Broker {
	t.Helper()
	cfg := testConfig(t)
	change(&cfg)
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	return b
}
