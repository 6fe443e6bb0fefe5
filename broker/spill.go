package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/persistence"
)

// spill is the store of transient messages that do not fit in memory. It is
// opened when the first queue needs it, and what is in it ends with the broker.
type spill struct {
	dir     string              // immutable
	options persistence.Options // immutable

	opening sync.Mutex                       // held while the store is opened or closed
	store   atomic.Pointer[persistence.Disk] // nil until it is needed
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

// log makes a log for one lane of a queue.
func (s *spill) log() (persistence.Log, error) {
	store, err := s.open()
	if err != nil {
		return nil, err
	}
	return store.NewLog()
}

func (s *spill) open() (*persistence.Disk, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if store := s.store.Load(); store != nil {
		return store, nil
	}
	store, err := persistence.Open(s.options)
	if err != nil {
		return nil, fmt.Errorf("open the spill store: %w", err)
	}
	if err := store.Recovered(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	s.store.Store(store)
	return store, nil
}

// close closes the store and removes its files.
func (s *spill) close() error {
	if s == nil {
		return nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	store := s.store.Swap(nil)
	if store == nil {
		return nil
	}
	// What it holds is removed next, so a failed last write means nothing.
	_ = store.Close()
	return os.RemoveAll(s.dir)
}

// A spillingStore is the store as publishers see it: they wait for the spilled
// messages too, which would otherwise pile up in memory on their way to disk.
type spillingStore struct {
	persistence.Store
	spill *spill // may be nil
}

// Wait blocks while either store is behind.
func (s spillingStore) Wait(ctx context.Context) error {
	if err := s.Store.Wait(ctx); err != nil || s.spill == nil {
		return err
	}
	if store := s.spill.store.Load(); store != nil {
		return store.Wait(ctx)
	}
	return nil
}
