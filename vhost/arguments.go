package vhost

import (
	"sync"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// arguments keeps what queue arguments were parsed to, for the queues that are
// declared alike: most of a hundred thousand are, and each would have 300 bytes
// of its own. The zero value is ready.
type arguments struct {
	mu    sync.Mutex // guards the fields below; a leaf
	known map[string]*queue.Arguments
	key   []byte // scratch of parse
}

const (
	// maxKnownArguments is how many different ones are known before all are
	// forgotten: clients that make up arguments of their own gain nothing.
	maxKnownArguments = 1024
	// maxKnownTable is the largest encoded table that is kept, in bytes.
	maxKnownTable = 512
)

// parse is queue.ParseArguments for a queue declared like this, or RecoverArguments
// for one that is there. What it returns is not to be changed.
func (a *arguments) parse(t frames.Table, s queue.Spec, there bool) (*queue.Arguments, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := frames.AppendTable(append(a.key[:0], flagsOf(s.Durable, s.Exclusive, s.AutoDelete, there)), t)
	if known := a.known[string(key)]; known != nil {
		a.key = key
		return known, nil
	}
	parse := queue.ParseArguments
	if there {
		parse = queue.RecoverArguments
	}
	parsed, err := parse(t, s.VHost, s.Name, s.Durable, s.Exclusive, s.AutoDelete)
	if err != nil {
		return nil, err
	}
	if len(key) <= maxKnownTable {
		a.key = key
		a.keepLocked(string(key), &parsed)
	}
	return &parsed, nil
}

func (a *arguments) keepLocked(key string, parsed *queue.Arguments) {
	if a.known == nil || len(a.known) >= maxKnownArguments {
		a.known = make(map[string]*queue.Arguments)
	}
	a.known[key] = parsed
}

// flagsOf is the flags by which arguments are valid or not, as one byte.
func flagsOf(flags ...bool) (b byte) {
	for i, on := range flags {
		if on {
			b |= 1 << i
		}
	}
	return b
}
