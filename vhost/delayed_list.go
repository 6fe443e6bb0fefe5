package vhost

import (
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// A DelayedMessage waits in an exchange of type x-delayed-message or for its
// delivery delay.
type DelayedMessage struct {
	// ID names the message for CancelDelayed until it is routed, across
	// restarts if it is persistent.
	ID string
	// Due is when it will be routed, in Unix milliseconds.
	Due int64
	// Exchange is where it was published, RoutingKey with which key. Of a
	// message that could not be read both are "".
	Exchange, RoutingKey string
	Size                 int // of the body, in bytes
	Persistent           bool
	Message              *message.Message // nil if it could not be read; not to be changed
}

// heldID begins the ids of messages that wait for their delivery delay; the
// others wait in the exchange itself.
const heldID = "held-"

// DelayedMessages lists messages of an exchange that wait, those due first at
// the front: at most limit of them after the first offset ones, and how many
// there are. It copies what is known of all that wait, some 30 bytes each.
// The user needs read permission on the exchange, and write permission, too, to
// cancel some: 404 if it is missing.
func (v *VHost) DelayedMessages(by Actor, exchange string, offset, limit int) (page []DelayedMessage, total int, err error) {
	own, err := v.delayersOf(by, exchange, Read)
	if err != nil {
		return nil, 0, err
	}
	of := unique.Make(exchange)
	held := v.held.snapshot(func(m *delayedMessage) bool { return m.of == of })
	var inside delayHeap
	if own != nil {
		inside = own.snapshot(nil)
	}
	total = len(held) + len(inside)
	for range min(offset, total) {
		nextOf(&held, &inside)
	}
	var fromHeld, fromInside []delayedMessage
	var order []bool // of the page: whether held
	for range max(0, min(limit, total-offset)) {
		m, isHeld := nextOf(&held, &inside)
		order = append(order, isHeld)
		if isHeld {
			fromHeld = append(fromHeld, m)
		} else {
			fromInside = append(fromInside, m)
		}
	}
	v.held.loadPage(fromHeld)
	if own != nil {
		own.loadPage(fromInside)
	}
	for _, isHeld := range order {
		if isHeld {
			page, fromHeld = append(page, describeDelayed(heldID, &fromHeld[0])), fromHeld[1:]
		} else {
			page, fromInside = append(page, describeDelayed("", &fromInside[0])), fromInside[1:]
		}
	}
	return page, total, nil
}

// CancelDelayed drops a message of an exchange that waits: 404 if there is none
// with this id, or not any more. The store forgets it with its next commit: after
// a crash before that the message is there again.
func (v *VHost) CancelDelayed(by Actor, exchange, id string) error {
	own, err := v.delayersOf(by, exchange, Read, Write)
	if err != nil {
		return err
	}
	if d, is := v.delayedID(own, exchange, id); d != nil && d.cancel(is) > 0 {
		return nil
	}
	return v.errNoDelayed(exchange, id)
}

// DelayedMessage shows one message of an exchange that waits: 404 if there is none
// with this id, or not any more.
func (v *VHost) DelayedMessage(by Actor, exchange, id string) (DelayedMessage, error) {
	own, err := v.delayersOf(by, exchange, Read)
	if err != nil {
		return DelayedMessage{}, err
	}
	d, is := v.delayedID(own, exchange, id)
	if d == nil {
		return DelayedMessage{}, v.errNoDelayed(exchange, id)
	}
	found := d.snapshot(is)
	if len(found) == 0 {
		return DelayedMessage{}, v.errNoDelayed(exchange, id)
	}
	d.loadPage(found)
	prefix := ""
	if d == v.held {
		prefix = heldID
	}
	return describeDelayed(prefix, &found[0]), nil
}

// delayedID finds where a message with this id would wait, and how to tell it there;
// nil if that is nowhere.
func (v *VHost) delayedID(own *delayer, exchange, id string) (d *delayer, is func(*delayedMessage) bool) {
	d, of := own, unique.Handle[string]{}
	number, isHeld := strings.CutPrefix(id, heldID)
	if isHeld {
		d, of = v.held, unique.Make(exchange)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil, nil
	}
	return d, func(m *delayedMessage) bool { return m.id == n && m.of == of }
}

func (v *VHost) errNoDelayed(exchange, id string) error {
	return frames.Errorf(frames.NotFound, "no delayed message '%s' in %s: it was routed or cancelled, or never was there", id, v.exchangeName(exchange))
}

// CancelAllDelayed drops all messages of an exchange that wait, and returns how
// many those were.
func (v *VHost) CancelAllDelayed(by Actor, exchange string) (int, error) {
	own, err := v.delayersOf(by, exchange, Read, Write)
	if err != nil {
		return 0, err
	}
	of := unique.Make(exchange)
	n := v.held.cancel(func(m *delayedMessage) bool { return m.of == of })
	if own != nil {
		n += own.cancel(func(*delayedMessage) bool { return true })
	}
	return n, nil
}

// delayersOf checks that the exchange is there, and what the user may do with it;
// own is nil unless messages can wait in the exchange itself.
func (v *VHost) delayersOf(by Actor, exchange string, needed ...Permission) (own *delayer, err error) {
	for _, p := range needed {
		if err := by.MayExchange(p, exchange); err != nil {
			return nil, err
		}
	}
	e := v.exchangeEntry(exchange)
	if e == nil {
		return nil, v.errNoExchange(exchange)
	}
	return e.delayed, nil
}

// nextOf takes the message off one of two heaps that is due first.
func nextOf(held, inside *delayHeap) (m delayedMessage, isHeld bool) {
	switch {
	case len(*held) == 0 && len(*inside) == 0:
		return delayedMessage{}, false
	case len(*inside) == 0 || len(*held) > 0 && (*held)[0].due <= (*inside)[0].due:
		return held.pop(), true
	}
	return inside.pop(), false
}

func describeDelayed(prefix string, m *delayedMessage) DelayedMessage {
	d := DelayedMessage{ID: prefix + strconv.FormatUint(m.id, 10), Due: m.due}
	if m.msg != nil {
		d.Exchange, d.RoutingKey = m.msg.Exchange, m.msg.RoutingKey
		d.Size, d.Persistent, d.Message = len(m.msg.Body), m.msg.Persistent, m.msg
	}
	return d
}

// snapshot copies the heap of what waits; if keep is not nil, of those only.
func (d *delayer) snapshot(keep func(*delayedMessage) bool) delayHeap {
	d.mu.Lock()
	defer d.mu.Unlock()
	if keep == nil {
		return slices.Clone(d.waiting)
	}
	n := 0
	for i := range d.waiting {
		if keep(&d.waiting[i]) {
			n++
		}
	}
	some := make(delayHeap, 0, n)
	for i := range d.waiting {
		if keep(&d.waiting[i]) {
			some = append(some, d.waiting[i])
		}
	}
	some.order()
	return some
}

// loadPage reads those of a few messages that are not in memory.
func (d *delayer) loadPage(page []delayedMessage) {
	var ids []uint64
	for i := range page {
		if page[i].msg == nil {
			ids = append(ids, page[i].id)
		}
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	found := make(map[uint64]*message.Message, len(ids))
	d.read(ids, 1, found)
	for i := range page {
		if page[i].msg == nil {
			page[i].msg = found[page[i].id]
		}
	}
}

// cancel drops the waiting messages that it is asked for.
func (d *delayer) cancel(drop func(*delayedMessage) bool) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []uint64
	rest := d.waiting[:0]
	for i := range d.waiting {
		m := d.waiting[i]
		if !drop(&m) {
			rest = append(rest, m)
			continue
		}
		d.count(m.msg, -1)
		ids = append(ids, m.id)
	}
	if len(ids) == 0 {
		return 0
	}
	clear(d.waiting[len(rest):])
	d.waiting = rest
	d.waiting.order()
	if d.log != nil && !d.dropped {
		slices.Sort(ids)
		d.log.Settle(ids)
	}
	return len(ids)
}
