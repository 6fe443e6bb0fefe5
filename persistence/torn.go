package persistence

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

// Bits of an entry in Badger 4.9's log, and what the file starts with.
const (
	entryPointer = 1 << 1 // the value is in the value log
	entryEnds    = 1 << 7 // the entry ends a transaction
	logHeader    = 20
)

// warnTorn says what of the index's log a crash has cut short: transactions that
// have no end. The engine drops them without a word. They were never confirmed.
func warnTorn(dir string, log *zap.Logger) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.mem")) // the pattern is good
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil || len(b) <= logHeader {
			continue // the engine tells of it
		}
		torn := bytes.TrimRight(b[committedEnd(b):], "\x00")
		if len(torn) == 0 {
			continue
		}
		chunks, records := countTorn(torn)
		log.Warn("a crash cut a write short: what it held was not confirmed and is dropped",
			zap.String("file", path), zap.Int("bytes", len(torn)), zap.Int("chunks", chunks), zap.Int("records-at-least", records))
	}
}

// committedEnd is where the last whole transaction in a log ends.
func committedEnd(b []byte) int {
	end := logHeader
	for at := logHeader; ; {
		e, n := cutEntry(b[at:])
		if n == 0 {
			return end
		}
		if at += n; e.meta&entryEnds != 0 {
			end = at
		}
	}
}

// countTorn counts the chunks in the whole entries of an unfinished transaction,
// and their records where the directory is in the log itself.
func countTorn(b []byte) (chunks, records int) {
	for {
		e, n := cutEntry(b)
		if n == 0 {
			return chunks, records
		}
		b = b[n:]
		if e.key[0] != keyChunk {
			continue
		}
		chunks++
		if e.meta&entryPointer != 0 {
			continue
		}
		if d, err := decodeDirectory(e.value); err == nil {
			for i := range d.entries {
				records += int(d.entries[i].count)
			}
		}
	}
}

// A logEntry is an entry of Badger's log; key and value alias the file's bytes.
type logEntry struct {
	meta       byte
	key, value []byte
}

// cutEntry cuts the entry at the start of b: two bytes of flags, the lengths of
// key and value and an expiry as uvarints, key, value, checksum. It returns 0 if
// there is no whole entry.
func cutEntry(b []byte) (e logEntry, n int) {
	at := 2
	var fields [3]uint64
	for i := range fields {
		if at >= len(b) {
			return e, 0
		}
		v, n := binary.Uvarint(b[at:])
		if n <= 0 {
			return e, 0
		}
		fields[i] = v
		at += n
	}
	key, value := fields[0], fields[1]
	if key == 0 || key > uint64(len(b)) || value > uint64(len(b)) {
		return e, 0
	}
	n = at + int(key) + int(value) + 4
	if n > len(b) {
		return e, 0
	}
	return logEntry{meta: b[0], key: b[at : at+int(key)], value: b[at+int(key) : n-4]}, n
}
