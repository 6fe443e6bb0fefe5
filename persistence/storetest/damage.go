package storetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// fileHeader is what a log file of the engine starts with, in bytes.
const fileHeader = 20

// PlantEmptyFiles makes the files of no length that a crash leaves between
// their creation and their first byte. No process may have the store open.
func PlantEmptyFiles(dir string) error {
	for _, name := range []string{"999990.vlog", "99990.mem", "999991.vlog"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// TearTails writes behind what is committed what a crash in the middle of a
// write leaves there: one entry of a transaction that has no end, and a part of
// another. It reports how many files it did that to: those written last, if
// they have entries and room. No process may have the store open.
func TearTails(dir string) (int, error) {
	torn := 0
	for _, ext := range []string{".vlog", ".mem"} {
		files, err := filepath.Glob(filepath.Join(dir, "*"+ext))
		if err != nil || len(files) == 0 {
			continue
		}
		slices.Sort(files)
		ok, err := tearTail(files[len(files)-1])
		if err != nil {
			return torn, err
		}
		if ok {
			torn++
		}
	}
	return torn, nil
}

func tearTail(path string) (bool, error) {
	b, err := os.ReadFile(path)
	if err != nil || len(b) <= fileHeader {
		return false, err
	}
	first := entryLen(b[fileHeader:])
	end := fileHeader
	for n := first; n > 0; n = entryLen(b[end:]) {
		end += n
	}
	tail := slices.Concat(b[fileHeader:fileHeader+first], b[fileHeader:fileHeader+first/2])
	if first == 0 || end+len(tail) > len(b) {
		return false, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	_, err = f.WriteAt(tail, int64(end))
	if err := errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("tear the tail of %s: %w", path, err)
	}
	return true, nil
}

// entryLen is the length of the entry at the start of b, in bytes: two bytes of
// flags, the lengths of key and value and an expiry as uvarints, key, value,
// checksum. It is 0 where there is none.
func entryLen(b []byte) int {
	at := 2
	var fields [3]uint64
	for i := range fields {
		if at >= len(b) {
			return 0
		}
		v, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return 0
		}
		fields[i] = v
		at += n
	}
	key, value := fields[0], fields[1]
	if key == 0 || key > uint64(len(b)) || value > uint64(len(b)) {
		return 0
	}
	total := at + int(key) + int(value) + 4
	if total > len(b) {
		return 0
	}
	return total
}
