package persistence

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// adviseMappings tells the kernel that the newest files are written at random
// and the others read in order. Without it a page fault on a file being
// written brings in a whole read-ahead window, and the next sync writes all of
// it back: 4 to 9 times the bytes where the window is 8 MiB.
//
// Badger has no option for it, so the addresses come from the process's memory
// map. A mapping may be gone by the time the advice is given; the advice is
// then refused, or harmless: neither of the two changes what memory holds.
func adviseMappings(dir string, vlog, mem int) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read the memory map: %w", err)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	prefix := []byte(abs + string(filepath.Separator))
	for line := range bytes.Lines(maps) {
		at := bytes.Index(line, prefix)
		if at < 0 {
			continue
		}
		name := string(bytes.TrimSpace(line[at+len(prefix):]))
		advice, ok := adviceFor(name, vlog, mem)
		if !ok {
			continue
		}
		if start, end, ok := mapRange(line); ok {
			// EINVAL and ENOMEM say that the mapping has gone.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, uintptr(advice))
		}
	}
	return nil
}

func adviceFor(name string, vlog, mem int) (advice int, ok bool) {
	if n, ok := fileNumber(name, ".mem"); ok {
		return unix.MADV_RANDOM, n == mem
	}
	if n, ok := fileNumber(name, ".vlog"); ok {
		if n == vlog {
			return unix.MADV_RANDOM, true
		}
		return unix.MADV_NORMAL, true
	}
	return 0, false
}

// mapRange parses the addresses at the start of a line of the memory map.
func mapRange(line []byte) (start, end uintptr, ok bool) {
	field, _, _ := bytes.Cut(line, []byte(" "))
	lo, hi, _ := bytes.Cut(field, []byte("-"))
	a, err1 := strconv.ParseUint(string(lo), 16, 64)
	b, err2 := strconv.ParseUint(string(hi), 16, 64)
	return uintptr(a), uintptr(b), err1 == nil && err2 == nil && b > a
}
