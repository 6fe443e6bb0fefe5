package persistence

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// ErrDiskFull says that there is too little space to write without risk.
var ErrDiskFull = errors.New("the disk is full")

// A write into a mapped file that finds no space ends the process: the kernel
// sends SIGBUS, and on the engine's goroutines nobody can catch it. The alarm
// at Options.DiskLimit stops publishers well before; below the floor, which
// only others that fill the disk make it reach, nothing is written at all.

// floor is the free space that must be left for a commit to start, in bytes: it
// is what one commit, the flush of the memtables and a compaction may take.
func (o *Options) floor() int64 { return min(o.Profile.sizes().floor, o.DiskLimit/2) }

// SetDiskLimit changes Options.DiskLimit while the store runs, in bytes; with 0 there
// is no alarm. The floor stays.
func (s *Disk) SetDiskLimit(bytes int64) {
	s.diskLimit.Store(bytes)
	s.keep.look()
	s.keep.wake() // it looks each second while space is low
}

// limit is the free space below which the alarm is raised, in bytes.
func (s *Disk) limit() int64 { return s.diskLimit.Load() }

// roomy reports whether there is space for a commit. It raises the alarm if that is
// due.
func (s *Disk) roomy() bool {
	free, err := s.opts.diskFree(s.opts.Dir)
	if err != nil {
		return true // the keeper tells of it
	}
	if free < s.limit() && !s.diskLow.Load() {
		s.keep.measured(free)
		s.keep.wake() // it looks each second from now on
	}
	return free >= s.opts.floor()
}

// hold waits until there is space for a commit. It returns false if the store
// has failed or is being closed before that.
func (c *committer) hold() bool {
	s := c.s
	if s.roomy() {
		return true
	}
	s.opts.Log.Error("the disk is full: nothing is written or confirmed until space is free; free as much as is needed on the volume of this folder",
		zap.String("dir", s.opts.Dir), zap.Int64("needed", s.opts.floor()))
	again := time.NewTicker(lowInterval)
	defer again.Stop()
	rested := 0 // looks in a row that found the engine at rest
	for !s.roomy() {
		select {
		case <-again.C:
			rested = s.rested(rested)
		case <-s.stop:
			s.stopFor(fmt.Errorf("%w: %s; what was not confirmed is lost", ErrDiskFull, s.opts.Dir))
		}
		if s.failure() != nil {
			return false
		}
	}
	s.opts.Log.Info("the disk has space again", zap.String("dir", s.opts.Dir))
	return true
}

// rested counts on if the engine is at rest, and tells of the second time in a row:
// a compaction may have followed on the first.
func (s *Disk) rested(before int) int {
	if !s.eng.rests() {
		return 0
	}
	if before == 1 {
		s.opts.Log.Info("nothing more is being written: the last byte may be taken", zap.String("dir", s.opts.Dir))
	}
	return before + 1
}

// checkSpace refuses to open a store that could not write.
func checkSpace(o *Options) error {
	free, err := o.diskFree(o.Dir)
	if err != nil {
		return err
	}
	if free < o.floor() {
		return fmt.Errorf("%w: %d bytes are free for %s, at least %d are needed; free some space",
			ErrDiskFull, free, o.Dir, o.floor())
	}
	return nil
}
