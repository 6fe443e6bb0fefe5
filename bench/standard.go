package bench

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed scenarios/*.yaml
var shipped embed.FS

// StandardNames lists the scenarios that come with the program, in the order
// in which they are run.
func StandardNames() []string {
	return []string{
		"fire-16B", "fire-1K", "durable-1K", "durable-100B", "confirm1", "fanout-10", "topic-1000", "many-100q", "rate-1000",
		"body-64K", "quorum-1K", "stream-100B", "stream-scan", "backlog-1M", "connchurn", "declchurn", "conns-1000",
	}
}

// StandardSource is the file of a standard scenario.
func StandardSource(name string) ([]byte, error) {
	names := StandardNames()
	if !slices.Contains(names, name) {
		if near := nearest(name, names); near != "" {
			return nil, fmt.Errorf("no scenario %q; did you mean %q?", name, near)
		}
		return nil, fmt.Errorf("no scenario %q; there are %s", name, strings.Join(names, ", "))
	}
	return shipped.ReadFile("scenarios/" + name + ".yaml")
}

// Standard returns a standard scenario.
func Standard(name string) (*Scenario, error) {
	source, err := StandardSource(name)
	if err != nil {
		return nil, err
	}
	all, err := ParseScenarios(name+".yaml", source)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}
