package broker

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/zap"
)

// settleDelay is how long the folders of certificates must be quiet before the
// files are read: certificate and key are written one after the other.
const settleDelay = 500 * time.Millisecond

// watchCertificates reads the certificates anew when their files change, until
// ctx ends. Folders are watched, not files: tools put new files in the place of
// old ones, and Kubernetes another folder in the place of the one that a link
// names. Where nothing can be watched the files are found changed by the next
// client that connects.
func (b *Broker) watchCertificates(ctx context.Context) {
	if len(b.certificates) == 0 {
		return
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		b.log.Info("the files of certificates cannot be watched; they are looked at when clients connect", zap.Error(err))
		return
	}
	for _, dir := range certificateFolders(b.certificates) {
		if err := w.Add(dir); err != nil {
			b.log.Info("a folder of certificates cannot be watched; it is looked at when clients connect", zap.String("folder", dir), zap.Error(err))
		}
	}
	b.running.Go(func() { b.followCertificates(ctx, w) })
}

// followCertificates waits for changes, and for them to be over.
func (b *Broker) followCertificates(ctx context.Context, w *fsnotify.Watcher) {
	defer func() { _ = w.Close() }() // nothing was written to it
	settled := time.NewTimer(0)
	settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.Events:
			settled.Reset(settleDelay)
		case err := <-w.Errors:
			b.log.Warn("a change of the certificates' files may go unnoticed: send SIGHUP after one", zap.Error(err))
		case <-settled.C:
			for _, c := range b.certificates {
				c.reloadIfChanged()
			}
		}
	}
}

// certificateFolders are the folders that the files are in.
func certificateFolders(list []*certificate) []string {
	var dirs []string
	for _, c := range list {
		for _, name := range []string{c.cfg.Cert, c.cfg.Key, c.cfg.CACert} {
			if name != "" {
				dirs = append(dirs, filepath.Dir(name))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// reloadIfChanged reads the files if they are not what they were. What cannot be
// used is in the log.
func (c *certificate) reloadIfChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookLocked()
}
