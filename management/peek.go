package management

import (
	"time"

	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

const (
	// defaultPeek is how many messages a peek shows, maxScan how many messages
	// and maxScanBytes how many bytes of bodies one request looks at.
	defaultPeek  = 50
	maxScan      = 10_000
	maxScanBytes = 64 << 20
)

// A peeking is what POST …/peek asks for.
type peeking struct {
	getting
	offset int
	from   queue.ID // older messages are left out
	filter *messageFilter
}

func readPeeking(b body) (peeking, error) {
	p := peeking{getting: getting{count: defaultPeek, truncate: -1, base64: b["encoding"] == "base64"}}
	err := b.only("count", "offset", "from", "filter", "truncate", "encoding")
	if err != nil {
		return p, err
	}
	if e := b["encoding"]; e != nil && e != "auto" && e != "base64" {
		return p, badRequest("unsupported encoding '%s'; it is auto or base64", jsonText(e))
	}
	for name, of := range map[string]struct {
		to  *int
		max int64
	}{"count": {&p.count, maxScan}, "offset": {&p.offset, maxScan}, "truncate": {&p.truncate, maxScanBytes}} {
		n, there, err := b.limited(name, of.max)
		if err != nil {
			return p, err
		}
		if there {
			*of.to = n
		}
	}
	from, _, err := b.integer("from")
	if err != nil {
		return p, err
	}
	p.from = queue.ID(max(0, from))
	p.filter, err = readFilter(b)
	return p, err
}

// peek handles POST /queues/V/N/peek, which RabbitMQ does not have: it shows
// ready messages without changing their order or their flags. For as long as
// it looks consumers do not get them. To follow a queue, ask again with from as
// the next of the answer before.
func peek(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	p, err := readPeeking(b)
	if err != nil {
		return reply{}, err
	}
	q, err := r.readable(r.arg("queue"))
	if err != nil {
		return reply{}, err
	}
	o, err := p.look(q)
	if err != nil {
		return reply{}, channelError(err)
	}
	return ok(o)
}

// readable finds a queue that the user may read from.
func (r *request) readable(name string) (queue.Queue, error) {
	by := r.actor()
	if err := by.MayQueue(vhost.Read, name); err != nil {
		return nil, err
	}
	q, err := r.vhost.Queue(by, name)
	if err != nil {
		return nil, channelError(err)
	}
	return q, nil
}

// look takes messages and gives all of them back as if they had never left.
func (p *peeking) look(q queue.Queue) (object, error) {
	var taken []queue.Delivery
	defer func() { q.Settle(nil, taken, queue.Returned) }()
	list, matched, left, size, next := []object{}, 0, 0, 0, p.from
	for len(taken) < maxScan && size < maxScanBytes && len(list) < p.count {
		d, more, found, err := q.Get(false)
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		taken, left = append(taken, d), more
		size += len(d.Msg.Body)
		next = max(next, d.ID+1)
		if d.ID < p.from || !p.filter.matches(d.Msg) {
			continue
		}
		if matched++; matched > p.offset {
			list = append(list, p.object(&d, len(taken)-1))
		}
	}
	return object{{"messages", list}, {"scanned", len(taken)}, {"left", left}, {"next", uint64(next)}}, nil
}

// object is a message with its place in the queue and how long it has been here.
func (p *peeking) object(d *queue.Delivery, position int) object {
	o := object{{"position", position}, {"id", uint64(d.ID)}, {"age_ms", d.Msg.Age(time.Now()).Milliseconds()}, {"delivery_count", int64(d.Count)}}
	for _, m := range p.messageObject(d, 0) {
		if m.name != "message_count" {
			o = append(o, m)
		}
	}
	return o
}
