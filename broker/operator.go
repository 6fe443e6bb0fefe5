package broker

import (
	"errors"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/management"
)

// An operator changes settings of a broker that runs. Its methods are safe for
// concurrent use, until Stop.
type operator struct{ b *Broker }

var _ management.Operator = operator{}

// SetLogLevel implements management.Operator.
func (o operator) SetLogLevel(category, level string) error { return o.b.SetLogLevel(category, level) }

// MemoryLimit implements management.Operator.
func (o operator) MemoryLimit() int64 { return o.b.alarms.memoryLimit() }

// MemoryAvailable implements management.Operator.
func (o operator) MemoryAvailable() int64 { return o.b.cfg.MemoryAvailable }

// SetMemoryLimit implements management.Operator. The collector's limit follows
// if it was the broker's before; one of 0 would have it collect all the time.
func (o operator) SetMemoryLimit(bytes int64) {
	before := o.b.alarms.memoryLimit()
	last := o.b.alarms.setMemoryLimit(bytes)
	if bytes > 0 && debug.SetMemoryLimit(-1) == last {
		debug.SetMemoryLimit(bytes)
	}
	o.b.log.Info("memory limit changed", zap.Int64("limit", bytes), zap.Int64("before", before))
}

// SetDiskFreeLimit implements management.Operator.
func (o operator) SetDiskFreeLimit(bytes int64) error {
	disk, uses := o.b.store.(interface{ SetDiskLimit(bytes int64) })
	if !uses {
		return errors.New("the broker keeps everything in memory: it stops for no disk")
	}
	disk.SetDiskLimit(bytes)
	o.b.log.Info("limit of free disk space changed", zap.Int64("limit", bytes))
	return nil
}

// SuspendListeners implements management.Operator.
func (o operator) SuspendListeners() {
	for _, l := range o.b.suspendable {
		l.suspend()
	}
	o.b.log.Warn("listeners suspended: no more clients can connect until they are resumed")
}

// ResumeListeners implements management.Operator.
func (o operator) ResumeListeners() error {
	var err error
	for _, l := range o.b.suspendable {
		err = errors.Join(err, l.resume())
	}
	if err == nil {
		o.b.log.Info("listeners resumed: clients can connect")
	}
	return err
}

// logFiles are where the log goes, as RabbitMQ 4.0 writes it.
func logFiles(cfg config.Config) []string {
	var files []string
	for _, file := range append([]string{cfg.LogFile}, slices.Sorted(maps.Values(cfg.LogCategoryFiles))...) {
		switch {
		case file == "":
			continue
		case !filepath.IsAbs(file):
			file = filepath.Join(cfg.LogDir, file)
		}
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	if !cfg.LogQuiet {
		files = append(files, "<stdout>")
	}
	return files
}
