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

// rotationPause is how long after a rotation that did not work the next is tried:
// what is in the way, as a full disk, is seldom gone with the next line.
const rotationPause = time.Minute

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
	retry    time.Time // not before, after a rotation that did not work
	failed   bool      // the last rotation or packing did not work, which is told once
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
	file, err := openLog(f.path)
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

func openLog(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
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

// due says whether the file is to be moved before a line of this length. f.mu
// must be held.
func (f *logFile) due(line int) bool {
	now := f.now()
	if now.Before(f.retry) {
		return false
	}
	if f.date != nil && !now.Before(f.next) {
		if f.size > 0 {
			return true
		}
		f.next = f.date.Next(now) // an empty file is as good as a new one
	}
	return f.rule.Size > 0 && f.size > 0 && f.size+int64(line) > f.rule.Size
}

// rotate moves the files one further and begins a new one. If that cannot be
// done the old one is written on. f.mu must be held.
func (f *logFile) rotate() {
	f.packing.Wait()
	packFail := f.packFail
	f.packFail = nil
	err := f.renew()
	f.tell(errors.Join(packFail, err))
	now := f.now()
	if err != nil {
		f.retry = now.Add(rotationPause)
		return
	}
	if f.date != nil {
		f.next = f.date.Next(now)
	}
	if f.rule.Compress && f.rule.Count > 1 {
		f.packing.Go(func() { f.packFail = pack(f.numbered(1)) }) // ends with the file
	}
}

// renew has the new file open before it moves an old one: as long as there is
// none to write to, none is dropped.
func (f *logFile) renew() error {
	fresh := f.path + ".new"
	file, err := openLog(fresh)
	if err != nil {
		return err
	}
	if err = f.shift(); err == nil {
		err = os.Rename(fresh, f.path)
	}
	if err != nil {
		return errors.Join(err, file.Close(), ignoreMissing(os.Remove(fresh)))
	}
	old := f.file
	f.file, f.size = file, 0
	return old.Close()
}

// tell says that a rotation or packing did not work, once until they work again.
func (f *logFile) tell(err error) {
	if err != nil && !f.failed {
		fmt.Fprintf(os.Stderr, "leveret: move the log file %s away: %v\n", f.path, err)
	}
	f.failed = err != nil
}

// numbered is the path of an old file, 0 being the newest.
func (f *logFile) numbered(n int) string { return f.path + "." + strconv.Itoa(n) }

// shift renames the file and all old ones, and drops those that are too many. It
// ends with the first that cannot be moved, or the next would take its place.
func (f *logFile) shift() error {
	if f.rule.Count == 0 {
		return ignoreMissing(os.Remove(f.path))
	}
	for _, ending := range []string{"", ".gz"} {
		if err := ignoreMissing(os.Remove(f.numbered(f.rule.Count-1) + ending)); err != nil {
			return err
		}
		for n := f.rule.Count - 1; n > 0; n-- {
			if err := ignoreMissing(os.Rename(f.numbered(n-1)+ending, f.numbered(n)+ending)); err != nil {
				return err
			}
		}
	}
	return ignoreMissing(os.Rename(f.path, f.numbered(0)))
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
