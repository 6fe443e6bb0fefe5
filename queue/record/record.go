// Package record turns messages into records of a log, and back. It is what all
// types of queue that keep whole messages have in common on disk.
package record

import (
	"fmt"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// Fill puts a message into a record; what is not of the message (id, lane,
// expiry, shared body) is the caller's to set. The record refers to the
// message's memory.
func Fill(rec *persistence.Record, m *message.Message) {
	rec.Time = m.Time
	rec.Exchange, rec.Key = m.Exchange, m.RoutingKey
	rec.Header, rec.Body = m.Header, m.Body
	if m.More != nil {
		rec.Extra = AppendMore(nil, m.More)
	}
}

// open makes the envelope of a record, which refers to the record's memory.
func open(e *message.Envelope, rec *persistence.Record) error {
	e.Exchange, e.RoutingKey, e.Header = rec.Exchange, rec.Key, rec.Header
	e.TTL = message.NoTTL
	var p frames.Properties
	if err := p.Parse(rec.Header); err != nil {
		return fmt.Errorf("record %d: %w", rec.ID, err)
	}
	e.Persistent = p.Has(frames.FlagDeliveryMode) && p.DeliveryMode == 2
	if p.Has(frames.FlagPriority) {
		e.Priority = p.Priority
	}
	if p.Has(frames.FlagExpiration) {
		e.TTL = parseTTL(p.Expiration)
	}
	return nil
}

// parseTTL reads an expiration property, which was checked when the message was
// published: digits, perhaps after a plus sign.
func parseTTL(b []byte) int64 {
	n := int64(0)
	for i, c := range b {
		switch {
		case c >= '0' && c <= '9' && n < 1<<55:
			n = 10*n + int64(c-'0')
		case c == '+' && i == 0 && len(b) > 1:
		default:
			return message.NoTTL
		}
	}
	if len(b) == 0 {
		return message.NoTTL
	}
	return n
}
