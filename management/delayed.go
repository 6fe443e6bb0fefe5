package management

import (
	"time"

	"github.com/leveretmq/leveret/vhost"
)

// delayedMessages handles GET /exchanges/V/N/delayed, which RabbitMQ does not have:
// the messages published to an exchange that wait for their time, those due first
// at the front. It is paged as other lists are, and always; name filters by routing
// key, and then at most the first maxScan messages are looked at.
func delayedMessages(r *request) (reply, error) {
	p, err := r.pageOrFirst()
	if err != nil {
		return reply{}, err
	}
	show, err := r.showing()
	if err != nil {
		return reply{}, err
	}
	page, total, err := r.delayedPage(p)
	if err != nil {
		return reply{}, orNotFound(err)
	}
	items := make([]object, len(page))
	for i := range page {
		items[i] = delayedObject(&page[i], &show)
	}
	return p.answer(items, total)
}

func (r *request) delayedPage(p *paging) (page []vhost.DelayedMessage, total int, err error) {
	exchange, from := r.exchangeArg("exchange"), p.from()
	if p.match == nil {
		return r.vhost.DelayedMessages(r.actor(), exchange, from, p.size)
	}
	all, _, err := r.vhost.DelayedMessages(r.actor(), exchange, 0, maxScan)
	for i := range all {
		if !p.match(all[i].RoutingKey) {
			continue
		}
		if total >= from && len(page) < p.size {
			page = append(page, all[i])
		}
		total++
	}
	return page, total, err
}

func oneDelayed(r *request) (reply, error) {
	show, err := r.showing()
	if err != nil {
		return reply{}, err
	}
	m, err := r.vhost.DelayedMessage(r.actor(), r.exchangeArg("exchange"), r.arg("id"))
	if err != nil {
		return reply{}, orNotFound(err)
	}
	return ok(delayedObject(&m, &show))
}

func delayedObject(m *vhost.DelayedMessage, show *getting) object {
	o := object{
		{"id", m.ID}, {"due", m.Due}, {"in_ms", max(0, m.Due-time.Now().UnixMilli())},
		{"exchange", m.Exchange}, {"routing_key", m.RoutingKey}, {"persistent", m.Persistent}, {"payload_bytes", m.Size},
	}
	if m.Message == nil {
		return o // the store could not read it, and its log says why
	}
	payload, encoding := show.payload(m.Message.Body)
	return append(o, member{"properties", propertiesObject(m.Message.Header)}, member{"payload", payload}, member{"payload_encoding", encoding})
}

// cancelDelayed handles DELETE /exchanges/V/N/delayed/ID: the message is never
// routed.
func cancelDelayed(r *request) (reply, error) {
	return done(orNotFound(r.vhost.CancelDelayed(r.actor(), r.exchangeArg("exchange"), r.arg("id"))))
}

// cancelAllDelayed handles DELETE /exchanges/V/N/delayed, and tells how many it
// were.
func cancelAllDelayed(r *request) (reply, error) {
	n, err := r.vhost.CancelAllDelayed(r.actor(), r.exchangeArg("exchange"))
	if err != nil {
		return reply{}, orNotFound(err)
	}
	return ok(object{{"cancelled", n}})
}
