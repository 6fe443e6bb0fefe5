package vhost

import (
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// deadLetter is queue.Env.DeadLetter: it publishes messages that died in a
// queue, in order, and returns when their new queues have them. A missing
// exchange drops them; permissions were checked when the queue was declared.
func (v *VHost) deadLetter(from queue.Queue, to queue.Target, reason queue.Reason, dead []*message.Message, r *message.Receipt) {
	<-v.set.recovered // a timer may be faster than the recovery of the bindings
	p := v.borrow()
	defer v.giveBack(p)
	now := time.Now()
	for i, m := range dead {
		d := deadLettered(m, from.Name(), to, reason, now)
		rt, err := p.Route([]byte(d.Exchange), []byte(d.RoutingKey))
		reached := err == nil && p.addDead(rt, queue.Entry{Msg: d, Receipt: r, Seq: uint64(i) + 1}, reason)
		if !reached && r != nil {
			r.Refuse(uint64(i) + 1)
		}
	}
	p.Flush()
}

// addDead is Add for a dead letter: queues that would close a cycle do not get
// it. It says whether there was any queue.
func (p *Publisher) addDead(rt *Route, e queue.Entry, reason queue.Reason) (reached bool) {
	m := e.Msg
	if f := rt.entry.filter; f != nil && hasHeaders(m) && p.duplicate(f, headerFields(m), m.Time, p.waiterOf(&e)) || p.delay(rt, e) {
		return true
	}
	targets, durable := p.targetsOf(rt, &e)
	dropped := p.detour.tookDuplicate() // in any case: it is forgotten with that
	if len(targets) == 0 && !dropped {
		p.unsee()
		return false
	}
	e = p.watched(e)
	if durable > 1 && m.Persistent {
		e.Shared = new(persistence.SharedBody)
	}
	for _, s := range targets {
		if reason != queue.ReasonRejected && s.entry != nil && closesCycle(m.More.Deaths, s.entry.spec.Name) {
			p.v.warnOfCycle(s.entry)
			continue
		}
		p.put(s, e)
	}
	return true
}

// warnOfCycle tells the log once for each queue.
func (v *VHost) warnOfCycle(e *queueEntry) {
	if e.warned.Swap(true) {
		return
	}
	v.log.Warn("message dropped: dead lettering would send it round for ever; a policy or argument makes a cycle without a reject",
		zap.String("queue", e.spec.Name))
}

// closesCycle says whether a message that was in this queue before comes back
// without anybody having rejected it meanwhile (RabbitMQ 4.0: such messages are
// dropped, as they would go round for ever).
func closesCycle(deaths []message.Death, queueName string) bool {
	for i := range deaths {
		if deaths[i].Reason == string(queue.ReasonRejected) {
			return false
		}
		if deaths[i].Queue == queueName {
			return true
		}
	}
	return false
}

// deadLettered returns what is published of a message that died. The dead one
// is not changed: other queues may have it.
func deadLettered(m *message.Message, from string, to queue.Target, reason queue.Reason, now time.Time) *message.Message {
	d := &message.Message{
		Envelope: &message.Envelope{Exchange: to.Exchange, RoutingKey: m.RoutingKey, TTL: message.NoTTL, Priority: m.Priority, Persistent: m.Persistent},
		Body:     message.BodyApart(m.Body), More: &message.More{}, Time: now.UnixMilli(),
	}
	var old message.More
	if m.More != nil {
		old = *m.More
	}
	if to.HasKey {
		d.RoutingKey = to.Key // RabbitMQ 4.0: the CC and BCC keys are not used then
	} else {
		d.More.CC, d.More.BCC = old.CC, old.BCC
	}
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		p = frames.Properties{} // it was checked when it came in
	}
	d.More.Deaths = recordDeath(old.Deaths, message.Death{
		Queue: from, Reason: string(reason), Exchange: m.Exchange, Keys: keysOf(m),
		Expiration: expirationOf(&p), Count: 1, Time: now.Unix(),
	})
	d.More.FirstDeath = old.FirstDeath
	if len(old.Deaths) == 0 {
		d.More.FirstDeath = d.More.Deaths[0]
	}
	d.Header = deathHeader(&p, d.More, m.Exchange)
	return d
}

func expirationOf(p *frames.Properties) string {
	if !p.Has(frames.FlagExpiration) {
		return ""
	}
	return string(p.Expiration)
}

// recordDeath returns the history with one event more. The first event of a
// queue and reason makes an entry; others only count in it and bring it to the
// front.
func recordDeath(history []message.Death, d message.Death) []message.Death {
	at := slices.IndexFunc(history, func(h message.Death) bool { return h.Queue == d.Queue && h.Reason == d.Reason })
	list := make([]message.Death, 1, len(history)+1)
	list[0] = d
	if at < 0 {
		return append(list, history...)
	}
	list[0] = history[at]
	list[0].Count++
	list = append(list, history[:at]...)
	return append(list, history[at+1:]...)
}

// deathHeader returns the property block with the history in its headers, in
// place of what a client may have put there, and without the expiration. The
// message came to the queue where it died last through the exchange: the entry of
// that queue has the one of the first time (RabbitMQ 4.0).
func deathHeader(p *frames.Properties, more *message.More, exchange string) []byte {
	t, err := p.Table()
	if err != nil {
		t = nil // it was checked when it came in
	}
	entries := make([]any, len(more.Deaths))
	for i := range more.Deaths {
		entries[i] = deathEntry(&more.Deaths[i])
	}
	last := &more.Deaths[0]
	t = slices.Grow(t, deathFields)
	t = t.Set("x-death", entries)
	t = t.Set("x-first-death-exchange", more.FirstDeath.Exchange)
	t = t.Set("x-first-death-queue", more.FirstDeath.Queue)
	t = t.Set("x-first-death-reason", more.FirstDeath.Reason)
	t = t.Set("x-last-death-exchange", exchange)
	t = t.Set("x-last-death-queue", last.Queue)
	t = t.Set("x-last-death-reason", last.Reason)
	size := len(p.Headers) + deathSize*(1+len(more.Deaths)) // an estimate, so that one buffer is enough
	p.Headers = frames.AppendTable(make([]byte, 0, size), t.Sorted())[4:]
	p.Flags |= frames.FlagHeaders
	p.Flags &^= frames.FlagExpiration
	return p.Append(make([]byte, 0, len(p.Headers)+propertiesSize))
}

const (
	deathFields    = 7   // headers that deathHeader sets
	deathSize      = 256 // of an entry of x-death, or of the other headers, in bytes; an estimate
	propertiesSize = 128 // of the properties without headers, in bytes; an estimate
)

// deathEntry is one entry of x-death, its fields in RabbitMQ 4.0's order.
func deathEntry(d *message.Death) frames.Table {
	t := make(frames.Table, 0, 7)
	if d.Expiration != "" {
		t = append(t, frames.Field{Name: "original-expiration", Value: d.Expiration})
	}
	return append(t,
		frames.Field{Name: "count", Value: d.Count},
		frames.Field{Name: "reason", Value: d.Reason},
		frames.Field{Name: "queue", Value: d.Queue},
		frames.Field{Name: "time", Value: frames.Timestamp(d.Time)},
		frames.Field{Name: "exchange", Value: d.Exchange},
		frames.Field{Name: "routing-keys", Value: array(d.Keys)})
}
