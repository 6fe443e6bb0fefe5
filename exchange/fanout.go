package exchange

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// fanout routes to all bindings (spec §3.1.3.2).
type fanout struct{ all routerList }

func newFanout(frames.Table) (Router, error) { return &fanout{}, nil }

func (f *fanout) Check(string, frames.Table, queue.Queue) error { return nil }

func (f *fanout) Bind(b *Binding) { f.all.add(b) }

func (f *fanout) Unbind(b *Binding) { f.all.remove(b) }

func (f *fanout) Route(_ *message.Message, to *Matches) { to.addAll(f.all) }

func (f *fanout) ByKey() bool { return true }
