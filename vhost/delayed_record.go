package vhost

import (
	"strconv"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// record is a delayed message on disk. Its expiry is when it is due.
func record(m *message.Message, w delayedMessage) persistence.Record {
	return persistence.Record{ID: w.id, Time: m.Time, Expires: w.due, Exchange: m.Exchange, Key: m.RoutingKey,
		Header: m.Header, Body: m.Body, Extra: encodeMore(m.More)}
}

// restore is the message of a record.
func restore(r *persistence.Record) *message.Message {
	m := &message.Message{Exchange: r.Exchange, RoutingKey: r.Key, Header: r.Header, Body: r.Body,
		Time: r.Time, TTL: message.NoTTL, Persistent: true, More: decodeMore(r.Extra)}
	var p frames.Properties
	if p.Parse(m.Header) != nil {
		return m // it was checked when it came in
	}
	m.Priority = p.Priority
	if p.Has(frames.FlagExpiration) {
		if ttl, err := strconv.ParseInt(string(p.Expiration), 10, 64); err == nil && ttl >= 0 {
			m.TTL = ttl
		}
	}
	return m
}

// encodeMore keeps what few messages have: further keys and the dead-letter
// history, as a field table, which holds any bytes. It is nil for most.
func encodeMore(more *message.More) []byte {
	if more == nil {
		return nil
	}
	var t frames.Table
	if len(more.CC) > 0 {
		t = append(t, frames.Field{Name: "cc", Value: array(more.CC)})
	}
	if len(more.BCC) > 0 {
		t = append(t, frames.Field{Name: "bcc", Value: array(more.BCC)})
	}
	if len(more.Deaths) > 0 {
		deaths := make([]any, len(more.Deaths))
		for i := range more.Deaths {
			deaths[i] = deathEntry(&more.Deaths[i])
		}
		t = append(t, frames.Field{Name: "deaths", Value: deaths}, frames.Field{Name: "first", Value: deathEntry(&more.FirstDeath)})
	}
	if len(t) == 0 {
		return nil
	}
	return frames.AppendTable(nil, t)
}

func decodeMore(b []byte) *message.More {
	if len(b) < 4 {
		return nil
	}
	t, err := frames.ParseTable(b[4:])
	if err != nil {
		return nil // it was written by encodeMore
	}
	more := &message.More{CC: texts(lookup[[]any](t, "cc")), BCC: texts(lookup[[]any](t, "bcc"))}
	for _, v := range lookup[[]any](t, "deaths") {
		if entry, ok := v.(frames.Table); ok {
			more.Deaths = append(more.Deaths, decodeDeath(entry))
		}
	}
	if len(more.Deaths) > 0 {
		more.FirstDeath = decodeDeath(lookup[frames.Table](t, "first"))
	}
	return more
}

// decodeDeath reverses deathEntry.
func decodeDeath(t frames.Table) message.Death {
	return message.Death{
		Queue: lookup[string](t, "queue"), Reason: lookup[string](t, "reason"), Exchange: lookup[string](t, "exchange"),
		Keys: texts(lookup[[]any](t, "routing-keys")), Expiration: lookup[string](t, "original-expiration"),
		Count: lookup[int64](t, "count"), Time: int64(lookup[frames.Timestamp](t, "time")),
	}
}

// lookup returns a field of a known type, or that type's zero value.
func lookup[T any](t frames.Table, name string) T {
	v, _ := t.Lookup(name)
	typed, _ := v.(T)
	return typed
}

// array makes an array for a field table.
func array(texts []string) []any {
	l := make([]any, len(texts))
	for i, s := range texts {
		l[i] = s
	}
	return l
}

// texts reverses array.
func texts(l []any) []string {
	var all []string
	for _, v := range l {
		if s, ok := v.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
