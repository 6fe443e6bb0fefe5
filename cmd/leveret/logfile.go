package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/leveretmq/leveret/config"
)

// A logFile is a file that is moved away when it is too large or too old: to
// PATH.0, that one to PATH.1 and so on (RabbitMQ 4.0: log.file.rotation). Lines
// are appended, so that a rotation from outside by copying works as well.
type logFile struct {
	path string           // immutable
	rule config.Rotation  // immutable
	date *config.Date     // immutable; nil is none
	now  func() time.Time // immutable

	// mu guards the fields below. It is held for one line, and while files are
	// renamed.
	mu       sync.Mutex
	file     *os.File
	size     int64
	next     time.Time // when date says so
	failed   bool      // rotating did not work: told once
	packing  sync.WaitGroup
	packFail error // of the last packing; read after packing.Wait
}

func newLogFile(path string, rule config.Rotation, now func() time.Time) (*logFile, error) {
	f := &logFile{path: path, rule: rule, now: now}
	if rule.Date != "" {
		date, err := config.ParseDate(rule.Date)
		if err != nil {
			return nil, err
		}
		f.date = &date
		f.next = date.Next(now())
	}
	return f, f.open()
}

// open opens the file. f.mu must be held, or f not be shared yet.
func (f *logFile) open() error {
	file, err := os.OpenFile(f.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, info.Size()
	return nil
}

// Write implements zapcore.WriteSyncer. It gets whole lines.
func (f *logFile) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.due(len(line)) {
		f.rotate()
	}
	n, err := f.file.Write(line)
	f.size += int64(n)
	return n, err
}

// Sync implements zapcore.WriteSyncer.
func (f *logFile) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Sync()
}

func (f *logFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.packing.Wait()
	return f.file.Close()
}

// reopen opens the file anew after something else has moved it.
func (f *logFile) reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.file
	if err := f.open(); err != nil {
		return fmt.Errorf("open the log file: %w", err)
	}
	return old.Close()
}

// due says whether the file is to be moved before a line of this length.
func (f *logFile) due(line int) bool {
	if f.rule.Size > 0 && f.size > 0 && f.size+int64(line) > f.rule.Size {
		return true
	}
	if f.date == nil {
		return false
	}
	now := f.now()
	if now.Before(f.next) {
		return false
	}
	f.next = f.date.Next(now)
	return f.size > 0
}

// rotate moves the files one further and begins a new one. If that cannot be
// done the old one is written on. f.mu must be held.
func (f *logFile) rotate() {
	f.packing.Wait()
	err := errors.Join(f.packFail, f.shift())
	if err == nil {
		old := f.file
		if err = f.open(); err == nil {
			err = old.Close()
		}
	}
	f.packFail = nil
	if err != nil && !f.failed {
		f.failed = true
		fmt.Fprintf(os.Stderr, "leveret: move the log file %s away: %v\n", f.path, err)
	}
	if f.rule.Compress && f.rule.Count > 1 {
		f.packing.Go(func() { f.packFail = pack(f.numbered(1)) }) // ends with the file
	}
}

// numbered is the path of an old file, 0 being the newest.
func (f *logFile) numbered(n int) string { return f.path + "." + strconv.Itoa(n) }

// shift renames the file and all old ones, and drops those that are too many.
func (f *logFile) shift() error {
	if f.rule.Count == 0 {
		return ignoreMissing(os.Remove(f.path))
	}
	var err error
	for _, ending := range []string{"", ".gz"} {
		err = errors.Join(err, ignoreMissing(os.Remove(f.numbered(f.rule.Count-1)+ending)))
		for n := f.rule.Count - 1; n > 0; n-- {
			err = errors.Join(err, ignoreMissing(os.Rename(f.numbered(n-1)+ending, f.numbered(n)+ending)))
		}
	}
	return errors.Join(err, ignoreMissing(os.Rename(f.path, f.numbered(0))))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// pack compresses a file that is not written any more.
func pack(name string) error {
	in, err := os.Open(name)
	if err != nil {
		return ignoreMissing(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	out, err := os.OpenFile(name+".gz", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	_, err = io.Copy(z, in)
	if err = errors.Join(err, z.Close(), out.Close()); err != nil {
		return err
	}
	return os.Remove(name)
}
