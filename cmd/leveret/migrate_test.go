package main

import (
	"testing"
)

// The definitions go to the broker that the messages go to.
func TestMigrationTargets(t *testing.T) {
	ask(t, "http://own:1")
	for _, tt := range []struct {
		to, env, management string
		base, user          string
	}{
		{"", "", "", "http://own:1", "guest"},
		{"amqp://u:p@127.0.0.1:5673", "", "", "http://own:1", "guest"},
		{"amqp://u:p@localhost", "", "", "http://own:1", "guest"},
		{"amqp://u:p@[::1]", "", "", "http://own:1", "guest"},
		{"amqp://u:p@new", "", "", "http://new:15672", "u"},
		{"amqps://u:p@new", "", "", "https://new:15671", "u"},
		{"", "amqp://u:p@new", "", "http://new:15672", "u"},
		{"amqp://u:p@new", "", "http://m:p@api:80", "http://api:80", "m"},
		{"amqp://u:p@new", "", "local", "http://own:1", "guest"},
		{"", "", "api:80", "http://api:80", "guest"},
	} {
		f := migrateFlags{to: tt.to, toManagement: tt.management}
		env := func(name string) string { return map[string]string{"LEVERET_MIGRATE_TO": tt.env}[name] }
		_, to, err := f.endpoints([]string{"amqp://u:p@old"}, env)
		if err != nil || to.API.Base != tt.base || to.API.User != tt.user {
			t.Errorf("--to %q (%q) --to-management %q: %v, error %v; want %s as %s", tt.to, tt.env, tt.management, to.API, err, tt.base, tt.user)
		}
	}
	f := migrateCommand().Flags()
	if f.Lookup("to-management").DefValue != "" {
		t.Error("--to-management has a default that is not of the target")
	}
	m := migrateFlags{to: "http://new"}
	if _, _, err := m.endpoints([]string{"amqp://old"}, func(string) string { return "" }); err == nil {
		t.Error("a target that is no AMQP URI is taken")
	}
}
