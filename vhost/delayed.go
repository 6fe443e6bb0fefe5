package vhost

import (
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/leveretmq/leveret/exchange"
	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// A delayer keeps the messages of one x-delayed-message exchange until they are
// due, or those of all exchanges with a delivery delay. Persistent ones are in a
// log of their own, unless the exchange is not durable; of most of those only their
// time and id are kept here when they are many, or when memory is short.
type delayer struct {
	v   *VHost             // immutable
	x   *exchange.Exchange // immutable; nil for messages with a delivery delay
	log persistence.Log    // immutable; nil if the exchange is not durable

	// mu guards the fields below; held for one batch, never across a read.
	// Order: delayer.mu before Log's.
	mu        sync.Mutex
	waiting   delayHeap
	kept      int64 // bytes of the messages of waiting that are in memory
	lastID    uint64
	timer     *time.Timer          // for the first of waiting; nil until the first message
	armed     int64                // when it fires, Unix milliseconds; 0 is never
	releasing bool                 // a goroutine is in release
	idle      sync.Cond            // releasing has become false
	stopped   bool                 // nothing is released any more; what comes is stored
	dropped   bool                 // with all it held; what comes goes the same way
	records   []persistence.Record // scratch
}

// A delayedMessage waits. It is 32 bytes, and the message if that is in memory.
type delayedMessage struct {
	due int64 // Unix milliseconds
	id  uint64
	of  unique.Handle[string] // the exchange, if there is a delivery delay; for listings
	msg *message.Message      // nil: to be read from the log
}

// makeDelayer gives an exchange that can delay messages a place for them: a new
// one, or that of a log.
func (v *VHost) makeDelayer(e *exchangeEntry, id persistence.LogID) error {
	if e.x.Type != delayedType {
		return nil
	}
	d := newDelayer(v, e.x)
	e.delayed = d
	switch {
	case id != 0:
		return d.reopen(id)
	case e.x.Durable:
		var err error
		d.log, err = v.set.config.Store.NewLog()
		return err
	}
	return nil
}

func newDelayer(v *VHost, x *exchange.Exchange) *delayer {
	d := &delayer{v: v, x: x}
	d.idle.L = &d.mu
	return d
}

// reopen brings back what was waiting before a restart.
func (d *delayer) reopen(id persistence.LogID) (err error) {
	if d.log, err = d.v.set.config.Store.OpenLog(id); err != nil {
		return err
	}
	d.lastID = d.log.LastID()
	now := time.Now().UnixMilli()
	for rec, err := range persistence.Records(d.log, 0, 0) {
		if err != nil {
			return err
		}
		m := delayedMessage{due: rec.Expires, id: rec.ID, of: d.handle(rec.Exchange)}
		if d.keeps(m.due - now) {
			m.msg = d.restore(rec)
		}
		d.push(m)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armLocked(time.Now())
	return nil
}

// handle is what a waiting message has of its exchange's name.
func (d *delayer) handle(exchange string) (h unique.Handle[string]) {
	if d.x == nil {
		h = unique.Make(exchange)
	}
	return h
}

// delay is how long a message waits here, in milliseconds.
func (d *delayer) delay(m *message.Message) int64 {
	if d.x == nil {
		return deliveryDelay(headerFields(m))
	}
	ms, _ := d.x.Delay(m)
	return ms
}

func (d *delayer) logID() persistence.LogID {
	if d.log == nil {
		return 0
	}
	return d.log.ID()
}

const (
	// keepSoon is how soon messages are due, in milliseconds, that are kept in
	// memory up to keepBytes, although they are stored. Of the others only
	// keepLate bytes are kept. It makes a million waiting messages of 100 bytes
	// take 60 MB instead of 170.
	keepSoon  = 30_000
	keepBytes = 32 << 20
	keepLate  = 4 << 20
)

// keeps says whether a stored message that is due in so many milliseconds is to be
// kept in memory, too.
func (d *delayer) keeps(ms int64) bool {
	if budget := d.v.set.config.Memory; budget != nil && budget.Exceeded() {
		return false
	}
	return d.kept < keepLate || ms <= keepSoon && d.kept < keepBytes
}

// count notes, and tells the memory budget of, a message that comes or, with -1,
// goes.
func (d *delayer) count(m *message.Message, sign int64) {
	if m == nil {
		return
	}
	d.kept += sign * int64(m.Size())
	if budget := d.v.set.config.Memory; budget != nil {
		budget.Add(sign * int64(m.Size()))
	}
}

func (d *delayer) push(m delayedMessage) {
	d.count(m.msg, 1)
	d.waiting.push(m)
}

// len is how many messages wait.
func (d *delayer) len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.waiting)
}

// Enqueue takes a batch like a queue: each receipt is released once, when its
// messages are stored or, for transient ones, at once. When they are due they go on
// to queues.
func (d *delayer) Enqueue(batch []queue.Entry) queue.Writes {
	now := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(batch) > 0 {
		r := batch[0].Receipt
		n := 1
		for n < len(batch) && batch[n].Receipt == r {
			n++
		}
		d.takeLocked(batch[:n], r, now.UnixMilli())
		batch = batch[n:]
	}
	d.armLocked(now)
	return queue.Anywhere
}

// takeLocked takes entries of one receipt. An exchange that was deleted
// meanwhile drops them.
func (d *delayer) takeLocked(run []queue.Entry, r *message.Receipt, now int64) {
	if d.dropped {
		run = nil
	}
	d.records = d.records[:0]
	for i := range run {
		m := run[i].Msg
		d.lastID++
		w := delayedMessage{due: now + d.delay(m), id: d.lastID, of: d.handle(m.Exchange), msg: m}
		if d.log != nil && m.Persistent {
			d.records = append(d.records, recordOf(m, w))
			if !d.keeps(w.due - now) {
				w.msg = nil
			}
		}
		d.push(w)
	}
	switch {
	case len(d.records) > 0:
		d.log.Append(d.records, r)
		clear(d.records)
	case r != nil:
		r.Release()
	}
}

// armLocked sets the timer for the first message. d.mu must be held.
func (d *delayer) armLocked(now time.Time) {
	if d.stopped || d.releasing || len(d.waiting) == 0 {
		return
	}
	due := d.waiting[0].due
	if d.armed != 0 && d.armed <= due {
		return
	}
	d.armed = due
	wait := max(0, time.UnixMilli(due).Sub(now))
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, d.release)
		return
	}
	d.timer.Reset(wait)
}

// releaseBatch is how many due messages are routed at a time.
const releaseBatch = 512

// release routes what is due. It is the timer's function.
func (d *delayer) release() {
	<-d.v.set.recovered // routing needs the bindings
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.releasing || d.stopped {
		return
	}
	d.armed = 0
	d.releasing = true
	for !d.stopped {
		due := d.takeDueLocked(time.Now().UnixMilli())
		if len(due) == 0 {
			break
		}
		d.mu.Unlock()
		d.route(due)
		d.mu.Lock()
	}
	d.releasing = false
	d.idle.Broadcast()
	d.armLocked(time.Now())
}

func (d *delayer) takeDueLocked(now int64) []delayedMessage {
	var due []delayedMessage
	for len(due) < releaseBatch && len(d.waiting) > 0 && d.waiting[0].due <= now {
		m := d.waiting.pop()
		d.count(m.msg, -1)
		due = append(due, m)
	}
	return due
}

// route publishes due messages in order. The records of stored ones go when all
// queues have theirs: until then the publisher may be told that they are safe only
// if they are here.
func (d *delayer) route(due []delayedMessage) {
	d.load(due)
	p := d.v.borrow()
	defer d.v.giveBack(p)
	now := time.Now().UnixMilli()
	done := &queue.Settlement{Log: d.log}
	r := message.NewReceipt(done, 1, uint64(len(due)))
	r.Hold(1)
	for i := range due {
		m := due[i].msg
		if m == nil {
			continue
		}
		e := queue.Entry{}
		if d.log != nil && m.Persistent {
			done.Records = append(done.Records, due[i].id)
			e.Receipt, e.Seq = r, uint64(i)+1
		}
		d.publish(p, e, m, now)
	}
	p.Flush()
	slices.Sort(done.Records)
	r.Release()
}

// publish routes a message that was delayed, with the receipt of an entry. One
// whose exchange was deleted is dropped.
func (d *delayer) publish(p *Publisher, e queue.Entry, m *message.Message, now int64) {
	name, header := m.Exchange, deliveryDelayHeader
	if d.x != nil {
		name, header = d.x.Name, "x-delay"
	}
	e.Msg = undelayed(m, header, now)
	rt, err := p.Route([]byte(name), []byte(m.RoutingKey))
	if err != nil || d.x == nil && p.delay(rt, e) {
		return
	}
	p.use(rt)
	p.route(rt, e)
}

// stop ends the releasing, and returns when nothing is on its way into queues any
// more; what is stored stays.
func (d *delayer) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopLocked()
	for d.releasing {
		d.idle.Wait()
	}
}

func (d *delayer) stopLocked() {
	d.stopped = true
	if d.timer != nil {
		d.timer.Stop()
	}
	for i := range d.waiting {
		d.count(d.waiting[i].msg, -1)
	}
	d.waiting = nil
}

// delete ends the delayer with all it holds. It does not wait for what is on its
// way: the exchange may go because of that.
func (d *delayer) delete() {
	d.mu.Lock()
	d.stopLocked()
	d.dropped = true
	d.mu.Unlock()
	if d.log != nil {
		d.log.Drop()
	}
}

// undelayed is the message as it is routed: with its delay, which is in this
// header, negated, so that it is not delayed again, and living from now on.
func undelayed(m *message.Message, header string, now int64) *message.Message {
	u := *m
	u.Time = now
	e := u.Own()
	e.Mandatory = false
	var p frames.Properties
	if p.Parse(m.Header) != nil {
		return &u // it was checked when it came in
	}
	t, err := p.Table()
	if err != nil {
		return &u
	}
	if v, ok := t.Lookup(header); ok {
		p.SetTable(t.Set(header, negated(v)).Sorted())
		e.Header = p.Append(nil)
	}
	return &u
}

// negated is a delay with the other sign, of the same type if that can hold it.
func negated(v any) any {
	switch v := v.(type) {
	case int8:
		return -v
	case int16:
		return -v
	case int32:
		return -v
	case string:
		return "-" + v
	}
	n, _ := frames.Integer(v)
	return -n
}

// A delayHeap is a binary heap, the message that is due first at the top; of
// those due at the same time the one that came first.
type delayHeap []delayedMessage

func (h delayHeap) before(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].id < h[j].id
}

// order makes any list a heap.
func (h delayHeap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.sink(i)
	}
}

func (h *delayHeap) push(m delayedMessage) {
	*h = append(*h, m)
	a := *h
	for i := len(a) - 1; i > 0; {
		parent := (i - 1) / 2
		if !a.before(i, parent) {
			return
		}
		a[i], a[parent] = a[parent], a[i]
		i = parent
	}
}

func (h *delayHeap) pop() delayedMessage {
	a := *h
	top, last := a[0], len(a)-1
	a[0], a[last] = a[last], delayedMessage{}
	a = a[:last]
	*h = a
	a.sink(0)
	return top
}

// sink moves element i down to its place.
func (h delayHeap) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.before(child+1, child) {
			child++
		}
		if !h.before(child, i) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
