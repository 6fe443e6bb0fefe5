package persistence

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

// ErrDamaged says that files of the store are missing or not what was written.
var ErrDamaged = errors.New("the store is damaged")

// damaged says what to do about a store that cannot be opened.
func damaged(dir string, err error) error {
	return fmt.Errorf("%w: %w; restore %s from a backup, or move it away to start with an empty one (its messages and definitions are then gone)",
		ErrDamaged, err, dir)
}

// checkManifest looks at the list of the engine's tables before the engine
// does: Badger 4.9 deletes every table that is not on the list, and takes a
// missing list for an empty one. A change that was not written whole at the end
// is normal after a power cut, if the log that the change is about is still
// there; the engine then repeats it. In a store that was closed there is no
// such log, and a change that is lost means tables that are lost.
func checkManifest(dir string, log *zap.Logger) error {
	b, err := os.ReadFile(filepath.Join(dir, "MANIFEST"))
	tables, _ := filepath.Glob(filepath.Join(dir, "*.sst"))
	logs, _ := filepath.Glob(filepath.Join(dir, "*.mem"))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(tables) == 0:
		return nil // a new store, or one that died before it had anything
	case errors.Is(err, fs.ErrNotExist):
		return damaged(dir, errors.New("the file MANIFEST is missing"))
	case err != nil:
		return fmt.Errorf("read the list of tables: %w", err)
	}
	rest := manifestRest(b)
	switch {
	case rest == 0:
		return nil
	case len(logs) == 0 && len(tables) > 0:
		return damaged(dir, fmt.Errorf("the file MANIFEST has lost its end, from byte %d on", len(b)-rest))
	}
	log.Warn("the last change of the list of tables was not written whole; it is made again from the log",
		zap.String("dir", dir), zap.Int("bytes", rest))
	return nil
}

// manifestRest is how many bytes at the end are no whole change. The file is 8
// bytes of magic, and for each change its length and checksum, 4 bytes each,
// and the change.
func manifestRest(b []byte) int {
	if len(b) < 8 {
		return max(len(b), 1)
	}
	b = b[8:]
	for len(b) > 0 {
		if len(b) < 8 {
			return len(b)
		}
		n := uint64(binary.BigEndian.Uint32(b)) + 8
		if n > uint64(len(b)) {
			return len(b)
		}
		b = b[n:]
	}
	return 0
}
