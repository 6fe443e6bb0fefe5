package persistence

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// A store that the engine cannot open is refused with what to do, and left as
// it is.
func TestDamagedStore(t *testing.T) {
	for name, damage := range map[string]func(manifest string) error{
		"cut manifest":   func(path string) error { return os.Truncate(path, fileSize(t, path)-1) },
		"no manifest":    os.Remove,
		"empty manifest": func(path string) error { return os.Truncate(path, 0) },
		"other manifest": func(path string) error { return os.WriteFile(path, []byte("something else"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, Options{Dir: dir})
			l := mustLog(t, s)
			mustAppend(t, l, testRecords(1, 2)...)
			for range 4 { // so that tables are made, and replaced
				if err := s.keep.pad(); err != nil {
					t.Fatal(err)
				}
			}
			closeTest(t, s)
			if err := damage(filepath.Join(dir, "MANIFEST")); err != nil {
				t.Fatal(err)
			}
			before := listing(t, dir)
			_, err := Open(Options{Dir: dir, Log: zap.NewNop()})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "backup") {
				t.Errorf("Open = %v, want ErrDamaged and what to do", err)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("Open has changed the files from %q to %q", before, after)
			}
		})
	}
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// listing names the tables of a store, all that could be lost by opening it.
func listing(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d tables, %v", len(files), err)
	}
	return strings.Join(files, " ")
}
