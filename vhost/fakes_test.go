package vhost

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// fakeQueue keeps what it is given.
type fakeQueue struct {
	name  string
	env   queue.Env
	spec  queue.Spec
	logID persistence.LogID
	// writes is what Enqueue returns.
	writes queue.Writes

	mu       sync.Mutex
	got      []queue.Entry
	batches  int
	policies []queue.Policy
	touched  int
	inUse    bool
	gone     bool
	stopped  bool
}

var _ queue.Queue = (*fakeQueue)(nil)

func (q *fakeQueue) Name() string { return q.name }

func (q *fakeQueue) Type() string { return q.spec.Arguments.Type }

func (q *fakeQueue) LogID() persistence.LogID { return q.logID }

func (q *fakeQueue) Enqueue(batch []queue.Entry) queue.Writes {
	q.mu.Lock()
	if !q.gone {
		q.got = append(q.got, batch...)
	}
	q.batches++
	q.mu.Unlock()
	var last *message.Receipt
	for _, e := range batch {
		if e.Receipt != nil && e.Receipt != last {
			e.Receipt.Release()
		}
		last = e.Receipt
	}
	return q.writes
}

func (q *fakeQueue) Get(bool) (queue.Delivery, int, bool, error) {
	return queue.Delivery{}, 0, false, nil
}
func (q *fakeQueue) Subscribe(*queue.Subscription) error                         { return nil }
func (q *fakeQueue) Cancel(*queue.Subscription)                                  {}
func (q *fakeQueue) Settle(*queue.Subscription, []queue.Delivery, queue.Outcome) {}
func (q *fakeQueue) Resume(*queue.Subscription)                                  {}

func (q *fakeQueue) Purge() (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.got)
	q.got = nil
	return n, nil
}

func (q *fakeQueue) SetPolicy(p queue.Policy) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.policies = append(q.policies, p)
}

func (q *fakeQueue) Touch() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.touched++
}

func (q *fakeQueue) Status() queue.Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	return queue.Status{Ready: len(q.got)}
}

func (q *fakeQueue) Stop() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	return nil
}

func (q *fakeQueue) Delete(cond queue.Condition) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		return 0, queue.ErrGone
	}
	if cond.IfUnused && q.inUse {
		return 0, errInUse
	}
	q.gone = true
	return len(q.got), nil
}

// end is what a queue does that ends itself.
func (q *fakeQueue) end() {
	q.Delete(queue.Condition{})
	q.env.Ended(q, "expired")
}

// messages returns what the queue has got.
func (q *fakeQueue) messages() []*message.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []*message.Message
	for _, e := range q.got {
		list = append(list, e.Msg)
	}
	return list
}

// bodies returns the bodies of what the queue has got.
func (q *fakeQueue) bodies() []string {
	var list []string
	for _, m := range q.messages() {
		list = append(list, string(m.Body))
	}
	return list
}

// fakeStore keeps definitions in memory. A test may hold its writes.
type fakeStore struct {
	mu        sync.Mutex
	values    map[definitionID][]byte
	logs      map[persistence.LogID]*fakeLog
	lastLog   persistence.LogID
	recovered bool
	writes    int
	rounds    int // of PutAll
	fail      error
	limit     int           // larger values are refused, in bytes; 0 is no limit
	hold      chan struct{} // if not nil, a write waits until it is closed
	holding   chan definitionID
}

var _ persistence.Store = (*fakeStore)(nil)

// errTooLarge is why a fakeStore refuses a definition of more than its limit.
var errTooLarge = errors.New("too large")

func newFakeStore() *fakeStore {
	return &fakeStore{values: make(map[definitionID][]byte), logs: make(map[persistence.LogID]*fakeLog)}
}

func (s *fakeStore) Put(kind persistence.Kind, key string, value []byte) error {
	return errors.Join(s.PutAll([]persistence.Definition{{Kind: kind, Key: key, Value: value}})...)
}

func (s *fakeStore) Delete(kind persistence.Kind, key string) error {
	return errors.Join(s.PutAll([]persistence.Definition{{Kind: kind, Key: key}})...)
}

func (s *fakeStore) PutAll(defs []persistence.Definition) []error {
	s.mu.Lock()
	hold, holding := s.hold, s.holding
	s.mu.Unlock()
	if hold != nil {
		for _, d := range defs {
			holding <- definitionID{d.Kind, d.Key}
		}
		<-hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rounds++
	s.writes += len(defs)
	errs := make([]error, len(defs))
	for i, d := range defs {
		id := definitionID{d.Kind, d.Key}
		switch {
		case s.fail != nil:
			errs[i] = s.fail
		case s.limit > 0 && len(d.Value) > s.limit:
			errs[i] = errTooLarge
		case d.Value == nil:
			delete(s.values, id)
		default:
			s.values[id] = d.Value
		}
	}
	if errors.Join(errs...) == nil {
		return nil
	}
	return errs
}

func (s *fakeStore) All(kind persistence.Kind) iter.Seq2[string, []byte] {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make(map[string][]byte)
	for id, v := range s.values {
		if id.kind == kind {
			found[id.key] = v
		}
	}
	return func(yield func(string, []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(found)) {
			if !yield(k, found[k]) {
				return
			}
		}
	}
}

// count is how many definitions of a kind there are.
func (s *fakeStore) count(kind persistence.Kind) int {
	n := 0
	for range s.All(kind) {
		n++
	}
	return n
}

func (s *fakeStore) NewLog() (persistence.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastLog++
	l := &fakeLog{id: s.lastLog}
	s.logs[l.id] = l
	return l, nil
}

func (s *fakeStore) OpenLog(id persistence.LogID) (persistence.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs[id], nil
}

func (s *fakeStore) Recovered() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recovered = true
	return nil
}

func (s *fakeStore) Together(fn func())         { fn() }
func (s *fakeStore) Wait(context.Context) error { return nil }
func (s *fakeStore) Health() persistence.Health { return persistence.Health{} }
func (s *fakeStore) Watch() <-chan struct{}     { return nil }
func (s *fakeStore) Close() error               { return nil }

// fakeLog keeps records in memory.
type fakeLog struct {
	id persistence.LogID

	mu      sync.Mutex
	records []persistence.Record
	loads   int
	dropped bool
	pending []*message.Receipt // released by commit
	manual  bool               // commit releases, not Append
	lanes   bool               // Lanes answers
}

func (l *fakeLog) ID() persistence.LogID { return l.id }

func (l *fakeLog) Append(recs []persistence.Record, r *message.Receipt) (taken bool) {
	l.mu.Lock()
	l.records = append(l.records, recs...)
	manual := l.manual
	if manual {
		l.pending = append(l.pending, r)
	}
	l.mu.Unlock()
	if !manual && r != nil {
		r.Release()
	}
	return true
}

func (l *fakeLog) commit() {
	l.mu.Lock()
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, r := range pending {
		if r != nil {
			r.Release()
		}
	}
}

func (l *fakeLog) Settle(ids []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = slices.DeleteFunc(l.records, func(r persistence.Record) bool { return slices.Contains(ids, r.ID) })
}

func (l *fakeLog) SettleRange(persistence.Lane, uint64, uint64) int { return 0 }
func (l *fakeLog) WriteAhead()                                      {}
func (l *fakeLog) Delivered(uint64)                                 {}
func (l *fakeLog) Holds(uint64) bool                                { return true }
func (l *fakeLog) Durable() uint64                                  { return 0 }

// Lanes tells nothing unless the test asks for it.
func (l *fakeLog) Lanes() []persistence.LaneInfo {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lanes {
		return nil
	}
	info := persistence.LaneInfo{Count: len(l.records)}
	for _, r := range l.records {
		info.Bytes += int64(len(r.Body))
	}
	return []persistence.LaneInfo{info}
}

func (l *fakeLog) Load(_ persistence.Lane, from uint64, dst []persistence.Record, maxBytes int) ([]persistence.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loads++
	size := 0
	for _, r := range l.records {
		if r.ID < from || size > 0 && size >= maxBytes {
			continue
		}
		dst = append(dst, r)
		size += len(r.Body) + 1
	}
	return dst, nil
}

func (l *fakeLog) LastID() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.records) == 0 {
		return 0
	}
	return l.records[len(l.records)-1].ID
}

func (l *fakeLog) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records, l.dropped = nil, true
}

func (l *fakeLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.records)
}

// fakeFactory makes fakeQueues; durable ones have a log of their own.
func fakeFactory(env queue.Env, spec queue.Spec) (queue.Queue, error) {
	q := &fakeQueue{name: spec.Name, env: env, spec: spec, logID: env.LogID}
	if spec.Durable && q.logID == 0 {
		l, err := env.Store.NewLog()
		if err != nil {
			return nil, err
		}
		q.logID = l.ID()
	}
	return q, nil
}

// open opens a Set of fake queues on the store.
func open(t testing.TB, store persistence.Store) *Set {
	t.Helper()
	s, err := Open(Config{Store: store, Node: "leveret@test", Factories: map[string]queue.Factory{
		queue.Classic: fakeFactory, queue.Quorum: fakeFactory,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newVHost returns the vhost "/" of a new Set.
func newVHost(t testing.TB) *VHost {
	t.Helper()
	v, ok := open(t, newFakeStore()).Get("/")
	if !ok {
		t.Fatal("no vhost /")
	}
	return v
}

// fakeActor may do what is not refused; the refusals are errors as a client sees
// them.
type fakeActor struct {
	owner  any
	refuse map[string]bool // "configure queue q", "write exchange x", "read topic x k"
	asked  []string
}

func (a *fakeActor) User() string { return "joe" }
func (a *fakeActor) Owner() any   { return a.owner }

func (a *fakeActor) may(what string) error {
	a.asked = append(a.asked, what)
	if a.refuse[what] {
		return errRefused(what)
	}
	return nil
}

func (a *fakeActor) MayExchange(p Permission, name string) error {
	return a.may(p.String() + " exchange " + name)
}

func (a *fakeActor) MayQueue(p Permission, name string) error {
	return a.may(p.String() + " queue " + name)
}

func (a *fakeActor) MayTopic(p Permission, exchange, key string) error {
	return a.may(p.String() + " topic " + exchange + " " + key)
}

type errRefused string

func (e errRefused) Error() string { return "refused: " + string(e) }

type plainError string

func (e plainError) Error() string { return string(e) }

const errInUse = plainError("in use")
