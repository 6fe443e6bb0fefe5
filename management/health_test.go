package management

import (
	"errors"
	"testing"

	"github.com/leveretmq/leveret/persistence"
)

// healthStore is a store whose health a test makes up.
type healthStore struct {
	persistence.Store
	health persistence.Health
}

func (s *healthStore) Health() persistence.Health { return s.health }

// newHealthAPI makes an API over a store that says it is like this.
func newHealthAPI(t *testing.T, h persistence.Health) *api {
	t.Helper()
	return newAPI(t, func(c *Config) { c.Store = &healthStore{c.Store, h} })
}

func TestStoreIsShown(t *testing.T) {
	a := newHealthAPI(t, persistence.Health{DiskUsed: 7, Live: 5, Uncommitted: 3, Commits: 2, Records: 9})
	want := J{"durability": "relaxed", "failed": false, "error": nil, "disk_used": 7.0, "live_bytes": 5.0,
		"uncommitted": 3.0, "commits": 2.0, "records": 9.0}
	for _, path := range []string{"/overview", "/nodes/rabbit@test"} {
		has(t, a.do("GET", path, "", 200).(J)["leveret_store"], want)
	}
}

func TestChecksFailWithTheStore(t *testing.T) {
	a := newHealthAPI(t, persistence.Health{Err: errors.New("write: input/output error"), Synced: true})
	has(t, a.do("GET", "/nodes/rabbit@test", "", 200).(J)["leveret_store"],
		J{"durability": "synced", "failed": true, "error": "write: input/output error"})
	for _, path := range []string{"/health/checks/alarms", "/health/checks/local-alarms", "/health/checks/virtual-hosts",
		"/health/checks/is-in-service", "/health/checks/ready-to-serve-clients", "/healthchecks/node", "/healthchecks/node/rabbit@test"} {
		has(t, a.do("GET", path, "", 503), J{"status": "failed"})
	}
}
