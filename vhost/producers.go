package vhost

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// Idempotent publishing: a message with the headers x-producer-id (text of 1 to
// 255 bytes) and x-producer-sequence (an integer, or digits, from 0) is stored
// once, however often it is published, on whatever connection, also after a
// restart. A producer id stands for one sequence of messages in the vhost, to
// whatever exchanges, that rises with every new message; what is not higher
// than the highest one is a retry and is confirmed without being stored. It is
// confirmed when the first copy is safe; while that is in a transaction of another
// channel it is refused. What was refused, rolled back or
// unroutable may be published again with its number.
//
// How it lasts: with a batch the vhost writes a record of each producer in it,
// in a log of its own that is written ahead of the messages'; the confirm waits for
// both. The record names the messages that were not yet safe when it was written,
// and where they are, so that a start can tell whether they got there: if not, their
// numbers are free again. So nothing that a retry is told to be safe is lost. A
// message can be stored twice only if the broker was killed after a consumer had
// acknowledged the message and before its record was complete, which takes one
// commit. The records of transient messages, and of what goes to queues that are not
// durable, are kept in memory only.
const (
	producerHeader = "x-producer-id"
	sequenceHeader = "x-producer-sequence"

	// maxProducers bounds the producers that are remembered, in each vhost; of
	// those without unconfirmed messages the one unused for longest goes.
	maxProducers = 1 << 16
	// maxHoles bounds the numbers of a producer that are free again; the lowest
	// goes.
	maxHoles = 1024
)

// producers are the producers of a vhost.
type producers struct {
	v   *VHost          // immutable
	log persistence.Log // immutable

	// order is held while a batch with producers goes into the queues and its
	// records follow. Order: producers.order before Queue.mu.
	order sync.Mutex

	// mu guards the fields below and those of producers, flights and claims. It
	// is taken by receipts, maybe with Queue.mu held. Order: before Log.mu.
	mu     sync.Mutex
	byID   map[string]*producer
	lastID uint64 // of the log
	clock  uint64 // counts uses
}

// A producer is a sequence of messages. Guarded by producers.mu.
type producer struct {
	id      string
	last    int64              // the highest number that was taken
	holes   map[int64]struct{} // numbers up to last that are free
	open    map[int64]*claim   // numbers that are taken and not confirmed
	flights []*flight          // those with a place, unconfirmed
	records []uint64           // their ids in the log; only the last one counts
	used    uint64             // when, by producers.clock
}

// A claim is a number that a message has taken. Guarded by producers.mu.
type claim struct {
	of      *producer
	number  int64
	confirm uint64     // the message's confirm number within its flight's receipt
	flushed bool       // the queues have it
	lasting bool       // the message is persistent
	void    bool       // it was given back
	tx      *Publisher // whose open transaction has the message; nil if none has
	waiting []waiter
}

// A waiter is the publisher of a retry that came before the confirm.
type waiter struct {
	r   *message.Receipt
	seq uint64
	tx  *Publisher // the retry, too, is in an open transaction; nil if it is not
}

// A flight is the messages with producers of one batch that have one receipt:
// it stands between that and the queues.
type flight struct {
	t      *producers
	user   *message.Receipt // nil if nobody waits
	r      *message.Receipt // what the queues get; its confirm numbers are 1 to len(claims)
	claims []*claim
	places []place
	record uint64 // the highest id of its records; 0 if it has none
}

// A place is where messages went: into this log, with ids after After and up to
// UpTo.
type place struct {
	Log   persistence.LogID `json:"log"`
	After uint64            `json:"after"`
	UpTo  uint64            `json:"up_to"`
}

var _ message.Owner = (*flight)(nil)

// openProducers makes the producers of a vhost, or reads those of a log.
func (v *VHost) openProducers(id persistence.LogID) (err error) {
	v.producers = &producers{v: v, byID: make(map[string]*producer)}
	store := v.set.config.Store
	if id == 0 {
		v.producers.log, err = store.NewLog()
	} else {
		v.producers.log, err = store.OpenLog(id)
	}
	if err != nil {
		return err
	}
	v.producers.log.WriteAhead()
	v.producers.lastID = v.producers.log.LastID()
	return nil
}

// producerOf reads the headers of a message. ok is false unless both are there
// and valid.
func producerOf(headers []byte) (id []byte, number int64, ok bool) {
	tag, id, ok := frames.FindField(headers, producerHeader)
	if !ok || tag != 'S' || len(id) == 0 || len(id) > 255 {
		return nil, 0, false
	}
	tag, value, ok := frames.FindField(headers, sequenceHeader)
	if !ok {
		return nil, 0, false
	}
	number, ok = headerNumber(tag, value)
	return id, number, ok && number >= 0
}

// claim takes the number of a message for it, and puts the batch's flight
// between it and its receipt. If it is a retry, its receipt waits for the first
// copy if that is unconfirmed.
func (p *Publisher) claim(e *queue.Entry, id []byte, number int64) (retry bool) {
	t := p.v.producers
	t.mu.Lock()
	defer t.mu.Unlock()
	pr := t.producerLocked(id)
	if c := pr.open[number]; c != nil {
		c.awaitLocked(p.waiterOf(e))
		return true
	}
	if _, hole := pr.holes[number]; number <= pr.last && !hole {
		return true
	}
	delete(pr.holes, number)
	pr.last = max(pr.last, number)
	c := &claim{of: pr, number: number, confirm: e.Seq, lasting: e.Msg.Persistent, tx: p.waiterOf(e).tx}
	pr.open[number] = c
	f := p.flightOf(e.Receipt)
	f.claims = append(f.claims, c)
	e.Receipt, e.Seq = f.r, uint64(len(f.claims))
	return false
}

// awaitLocked makes the publisher of a retry wait for the first copy. It is refused if
// that is in a transaction of others: see filter.awaitLocked.
func (c *claim) awaitLocked(by waiter) {
	switch {
	case by.r == nil:
	case c.tx != nil && c.tx != by.tx:
		by.r.Refuse(by.seq)
	default:
		by.r.Hold(1)
		c.waiting = append(c.waiting, by)
	}
}

// producerLocked finds or makes a producer.
func (t *producers) producerLocked(id []byte) *producer {
	t.clock++
	pr := t.byID[string(id)]
	if pr == nil {
		t.makeRoomLocked()
		pr = newProducer(string(id))
		t.byID[pr.id] = pr
	}
	pr.used = t.clock
	return pr
}

func newProducer(id string) *producer {
	return &producer{id: id, last: -1, holes: make(map[int64]struct{}), open: make(map[int64]*claim)}
}

// makeRoomLocked forgets, when there are too many producers, the sixteenth that
// was unused for longest.
func (t *producers) makeRoomLocked() {
	if len(t.byID) < maxProducers {
		return
	}
	var idle []*producer
	for _, pr := range t.byID {
		if len(pr.open) == 0 {
			idle = append(idle, pr)
		}
	}
	slices.SortFunc(idle, func(a, b *producer) int { return cmp.Compare(a.used, b.used) })
	for _, pr := range idle[:min(len(idle), maxProducers/16)] {
		delete(t.byID, pr.id)
		t.log.Settle(pr.records)
	}
}

// flightOf returns the batch's flight for a receipt.
func (p *Publisher) flightOf(user *message.Receipt) *flight {
	if n := len(p.flights); n > 0 && p.flights[n-1].user == user {
		return p.flights[n-1]
	}
	f := &flight{t: p.v.producers, user: user}
	f.r = message.NewReceipt(f, 1, 0)
	f.r.Hold(1)
	if user != nil {
		user.Hold(1)
	}
	p.flights = append(p.flights, f)
	return f
}

// unclaim gives the number back that was claimed last: its message is unroutable,
// which is no refusal.
func (p *Publisher) unclaim() {
	f := p.flights[len(p.flights)-1]
	c := f.claims[len(f.claims)-1]
	f.t.mu.Lock()
	defer f.t.mu.Unlock()
	c.void = true
	c.of.freeLocked(c.number)
	delete(c.of.open, c.number)
}

// endLocked takes a claim out of the open ones, and frees its number if the
// message was not stored.
func (c *claim) endLocked(free bool) {
	if c.void {
		return
	}
	if free {
		c.of.freeLocked(c.number)
	}
	delete(c.of.open, c.number)
}

// flushProducers is Flush for a batch with producers.
func (p *Publisher) flushProducers() {
	t := p.v.producers
	t.order.Lock()
	// No commit has the messages without the records.
	p.v.set.config.Store.Together(p.enqueueRecorded)
	t.order.Unlock()
	p.active = p.active[:0]
	for i, f := range p.flights {
		p.flights[i] = nil
		f.r.Release()
	}
	p.flights = p.flights[:0]
	for i, then := range p.left {
		p.left[i] = nil
		then()
	}
	p.left = p.left[:0]
}

// enqueueRecorded gives the batch to the queues, and writes what that means for
// the producers in it.
func (p *Publisher) enqueueRecorded() {
	var places []place
	for i, s := range p.active {
		log := s.log()
		var at place
		if log != nil {
			at = place{Log: log.ID(), After: log.LastID()}
		}
		p.active[i] = nil
		p.appendSlot(s)
		if log != nil {
			if at.UpTo = log.LastID(); at.UpTo > at.After {
				places = append(places, at)
			}
		}
	}
	p.releaseWatches()
	for _, f := range p.flights {
		f.flushed(places)
	}
}

// appendSlot is flushSlot within Store.Together: what the queue has to do besides,
// which may have to wait for the store, is left for later.
func (p *Publisher) appendSlot(s *batchSlot) {
	to, ok := s.to.(queue.Appender)
	if !ok { // a delayed exchange: it only appends
		p.flushSlot(s)
		return
	}
	if p.sifted(s) {
		s.hold()
		writes, then := to.EnqueueOnly(s.batch)
		p.writes |= writes
		if then != nil {
			p.left = append(p.left, then)
		}
	}
	p.release(s)
}

// log is where the slot's messages are stored, or nil.
func (s *batchSlot) log() persistence.Log {
	switch to := s.to.(type) {
	case *delayer:
		return to.log
	case queue.Queue:
		if s.entry != nil && s.entry.spec.Durable {
			return s.entry.log
		}
	}
	return nil
}

// flushed notes that the queues have a flight's messages, and writes the records
// of its producers.
func (f *flight) flushed(places []place) {
	t := f.t
	refused, failed := f.r.Outcome()
	t.mu.Lock()
	defer t.mu.Unlock()
	var lasting []*producer
	for i, c := range f.claims {
		c.flushed = true
		if failed || slices.Contains(refused, uint64(i+1)) {
			c.of.freeLocked(c.number)
		}
		if c.lasting && !c.void && !slices.Contains(lasting, c.of) {
			lasting = append(lasting, c.of)
		}
	}
	if len(places) == 0 || len(lasting) == 0 {
		return
	}
	f.places = places
	f.r.Hold(1)
	recs := make([]persistence.Record, len(lasting))
	for i, pr := range lasting {
		pr.flights = append(pr.flights, f)
		recs[i] = t.recordLocked(pr)
	}
	f.record = t.lastID
	t.log.Append(recs, f.r) // the publisher's own part is not released yet: Settled is not called from here
}

// freeLocked makes a number free again.
func (pr *producer) freeLocked(number int64) {
	pr.holes[number] = struct{}{}
	if len(pr.holes) <= maxHoles {
		return
	}
	lowest := number
	for n := range pr.holes {
		lowest = min(lowest, n)
	}
	delete(pr.holes, lowest)
}

// storedProducer is the record of a producer, as JSON.
type storedProducer struct {
	versioned
	Last    int64           `json:"last"`
	Free    []int64         `json:"free,omitempty"`
	Pending []storedPending `json:"pending,omitempty"`
}

// storedPending are numbers whose messages went to these places and were not
// known to be safe there.
type storedPending struct {
	Numbers []int64 `json:"numbers"`
	Places  []place `json:"places"`
}

// recordLocked makes the next record of a producer.
func (t *producers) recordLocked(pr *producer) persistence.Record {
	s := storedProducer{versioned: versioned{definitionVersion}, Last: pr.last}
	for n := range pr.holes {
		s.Free = append(s.Free, n)
	}
	for n, c := range pr.open {
		if _, free := pr.holes[n]; !c.flushed && !free {
			s.Free = append(s.Free, n)
		}
	}
	for _, f := range pr.flights {
		pending := storedPending{Places: f.places}
		for _, c := range f.claims {
			if _, free := pr.holes[c.number]; c.of == pr && !c.void && !free {
				pending.Numbers = append(pending.Numbers, c.number)
			}
		}
		s.Pending = append(s.Pending, pending)
	}
	t.lastID++
	pr.records = append(pr.records, t.lastID)
	return persistence.Record{ID: t.lastID, Time: time.Now().UnixMilli(), Key: pr.id, Body: encode(&s)}
}

// Settled implements message.Owner: the flight's messages and records are safe,
// or were refused.
func (f *flight) Settled(r *message.Receipt) {
	refused, failed := r.Outcome()
	bad := func(i int) bool { return failed || slices.Contains(refused, uint64(i+1)) }
	f.t.mu.Lock()
	for i, c := range f.claims {
		c.endLocked(bad(i))
	}
	old := f.completeLocked()
	f.t.mu.Unlock()
	if len(old) > 0 {
		f.t.log.Settle(old)
	}
	for i, c := range f.claims {
		for _, w := range c.waiting {
			tell(w.r, w.seq, bad(i), failed)
			w.r.Release()
		}
		tell(f.user, c.confirm, bad(i), failed)
	}
	if f.user != nil {
		f.user.Release()
	}
}

// tell passes on what became of a message.
func tell(r *message.Receipt, seq uint64, refused, failed bool) {
	switch {
	case r == nil:
	case failed:
		r.Fail()
	case refused:
		r.Refuse(seq)
	}
}

// completeLocked writes records without the flight, now that it is safe, and
// returns the ids of those that they replace. They are durable before those are
// gone: see persistence.
func (f *flight) completeLocked() (old []uint64) {
	if f.record == 0 {
		return nil
	}
	var done []*producer
	var recs []persistence.Record
	for _, c := range f.claims {
		if slices.Contains(done, c.of) || !slices.Contains(c.of.flights, f) {
			continue
		}
		pr := c.of
		done = append(done, pr)
		pr.flights = slices.DeleteFunc(pr.flights, func(o *flight) bool { return o == f })
		n := 0 // of records that are durable
		for n < len(pr.records) && pr.records[n] <= f.record {
			n++
		}
		old = append(old, pr.records[:n]...)
		pr.records = slices.Delete(pr.records, 0, n)
		recs = append(recs, f.t.recordLocked(pr))
	}
	f.t.log.Append(recs, nil)
	slices.Sort(old)
	return old
}

// discardProducers gives back the numbers of a batch that is dropped. Retries
// that wait for it are refused, so that they are published again.
func (p *Publisher) discardProducers() {
	t := p.v.producers
	for i, f := range p.flights {
		p.flights[i] = nil
		t.mu.Lock()
		for _, c := range f.claims {
			c.endLocked(true)
		}
		t.mu.Unlock()
		for _, c := range f.claims {
			for _, w := range c.waiting {
				w.r.Refuse(w.seq)
				w.r.Release()
			}
		}
	}
	p.flights = p.flights[:0]
}
