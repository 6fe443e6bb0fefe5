package broker

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/management"
)

// Reset implements management.Operator.
func (o operator) Reset() error { return o.b.reset() }

// reset deletes all vhosts, users and global parameters but the cluster's name, and
// makes what the configuration says for a first start. What can be checked of that is
// checked before anything is deleted.
func (b *Broker) reset() error {
	if !b.resetting.TryLock() {
		return errors.New("a reset is under way already: wait for its end")
	}
	defer b.resetting.Unlock()
	if err := b.checkReset(); err != nil {
		return fmt.Errorf("nothing was deleted: %w", err)
	}
	b.log.Warn("reset: all virtual hosts and users are deleted, and made anew as at a first start")
	if err := b.deleteVHosts(b.vhosts.Names()); err != nil {
		return err
	}
	if err := b.authority.Reset(); err != nil {
		return err
	}
	for name := range b.vhosts.Globals() {
		if name == "cluster_name" { // it tells brokers apart
			continue
		}
		if err := b.vhosts.ClearGlobal(name); err != nil {
			return err
		}
	}
	if err := b.makeDefaultVHost(); err != nil {
		return err
	}
	if err := b.importDefinitions(); err != nil {
		return err
	}
	if err := b.giveClusterID(); err != nil {
		return err
	}
	b.log.Info("reset done", zap.Strings("vhosts", b.vhosts.Names()))
	return nil
}

// deleteVHosts deletes what there is of these: an administrator may delete one at the
// same time.
func (b *Broker) deleteVHosts(names []string) error {
	for _, name := range names {
		err := b.vhosts.Delete(name)
		if e, ok := errors.AsType[*frames.Error](err); ok && e.Code == frames.NotFound {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkReset says what of the configuration could not be made anew.
func (b *Broker) checkReset() error {
	if err := b.authority.CheckDefaultUser(); err != nil {
		return err
	}
	if b.cfg.LoadDefinitions == "" {
		return nil
	}
	files, err := definitionFiles(b.cfg.LoadDefinitions)
	if err != nil {
		return fmt.Errorf("definitions to import: %w", err)
	}
	texts, err := readDefinitions(files)
	if err != nil {
		return err
	}
	for i, name := range files {
		if err := management.CheckDefinitions(texts[i]); err != nil {
			return fmt.Errorf("import definitions from %s: %w", name, err)
		}
	}
	return nil
}
