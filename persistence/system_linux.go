package persistence

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// adviseMappings tells the kernel how the files in dir are used: vlog and mem
// are the numbers of the files being written, and value files from since on
// have had no advice yet.
//
// A file being written gets MADV_RANDOM. Without it a page fault brings in a
// whole read-ahead window, and the next sync writes all of it back: 4 to 9 times
// the bytes where the window is 8 MiB. A finished one gets its read-ahead back,
// and its pages are unmapped (they stay in the page cache), so that they do not
// count as this process's memory.
//
// Badger has no option for it, so the addresses come from the process's memory
// map. MADV_DONTNEED would be fatal if an address belonged to something else by
// then. It cannot: finished value files are unmapped by value-log collection
// and by Close only, and the keeper, which calls this, runs the one and has
// ended before the other.
func adviseMappings(dir string, since, vlog, mem int) error {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read the memory map: %w", err)
	}
	prefix, err := mappedPrefix(dir)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(maps) {
		at := bytes.Index(line, prefix)
		if at < 0 {
			continue
		}
		name := string(bytes.TrimSpace(line[at+len(prefix):]))
		start, end, ok := mapRange(line)
		if !ok {
			continue
		}
		if n, ok := fileNumber(name, ".vlog"); ok && n < vlog && n >= since {
			advise(start, end, unix.MADV_NORMAL)
			advise(start, end, unix.MADV_DONTNEED)
		} else if ok && n == vlog {
			advise(start, end, unix.MADV_RANDOM)
		}
		if n, ok := fileNumber(name, ".mem"); ok && n == mem {
			advise(start, end, unix.MADV_RANDOM)
		}
	}
	return nil
}

// mappedPrefix is what the names of the directory's files start with in the
// memory map.
func mappedPrefix(dir string) ([]byte, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, err
	}
	return []byte(abs + string(filepath.Separator)), nil
}

// advise gives advice on a range of addresses. A file being written may be
// mapped anew at this moment: EINVAL and ENOMEM say so, and MADV_RANDOM on
// anything else is harmless.
func advise(start, end uintptr, advice int) {
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, uintptr(advice))
}

// mapRange parses the addresses at the start of a line of the memory map.
func mapRange(line []byte) (start, end uintptr, ok bool) {
	field, _, _ := bytes.Cut(line, []byte(" "))
	lo, hi, _ := bytes.Cut(field, []byte("-"))
	a, err1 := strconv.ParseUint(string(lo), 16, 64)
	b, err2 := strconv.ParseUint(string(hi), 16, 64)
	return uintptr(a), uintptr(b), err1 == nil && err2 == nil && b > a
}
