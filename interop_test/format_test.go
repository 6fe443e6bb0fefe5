//go:build !foreign

package interop_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
)

// A data directory of a later version is refused and left as it is.
func TestNewerFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	start(t, dir).stop()
	setFormat(t, filepath.Join(dir, "store"), 99)
	wantRefused(t, dir, "has format 99, this version knows 1; use the version that wrote it, or a newer one")
	setFormat(t, filepath.Join(dir, "store"), 1)
	start(t, dir).stop()
}

// A data directory that lost a part of a file is refused, not emptied.
func TestDamagedStoreIsRefused(t *testing.T) {
	dir := t.TempDir()
	start(t, dir).stop()
	manifest := filepath.Join(dir, "store", "MANIFEST")
	whole, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, dir, "the store is damaged: the file MANIFEST has lost its end")
	if err := os.WriteFile(manifest, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, dir).stop()
}

func wantRefused(t *testing.T, dir, text string) {
	t.Helper()
	code, _, stderr := runToEnd(t, "--listen", "127.0.0.1:0", "--data-dir", dir)
	if code != 1 || !strings.Contains(stderr, text) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stderr %q, want 1 and one line with %q", code, stderr, text)
	}
}

// setFormat changes the version that a store says it has.
func setFormat(t *testing.T, dir string, version byte) {
	t.Helper()
	db, err := badger.OpenManaged(badger.DefaultOptions(dir).WithLogger(nil).WithValueLogFileSize(4 << 20))
	if err != nil {
		t.Fatal(err)
	}
	at := db.MaxVersion()
	txn := db.NewTransactionAt(math.MaxUint64, true)
	defer txn.Discard()
	if err := txn.Set([]byte("f"), []byte{version}); err != nil {
		t.Fatal(err)
	}
	if err := txn.CommitAt(at+1, nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
