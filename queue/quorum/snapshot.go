package quorum

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/leveretmq/leveret/queue"
)

// snapshot appends the state of the machine to dst. Two machines in the same
// state have the same snapshot, whatever way they came to it. The format, see
// codec.go for its elements:
//
//	version 1 byte
//	last, turn 1 byte, full 1 byte, rules
//	back       ids, rising
//	for each lane: runs of head, away, runs of tail
//	  runs     list of from, to
//	  away     count; if it is not 0 also from, to, bytes, earliest
//	delayed    list of time and id, in that order; how many are away, bytes of those
//	messages   list of id, fate 1 byte, consumer, count, reason 1 byte,
//	           expires, message; by id
//
// What is away is in it as sums only: the messages themselves are in the log.
func (m *machine) snapshot(dst []byte) []byte {
	dst = append(dst, codecVersion)
	dst = binary.AppendUvarint(dst, uint64(m.last))
	dst = append(dst, m.turn, bit(m.full))
	dst = appendRules(dst, &m.rules)
	back := slices.Clone(m.back)
	slices.Sort(back)
	dst = appendIDs(dst, back)
	for i := range m.lanes {
		dst = appendLane(dst, &m.lanes[i])
	}
	dst = appendDelay(dst, &m.delay)
	dst = binary.AppendUvarint(dst, uint64(m.ready-m.absent()+m.delay.n-m.delay.away+m.out+m.dead))
	for id, s := range m.table.all() {
		dst = binary.AppendUvarint(dst, uint64(id))
		dst = append(dst, byte(s.fate))
		dst = binary.AppendUvarint(dst, uint64(s.consumer))
		dst = binary.AppendUvarint(dst, uint64(s.count))
		dst = append(dst, byte(s.reason))
		dst = binary.AppendVarint(dst, s.expires)
		dst = appendMessage(dst, s.msg)
	}
	return dst
}

func appendDelay(dst []byte, d *delay) []byte {
	type entry struct {
		at int64
		id queue.ID
	}
	list := make([]entry, 0, d.n)
	for at, id := range d.order.All() {
		list = append(list, entry{at, id})
	}
	slices.SortFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, e := range list {
		dst = binary.AppendUvarint(dst, uint64(e.at))
		dst = binary.AppendUvarint(dst, uint64(e.id))
	}
	dst = binary.AppendUvarint(dst, uint64(d.away))
	return binary.AppendUvarint(dst, uint64(d.awayBytes))
}

func appendLane(dst []byte, l *lane) []byte {
	if l.away.count == 0 {
		var whole runs
		l.each(whole.push)
		dst = appendRuns(dst, &whole)
		dst = append(dst, 0)
		return appendRuns(dst, &runs{})
	}
	dst = appendRuns(dst, &l.head)
	dst = binary.AppendUvarint(dst, uint64(l.away.count))
	dst = binary.AppendUvarint(dst, uint64(l.away.from))
	dst = binary.AppendUvarint(dst, uint64(l.away.to))
	dst = binary.AppendVarint(dst, l.away.bytes)
	dst = binary.AppendVarint(dst, l.away.earliest)
	return appendRuns(dst, &l.tail)
}

func appendRuns(dst []byte, r *runs) []byte {
	list := r.list[r.first:]
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, run := range list {
		dst = binary.AppendUvarint(dst, uint64(run.from))
		dst = binary.AppendUvarint(dst, uint64(run.to))
	}
	return dst
}

// restore makes the machine of a snapshot. Messages refer to the memory of b.
func restore(b []byte) (*machine, error) {
	if len(b) == 0 || b[0] != codecVersion {
		return nil, errCodecVersion
	}
	r := reader{b: b[1:]}
	m := newMachine()
	m.last, m.turn, m.full, m.rules = r.id(), r.byte(), r.flag(), r.rules()
	m.back = r.ids()
	for i := range m.lanes {
		r.lane(&m.lanes[i])
	}
	r.delay(&m.delay)
	for range r.length() {
		r.slot(m)
	}
	if r.bad || len(r.b) > 0 || m.turn > share || !slices.IsSorted(m.back) || !m.sum() {
		return nil, errCodec
	}
	return m, nil
}

func (r *reader) lane(l *lane) {
	l.head = r.runs(0)
	if l.away.count = r.int(); l.away.count > 0 {
		l.away.from, l.away.to = r.id(), r.id()
		l.away.bytes, l.away.earliest = r.varint(), r.varint()
	}
	l.tail = r.runs(l.away.to)
	if l.away.count == 0 && l.tail.n > 0 {
		r.fail()
	}
	l.n = l.head.n + l.away.count + l.tail.n
}

func (r *reader) delay(d *delay) {
	lastAt, lastID := int64(-1), queue.ID(0)
	for range r.length() {
		at, id := int64(r.int()), r.id()
		if at < lastAt || at == lastAt && id <= lastID {
			r.fail()
			return
		}
		d.order.Push(at, id)
		lastAt, lastID = at, id
	}
	d.n = d.order.Len()
	d.away, d.awayBytes = r.int(), int64(r.int())
	d.bytes = d.awayBytes // sum adds the others
}

// runs takes runs of ids above one.
func (r *reader) runs(above queue.ID) runs {
	var v runs
	for range r.length() {
		from, to := r.id(), r.id()
		if from <= above || to < from || to-from > 1<<40 {
			r.fail()
			return runs{}
		}
		v.list = append(v.list, run{from, to})
		v.n += int(to - from + 1)
		above = to + 1 // else it would be the same run
	}
	return v
}

func (r *reader) slot(m *machine) {
	id := r.id()
	s := slot{fate: fate(r.byte()), consumer: r.uint32(), count: r.uint32(), reason: reason(r.byte()), expires: r.varint()}
	s.msg = r.message()
	if r.bad || s.fate > delayed || s.reason > deliveryLimit || m.table.get(id) != nil {
		r.fail()
		return
	}
	*m.table.add(id) = s
}

// sum works out what a snapshot does not have because it follows from the rest.
// It says whether the parts fit together.
func (m *machine) sum() bool {
	for i := range m.lanes {
		l := &m.lanes[i]
		m.ready += l.away.count
		m.readyBytes += l.away.bytes
		var ok bool
		if l.headSize, ok = m.weigh(l.head.list); !ok {
			return false
		}
		if l.tailSize, ok = m.weigh(l.tail.list); !ok {
			return false
		}
	}
	n := len(m.back) + m.lanes[normal].head.n + m.lanes[normal].tail.n + m.lanes[urgent].head.n + m.lanes[urgent].tail.n
	for _, id := range m.back {
		if m.table.get(id) == nil {
			return false
		}
	}
	slots := 0
	for _, s := range m.table.all() {
		bytes := int64(len(s.msg.Body))
		switch s.fate {
		case waiting:
			n--
			m.ready++
			m.readyBytes += bytes
			m.memory += int64(s.msg.Size())
		case out:
			m.out++
			m.outBytes += bytes
		case dead:
			m.dead++
			m.deadBytes += bytes
		case delayed:
			m.delay.bytes += bytes
			m.memory += int64(s.msg.Size())
			slots++
		}
	}
	return n == 0 && m.fitsDelay(slots)
}

// fitsDelay says whether the messages that wait, of which the table has so many,
// are those of the order.
func (m *machine) fitsDelay(slots int) bool {
	away := 0
	for _, id := range m.delay.order.All() {
		s := m.table.get(id)
		if s == nil {
			away++
		} else if s.fate != delayed {
			return false
		}
	}
	return away == m.delay.away && slots == m.delay.n-away
}

// weigh is what the messages of runs weigh; ok is false if one is not there.
func (m *machine) weigh(list []run) (size int64, ok bool) {
	for _, run := range list {
		for id := run.from; id <= run.to; id++ {
			s := m.table.get(id)
			if s == nil || s.fate != waiting {
				return 0, false
			}
			size += int64(s.msg.Size())
		}
	}
	return size, true
}
