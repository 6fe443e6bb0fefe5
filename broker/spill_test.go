package broker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// waitingStore is a store that is always behind.
type waitingStore struct{ persistence.Store }

func (waitingStore) Wait(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// What a killed broker has spilled goes at the next start; the folder is made
// when the first message needs it, and goes at the stop.
func TestSpillFolder(t *testing.T) {
	cfg := testConfig(t)
	dir := filepath.Join(cfg.DataDir, "spill")
	wantFolder := func(want bool) {
		t.Helper()
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("stat of the folder: %v, want it there: %v", err, want)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := newSpill(cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	wantFolder(false)
	first, err := s.log()
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.log()
	if err != nil {
		t.Fatal(err)
	}
	if first.ID() == second.ID() {
		t.Errorf("both logs have the id %d", first.ID())
	}
	wantFolder(true)
	if err := s.close(); err != nil {
		t.Error(err)
	}
	wantFolder(false)
}

// A publisher waits for the store that it has given something to write.
func TestPublishersWaitForTheirStore(t *testing.T) {
	cfg := testConfig(t)
	s, err := newSpill(cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	s.options.MaxUncommitted = 1
	s.options.Linger = 1 << 40 // nothing is committed before the end
	b := &Broker{store: persistence.NewMemory(), spill: s}
	if err := b.waitStores(t.Context(), queue.Anywhere); err != nil {
		t.Errorf("without a spilled message: %v", err)
	}
	log, err := s.log()
	if err != nil {
		t.Fatal(err)
	}
	log.Append([]persistence.Record{{ID: 1, Body: []byte("more than one byte")}}, (*message.Receipt)(nil))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wants := func(which string, w queue.Writes, want error) {
		t.Helper()
		if err := b.waitStores(over, w); !errors.Is(err, want) {
			t.Errorf("while the %s is behind, written %b: %v, want %v", which, w, err, want)
		}
	}
	wants("spill store", queue.ToSpill, context.Canceled)
	wants("spill store", queue.Anywhere, context.Canceled)
	wants("spill store", queue.ToStore, nil)
	b.store, b.spill = waitingStore{}, nil
	wants("store", queue.ToStore, context.Canceled)
	wants("store", queue.Anywhere, context.Canceled)
	wants("store", queue.ToSpill, nil)
}

// A spill store that fails is told once, and no publisher waits for it or is
// closed for it.
func TestSpillStoreFails(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	s, err := newSpill(testConfig(t), zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	s.options.MaxUncommitted = 1
	log, err := s.log()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.dir); err != nil { // it cannot begin its second file
		t.Fatal(err)
	}
	body := make([]byte, 1<<20)
	for id := uint64(1); log.Append([]persistence.Record{{ID: id, Body: body}}, nil); id++ {
		if err := s.wait(t.Context()); err != nil {
			t.Fatalf("wait: %v", err)
		}
	}
	s.watching.Wait()
	if err := s.wait(t.Context()); err != nil {
		t.Errorf("wait after the failure: %v", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.close(); err != nil {
		t.Error(err)
	}
	if n := logs.FilterMessageSnippet("transient messages stay in memory").Len(); n != 1 {
		t.Errorf("%d lines say that the store has failed, want 1", n)
	}
}
