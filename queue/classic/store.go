package classic

import (
	"fmt"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// laneID is the lane of the log for messages of a priority.
func laneID(priority int) persistence.Lane { return persistence.Lane(priority) }

// open makes the log of a new durable queue, or takes over what the log of a
// reopened one holds. Nothing is read: all of it counts as paged out.
func (q *Queue) open() error {
	if q.env.LogID == 0 {
		log, err := q.env.Store.NewLog()
		if err != nil {
			return err
		}
		q.log = log
		return nil
	}
	log, err := q.env.Store.OpenLog(q.env.LogID)
	if err != nil {
		return err
	}
	q.log = log
	q.quiet = true
	q.lastID = queue.ID(log.LastID())
	for _, info := range log.Lanes() {
		if int(info.Lane) >= len(q.lanes) {
			return fmt.Errorf("it has messages of priority %d, but the queue's highest is %d", info.Lane, len(q.lanes)-1)
		}
		q.takeOver(info)
	}
	return nil
}

// takeOver makes a recovered lane of the log ready.
func (q *Queue) takeOver(info persistence.LaneInfo) {
	q.lanes[info.Lane].paged = pages{
		from: queue.ID(info.First), to: queue.ID(info.Last), stored: info.Count, bytes: info.Bytes, earliest: info.Earliest,
	}
	if info.Count == 0 {
		return
	}
	q.nonEmpty.add(int(info.Lane))
	q.ready += info.Count
	q.readyStored += info.Count
	q.readyBytes += info.Bytes
	q.paged += info.Count
	q.timed = q.timed || info.Earliest != 0
}

// fill makes the record of a message.
func fill(rec *persistence.Record, it *item, lane int, shared *persistence.SharedBody) {
	m := it.msg
	rec.ID, rec.Lane = uint64(it.id), laneID(lane)
	rec.Time, rec.Expires = m.Time, it.expires
	rec.Exchange, rec.Key = m.Exchange, m.RoutingKey
	rec.Header, rec.Body = m.Header, m.Body
	rec.Shared = shared
	if m.More != nil {
		rec.Extra = appendExtra(nil, m.More)
	}
}

// revive makes the message of a record, into m.
func revive(m *message.Message, rec *persistence.Record) error {
	m.Exchange, m.RoutingKey = rec.Exchange, rec.Key
	m.Header, m.Body = rec.Header, rec.Body
	m.Time, m.TTL = rec.Time, message.NoTTL
	if len(rec.Extra) > 0 {
		more, err := parseExtra(rec.Extra)
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
