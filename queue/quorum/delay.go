package quorum

import (
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/retry"
)

// delay is the messages that came back and wait for their time. As when they wait
// in a lane, some may be away: then the table does not have them.
type delay struct {
	order     retry.Schedule // by when they are due, or expire if that is before
	n         int            // of messages
	bytes     int64          // of their bodies
	away      int            // of n
	awayBytes int64          // of bytes
}

// postpone makes a message wait until that time. It is in memory.
func (m *machine) postpone(id queue.ID, s *slot, due int64) {
	s.fate = delayed
	s.msg = s.msg.Apart() // it stays longer than those that came with it
	if s.expires != 0 {
		due = min(due, s.expires)
	}
	m.delay.order.Push(due, id)
	m.delay.n++
	m.delay.bytes += int64(len(s.msg.Body))
}

// wake makes up to count messages ready whose time has come by that of the
// command; those that have expired die. It stops before one that is away.
func (m *machine) wake(c *command, fx *effects) {
	n := 0
	for ; n < c.count && m.delay.n > 0; n++ {
		at, id := m.delay.order.First()
		s := m.table.get(id)
		if at > c.time || s == nil {
			break
		}
		m.popDelayed(s)
		if s.expires != 0 && s.expires <= c.time {
			m.memory -= int64(s.msg.Size())
			m.bury(id, s, expired, fx)
		} else {
			m.readyAgain(id, s)
		}
	}
	c.count = n
}

// popDelayed takes the first of those that wait off; its slot is given.
func (m *machine) popDelayed(s *slot) {
	m.delay.order.Pop()
	m.delay.n--
	m.delay.bytes -= int64(len(s.msg.Body))
}

// trimDelayed drops the first of those that wait; it returns false if that is away.
func (m *machine) trimDelayed(fx *effects) bool {
	_, id := m.delay.order.First()
	s := m.table.get(id)
	if s == nil {
		return false
	}
	m.popDelayed(s)
	m.memory -= int64(s.msg.Size())
	m.bury(id, s, maxlen, fx)
	return true
}

// purgeDelayed drops all that wait.
func (m *machine) purgeDelayed(fx *effects) {
	for _, id := range m.delay.order.All() {
		if m.table.get(id) != nil {
			m.table.remove(id)
		}
		fx.gone = append(fx.gone, uint64(id))
	}
	m.delay = delay{}
}

// setApart makes a message wait that a log was found to hold: it is away, and
// counted among those of its lane.
func (m *machine) setApart(v retry.Note) bool {
	l := &m.lanes[v.Lane]
	if l.away.count == 0 {
		return false
	}
	l.away.count--
	l.away.bytes -= v.Size
	l.n--
	m.ready--
	m.readyBytes -= v.Size
	m.endAway(l)
	m.delay.order.Push(v.Due, v.ID)
	m.delay.n++
	m.delay.away++
	m.delay.bytes += v.Size
	m.delay.awayBytes += v.Size
	return true
}

// evictDelayed takes messages that wait out of memory, those that are due last
// first, until they weigh need. What has an id above durable stays.
func (m *machine) evictDelayed(durable queue.ID, need int64) {
	if m.delay.n == m.delay.away {
		return
	}
	freed := int64(0)
	for _, id := range m.delay.order.All() {
		if freed >= need {
			break
		}
		s := m.table.get(id)
		if s == nil || id > durable {
			continue
		}
		freed += int64(s.msg.Size())
		m.delay.away++
		m.delay.awayBytes += int64(len(s.msg.Body))
		m.table.remove(id)
	}
	m.memory -= freed
}

// awayDelayed are the first n of those that are due next, as far as they are away.
func (m *machine) awayDelayed(n int) []queue.ID {
	var ids []queue.ID
	for _, id := range m.delay.order.Next(n) {
		if m.table.get(id) == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// admitDelayed puts messages into memory that wait and were away.
func (m *machine) admitDelayed(items []arrival) {
	for i := range items {
		it := &items[i]
		s := m.table.add(it.id)
		*s = slot{msg: it.msg, expires: it.expires, count: it.count, fate: delayed}
		m.memory += int64(it.msg.Size())
		m.delay.away--
		m.delay.awayBytes -= int64(len(it.msg.Body))
	}
}

// missDelayed forgets messages that wait and are away: the log turned out not to
// have them any more. Their bodies had so many bytes.
func (m *machine) missDelayed(ids map[queue.ID]bool, bytes int64) {
	m.delay.order.Remove(func(id queue.ID) bool { return ids[id] })
	m.delay.n -= len(ids)
	m.delay.away -= len(ids)
	m.delay.bytes -= bytes
	m.delay.awayBytes -= bytes
}

// laneNumber is the lane of the log that a message is in.
func laneNumber(d *queue.Delivery) persistence.Lane { return persistence.Lane(laneOf(d.Msg)) }
