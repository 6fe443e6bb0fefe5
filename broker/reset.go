package broker

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/management"
)

// Reset implements management.Operator.
func (o operator) Reset() error { return o.b.reset() }

// reset deletes all vhosts, users and global parameters but the cluster's name, and
// makes what the configuration says for a first start. What can be checked of that is
// checked before anything is deleted.
func (b *Broker) reset() error {
	if err := b.checkReset(); err != nil {
		return fmt.Errorf("nothing was deleted: %w", err)
	}
	b.log.Warn("reset: all virtual hosts and users are deleted, and made anew as at a first start")
	for _, name := range b.vhosts.Names() {
		if err := b.vhosts.Delete(name); err != nil {
			return err
		}
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
	b.log.Info("reset done", zap.Strings("vhosts", b.vhosts.Names()))
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
