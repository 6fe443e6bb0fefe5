package vhost

import (
	"cmp"
	"iter"
	"slices"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// ExchangeInfo describes an exchange for listings.
type ExchangeInfo struct {
	X      *exchange.Exchange
	User   string // who declared it
	Policy string // the policy that applies; "" if none
	// Builtin exchanges are there from the start and are in no definitions.
	Builtin bool
	// Published counts messages published here, Routed their copies that went
	// into queues, since the start. Delayed is how many wait for their time.
	Published, Routed uint64
	Delayed           int
	Duplicates        uint64 // messages dropped by deduplication, since the start
}

// QueueInfo describes a queue for listings.
type QueueInfo struct {
	Queue queue.Queue
	Spec  queue.Spec
	Owner any    // the connection that has it exclusively; nil for none
	User  string // who declared it
	// Policy and Operator are the names of the policies that apply; Effective
	// is their definitions merged.
	Policy, Operator string
	Effective        queue.Definition
	Duplicates       uint64 // messages dropped by deduplication, since the start
}

// BindingInfo describes a binding for listings.
type BindingInfo struct {
	Source, Destination string
	ToExchange          bool // the destination is an exchange
	Key                 string
	Arguments           frames.Table
}

// Options are the vhost's options.
func (v *VHost) Options() Options {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.options
}

// Exchanges lists the exchanges by name, as of the call.
func (v *VHost) Exchanges() iter.Seq[ExchangeInfo] {
	v.mu.RLock()
	all := make([]ExchangeInfo, 0, len(v.exchanges))
	for _, e := range v.exchanges {
		all = append(all, e.infoLocked())
	}
	v.mu.RUnlock()
	return inOrder(all, func(info *ExchangeInfo) string { return info.X.Name })
}

// ExchangeInfo describes one exchange; the Error is 404.
func (v *VHost) ExchangeInfo(name string) (ExchangeInfo, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.exchanges[name]
	if e == nil {
		return ExchangeInfo{}, v.errNoExchange(name)
	}
	return e.infoLocked(), nil
}

// infoLocked needs VHost.mu.
func (e *exchangeEntry) infoLocked() ExchangeInfo {
	info := ExchangeInfo{X: e.x, User: e.user, Builtin: e.builtin, Published: e.published.Load(), Routed: e.routed.Load()}
	if e.policy != nil {
		info.Policy = e.policy.Name
	}
	if e.delayed != nil {
		info.Delayed = e.delayed.len()
	}
	if e.filter != nil {
		info.Duplicates = e.filter.dropped.Load()
	}
	return info
}

// Queues lists the queues by name, as of the call.
func (v *VHost) Queues() iter.Seq[QueueInfo] {
	v.mu.RLock()
	all := make([]QueueInfo, 0, len(v.queues))
	for _, e := range v.queues {
		all = append(all, e.infoLocked())
	}
	v.mu.RUnlock()
	return inOrder(all, func(info *QueueInfo) string { return info.Spec.Name })
}

// A QueueRef is a queue for who counts, without what a listing shows of it.
type QueueRef struct {
	Queue queue.Queue
	Type  string
	// DeadLetters says that the arguments name a dead-letter exchange.
	DeadLetters bool
	Spec        *queue.Spec // not to be changed
}

// QueueRefs returns the queues in no order, as of the call. The slice is shared
// and not to be changed. While no queue comes or goes the call costs nothing.
func (v *VHost) QueueRefs() []QueueRef {
	if refs := v.refs.Load(); refs != nil {
		return *refs
	}
	v.mu.RLock()
	defer v.mu.RUnlock()
	refs := make([]QueueRef, 0, len(v.queues))
	for _, e := range v.queues {
		refs = append(refs, QueueRef{e.q, e.spec.Arguments.Type, e.spec.Arguments.DeadLetter != nil, &e.spec})
	}
	v.refs.Store(&refs)
	return refs
}

// inOrder goes through a list in order of name. It sorts pointers: an element is
// some hundred bytes.
func inOrder[T any](all []T, name func(*T) string) iter.Seq[T] {
	order := make([]*T, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, func(a, b *T) int { return cmp.Compare(name(a), name(b)) })
	return func(yield func(T) bool) {
		for _, e := range order {
			if !yield(*e) {
				return
			}
		}
	}
}

// QueueInfo describes one queue; the Error is 404.
func (v *VHost) QueueInfo(name string) (QueueInfo, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.queues[name]
	if e == nil {
		return QueueInfo{}, v.errNoQueue(name)
	}
	return e.infoLocked(), nil
}

// infoLocked needs VHost.mu.
func (e *queueEntry) infoLocked() QueueInfo {
	info := QueueInfo{Queue: e.q, Spec: e.spec, Owner: e.owner, User: e.user}
	var user, operator queue.Definition
	if e.policy != nil {
		info.Policy, user = e.policy.Name, e.policy.Definition
	}
	if e.operator != nil {
		info.Operator, operator = e.operator.Name, e.operator.Definition
	}
	info.Effective = queue.MergeDefinitions(user, operator)
	switch {
	case e.filter != nil:
		info.Duplicates = e.filter.dropped.Load()
	case e.spec.Arguments.Deduplication != "":
		info.Duplicates = e.q.Status().Duplicates
	}
	return info
}

// Bindings lists the bindings, by source, destination and key. Those of the
// default exchange, which every queue has, are not in it.
func (v *VHost) Bindings() iter.Seq[BindingInfo] {
	v.mu.RLock()
	var all []BindingInfo
	for _, e := range v.exchanges {
		all = appendBindings(all, e.x)
	}
	v.mu.RUnlock()
	return sortedBindings(all)
}

// BindingsFrom lists the bindings with this source.
func (v *VHost) BindingsFrom(name string) iter.Seq[BindingInfo] {
	e := v.exchangeEntry(name)
	if e == nil {
		return slices.Values([]BindingInfo(nil))
	}
	return sortedBindings(appendBindings(nil, e.x))
}

// BindingsTo lists the bindings with this destination.
func (v *VHost) BindingsTo(name string, exchange bool) iter.Seq[BindingInfo] {
	v.mu.RLock()
	var sources []source
	if e := v.exchanges[name]; exchange && e != nil {
		sources = e.sources
	}
	if e := v.queues[name]; !exchange && e != nil {
		sources = e.sources
	}
	var all []BindingInfo
	for _, s := range sources {
		all = appendBindings(all, s.from.x)
	}
	v.mu.RUnlock()
	return sortedBindings(slices.DeleteFunc(all, func(b BindingInfo) bool {
		return b.Destination != name || b.ToExchange != exchange
	}))
}

func appendBindings(dst []BindingInfo, x *exchange.Exchange) []BindingInfo {
	for _, b := range x.Bindings() {
		info := BindingInfo{Source: x.Name, Key: b.Key, Arguments: b.Arguments, ToExchange: b.To != nil}
		if b.To != nil {
			info.Destination = b.To.Name
		} else {
			info.Destination = b.Queue.Name()
		}
		dst = append(dst, info)
	}
	return dst
}

func sortedBindings(all []BindingInfo) iter.Seq[BindingInfo] {
	slices.SortStableFunc(all, func(a, b BindingInfo) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Key, b.Key))
	})
	return slices.Values(all)
}
