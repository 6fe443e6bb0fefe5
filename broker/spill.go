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
	"github.com/leveretmq/leveret/queue"
)

// spill is the store of transient messages that do not fit in memory. It is
// opened when the first queue needs it, and what is in it ends with the broker.
type spill struct {
	dir     string              // immutable
	options persistence.Options // immutable
	logger  *zap.Logger         // immutable

	watching sync.WaitGroup                   // the goroutine of watch
	opening  sync.Mutex                       // held while the store is opened or closed
	store    atomic.Pointer[persistence.Disk] // nil until it is needed
}

// newSpill removes what a killed broker left behind. In memory there is no
// spill: it returns nil.
func newSpill(cfg config.Config, log *zap.Logger) (*spill, error) {
	if cfg.InMemory {
		return nil, nil
	}
	s := &spill{dir: filepath.Join(cfg.DataDir, "spill"), logger: log}
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
	changed := store.Watch()
	s.watching.Go(func() { s.watch(store, changed) })
	return store, nil
}

// watch waits for the store to fail, and says so. It ends then or when the store
// is closed.
func (s *spill) watch(store persistence.Store, changed <-chan struct{}) {
	for range changed {
		switch err := store.Health().Err; {
		case err == nil:
		case errors.Is(err, persistence.ErrClosed):
			return
		default:
			s.logger.Error("the store of spilled messages has failed: transient messages stay in memory from now on, up to the memory alarm; "+
				"free or repair the disk and restart the broker", zap.String("folder", s.dir), zap.Error(err))
			return
		}
	}
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
	s.watching.Wait()
	return os.RemoveAll(s.dir)
}

// wait blocks while the store is behind. Nobody waits for one that has failed: it
// takes nothing more.
func (s *spill) wait(ctx context.Context) error {
	if s == nil {
		return nil
	}
	if store := s.store.Load(); store != nil {
		if err := store.Wait(ctx); ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// waitStores blocks while one of these stores is behind: what is on its way to disk
// is in memory until it is there.
func (b *Broker) waitStores(ctx context.Context, writes queue.Writes) error {
	if writes&queue.ToStore != 0 {
		if err := b.store.Wait(ctx); err != nil {
			return err
		}
	}
	if writes&queue.ToSpill != 0 {
		return b.spill.wait(ctx)
	}
	return nil
}
