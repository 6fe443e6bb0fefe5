//go:build unix

package broker

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// foreignFolder is a folder of another user than this one.
func foreignFolder(t *testing.T) (dir, owner string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/", userName(0)
	}
	dir = t.TempDir()
	if err := os.Chown(dir, 54321, -1); err != nil {
		t.Fatal(err)
	}
	return dir, "54321"
}

func TestDataDirectoryOfAnotherUser(t *testing.T) {
	dir, owner := foreignFolder(t)
	err := storeError(dir, fmt.Errorf("make it: %w", fs.ErrPermission))
	self := userName(os.Geteuid())
	want := fmt.Sprintf("open data directory %s: make it: permission denied; it belongs to %s, the broker runs as %s: run it as %s, give the folder away with chown -R %s %s, or name another folder with --data-dir (LEVERET_DATA_DIR)",
		dir, owner, self, owner, self, dir)
	if err.Error() != want {
		t.Errorf("got %q\nwant %q", err, want)
	}
}

func TestDataDirectoryThatMayNotBeWritten(t *testing.T) {
	err := storeError(t.TempDir(), fs.ErrPermission)
	if want := "let its owner write to it and all that is in it"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want %q in it", err, want)
	}
}
