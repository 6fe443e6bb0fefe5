package management

import (
	"net/http"
	"time"

	"github.com/leveretmq/leveret/vhost"
)

// unacked handles GET /queues/V/N/unacked, which RabbitMQ does not have: the
// messages that were delivered and are not acknowledged, with who holds each and
// for how long. It is paged as other lists are, and always. The query may have
// truncate, the bytes of a payload that are shown, and encoding=base64.
func unacked(r *request) (reply, error) {
	name := r.arg("queue")
	if err := r.actor().MayQueue(vhost.Read, name); err != nil {
		return reply{}, err
	}
	if _, err := r.vhost.QueueInfo(name); err != nil {
		return reply{}, orNotFound(err)
	}
	p, err := r.pageOrFirst()
	if err != nil {
		return reply{}, err
	}
	show, err := r.showing()
	if err != nil {
		return reply{}, err
	}
	page, total := r.s.cfg.Connections.Unacked(r.vhost.Name(), name, p.from(), p.size)
	now, peers := time.Now(), r.s.peers()
	items := make([]object, len(page))
	for i := range page {
		items[i] = r.unackedObject(&page[i], now, peers, &show)
	}
	return p.answer(items, total)
}

func (r *request) unackedObject(u *Unacked, now time.Time, peers map[string]object, show *getting) object {
	m := u.Message
	payload, encoding := show.payload(m.Body)
	details := object{{"name", channelName(u.Connection, u.Channel)}, {"number", int(u.Channel)}, {"node", r.s.cfg.Node},
		{"connection_name", u.Connection}, {"user", u.User}}
	return object{
		{"delivery_tag", u.DeliveryTag}, {"consumer_tag", u.Consumer}, {"channel_details", withPeer(details, peers[u.Connection])},
		{"age_ms", max(0, now.Sub(u.At).Milliseconds())}, {"redelivered", u.Redelivered}, {"delivery_count", int64(u.Count)},
		{"exchange", m.Exchange}, {"routing_key", m.RoutingKey}, {"properties", propertiesObject(m.Header)},
		{"payload_bytes", len(m.Body)}, {"payload", payload}, {"payload_encoding", encoding},
	}
}

// pageOrFirst is the page that the query asks for; the first one if it does not
// ask.
func (r *request) pageOrFirst() (*paging, error) {
	p, err := r.paging()
	if err != nil || p != nil {
		return p, err
	}
	return &paging{page: 1, size: defaultPageSize}, nil
}

// defaultTruncate is how much of a payload lists show, in bytes.
const defaultTruncate = 1024

// showing reads how much of payloads the query wants to see, and how.
func (r *request) showing() (getting, error) {
	g := getting{truncate: defaultTruncate, base64: r.query.Get("encoding") == "base64"}
	if text := r.query.Get("truncate"); text != "" {
		n, isInt := parseInteger(text)
		if !isInt || n < 0 {
			return g, badRequest("truncate must be a number of bytes")
		}
		g.truncate = int(min(n, maxScanBytes))
	}
	return g, nil
}

// answer is the page of a list whose items were found already.
func (p *paging) answer(items []object, total int) (reply, error) {
	if p.page > 1 && p.from() >= total {
		return reply{}, &failure{http.StatusBadRequest, "page_out_of_range", pageOutOfRange(p, total)}
	}
	return ok(object{
		{"filtered_count", total}, {"item_count", len(items)}, {"items", items}, {"page", p.page},
		{"page_count", (total + p.size - 1) / p.size}, {"page_size", p.size}, {"total_count", total},
	})
}
