package persistence_test

import (
	"os"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/persistence/storetest"
)

// What a crash has cut short is told once, and what is whole is all there.
func TestTornWriteIsTold(t *testing.T) {
	dir := t.TempDir()
	open := func(log *zap.Logger) *persistence.Disk {
		t.Helper()
		s, err := persistence.Open(persistence.Options{Dir: dir, DiskLimit: 1, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(nil)
	if err := s.Put(persistence.Queues, "whole", []byte("value")); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	copyFiles(t, dir, copied) // as if the machine had died here
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dir = copied
	if n, err := storetest.TearTails(dir); err != nil || n == 0 {
		t.Fatalf("%d files were torn: %v", n, err)
	}
	for _, want := range []int{1, 0} {
		core, logged := observer.New(zap.WarnLevel)
		s = open(zap.New(core))
		if n := logged.FilterMessageSnippet("cut a write short").Len(); n != want {
			t.Errorf("%d warnings of a torn write, want %d: %v", n, want, logged.All())
		}
		found := false
		for key := range s.All(persistence.Queues) {
			found = found || key == "whole"
		}
		if !found {
			t.Error("what was committed is lost")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}
