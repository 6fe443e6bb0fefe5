package vhost

import (
	"sync"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// maxRoutes bounds the routes that a publisher keeps.
const maxRoutes = 1024

// A Publisher routes messages and gathers them in batches for the queues. A
// channel has one; it is used by one goroutine at a time.
type Publisher struct {
	// Source is what traces say of where the messages come from.
	Source TraceSource
	// Owns says that nobody else has the messages that are added, and that whoever
	// adds one forgets it with the next Flush.
	Owns bool
	// Again says that the messages were published before: none is taken for a retry
	// of its producer, or for a duplicate of what an exchange or a queue remembers.
	Again bool
	// Transactional says that a batch is a transaction, whose commit is its Flush:
	// nobody else waits for what is in one before that.
	Transactional bool

	v *VHost

	generation uint64 // the routes and slots are of
	last       *Route
	routes     map[string]*Route // by exchange and key, see appendRouteKey
	slots      map[queue.Queue]*batchSlot

	active  []*batchSlot // those with messages, in the order of their first
	used    []*Route     // those with counts
	added   int          // messages since the last Flush
	traced  bool         // a copy goes to the trace exchange
	free    [][]queue.Entry
	matches exchange.Matches
	targets []*batchSlot // scratch
	keyBuf  []byte       // scratch

	held    *batchSlot              // of messages with a delivery delay; made when needed
	inside  map[*delayer]*batchSlot // of delayed exchanges
	flights []*flight               // of messages with producers, since the last Flush
	left    []func()                // by queues that took those, for the end of the Flush
	noted   []sighting              // of the message that is being routed
	watches []*watch                // of messages whose ids filters noted, since the last Flush
	outer   int                     // so many of them are exchanges'; 0 before Flush
	detour  detour                  // of the message that is being routed

	writes     queue.Writes      // of the batches since the last Flush
	unroutable uint64            // messages since the last Flush that reached no queue
	sizes      message.SizeBatch // of the bodies since the last Flush
}

// A Route is where messages to one exchange with one key go. It may be used
// until the publisher is asked for the next one.
type Route struct {
	Exchange string             // messages use this string
	Key      string             // and this one
	X        *exchange.Exchange // nil for the default exchange
	// Checked belongs to the caller: for instance the generation of the
	// permission check that was done for it. It starts at 0.
	Checked uint64
	// Common belongs to the caller, too: what its last messages had in common, or nil.
	Common *message.Envelope

	entry   *exchangeEntry
	known   bool // targets may be used for messages without further keys
	targets []*batchSlot
	durable int        // so many of the targets are durable queues
	delayed *batchSlot // of an exchange where messages can wait

	published, routed uint64 // since the last Flush, for the exchange's counters
}

// Decides says that messages go to the same queues at once unless their headers say
// otherwise, as far as that is known yet.
func (rt *Route) Decides() bool { return rt.known && rt.delayed == nil }

// A sink takes batches: a queue, or a delayed exchange.
type sink interface {
	Enqueue(batch []queue.Entry) queue.Writes
}

// A batchSlot is a queue's part of the batch. It is used again for every batch.
type batchSlot struct {
	to      sink
	entry   *queueEntry // nil for a delayed exchange
	durable bool
	filter  *filter // nil unless the queue drops duplicates

	batch   []queue.Entry
	receipt *message.Receipt // of the last entry
	runs    int              // of entries with the same receipt
}

// NewPublisher returns a publisher without routes.
func (v *VHost) NewPublisher() *Publisher {
	return &Publisher{v: v}
}

// maxIdle bounds the publishers that a vhost keeps for its own messages.
const maxIdle = 4

// borrow returns a publisher for messages of the vhost itself: dead letters,
// delayed ones, events. Give it back after Flush.
func (v *VHost) borrow() *Publisher {
	v.idleMu.Lock()
	defer v.idleMu.Unlock()
	n := len(v.idle) - 1
	if n < 0 {
		return v.NewPublisher()
	}
	p := v.idle[n]
	v.idle = v.idle[:n]
	return p
}

func (v *VHost) giveBack(p *Publisher) {
	v.idleMu.Lock()
	defer v.idleMu.Unlock()
	if len(v.idle) < maxIdle {
		v.idle = append(v.idle, p)
	}
}

// Route finds the route of (exchange, key): 404 if the exchange is missing. It
// checks neither permissions nor whether the exchange is internal.
func (p *Publisher) Route(exchange, key []byte) (*Route, error) {
	if g := p.v.generation.Load(); g != p.generation {
		p.reset(g)
	}
	if rt := p.last; rt != nil && rt.Key == string(key) && rt.Exchange == string(exchange) {
		return rt, nil
	}
	p.keyBuf = appendRouteKey(p.keyBuf[:0], exchange, key)
	if rt := p.routes[string(p.keyBuf)]; rt != nil {
		p.last = rt
		return rt, nil
	}
	return p.newRoute(exchange, key)
}

// appendRouteKey appends a key for the map of routes. Exchange names are at
// most 255 bytes long.
func appendRouteKey(dst, exchange, key []byte) []byte {
	dst = append(dst, byte(len(exchange)))
	dst = append(dst, exchange...)
	return append(dst, key...)
}

// reset forgets the routes, which are of an older topology. Slots stay for what
// is in them and for the next routes, but those of deleted queues.
func (p *Publisher) reset(generation uint64) {
	p.generation = generation
	p.last = nil
	clear(p.routes)
	clear(p.inside)
	for q, s := range p.slots {
		if s.entry == nil || s.entry.gone.Load() {
			delete(p.slots, q)
		}
	}
}

// newRoute finds the exchange. Where its messages go is found by the first one:
// some types of exchange look at more than the key, or remember messages.
func (p *Publisher) newRoute(exchange, key []byte) (*Route, error) {
	rt := &Route{Exchange: string(exchange), Key: string(key)}
	rt.entry = p.v.exchangeEntry(rt.Exchange)
	if rt.entry == nil {
		return nil, p.v.errNoExchange(rt.Exchange)
	}
	if rt.Exchange != "" {
		rt.X = rt.entry.x
	}
	if d := rt.entry.delayed; d != nil {
		rt.delayed = p.insideOf(d) // one for all keys, so that their messages keep their order
	}
	if len(p.routes) >= maxRoutes {
		clear(p.routes)
	}
	if p.routes == nil {
		p.routes = make(map[string]*Route)
	}
	p.routes[string(p.keyBuf)] = rt
	p.last = rt
	return rt, nil
}

// Add routes a message and puts it into the batch. It says whether the message
// has reached a queue; one that waits in a delayed exchange counts as having.
// The receipt may be nil.
func (p *Publisher) Add(rt *Route, m *message.Message, r *message.Receipt, seq uint64) (routed bool) {
	p.added++
	p.sizes.Add(len(m.Body))
	if p.v.tracing.Load() {
		return p.addTraced(rt, m, r, seq)
	}
	return p.add(rt, m, r, seq)
}

func (p *Publisher) add(rt *Route, m *message.Message, r *message.Receipt, seq uint64) (routed bool) {
	p.use(rt)
	rt.published++
	e := queue.Entry{Msg: m, Receipt: r, Seq: seq}
	if hasHeaders(m) {
		routed = p.addMarked(rt, e)
	} else {
		routed = p.route(rt, e)
	}
	if !routed {
		p.unroutable++
	}
	return routed
}

// addMarked is add for a message with headers, which may ask for more.
func (p *Publisher) addMarked(rt *Route, e queue.Entry) (routed bool) {
	headers := headerFields(e.Msg)
	marks := marksOf(headers)
	if marks == 0 && rt.delayed == nil && rt.entry.filter == nil {
		return p.route(rt, e)
	}
	if p.Again {
		return p.delay(rt, e) || p.route(rt, e)
	}
	id, number, claims := producerOf(headers)
	if !claims {
		return p.stops(rt, e, headers) || p.route(rt, e)
	}
	if p.claim(&e, id, number) || p.stops(rt, e, headers) || p.route(rt, e) {
		return true
	}
	p.unclaim()
	return false
}

// use notes that a route's counters are about to change.
func (p *Publisher) use(rt *Route) {
	if rt.published|rt.routed == 0 {
		p.used = append(p.used, rt)
	}
}

// stops says that a message goes no further now, for what is in its headers: it
// is a duplicate, or has a delay and was put where it waits.
func (p *Publisher) stops(rt *Route, e queue.Entry, headers []byte) bool {
	if f := rt.entry.filter; f != nil && p.duplicate(f, headers, e.Msg.Time, p.waiterOf(&e)) {
		return true
	}
	if deliveryDelay(headers) > 0 {
		p.hold(e)
		return true
	}
	return p.delay(rt, e)
}

// route puts a message into the slots of the queues that it goes to now. Call use
// before.
func (p *Publisher) route(rt *Route, e queue.Entry) (routed bool) {
	targets, durable := p.targetsOf(rt, &e)
	dropped := p.detour.tookDuplicate() // in any case: it is forgotten with that
	if len(targets) == 0 && !dropped {
		p.unsee()
		return false
	}
	if len(p.noted) > 0 {
		e = p.watched(e)
	}
	rt.routed += uint64(len(targets))
	if durable > 1 && e.Msg.Persistent {
		e.Shared = new(persistence.SharedBody)
	}
	if len(e.Msg.Body) > message.MaxInline && len(targets) == 1 {
		e.Sole = p.sole(rt, e.Msg)
	}
	for _, s := range targets {
		p.put(s, e)
	}
	return true
}

// sole says that nobody else gets the message that goes to the one target of its
// route: where only the key counts, no exchange keeps it.
func (p *Publisher) sole(rt *Route, m *message.Message) bool {
	return p.Owns && !p.traced && rt.known && m.More == nil
}

// delay puts a message where it waits, if its exchange delays it.
func (p *Publisher) delay(rt *Route, e queue.Entry) bool {
	if rt.delayed == nil {
		return false
	}
	if _, ok := rt.X.Delay(e.Msg); !ok {
		return false
	}
	p.put(rt.delayed, p.watched(e))
	return true
}

// addTraced is add with a copy to the trace exchange.
func (p *Publisher) addTraced(rt *Route, m *message.Message, r *message.Receipt, seq uint64) (routed bool) {
	p.targets = p.targets[:0]
	p.traced = true
	routed = p.add(rt, m, r, seq)
	p.traced = false
	targets := p.targets
	if rt.known && len(targets) == 0 {
		targets = rt.targets
	}
	p.v.tracePublish(&p.Source, rt.Exchange, m, targets)
	return routed
}

// put appends an entry to a slot's batch.
func (p *Publisher) put(s *batchSlot, e queue.Entry) {
	if len(s.batch) == 0 {
		p.activate(s)
	}
	if s.receipt != e.Receipt || s.runs == 0 {
		s.receipt = e.Receipt
		s.runs++
	}
	if len(s.batch) == maxFreeBatch {
		p.enlarge(s)
	}
	s.batch = append(s.batch, e)
}

// enlarge gives a batch that is larger than a publisher may keep the memory of one
// that others have left.
func (p *Publisher) enlarge(s *batchSlot) {
	large, ok := largeBatches.Get().(*[]queue.Entry)
	if !ok || cap(*large) <= cap(s.batch) {
		return
	}
	small := s.batch
	s.batch = append(*large, small...)
	if cap(small) <= maxFreeBatch && len(p.free) < maxFreeBatches {
		clear(small)
		p.free = append(p.free, small[:0])
	}
}

func (p *Publisher) activate(s *batchSlot) {
	p.active = append(p.active, s)
	if n := len(p.free) - 1; n >= 0 {
		s.batch = p.free[n]
		p.free[n] = nil
		p.free = p.free[:n]
	}
}

// targetsOf returns the slots of the queues that the message goes to, and how
// many of the queues are durable. The slice is valid until the next call.
func (p *Publisher) targetsOf(rt *Route, e *queue.Entry) (targets []*batchSlot, durable int) {
	m := e.Msg
	onlyKey := m.More == nil || len(m.More.CC)+len(m.More.BCC) == 0
	if rt.known && onlyKey {
		return rt.targets, rt.durable
	}
	p.matches.Reset()
	p.targets = p.targets[:0]
	if rt.X == nil {
		p.v.routeDefault(m, &p.matches)
	} else {
		p.detour.by = p.waiterOf(e)
		p.routeFrom(rt.X, m)
	}
	for _, q := range p.matches.Queues() {
		s := p.slotOf(q)
		p.targets = append(p.targets, s)
		if s.durable {
			durable++
		}
	}
	if onlyKey && p.cacheable(rt) {
		rt.targets, rt.durable, rt.known = append([]*batchSlot(nil), p.targets...), durable, true
	}
	return p.targets, durable
}

// cacheable says whether what was found for a message is true for all with its
// key, as long as the generation is the same. A queue that is missing may be
// declared without a new generation.
func (p *Publisher) cacheable(rt *Route) bool {
	if rt.X == nil {
		return len(p.targets) > 0
	}
	return p.matches.Cacheable()
}

// routeDefault routes through the default exchange: the keys are names of queues.
func (v *VHost) routeDefault(m *message.Message, to *exchange.Matches) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if e := v.queues[m.RoutingKey]; e != nil {
		to.AddQueue(e.q)
	}
	if m.More == nil {
		return
	}
	for _, keys := range [2][]string{m.More.CC, m.More.BCC} {
		for _, key := range keys {
			if e := v.queues[key]; e != nil {
				to.AddQueue(e.q)
			}
		}
	}
}

// slotOf returns the slot of a queue.
func (p *Publisher) slotOf(q queue.Queue) *batchSlot {
	if s := p.slots[q]; s != nil {
		return s
	}
	s := &batchSlot{to: q}
	p.v.mu.RLock()
	if e := p.v.queues[q.Name()]; e != nil && e.q == q {
		s.entry, s.durable, s.filter = e, e.spec.Durable, e.filter
	}
	p.v.mu.RUnlock()
	if p.slots == nil {
		p.slots = make(map[queue.Queue]*batchSlot)
	}
	p.slots[q] = s
	return s
}

// Len is how many messages were added since the last Flush.
func (p *Publisher) Len() int { return p.added }

// Lost says whether the batch has messages for a classic queue that was deleted
// since they were added: RabbitMQ 4.0 takes that for a refusal in transactions, and
// not for queues of other types.
func (p *Publisher) Lost() bool {
	for _, s := range p.active {
		if s.entry != nil && s.entry.spec.Arguments.Type == queue.Classic && s.entry.gone.Load() {
			return true
		}
	}
	return false
}

// Date has the messages of the batch count as published at that time, in Unix
// milliseconds: those of a transaction are when it is committed (RabbitMQ 4.0).
func (p *Publisher) Date(now int64) {
	for _, s := range p.active {
		for i := range s.batch {
			s.batch[i].Msg.Time = now
		}
	}
}

// Flush gives the batch to the queues, each its part at once. Every receipt is
// held once for every queue. It says which stores may have something to write now:
// whoever has more to publish waits while one of those is behind.
func (p *Publisher) Flush() queue.Writes {
	p.writes = 0
	switch {
	case p.v.tracing.Load():
		p.writes = queue.Anywhere // copies are on their way, too
	case len(p.flights)+len(p.watches) > 0:
		p.writes = queue.ToStore // what is remembered of them
	}
	p.outer = len(p.watches)
	if p.Transactional {
		p.commit()
	}
	if len(p.flights) > 0 {
		p.flushProducers()
	}
	for i, s := range p.active {
		p.active[i] = nil
		p.flushSlot(s)
	}
	p.active = p.active[:0]
	if len(p.watches) > 0 {
		p.releaseWatches()
	}
	p.count(true)
	return p.writes
}

func (p *Publisher) flushSlot(s *batchSlot) {
	if p.sifted(s) {
		s.hold()
		p.writes |= s.to.Enqueue(s.batch)
	}
	p.release(s)
}

// sifted says whether anything is left of a batch when its queue's filter, if there
// is one, has dropped the duplicates.
func (p *Publisher) sifted(s *batchSlot) bool {
	return s.filter == nil || p.Again || p.sift(s)
}

// count adds what was published to the exchanges' counters, or forgets it.
func (p *Publisher) count(published bool) {
	for i, rt := range p.used {
		if published {
			rt.entry.published.Add(rt.published)
			rt.entry.routed.Add(rt.routed)
		}
		rt.published, rt.routed = 0, 0
		p.used[i] = nil
	}
	if p.unroutable > 0 && published {
		p.v.set.unroutable.Add(p.unroutable)
	}
	if published {
		p.sizes.Flush(&p.v.set.sizes)
	} else {
		p.sizes = message.SizeBatch{}
	}
	p.used, p.unroutable = p.used[:0], 0
	p.added = 0
}

// Discard drops the batch, as tx.rollback does; its receipts get nothing.
func (p *Publisher) Discard() {
	for i, s := range p.active {
		p.active[i] = nil
		p.release(s)
	}
	p.active = p.active[:0]
	p.discardWatches()
	p.discardProducers()
	p.count(false)
}

// hold makes each receipt of the batch wait for this queue.
func (s *batchSlot) hold() {
	if s.runs == 1 {
		if s.receipt != nil {
			s.receipt.Hold(1)
		}
		return
	}
	var last *message.Receipt
	for i := range s.batch {
		if r := s.batch[i].Receipt; r != nil && r != last {
			r.Hold(1)
			last = r
		}
	}
}

const (
	// maxFreeBatches and maxFreeBatch bound the memory that an idle publisher
	// keeps for its next batches: in number, and in entries each.
	maxFreeBatches = 32
	maxFreeBatch   = 1024
	// maxLargeBatch bounds those that all publishers share, in entries each: a read
	// of a connection brings no more, a transaction may.
	maxLargeBatch = 16 << 10
)

// largeBatches are those that no publisher may keep, *[]queue.Entry. The collector
// empties it.
var largeBatches sync.Pool

// release empties the slot and keeps its memory for another one.
func (p *Publisher) release(s *batchSlot) {
	batch := s.batch
	s.batch, s.receipt, s.runs = nil, nil, 0
	switch {
	case cap(batch) > maxLargeBatch:
	case cap(batch) > maxFreeBatch:
		share(batch)
	case len(p.free) < maxFreeBatches:
		clear(batch)
		p.free = append(p.free, batch[:0])
	}
}

// share empties a batch and gives its memory to all publishers. Without, small
// messages that come as fast as they can grow a batch anew with each read: fire-16B
// and fanout-10 took a tenth more processor time.
func share(batch []queue.Entry) {
	clear(batch)
	batch = batch[:0]
	largeBatches.Put(&batch)
}

// replay puts a message of an exchange's history into the batch for one
// destination.
func (p *Publisher) replay(to end, m *message.Message) {
	if to.queue != nil {
		p.put(p.slotOf(to.queue.q), queue.Entry{Msg: m})
		return
	}
	p.matches.Reset()
	to.exchange.x.Route(m, p, &p.matches)
	for _, q := range p.matches.Queues() {
		p.put(p.slotOf(q), queue.Entry{Msg: m})
	}
}
