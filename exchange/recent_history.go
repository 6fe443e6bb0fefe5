package exchange

import (
	"slices"
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// recentHistory is a fanout that keeps the last messages for queues that are
// bound later (RabbitMQ 4.0: the recent history exchange plugin).
type recentHistory struct {
	fanout
	length int // so many messages are kept; immutable

	mu   sync.Mutex         // guards the fields below; a leaf lock
	last []*message.Message // a ring once it is full
	next int                // the oldest one's place then
}

const (
	historyLengthKey     = "x-recent-history-length"
	defaultHistoryLength = 20
)

func newRecentHistory(args frames.Table) (Router, error) {
	v, ok := args.Lookup(historyLengthKey)
	if !ok {
		return &recentHistory{length: defaultHistoryLength}, nil
	}
	n, ok := frames.Integer(v)
	if !ok || n < 1 {
		return nil, frames.Errorf(frames.PreconditionFailed,
			"Invalid argument %s, '%s' must be a positive integer", frames.Term(v), historyLengthKey)
	}
	return &recentHistory{length: int(n)}, nil
}

func (r *recentHistory) Route(m *message.Message, to *Matches) {
	r.fanout.Route(m, to)
	if r.stores(m) {
		r.keep(m)
	}
}

// ByKey is false, as every message must pass Route.
func (r *recentHistory) ByKey() bool { return false }

// stores says that the message's header does not forbid keeping it.
func (r *recentHistory) stores(m *message.Message) bool {
	tag, value, ok := frames.FindField(headerTable(m), "x-recent-history-no-store")
	return !ok || tag != 't' || value[0] == 0
}

// keep keeps a copy: the time of the message is that of its transaction's commit.
func (r *recentHistory) keep(m *message.Message) {
	c := *m
	m = &c
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) < r.length {
		r.last = append(r.last, m)
		return
	}
	r.last[r.next] = m
	r.next = (r.next + 1) % r.length
}

func (r *recentHistory) history() []*message.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Concat(r.last[r.next:], r.last[:r.next])
}

// History returns the messages that a newly bound queue is to get, oldest
// first: those that an exchange of type x-recent-history has kept. It is nil
// for all other types.
func (x *Exchange) History() []*message.Message {
	router := x.router
	if d, ok := router.(*delayed); ok {
		router = d.Router
	}
	if r, ok := router.(*recentHistory); ok {
		return r.history()
	}
	return nil
}
