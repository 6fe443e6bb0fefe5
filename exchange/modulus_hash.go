package exchange

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// modulusHash routes to one binding, by the hash of the routing key modulo the
// number of bindings (RabbitMQ 4.0: the sharding plugin). Binding keys are
// ignored.
type modulusHash struct {
	sorted []*Binding // by destination, so that the order survives a restart
}

func newModulusHash(frames.Table) (Router, error) { return &modulusHash{}, nil }

func (h *modulusHash) Check(string, frames.Table, queue.Queue) error { return nil }

func (h *modulusHash) Bind(b *Binding) {
	i, _ := slices.BinarySearchFunc(h.sorted, b, compareBindings)
	h.sorted = slices.Insert(h.sorted, i, b)
}

func (h *modulusHash) Unbind(b *Binding) {
	i, _ := slices.BinarySearchFunc(h.sorted, b, compareBindings)
	for h.sorted[i] != b { // those that differ only in what is not compared
		i++
	}
	h.sorted = slices.Delete(h.sorted, i, i+1)
}

func (h *modulusHash) Route(m *message.Message, to *Matches) {
	if len(h.sorted) > 0 {
		to.add(h.sorted[keysHash(m).sum()%uint64(len(h.sorted))])
	}
}

func (h *modulusHash) ByKey() bool { return true }

// compareBindings orders bindings by destination and key: queues first.
func compareBindings(a, b *Binding) int {
	return cmp.Or(compareDestinations(a, b), strings.Compare(a.Key, b.Key))
}

func compareDestinations(a, b *Binding) int {
	if c := cmp.Compare(rank(a), rank(b)); c != 0 {
		return c
	}
	return strings.Compare(a.destinationName(), b.destinationName())
}

func rank(b *Binding) int {
	if b.Queue != nil {
		return 0
	}
	return 1
}

func (b *Binding) destinationName() string {
	if b.Queue != nil {
		return b.Queue.Name()
	}
	return b.To.Name
}
