//go:build unix

package main

import (
	"maps"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leveretmq/leveret/config"
)

// While no file can be opened, as when clients have taken all descriptors, the log
// goes on in the file that it has, and the old ones stay.
func TestRotationWithoutDescriptors(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	f, err := newLogFile(filepath.Join(dir, "l"), config.Rotation{Size: 4, Count: 3}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	write := func(lines ...string) {
		t.Helper()
		for _, line := range lines {
			if _, err := f.Write([]byte(line + "\n")); err != nil {
				t.Error(err)
			}
		}
	}
	write("old1", "old2")
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	write("a", "b", "c", "d", "e", "f")
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	write("g") // it is not tried again for each line
	now = now.Add(rotationPause)
	write("h")
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"l": "h\n", "l.0": "old2\na\nb\nc\nd\ne\nf\ng\n", "l.1": "old1\n"}
	if got := filesIn(t, dir); !maps.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}
