package main

import (
	"net"
	"strings"
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

// An address of this machine names its broker as well as localhost does.
func TestMigrationToAnAddressOfThisMachine(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		host := a.(*net.IPNet).IP.String()
		if uri := "amqp://" + net.JoinHostPort(host, "5672"); !onThisMachine(uri) {
			t.Errorf("%s is taken for another machine", uri)
		}
	}
	if onThisMachine("amqp://192.0.2.1") { // of documentation
		t.Error("192.0.2.1 is taken for this machine")
	}
}

// The definitions of a source are not imported into itself.
func TestMigrationNeedsTwoBrokers(t *testing.T) {
	ask(t, "http://127.0.0.1:1")
	for _, args := range [][]string{
		{"amqp://localhost:5672", "--management", "localhost:1", "--to", "amqp://localhost:5673"},
		{"amqp://old", "--management", "http://old:1/mq/", "--to", "amqp://new", "--to-management", "http://OLD:1/mq"},
		{"amqp://old", "--to", "amqp://old:5673"},
	} {
		code, _, errs := call(t, "", append([]string{"leveret", "migrate"}, args...)...)
		if code != exitUsage || !strings.Contains(errs, "source and target have the same HTTP API") {
			t.Errorf("%q: exit %d, %s; want %d, as both are one broker", args, code, errs, exitUsage)
		}
	}
	for _, two := range [][2]string{{"http://127.0.0.1:1", "http://127.0.0.1:2"}, {"http://old:1", "http://new:1"}, {"http://old:1/a", "http://old:1/b"}, {"http://127.0.0.1:15672", "http://127.0.0.1"}} {
		if sameAPI(two[0], two[1]) {
			t.Errorf("%q are taken for one", two)
		}
	}
}
