package vhost

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue/dedup"
)

// Deduplication, as the community plugin for RabbitMQ and LavinMQ have it: a
// message with an id, in the header x-deduplication-header, is dropped if the id
// is one of the last that came by. An exchange of type x-message-deduplication,
// which routes like a fanout exchange, does so before routing; with the argument
// x-message-deduplication=true an exchange of any type does, or a classic or
// quorum queue for what is routed to it. What is dropped counts as routed and is
// confirmed. Messages without an id always pass. A queue that gives neither
// x-cache-size nor x-cache-ttl drops what it holds already instead, and does so
// itself: see package dedup.
//
// The ids of an exchange's dead letters count, too, and those of messages that
// reach it through another exchange. Those of messages that were refused, rolled
// back or unroutable do not: they may be published again. See sighting.
const (
	filterType     = "x-message-deduplication" // of an exchange
	filterArgument = "x-message-deduplication" // of exchanges and queues
	// filterSize is how many ids are remembered, mandatory for the type of
	// exchange; else the default is defaultFilterSize (LavinMQ).
	filterSize = "x-cache-size"
	// filterTTL is how long an id is remembered, in milliseconds; without it
	// until there are too many. A message header of this name wins.
	filterTTL = "x-cache-ttl"
	// filterPersistence is memory, the default, or disk: ids of a durable
	// exchange then survive a restart. An id is stored with or after its
	// message: a kill may lose the id of a message that is there, not the reverse.
	filterPersistence = "x-cache-persistence"
	// filterHeader names the header that has the id (LavinMQ); this is its
	// default, too.
	filterHeader = "x-deduplication-header"

	defaultFilterSize = 128
	// maxFilterSize is the largest cache, in ids; each takes about 100 bytes.
	maxFilterSize = 1 << 24
)

// A filter remembers the ids of messages, a bounded number, the oldest goes.
type filter struct {
	size   int             // immutable
	ttl    int64           // milliseconds; 0 is for ever; immutable
	header string          // immutable
	disk   bool            // the ids are to survive a restart; immutable
	log    persistence.Log // immutable; nil unless disk

	dropped atomic.Uint64 // messages

	mu   sync.Mutex // guards the fields below; a leaf but for Log.mu
	seen map[dedup.ID]uint64
	// unsafe are the numbers whose messages are not safe yet.
	unsafe map[uint64]unsafeID
	list   []seenID // oldest first; list[i] has the number first+i
	// first is the number of list[0]. Numbers rise from 1; they are the ids of
	// records.
	first uint64
}

// A seenID is an id that came by. It does not count any more if seen has another
// number for it.
type seenID struct {
	id      dedup.ID
	expires int64 // Unix milliseconds; 0 is never
	stored  bool
}

// An unsafeID is an id whose message is not safe yet.
type unsafeID struct {
	tx      *Publisher // whose open transaction has the message; nil if none has
	waiting []waiter   // publishers of duplicates
}

// newFilter makes the filter that the arguments of an exchange or a queue ask
// for. mandatory says that there must be a size, as for the type of exchange; else
// f is nil unless they ask for one.
func newFilter(args frames.Table, mandatory bool) (f *filter, err error) {
	if on, _ := args.Lookup(filterArgument); on != true && !mandatory {
		return nil, nil
	}
	f = &filter{header: filterHeader, first: 1, seen: make(map[dedup.ID]uint64), unsafe: make(map[uint64]unsafeID)}
	size, ok, valid := positiveArgument(args, filterSize)
	if !ok && !mandatory {
		size, valid = defaultFilterSize, true
	}
	if !valid {
		return nil, frames.Errorf(frames.PreconditionFailed, "Missing or invalid argument, '%s' must be an integer greater than 0", filterSize)
	}
	if size > maxFilterSize {
		return nil, frames.Errorf(frames.PreconditionFailed, "Invalid argument, '%s' must be at most %d", filterSize, maxFilterSize)
	}
	f.size = int(size)
	if f.ttl, ok, valid = positiveArgument(args, filterTTL); ok && !valid {
		return nil, frames.Errorf(frames.PreconditionFailed, "Invalid argument, '%s' must be an integer greater than 0", filterTTL)
	}
	switch v, ok := args.Lookup(filterPersistence); {
	case v == "disk":
		f.disk = true
	case ok && v != "memory":
		return nil, frames.Errorf(frames.PreconditionFailed, "Invalid argument, '%s' must be either 'disk' or 'memory'", filterPersistence)
	}
	if v, ok := args.Lookup(filterHeader); ok {
		if f.header, ok = v.(string); !ok || f.header == "" {
			return nil, frames.Errorf(frames.PreconditionFailed, "Invalid argument, '%s' must be the name of a header", filterHeader)
		}
	}
	return f, nil
}

// positiveArgument is an argument that is an integer, or digits as the community
// plugin allows; ok says that it is there, valid that it is greater than 0.
func positiveArgument(args frames.Table, name string) (n int64, ok, valid bool) {
	v, ok := args.Lookup(name)
	if s, isText := v.(string); isText {
		n, _ = strconv.ParseInt(s, 10, 64)
	} else {
		n, _ = frames.Integer(v)
	}
	return n, ok, n > 0
}

// newExchange is exchange.New for all types that a vhost knows.
func newExchange(spec exchange.Spec) (x *exchange.Exchange, f *filter, err error) {
	if f, err = newFilter(spec.Arguments, spec.Type == filterType); err != nil {
		return nil, nil, err
	}
	name := spec.Type
	spec.Gated = f != nil || name == delayedType
	if name == filterType {
		spec.Type = "fanout"
	}
	if x, err = exchange.New(spec); err == nil {
		x.Type = name
	}
	return x, f, err
}

// KnownExchangeType says whether there is an exchange type of this name.
func KnownExchangeType(name string) bool { return name == filterType || exchange.KnownType(name) }

// equivalentExchange is Exchange.Equivalent for all types that a vhost knows.
func equivalentExchange(x *exchange.Exchange, spec exchange.Spec) error {
	if spec.Type != filterType {
		return x.Equivalent(spec)
	}
	if x.Type != filterType {
		return frames.Errorf(frames.PreconditionFailed, "inequivalent arg 'type' for exchange '%s' in vhost '%s': received '%s' but current is '%s'",
			spec.Name, spec.VHost, spec.Type, x.Type)
	}
	spec.Type = "fanout"
	same := exchange.Exchange{Name: x.Name, Type: spec.Type, Durable: x.Durable, AutoDelete: x.AutoDelete, Internal: x.Internal, Arguments: x.Arguments}
	return same.Equivalent(spec)
}

// open gives a filter that is kept on disk its log: a new one, or that with the
// ids from before a restart.
func (f *filter) open(store persistence.Store, id persistence.LogID) (err error) {
	if id == 0 {
		f.log, err = store.NewLog()
		return err
	}
	if f.log, err = store.OpenLog(id); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	for rec, err := range persistence.Records(f.log, 0, 0) {
		if err != nil {
			return err
		}
		f.restore(rec, now)
	}
	f.skip(f.log.LastID() + 1)
	return nil
}

// skip passes the numbers below next: they are of ids that were forgotten.
func (f *filter) skip(next uint64) {
	if len(f.list) == 0 {
		f.first = max(f.first, next)
	}
	for f.first+uint64(len(f.list)) < next {
		f.list = append(f.list, seenID{})
		f.trimLocked()
	}
}

// restore takes an id of the log.
func (f *filter) restore(r *persistence.Record, now int64) {
	s := seenID{expires: r.Expires, stored: true}
	if copy(s.id[:], r.Key) != len(s.id) {
		return
	}
	f.skip(r.ID)
	f.list = append(f.list, s)
	if s.expires == 0 || s.expires > now {
		f.seen[s.id] = r.ID
	}
	f.trimLocked()
}

func (f *filter) logID() persistence.LogID {
	if f == nil || f.log == nil {
		return 0
	}
	return f.log.ID()
}

// see says whether a message with these headers is a duplicate; its publisher then
// waits until the first one is safe, or is refused: see awaitLocked. If it is none,
// and has an id, it takes note of that: the number is not 0, and end must be called
// for it.
func (f *filter) see(headers []byte, now int64, by waiter) (number uint64, duplicate bool) {
	tag, value, ok := frames.FindField(headers, f.header)
	if !ok {
		return 0, false
	}
	id := dedup.Digest(tag, value)
	expires := int64(0)
	if ttl := f.ttlOf(headers); ttl > 0 {
		expires = now + ttl
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if number, ok := f.seen[id]; ok {
		if old := &f.list[number-f.first]; old.expires == 0 || old.expires > now {
			f.dropped.Add(1)
			f.awaitLocked(number, by)
			return 0, true
		}
	}
	number = f.first + uint64(len(f.list))
	f.list = append(f.list, seenID{id: id, expires: expires})
	f.seen[id] = number
	f.unsafe[number] = unsafeID{tx: by.tx}
	f.trimLocked()
	return number, false
}

// awaitLocked makes the publisher of a duplicate wait for the first message. For a
// transaction of others it would have to wait as long as these like: it is refused
// instead, as it may not be safe ever.
func (f *filter) awaitLocked(number uint64, by waiter) {
	first, ok := f.unsafe[number]
	switch {
	case !ok || by.r == nil:
	case first.tx != nil && first.tx != by.tx:
		by.r.Refuse(by.seq)
	default:
		by.r.Hold(1)
		first.waiting = append(first.waiting, by)
		f.unsafe[number] = first
	}
}

// commit says that the transaction that has a message is open no longer.
func (f *filter) commit(number uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if first, ok := f.unsafe[number]; ok {
		first.tx = nil
		f.unsafe[number] = first
	}
}

func (f *filter) ttlOf(headers []byte) int64 {
	if tag, value, ok := frames.FindField(headers, filterTTL); ok {
		if n, ok := headerNumber(tag, value); ok && n > 0 {
			return n
		}
	}
	return f.ttl
}

// trimLocked forgets the oldest ids if there are too many.
func (f *filter) trimLocked() {
	for len(f.list) > f.size {
		f.forgetLocked(f.first)
		f.list = f.list[1:]
		f.first++
	}
}

// forgetLocked makes a number count no more.
func (f *filter) forgetLocked(number uint64) {
	old := &f.list[number-f.first]
	if f.seen[old.id] == number {
		delete(f.seen, old.id)
	}
	if old.stored {
		old.stored = false
		f.log.Settle([]uint64{number})
	}
}

// store keeps an id whose message the queues have.
func (f *filter) store(number uint64) {
	if f.log == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if number < f.first {
		return
	}
	seen := &f.list[number-f.first]
	seen.stored = true
	f.log.Append([]persistence.Record{{ID: number, Expires: seen.expires, Key: string(seen.id[:])}}, nil)
}

// end says that a message is safe, or was not taken: then its id is forgotten. The
// publishers of its duplicates are told the same.
func (f *filter) end(number uint64, refused, failed bool) {
	f.mu.Lock()
	waiting := f.unsafe[number].waiting
	delete(f.unsafe, number)
	if (refused || failed) && number >= f.first {
		f.forgetLocked(number)
	}
	f.mu.Unlock()
	for _, w := range waiting {
		tell(w.r, w.seq, refused, failed)
		w.r.Release()
	}
}
