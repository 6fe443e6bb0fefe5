package exchange

import (
	"math/rand/v2"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// random routes to one binding by chance and ignores keys (RabbitMQ 4.0: the
// random exchange plugin).
type random struct{ all routerList }

func newRandom(frames.Table) (Router, error) { return &random{}, nil }

func (r *random) Check(string, frames.Table, queue.Queue) error { return nil }

func (r *random) Bind(b *Binding) { r.all.add(b) }

func (r *random) Unbind(b *Binding) { r.all.remove(b) }

func (r *random) Route(_ *message.Message, to *Matches) {
	if n := len(r.all); n > 0 {
		to.add(r.all[rand.IntN(n)])
	}
}

func (r *random) ByKey() bool { return false }

// localRandom is random among classic queues of this node, which saves a hop
// between nodes (RabbitMQ 4.0). On a single node every queue is local.
type localRandom struct{ random }

func newLocalRandom(frames.Table) (Router, error) { return &localRandom{}, nil }

// Check refuses what is not a classic queue.
func (r *localRandom) Check(key string, _ frames.Table, q queue.Queue) error {
	if key != "" {
		return frames.Errorf(frames.PreconditionFailed, "Non empty binding '%s' key not permitted", key)
	}
	if q == nil {
		return frames.Errorf(frames.PreconditionFailed, "Destination not found")
	}
	if q.Type() != queue.Classic {
		return frames.Errorf(frames.PreconditionFailed, "Queue type rabbit_%s_queue not valid for this exchange type", q.Type())
	}
	return nil
}
