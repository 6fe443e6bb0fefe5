package quorum

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
)

// window is what of the head of a lane stays in memory, and how little of it is
// left when the next block is read, in bytes.
const window = 256 << 10

// take makes what a log was found to hold ready, in one lane; all of it is away.
func (m *machine) take(number int, info persistence.LaneInfo) {
	if info.Count == 0 {
		return
	}
	l := &m.lanes[number]
	l.away = away{from: queue.ID(info.First), to: queue.ID(info.Last), count: info.Count, bytes: info.Bytes, earliest: info.Earliest}
	l.n = info.Count
	m.ready += info.Count
	m.readyBytes += info.Bytes
}

// evict takes messages of a lane that weigh at least need out of memory, if
// there are as many, and returns what they weighed. The head stays, and so does
// what has an id above durable: only a log that has it can give it back.
func (m *machine) evict(number int, durable queue.ID, need int64) (freed int64) {
	l := &m.lanes[number]
	if l.tail.n == 0 && l.away.count == 0 {
		if l.headSize < 2*window {
			return 0
		}
		m.split(l)
	}
	for l.tail.n > 0 && freed < need {
		id := l.tail.front()
		if id > durable {
			break
		}
		s := m.table.get(id)
		freed += int64(s.msg.Size())
		l.away.add(id, s)
		l.tail.pop()
		m.table.remove(id)
	}
	l.tailSize -= freed
	m.memory -= freed
	return freed
}

// split leaves a window of the head and makes the rest the tail.
func (m *machine) split(l *lane) {
	var head runs
	size := int64(0)
	for l.head.n > 0 && size < window {
		id := l.head.front()
		size += int64(m.table.get(id).msg.Size())
		head.push(id)
		l.head.pop()
	}
	l.tail, l.tailSize = l.head, l.headSize-size
	l.head, l.headSize = head, size
}

// add counts a message that is away now; it is younger than all others.
func (a *away) add(id queue.ID, s *slot) {
	if a.count == 0 {
		*a = away{from: id}
	}
	a.to = id
	a.count++
	a.bytes += int64(len(s.msg.Body))
	if s.expires != 0 && (a.earliest == 0 || s.expires < a.earliest) {
		a.earliest = s.expires
	}
}

// An arrival is a message that was away.
type arrival struct {
	id      queue.ID
	msg     *message.Message
	expires int64
	count   uint32
}

// admit puts messages that were away behind the head of their lane. Up to the id
// end everything that was away is among them, but for missing messages that the
// log turned out not to have any more.
func (m *machine) admit(number int, items []arrival, end queue.ID) (missing int) {
	l := &m.lanes[number]
	for i := range items {
		it := &items[i]
		s := m.table.add(it.id)
		s.msg, s.expires, s.count = it.msg, it.expires, it.count
		size := int64(it.msg.Size())
		l.head.push(it.id)
		l.headSize += size
		m.memory += size
		l.away.bytes -= int64(len(it.msg.Body))
	}
	l.away.count -= len(items)
	if end < l.away.to && l.away.count > 0 {
		l.away.from = end + 1
		return 0
	}
	missing = l.away.count
	m.ready -= missing
	l.n -= missing
	l.away.count = 0
	m.endAway(l)
	return missing
}

// endAway drops the error of an estimate, or what is missing, once nothing of a
// lane is away.
func (m *machine) endAway(l *lane) {
	if l.away.count == 0 {
		m.readyBytes -= l.away.bytes
		l.away = away{}
	}
}

// exhume makes a message dead that was dead before a restart, and is away.
func (m *machine) exhume(number int, it arrival, why reason) {
	m.takeOut(number, it)
	s := m.table.add(it.id)
	*s = slot{msg: it.msg, expires: it.expires, count: it.count, fate: dead, reason: why}
	m.dead++
	m.deadBytes += int64(len(it.msg.Body))
}

// outlive makes an end of a message that is away and was handed out too often
// before a restart.
func (m *machine) outlive(number int, it arrival, fx *effects) {
	m.takeOut(number, it)
	s := m.table.add(it.id)
	*s = slot{msg: it.msg, expires: it.expires, count: it.count}
	m.bury(it.id, s, deliveryLimit, fx)
	m.judge()
}

// takeOut takes a message out of its lane that is away.
func (m *machine) takeOut(number int, it arrival) {
	l := &m.lanes[number]
	l.away.count--
	l.away.bytes -= int64(len(it.msg.Body))
	l.n--
	m.ready--
	m.readyBytes -= int64(len(it.msg.Body))
	m.endAway(l)
}

// absent is how many messages are away.
func (m *machine) absent() int { return m.lanes[normal].away.count + m.lanes[urgent].away.count }

// handedUpTo is an id up to which every message of the queue was handed out at
// least once, or is no more.
func (m *machine) handedUpTo() queue.ID {
	up := m.last
	for i := range m.lanes {
		if first := m.lanes[i].first(); first != 0 && first <= up {
			up = first - 1
		}
	}
	if len(m.back) > 0 && m.back[0] <= up && m.table.get(m.back[0]).count == 0 {
		up = m.back[0] - 1
	}
	return up
}
