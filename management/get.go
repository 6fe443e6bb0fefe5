package management

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

// A getting is what POST …/get asks for.
type getting struct {
	count    int
	noAck    bool
	outcome  queue.Outcome // of what was got, unless noAck
	base64   bool
	truncate int // bytes of the payload that are shown; negative is all
}

// maxGet bounds the messages of one answer.
const maxGet = 50_000

func readGetting(b body) (getting, error) {
	g := getting{truncate: -1}
	if err := b.need("ackmode", "count", "encoding"); err != nil {
		return g, err
	}
	count, _, err := b.integer("count")
	if err != nil {
		return g, err
	}
	g.count = int(max(0, min(count, maxGet)))
	switch mode := b["ackmode"]; mode {
	case "ack_requeue_true", "reject_requeue_true":
		g.outcome = queue.Requeued
	case "ack_requeue_false":
		g.noAck = true
	case "reject_requeue_false":
		g.outcome = queue.Rejected
	default:
		return g, badRequest("unknown ackmode '%s'; it is ack_requeue_true, ack_requeue_false, reject_requeue_true or reject_requeue_false", jsonText(mode))
	}
	switch b["encoding"] {
	case "auto":
	case "base64":
		g.base64 = true
	default:
		return g, badRequest("Unsupported encoding. Please use auto or base64.")
	}
	n, there, err := b.integer("truncate")
	if there {
		g.truncate = int(max(0, n))
	}
	return g, err
}

// getMessages handles POST /queues/V/N/get.
func getMessages(r *request) (reply, error) {
	if _, err := r.vhost.QueueInfo(r.arg("queue")); err != nil {
		return reply{}, missing(orNotFound(err), "queue_not_found")
	}
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	g, err := readGetting(b)
	if err != nil {
		return reply{}, err
	}
	name := r.arg("queue")
	by := r.actor()
	if err := by.MayQueue(vhost.Read, name); err != nil {
		return reply{}, r.refused(err)
	}
	q, err := r.vhost.Queue(by, name)
	if err != nil {
		return reply{}, missing(channelError(err), "queue_not_found")
	}
	list, err := g.take(q)
	if err != nil {
		return reply{}, channelError(err)
	}
	return ok(list)
}

// take gets the messages and settles them all together, so that none of them
// is got twice. It ends early with maxScanBytes of bodies.
func (g *getting) take(q queue.Queue) ([]object, error) {
	list := []object{}
	var taken []queue.Delivery
	defer func() {
		if len(taken) > 0 {
			q.Settle(nil, taken, g.outcome)
		}
	}()
	for size := 0; len(list) < g.count && size < maxScanBytes; {
		d, left, found, err := q.Get(g.noAck)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		if !g.noAck {
			taken = append(taken, d)
		}
		size += len(d.Msg.Body)
		list = append(list, g.messageObject(&d, left))
	}
	return list, nil
}

func (g *getting) messageObject(d *queue.Delivery, left int) object {
	m := d.Msg
	payload, encoding := g.payload(m.Body)
	return object{
		{"payload_bytes", len(m.Body)}, {"redelivered", d.Redelivered}, {"exchange", m.Exchange}, {"routing_key", m.RoutingKey},
		{"message_count", left}, {"properties", propertiesObject(m.Header)}, {"payload", payload}, {"payload_encoding", encoding},
	}
}

// payload shows a body: as it is if it is text, else as base64.
func (g *getting) payload(body []byte) (text, encoding string) {
	if g.truncate >= 0 && g.truncate < len(body) {
		body = body[:g.truncate]
	}
	if !g.base64 && utf8.Valid(body) {
		return string(body), "string"
	}
	return base64.StdEncoding.EncodeToString(body), "base64"
}
