package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/persistence"
)

// spill is the store of transient messages that do not fit in memory. It is
// opened when the first queue needs it, and what is in it ends with the broker.
type spill struct {
	dir     string              // immutable
	options persistence.Options // immutable

	mu    sync.Mutex // guards store; held while it is opened
	store persistence.Store
}

// newSpill removes what a killed broker left behind. In memory there is no
// spill: it returns nil.
func newSpill(cfg config.Config, log *zap.Logger) (*spill, error) {
	if cfg.InMemory {
		return nil, nil
	}
	s := &spill{dir: filepath.Join(cfg.DataDir, "spill")}
	s.options = storeOptions(cfg, s.dir, log)
	s.options.Durability = persistence.Relaxed
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, fmt.Errorf("remove the spilled messages of the last run: %w", err)
	}
	return s, nil
}

// log makes a log for one queue.
func (s *spill) log() (persistence.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		store, err := persistence.Open(s.options)
		if err != nil {
			return nil, fmt.Errorf("open the spill store: %w", err)
		}
		s.store = store
	}
	return s.store.NewLog()
}

// close closes the store and removes its files.
func (s *spill) close() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return nil
	}
	// What it holds is removed next, so a failed last write means nothing.
	_ = s.store.Close()
	s.store = nil
	return os.RemoveAll(s.dir)
}
