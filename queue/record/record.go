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

// Revive makes the message of a record, into m, which refers to the record's
// memory. The publish flag mandatory is not kept.
func Revive(m *message.Message, rec *persistence.Record) error {
	m.Exchange, m.RoutingKey = rec.Exchange, rec.Key
	m.Header, m.Body = rec.Header, rec.Body
	m.Time, m.TTL = rec.Time, message.NoTTL
	if len(rec.Extra) > 0 {
		more, err := ParseMore(rec.Extra)
		if err != nil {
			return fmt.Errorf("record %d: %w", rec.ID, err)
		}
		m.More = more
	}
	var p frames.Properties
	if err := p.Parse(rec.Header); err != nil {
		return fmt.Errorf("record %d: %w", rec.ID, err)
	}
	m.Persistent = p.Has(frames.FlagDeliveryMode) && p.DeliveryMode == 2
	if p.Has(frames.FlagPriority) {
		m.Priority = p.Priority
	}
	if p.Has(frames.FlagExpiration) {
		m.TTL = parseTTL(p.Expiration)
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
