package exchange

import (
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// direct routes to the bindings whose key is the routing key (spec §3.1.3.1).
type direct struct{ byKey map[string]routerList }

func newDirect(frames.Table) (Router, error) {
	return &direct{byKey: make(map[string]routerList)}, nil
}

func (d *direct) Check(string, frames.Table, queue.Queue) error { return nil }

func (d *direct) Bind(b *Binding) {
	l := d.byKey[b.Key]
	l.add(b)
	d.byKey[b.Key] = l
}

func (d *direct) Unbind(b *Binding) {
	l := d.byKey[b.Key]
	l.remove(b)
	if len(l) == 0 {
		delete(d.byKey, b.Key)
		return
	}
	d.byKey[b.Key] = l
}

func (d *direct) Route(m *message.Message, to *Matches) {
	for i := range keyCount(m) {
		to.addAll(d.byKey[keyAt(m, i)])
	}
}

func (d *direct) ByKey() bool { return true }
