package amqp

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/vhost"
)

// A publishing is a basic.publish whose content is arriving.
type publishing struct {
	route     *vhost.Route
	routeErr  error // why there is no route: said once the content is there
	exchange  string
	msg       *message.Message
	shared    bool   // its envelope was made, and examined, for an earlier message
	body      []byte // received so far; cap is what has been set aside
	size      uint64 // of the whole body, in bytes
	mandatory bool
}

// publish handles basic.publish (ref §1.8.3.3): it finds the route while the
// names are at hand. The checks wait for the content (RabbitMQ 4.0).
func (ch *channel) publish(args []byte) error {
	var m frames.Publish
	if err := m.Parse(args); err != nil {
		return err
	}
	if m.Immediate {
		return frames.Errorf(frames.NotImplemented, "immediate=true")
	}
	ch.cur = publishing{mandatory: m.Mandatory}
	if ch.cur.route, ch.cur.routeErr = ch.pub.Route(m.Exchange, m.RoutingKey); ch.cur.routeErr != nil {
		ch.cur.exchange = string(m.Exchange)
	}
	ch.expect = expectHeader
	return nil
}

// headerFrame handles the content header of a publish.
func (ch *channel) headerFrame(f frames.Frame) error {
	class, weight, size, props, ok := frames.ParseContentHeader(f.Payload)
	if f.Type != frames.HeaderFrame || weight != 0 || !ok || class != frames.ClassBasic {
		return ch.badHeader(f)
	}
	cur := &ch.cur
	cur.size = size
	if size > ch.conn.largest {
		if limit := uint64(ch.conn.srv.cfg.MaxMessageSize); size > limit {
			// Refused now, before the body takes memory: what follows on the closed
			// channel is dropped.
			return ch.failPublish(sizeError(size, limit))
		}
		ch.conn.hold()
	}
	ch.take(cur, props)
	ch.expect = expectBody
	if size > 0 {
		return nil
	}
	err := ch.contentDone()
	if ch.conn.largest == 0 {
		ch.conn.hold()
	}
	return err
}

// badHeader ends the connection for a frame that is not the content header that is due.
func (ch *channel) badHeader(f frames.Frame) error {
	class, weight, _, _, ok := frames.ParseContentHeader(f.Payload)
	switch {
	case f.Type != frames.HeaderFrame || weight != 0:
		return ch.unexpected("expected content header for class 60, got non content header frame instead")
	case !ok:
		return ch.conn.fail(0, frames.Unboundf(frames.SyntaxError, "malformed content header"))
	}
	return ch.conn.fail(frames.BasicPublishID, frames.Errorf(frames.UnexpectedFrame,
		"expected content header for class 60, got one for class %d instead", class))
}

// contentClosing handles a frame of a content on a channel that is closing.
func (ch *channel) contentClosing(f frames.Frame) error {
	if ch.expect == expectHeader {
		class, weight, size, _, ok := frames.ParseContentHeader(f.Payload)
		if f.Type != frames.HeaderFrame || weight != 0 || !ok || class != frames.ClassBasic {
			return ch.badHeader(f)
		}
		ch.cur.size = size
	} else {
		n := uint64(len(f.Payload))
		if f.Type != frames.BodyFrame || n > ch.cur.size {
			return ch.badBody(f)
		}
		ch.cur.size -= n
	}
	ch.expect = expectBody
	if ch.cur.size == 0 {
		ch.expect = expectMethod
	}
	return nil
}

// take gets the memory for a message. A large body has some at once only if there
// is used memory; else it gets it as it comes, at most twice what has come, so that
// a client cannot take memory by announcing bodies.
func (ch *channel) take(cur *publishing, props []byte) {
	e := ch.common(cur, props)
	cur.shared = e != nil
	if cur.size <= message.MaxInline {
		cur.msg = ch.newMessage(e, props)
		cur.body = cur.msg.Body[:0]
		return
	}
	c := ch.conn
	if c.stock == nil {
		c.stock = new(message.Stock)
	}
	if e != nil {
		cur.msg = &message.Message{Envelope: e}
	} else {
		cur.msg = message.New(len(props), 0)
		copy(cur.msg.Header, props)
	}
	cur.body = c.stock.Take(int(cur.size))
}

// common is the envelope of earlier messages, if the one that is arriving has the same:
// the same route, flags and property block. It is made when a route is used again with a
// property block that came before, nil until then.
func (ch *channel) common(cur *publishing, props []byte) *message.Envelope {
	rt, c := cur.route, ch.conn
	if rt == nil {
		return nil
	}
	if e := rt.Common; e != nil && e.Mandatory == cur.mandatory && bytes.Equal(e.Header, props) {
		return e
	}
	if rt.Checked == 0 || len(c.parsed) == 0 || !bytes.Equal(c.parsed, props) || props[1]&frames.FlagUnused != 0 {
		return nil
	}
	e := message.NewEnvelope(props)
	e.Exchange, e.RoutingKey = rt.Exchange, rt.Key
	e.Persistent, e.Priority, e.Mandatory = c.props.DeliveryMode == 2, c.props.Priority, cur.mandatory
	rt.Common = e
	return e
}

// lonely is how many messages of a batch in a row must go the same way before those
// that follow are made together: what goes the same way leaves memory at about the
// same time.
const lonely = 16

// newMessage makes the message of the publish that is arriving, which is not large, in
// an envelope of others or its own.
func (ch *channel) newMessage(e *message.Envelope, props []byte) *message.Message {
	a, cur := &ch.conn.alike, &ch.cur
	if cur.route != a.route {
		a.route, a.n = cur.route, 0
	}
	var maker *message.Maker
	if a.n++; a.n > lonely && sameWay(cur.route, props) {
		if a.maker == nil {
			a.maker = new(message.Maker)
		}
		maker = a.maker
	}
	if e != nil {
		return maker.NewIn(e, int(cur.size))
	}
	m := maker.New(len(props), int(cur.size))
	copy(m.Header, props)
	return m
}

// sameWay says whether nothing but the route decides where a message goes: headers
// can, and how long it waits.
func sameWay(rt *vhost.Route, props []byte) bool {
	return rt != nil && rt.Decides() && len(props) >= 2 && binary.BigEndian.Uint16(props)&frames.FlagHeaders == 0
}

// alike is the messages of a batch that go the same way.
type alike struct {
	route *vhost.Route
	n     int            // messages in a row with that route
	maker *message.Maker // nil until it is needed
}

// rest ends a batch: one that needed no maker leaves none to an idle connection.
func (a *alike) rest() {
	if a.n <= lonely {
		a.maker = nil
	}
	a.route, a.n = nil, 0
}

// hardMaxMessageSize is RabbitMQ's own upper bound of max_message_size, in bytes.
const hardMaxMessageSize = 512 << 20

func sizeError(size, limit uint64) error {
	configured := "configured "
	if limit >= hardMaxMessageSize {
		configured = ""
	}
	return frames.Errorf(frames.PreconditionFailed, "message size %d is larger than %smax size %d", size, configured, limit)
}

func (ch *channel) unexpected(text string) error {
	return ch.conn.fail(frames.BasicPublishID, frames.Errorf(frames.UnexpectedFrame, "%s", text))
}

// bodyFrame handles a body frame of a publish.
func (ch *channel) bodyFrame(f frames.Frame) error {
	cur := &ch.cur
	total := uint64(len(cur.body) + len(f.Payload))
	if f.Type != frames.BodyFrame || total > cur.size {
		return ch.badBody(f)
	}
	switch {
	case cur.body == nil && total == cur.size:
		cur.body = slices.Clone(f.Payload) // unlike make, it does not clear the memory first
	case total > uint64(cap(cur.body)):
		grown := make([]byte, len(cur.body), min(cur.size, max(total, 2*uint64(cap(cur.body)))))
		copy(grown, cur.body)
		cur.body = append(grown, f.Payload...)
	default:
		cur.body = append(cur.body, f.Payload...)
	}
	if total < cur.size {
		return nil
	}
	cur.msg.Body = cur.body
	return ch.contentDone()
}

// badBody ends the connection for a frame that is not the body that is due.
func (ch *channel) badBody(f frames.Frame) error {
	if f.Type != frames.BodyFrame {
		return ch.unexpected("expected content body, got non content body frame instead")
	}
	return ch.unexpected("the content body is longer than its header announced")
}

// contentDone handles a publish whose content is complete.
func (ch *channel) contentDone() error {
	ch.expect = expectMethod
	err := ch.publishDone()
	ch.cur = publishing{}
	if err != nil {
		return ch.failPublish(err)
	}
	return nil
}

func (ch *channel) failPublish(err error) error { return ch.fail(frames.BasicPublishID, err) }

// special are the properties that need more than a look at a number.
const special = frames.FlagHeaders | frames.FlagReplyTo | frames.FlagExpiration | frames.FlagUserID

// publishDone checks a message and puts it into the batch.
func (ch *channel) publishDone() error {
	c, cur := ch.conn, &ch.cur
	m := cur.msg
	if err := ch.mayPublish(cur); err != nil {
		return err
	}
	m.Time = c.now
	if !cur.shared {
		if err := ch.examine(m); err != nil {
			return err
		}
	}
	if cur.route.X == nil && (m.More != nil || strings.HasPrefix(m.RoutingKey, replyToPrefix)) {
		c.srv.replies.send(m)
	}
	ch.add(cur.route, m)
	return nil
}

// examine completes the envelope of the message that has arrived, which is its own,
// from the property block and does what that asks for.
func (ch *channel) examine(m *message.Message) error {
	c, cur := ch.conn, &ch.cur
	if err := c.parse(m.Header); err != nil {
		return err
	}
	m.Header[1] &^= frames.FlagUnused
	m.Exchange, m.RoutingKey = cur.route.Exchange, cur.route.Key
	p := &c.props
	if c.srv.cfg.Intercept.on() {
		if err := c.srv.intercept(m, p); err != nil {
			return err
		}
	}
	m.Persistent = p.DeliveryMode == 2
	m.Priority = p.Priority
	m.Mandatory = cur.mandatory
	if p.Flags&special != 0 {
		return ch.special(m, p)
	}
	return nil
}

// maxRepeated is the longest property block that is compared with the one before, in
// bytes.
const maxRepeated = 64

// parse reads a property block into props, unless it was the last one, too: most
// publishers repeat theirs, and to compare is cheaper (fire-16B: 5 %). What is changed
// afterwards, or pointed to, is read each time.
func (c *conn) parse(block []byte) error {
	if len(c.parsed) > 0 && bytes.Equal(block, c.parsed) {
		return nil
	}
	c.parsed = c.parsed[:0]
	if err := c.props.Parse(block); err != nil {
		return err
	}
	if len(block) <= maxRepeated && c.props.Flags&special == 0 && !c.srv.cfg.Intercept.on() {
		c.parsed = append(c.parsed, block...)
	}
	return nil
}

// add routes the message and counts it among the publishes to be confirmed.
func (ch *channel) add(rt *vhost.Route, m *message.Message) {
	routed := true
	switch {
	case ch.acks != nil:
		routed = ch.addConfirmed(rt, m)
	case ch.tx != nil:
		ch.tx.add(ch, rt, m)
	default:
		routed = ch.pub.Add(rt, m, nil, 0)
	}
	if !ch.dirty {
		ch.dirty = true
		ch.conn.dirty = append(ch.conn.dirty, ch)
	}
	ch.conn.published = true
	if !routed {
		ch.unroutable(m)
	}
}

// addConfirmed is add on a channel with confirms. It says whether a queue takes the
// message. One that is to be returned is a batch of its own.
func (ch *channel) addConfirmed(rt *vhost.Route, m *message.Message) bool {
	n := ch.acks.published + 1
	if ch.batch == nil {
		ch.beginBatch(n)
	}
	routed := ch.pub.Add(rt, m, ch.batch, n)
	if !routed && m.Mandatory && ch.batch.First < n {
		ch.flush()
		if ch.conn.state != running {
			return true // that has ended the connection: nothing is returned any more
		}
		ch.beginBatch(n)
	}
	ch.acks.published = n
	return routed
}

// beginBatch begins the receipt of the publishes from number n on.
func (ch *channel) beginBatch(n uint64) {
	ch.batch = message.NewReceipt(ch.acks, n, n)
	ch.batch.Began = time.Now().UnixNano()
	ch.batch.Hold(1)
}

// unroutable sees a message off that reached no queue, and has been counted.
func (ch *channel) unroutable(m *message.Message) {
	if !m.Mandatory {
		ch.counts.dropped.Add(1)
		return
	}
	ch.returned(m)
	if ch.acks != nil {
		ch.flush() // its confirm comes right behind it (RabbitMQ 4.0): clients wait for one each
	}
}

// returned sends a mandatory message back that no queue took.
func (ch *channel) returned(m *message.Message) {
	ch.counts.returned.Add(1)
	ch.conn.out.returned(ch.id, m)
}

// mayPublish checks permission, existence, internal and topic, in this order.
func (ch *channel) mayPublish(cur *publishing) error {
	if cur.routeErr != nil {
		if err := ch.MayExchange(vhost.Write, cur.exchange); err != nil {
			return err
		}
		return cur.routeErr
	}
	rt := cur.route
	if gen := ch.conn.grants.Generation(); rt.Checked != gen+1 { // a route that was never checked has 0
		if err := ch.MayExchange(vhost.Write, rt.Exchange); err != nil {
			return err
		}
		if rt.X != nil && rt.X.Internal {
			return frames.Errorf(frames.AccessRefused, "cannot publish to internal exchange '%s' in vhost '%s'", rt.Exchange, ch.conn.vhost.Name())
		}
		if rt.X != nil && rt.X.Type == "topic" {
			if err := ch.MayTopic(vhost.Write, rt.Exchange, rt.Key); err != nil {
				return ch.beforeTopic(cur.msg, err)
			}
		}
		rt.Checked = gen + 1
	}
	return nil
}
