package persistence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// formatVersion is the version of everything in the directory. A change that
// this code cannot read needs a new one, and a reader for the one before.
const formatVersion = 1

// lockFile is held for as long as a store is open.
const lockFile = "leveret.lock"

// Open opens the store in o.Dir, or makes it. The error is ErrLocked if
// another process has it, ErrFormat if a newer version wrote it, ErrDiskFull if
// there is no space to work with, ErrDamaged if its files are not what they were.
//
// The caller opens the logs that its definitions name and then calls Recovered.
func Open(o Options) (*Disk, error) {
	o = o.withDefaults()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	unlock, err := lockDir(o.Dir, o.LockWait)
	if err != nil {
		return nil, err
	}
	if err := checkSpace(&o); err != nil {
		return nil, errors.Join(err, unlock())
	}
	s, err := open(o)
	if err != nil {
		return nil, errors.Join(err, unlock())
	}
	s.unlock = unlock
	s.start()
	return s, nil
}

// open opens the engine and recovers. The lock must be held.
func open(o Options) (*Disk, error) {
	bdg, err := openBadger(o, o.Dir)
	if err != nil {
		return nil, err
	}
	var eng engine = bdg
	if o.wrap != nil {
		eng = o.wrap(eng)
	}
	s := newDisk(o, eng)
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(err, eng.close())
	}
	if err := s.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("recover %s: %w", o.Dir, err), eng.close())
	}
	return s, nil
}

func newDisk(o Options, eng engine) *Disk {
	s := &Disk{
		opts: o, sizes: o.Profile.sizes(), eng: eng, lim: eng.limits(),
		wakeup: make(chan struct{}, 1), stop: make(chan struct{}),
		logs: make(map[LogID]*diskLog), nextLog: 1,
	}
	s.enough.Store(int64(s.sizes.group))
	s.diskLimit.Store(o.DiskLimit)
	s.com = committer{s: s, done: make(chan error, 1), nextChunk: 1, published: 1, reserved: 1}
	s.keep = keeper{s: s, wakeup: make(chan struct{}, 1)}
	s.syncer = syncer{s: s, wakeup: make(chan struct{}, 1)}
	return s
}

// start starts the goroutines; Close ends them.
func (s *Disk) start() {
	s.keep.look()
	s.wg.Add(2)
	go s.com.run()
	go s.keep.run()
	if s.opts.Durability == Relaxed {
		s.wg.Go(s.syncer.run)
	}
}

// lockDir takes the lock on a directory and returns the function that gives it back.
func lockDir(dir string, wait time.Duration) (unlock func() error, err error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the data directory: %w", err)
	}
	// The lock goes with the process that has it, and that takes its time.
	for deadline := time.Now().Add(wait); ; time.Sleep(lockRetry) {
		ok, err := tryLock(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if ok {
			return f.Close, nil
		}
		if !time.Now().Before(deadline) {
			return nil, errors.Join(fmt.Errorf("%w: %s; stop that one, or choose another directory", ErrLocked, dir), f.Close())
		}
	}
}

const lockRetry = 50 * time.Millisecond

// checkFormat refuses a directory of a newer version, and marks a new one.
func (s *Disk) checkFormat() error {
	key := []byte{keyFormat}
	var version byte
	err := s.eng.get(key, func(val []byte, _ byte) error {
		if len(val) != 1 {
			return fmt.Errorf("%w: format version in %s", errCorrupt, s.opts.Dir)
		}
		version = val[0]
		return nil
	})
	switch {
	case errors.Is(err, errNoKey):
		return s.markFormat(key)
	case err != nil:
		return fmt.Errorf("read the format version: %w", err)
	case version != formatVersion:
		return fmt.Errorf("%w: %s has format %d, this version knows %d; use the version that wrote it, or a newer one",
			ErrFormat, s.opts.Dir, version, formatVersion)
	}
	return nil
}

func (s *Disk) markFormat(key []byte) error {
	errForeign := fmt.Errorf("%w: %s holds the data of another program", ErrFormat, s.opts.Dir)
	if err := s.eng.scan(nil, func(item) error { return errForeign }); err != nil {
		return err
	}
	done := make(chan error, 1)
	s.eng.commit([]write{{key: key, val: []byte{formatVersion}}}, func(err error) { done <- err })
	if err := <-done; err != nil {
		return fmt.Errorf("write the format version: %w", err)
	}
	return nil
}
