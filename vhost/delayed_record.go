package vhost

import (
	"go.uber.org/zap"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue/record"
)

// recordOf is a delayed message on disk. Its expiry is when it is due.
func recordOf(m *message.Message, w delayedMessage) persistence.Record {
	r := persistence.Record{ID: w.id, Expires: w.due}
	record.Fill(&r, m)
	return r
}

// restore is the message of a record. What was checked when it came in can only
// be damaged: then the message goes on with what could be read of it.
func (d *delayer) restore(r *persistence.Record) *message.Message {
	m, err := record.Revive(r)
	if err != nil {
		d.v.log.Error("a delayed message is damaged, and is sent on with what can be read of it: check the disk", zap.String("exchange", r.Exchange), zap.Error(err))
	}
	m.Persistent = true
	return m
}
