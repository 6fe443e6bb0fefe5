package management

import (
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// deadTargets gathers where the dead letters of queues go, to tell how many wait
// there. It belongs to one tally.
type deadTargets map[deadTarget]struct{}

// A deadTarget is an exchange and a key of a vhost.
type deadTarget struct {
	v             *vhost.VHost
	exchange, key string
}

// maxDeadTargets bounds how many are looked at.
const maxDeadTargets = 1000

// note remembers where a queue's dead letters go; of the default exchange only if it
// names the queue.
func (d deadTargets) note(v *vhost.VHost, ref *vhost.QueueRef, st *queue.Status) {
	if st.Policy.DeadLetterExchange == nil && !ref.DeadLetters || len(d) >= maxDeadTargets {
		return
	}
	s := queue.Effective(*ref.Spec.Arguments, st.Policy)
	if s.DeadLetter == nil {
		return
	}
	t := deadTarget{v, s.DeadLetter.Exchange, s.DeadLetter.Key}
	if t.exchange != "" {
		t.key = ""
	} else if t.key == "" {
		return
	}
	d[t] = struct{}{}
}

// messages counts those in the queues that the targets lead to: by name, or bound to
// the exchange with any key.
func (d deadTargets) messages() (n int) {
	seen := make(map[queue.Queue]struct{})
	look := func(v *vhost.VHost, name string) {
		info, err := v.QueueInfo(name)
		if err != nil {
			return // there is none
		}
		if _, again := seen[info.Queue]; again {
			return
		}
		seen[info.Queue] = struct{}{}
		st := info.Queue.Status()
		n += st.Messages()
	}
	for t := range d {
		if t.exchange == "" {
			look(t.v, t.key)
			continue
		}
		for b := range t.v.BindingsFrom(t.exchange) {
			if !b.ToExchange {
				look(t.v, b.Destination)
			}
		}
	}
	return n
}
