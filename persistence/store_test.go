package persistence_test

import (
	"testing"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/persistence/storetest"
)

func TestDisk(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts persistence.Options
	}{
		{"tiny", persistence.Options{}},
		{"server", persistence.Options{Profile: persistence.Server, DiskLimit: 1}},
		{"relaxed", persistence.Options{Durability: persistence.Relaxed}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			storetest.Run(t, true, func(t *testing.T) storetest.Open {
				opts := tt.opts
				opts.Dir = t.TempDir()
				return func(t *testing.T) persistence.Store {
					t.Helper()
					s, err := persistence.Open(opts)
					if err != nil {
						t.Fatalf("Open: %v", err)
					}
					return s
				}
			})
		})
	}
}

func TestMemory(t *testing.T) {
	storetest.Run(t, false, func(*testing.T) storetest.Open {
		return func(*testing.T) persistence.Store { return persistence.NewMemory() }
	})
}
