package quorum

import (
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// A machine is the state of a quorum queue: which messages it has, in what
// order, and what has become of each. It is changed by commands only, and what a
// command does depends on nothing but the state and the command: it does no I/O,
// has no clock and no lock. A log of commands so gives the same state wherever
// it is replayed, and a snapshot takes the place of a log's beginning.
//
// Which consumer gets how many messages is not decided here but by whoever
// leads the queue: the decision is a command (opCheckout).
//
// Messages that wait may be away: their bodies are in a log only, and of their
// metadata only sums are known. That is a matter of memory, not of state: evict
// and admit are no commands, and a command whose messages are away stops before
// the first of them.
type machine struct {
	rules rules
	last  queue.ID // the highest id that a message ever had
	table table    // messages that are not away
	back  idHeap   // handed out before and ready again: they go first, by id
	lanes [lanes]lane
	delay delay // what came back and waits for its time
	turn  uint8 // of lanes: see urgent
	full  bool  // publishers have been told to stop

	ready, out, dead                int
	readyBytes, outBytes, deadBytes int64 // of bodies

	// memory is what ready messages that are not away weigh, in bytes. Like what
	// is away, it is no part of the state.
	memory int64
}

// The lanes of a queue: messages of priority 5 and above are urgent, all others
// normal (RabbitMQ 4.0).
const (
	normal = iota
	urgent
	lanes
)

// urgentFrom is the lowest priority of urgent messages.
const urgentFrom = 5

// share is how many urgent messages go before a normal one while both wait.
const share = 2

// rules are the settings of a queue that its state depends on.
type rules struct {
	ttl           int64 // of messages published from now on, in milliseconds; queue.None
	maxLength     int64 // ready messages; queue.None
	maxBytes      int64 // of bodies of ready messages; queue.None
	deliveryLimit int64 // returns that a message survives; negative is no limit
	refuses       bool  // a full queue refuses publishes instead of dropping messages
	graves        graves
}

// graves is what becomes of messages that die.
type graves uint8

const (
	forgotten graves = iota // nothing: there is no target
	sent                    // they leave the queue and are sent to the target
	kept                    // they stay, dead, until the target has confirmed them
)

// A slot is what is known of one message.
type slot struct {
	msg      *message.Message // nil if the slot is free
	expires  int64            // Unix milliseconds; 0 is never
	consumer uint32           // who has it, if it is out; 0 is a basic.get
	count    uint32           // how often it was handed out before
	fate     fate
	reason   reason // of its death, if it is dead
}

// A fate is what has become of a message.
type fate uint8

const (
	waiting fate = iota
	out
	dead
	delayed
)

// A reason is a queue.Reason, small.
type reason uint8

const (
	rejected reason = iota + 1
	expired
	maxlen
	deliveryLimit
)

// name is the reason as x-death has it.
func (r reason) name() queue.Reason {
	switch r {
	case rejected:
		return queue.ReasonRejected
	case expired:
		return queue.ReasonExpired
	case maxlen:
		return queue.ReasonMaxlen
	case deliveryLimit:
		return queue.ReasonDeliveryLimit
	}
	panic("quorum: a death without a reason")
}

// effects are what a command causes outside of the machine. The caller brings
// the slices; a command only appends.
type effects struct {
	sub    *queue.Subscription // for what is handed out; set by the caller
	handed []queue.Delivery    // of opCheckout
	dead   []corpse            // to be dead-lettered
	gone   []uint64            // to be settled in the log
	redone bool                // some of handed were handed out before
	mourns bool                // the caller wants to know lost
	lost   []*message.Message  // that died and are forgotten
	// died counts messages that died, by reason, whatever became of them. Commands
	// only add to it.
	died [deliveryLimit + 1]uint64
}

// A corpse is a message that died.
type corpse struct {
	id     queue.ID
	msg    *message.Message
	reason reason
}

// newMachine returns an empty queue's state.
func newMachine() *machine {
	return &machine{rules: rules{ttl: queue.None, maxLength: queue.None, maxBytes: queue.None, deliveryLimit: -1}}
}

// apply carries out a command. Where the command has a count, apply makes that
// how many messages it was: a log keeps the command as it is afterwards.
func (m *machine) apply(c *command, fx *effects) {
	switch c.op {
	case opEnqueue:
		m.enqueue(c)
	case opCheckout:
		m.checkout(c, fx)
	case opSettle:
		m.settle(c, fx)
	case opRequeue, opReturn:
		m.putBack(c, fx)
	case opDiscard:
		m.discard(c, fx)
	case opExpire:
		m.expire(c, fx)
	case opTrim:
		m.trim(c, fx)
	case opPurge:
		m.purge(c, fx)
	case opForget:
		m.forget(c, fx)
	case opRules:
		m.rules = c.rules
	case opDown:
		m.down(c, fx)
	case opWake:
		m.wake(c, fx)
	}
	m.judge()
}

// judge decides whether publishers have to stop: from when the queue is over its
// limit until it is down to four fifths of it (RabbitMQ 4.0).
func (m *machine) judge() {
	switch {
	case !m.rules.refuses:
		m.full = false
	case m.over():
		m.full = true
	case m.full:
		m.full = !m.under()
	}
}

// over says whether the queue is over its limits. What waits for its time counts,
// and what is dead and not yet confirmed.
func (m *machine) over() bool {
	r := &m.rules
	return r.maxLength != queue.None && int64(m.ready+m.delay.n+m.dead) > r.maxLength ||
		r.maxBytes != queue.None && m.readyBytes+m.delay.bytes+m.deadBytes > r.maxBytes
}

// under says whether the queue is well within its limits.
func (m *machine) under() bool {
	r := &m.rules
	return (r.maxLength == queue.None || int64(m.ready+m.delay.n+m.dead) <= fourFifths(r.maxLength)) &&
		(r.maxBytes == queue.None || m.readyBytes+m.delay.bytes+m.deadBytes <= fourFifths(r.maxBytes))
}

func fourFifths(n int64) int64 { return n/5*4 + n%5*4/5 }

func laneOf(m *message.Message) int {
	if m.Priority >= urgentFrom {
		return urgent
	}
	return normal
}

func (m *machine) enqueue(c *command) {
	bytes := int64(0)
	for i := 0; i < len(c.messages); {
		number := laneOf(c.messages[i])
		first, size := c.first+queue.ID(i), int64(0)
		for ; i < len(c.messages) && laneOf(c.messages[i]) == number; i++ {
			msg := c.messages[i]
			s := m.table.add(c.first + queue.ID(i))
			s.msg = msg
			if m.rules.ttl >= 0 || msg.TTL >= 0 {
				s.expires = expiry(msg, m.rules.ttl)
			}
			bytes += int64(len(msg.Body))
			size += int64(msg.Size())
		}
		m.lanes[number].push(run{first, c.first + queue.ID(i) - 1}, size)
		m.memory += size
	}
	c.count = len(c.messages)
	m.last = c.first + queue.ID(len(c.messages)) - 1
	m.ready += len(c.messages)
	m.readyBytes += bytes
}

// expiry is when a message expires in a queue with this TTL, in Unix
// milliseconds: the smaller one of the queue's TTL and its own counts, from when
// the broker took the message (RabbitMQ 4.0).
func expiry(m *message.Message, ttl int64) int64 {
	if ttl < 0 || m.TTL >= 0 && m.TTL < ttl {
		ttl = m.TTL
	}
	return max(1, m.Time+ttl)
}

// returned is the lane number, so to speak, of messages in back.
const returned = lanes

// head is the message that goes next and where it waits: what was returned
// first, then two urgent ones for each normal one. A normal one that is the
// older one does not go before an urgent one in vain: the urgent one goes if it
// is older, too (RabbitMQ 4.0). id is 0 if there is none, s is nil if it is away.
func (m *machine) head() (id queue.ID, s *slot, where int) {
	if len(m.back) > 0 {
		id = m.back[0]
		return id, m.table.get(id), returned
	}
	where = m.nextLane()
	l := &m.lanes[where]
	if l.n == 0 {
		return 0, nil, where
	}
	if id = l.front(); id == 0 {
		return l.away.from, nil, where
	}
	return id, m.table.get(id), where
}

func (m *machine) nextLane() int {
	u, n := &m.lanes[urgent], &m.lanes[normal]
	switch {
	case u.n == 0:
		return normal
	case n.n == 0, m.turn < share, u.first() < n.first():
		return urgent
	}
	return normal
}

// pop takes the head off its place; the message is not ready any more.
func (m *machine) pop(s *slot, where int) {
	weight := int64(s.msg.Size())
	if where == returned {
		m.back.pop()
	} else {
		m.lanes[where].pop(weight)
		if m.turn++; m.turn > share {
			m.turn = 0
		}
	}
	m.ready--
	m.readyBytes -= int64(len(s.msg.Body))
	m.memory -= weight
}

// overdue says whether the message has to be dropped. One that has just been
// published may go to a consumer even if its TTL is 0.
func (s *slot) overdue(id queue.ID, c *command) bool {
	return s.expires != 0 && s.expires <= c.time && id < c.fresh
}

// checkout hands out up to count messages, and stops before one that has
// expired.
func (m *machine) checkout(c *command, fx *effects) {
	n := 0
	for n < c.count {
		if l := m.onlyLane(); l != nil {
			k := m.checkoutRun(c, l, c.count-n, fx)
			if n += k; k == 0 {
				break
			}
			continue
		}
		id, s, where := m.head()
		if s == nil || s.expires != 0 && s.overdue(id, c) {
			break
		}
		m.pop(s, where)
		m.hand(id, s, c.consumer, fx)
		m.outBytes += int64(len(s.msg.Body))
		n++
	}
	m.out += n
	c.count = n
}

// hand makes the delivery of a message.
func (m *machine) hand(id queue.ID, s *slot, consumer uint32, fx *effects) {
	s.fate, s.consumer = out, consumer
	fx.handed = append(fx.handed, queue.Delivery{Msg: s.msg, ID: id, Sub: fx.sub, Expires: s.expires, Count: s.count,
		Redelivered: s.count > 0, Stored: true})
	fx.redone = fx.redone || s.count > 0
}

// onlyLane is the lane that all ready messages are in, or nil if there are
// several places, or the next message is away.
func (m *machine) onlyLane() *lane {
	l := &m.lanes[normal]
	if l.n == 0 {
		l = &m.lanes[urgent]
	}
	if l.n == 0 || l.n != m.ready || l.front() == 0 {
		return nil
	}
	return l
}

// checkoutRun is checkout of up to limit messages of the only lane, as far as
// their ids follow one another: with the sums made once for all of them.
func (m *machine) checkoutRun(c *command, l *lane, limit int, fx *effects) int {
	r := l.head.list[l.head.first]
	limit = int(min(uint64(limit), uint64(r.to-r.from)+1))
	bytes, size := int64(0), int64(0)
	n := 0
	for ; n < limit; n++ {
		id := r.from + queue.ID(n)
		s := m.table.get(id)
		if s.expires != 0 && s.overdue(id, c) {
			break
		}
		m.hand(id, s, c.consumer, fx)
		bytes += int64(len(s.msg.Body))
		size += int64(s.msg.Size())
	}
	l.head.drop(n)
	l.headSize -= size
	l.n -= n
	m.turn = uint8((int(m.turn) + n) % (share + 1))
	m.ready -= n
	m.readyBytes -= bytes
	m.memory -= size
	m.outBytes += bytes
	return n
}

// outOf is the slot of a message that is out, which ends now, or nil.
func (m *machine) outOf(id queue.ID) *slot {
	s := m.table.get(id)
	if s == nil || s.fate != out {
		return nil
	}
	m.out--
	m.outBytes -= int64(len(s.msg.Body))
	return s
}

func (m *machine) settle(c *command, fx *effects) {
	for _, id := range c.ids {
		if s := m.outOf(id); s != nil {
			m.table.free(id, s)
			fx.gone = append(fx.gone, uint64(id))
		}
	}
}

// putBack makes messages ready again, each at its old place, or makes them wait.
// Those that the client has seen are counted, and die when that was too often.
func (m *machine) putBack(c *command, fx *effects) {
	for i, id := range c.ids {
		s := m.outOf(id)
		if s == nil {
			continue
		}
		s.consumer = 0
		if c.op != opReturn {
			s.count++
			if m.tooMany(s.count) {
				m.bury(id, s, deliveryLimit, fx)
				continue
			}
		}
		m.memory += int64(s.msg.Size())
		if c.dues != nil && c.dues[i] > c.time {
			m.postpone(id, s, c.dues[i])
		} else {
			m.readyAgain(id, s)
		}
	}
}

// tooMany says whether a message that was handed out so often has to die.
func (m *machine) tooMany(count uint32) bool {
	limit := m.rules.deliveryLimit
	return limit >= 0 && int64(count) > limit
}

// readyAgain makes a message ready that was before.
func (m *machine) readyAgain(id queue.ID, s *slot) {
	s.fate = waiting
	m.back.push(id)
	m.ready++
	m.readyBytes += int64(len(s.msg.Body))
}

// down returns everything that a consumer has; nothing of it waits.
func (m *machine) down(c *command, fx *effects) {
	again := command{op: opRequeue, time: c.time}
	for id, s := range m.table.all() {
		if s.fate == out && s.consumer == c.consumer {
			again.ids = append(again.ids, id)
		}
	}
	m.putBack(&again, fx)
	c.count = len(again.ids)
}

func (m *machine) discard(c *command, fx *effects) {
	for _, id := range c.ids {
		if s := m.outOf(id); s != nil {
			s.count++
			m.bury(id, s, rejected, fx)
		}
	}
}

// expire drops up to count messages that have expired, from the head on. One
// behind a message that stays is not looked at (RabbitMQ 4.0).
func (m *machine) expire(c *command, fx *effects) {
	n := 0
	for ; n < c.count; n++ {
		id, s, where := m.head()
		if s == nil || !s.overdue(id, c) {
			break
		}
		m.pop(s, where)
		m.bury(id, s, expired, fx)
	}
	c.count = n
}

// trim drops up to count messages while the queue is over its limits: what waits
// for its time, in the order of that, and then from the head on.
func (m *machine) trim(c *command, fx *effects) {
	n := 0
	for ; n < c.count && m.over(); n++ {
		if m.delay.n > 0 {
			if !m.trimDelayed(fx) {
				break
			}
			continue
		}
		id, s, where := m.head()
		if s == nil {
			break
		}
		m.pop(s, where)
		m.bury(id, s, maxlen, fx)
	}
	c.count = n
}

// bury makes an end of a message that is neither ready nor out.
func (m *machine) bury(id queue.ID, s *slot, why reason, fx *effects) {
	fx.died[why]++
	switch m.rules.graves {
	case forgotten:
		fx.gone = append(fx.gone, uint64(id))
		if fx.mourns {
			fx.lost = append(fx.lost, s.msg)
		}
	case sent:
		fx.dead = append(fx.dead, corpse{id, s.msg, why})
	case kept:
		fx.dead = append(fx.dead, corpse{id, s.msg, why})
		s.fate, s.reason, s.consumer = dead, why, 0
		m.dead++
		m.deadBytes += int64(len(s.msg.Body))
		return
	}
	m.table.remove(id)
}

// forget lets dead messages go: their target has them.
func (m *machine) forget(c *command, fx *effects) {
	for _, id := range c.ids {
		s := m.table.get(id)
		if s == nil || s.fate != dead {
			continue
		}
		m.dead--
		m.deadBytes -= int64(len(s.msg.Body))
		m.table.remove(id)
		fx.gone = append(fx.gone, uint64(id))
	}
}

// purge drops all ready messages. Those that were never handed out are not in
// gone: they are all there is of their lane from its first id on.
func (m *machine) purge(c *command, fx *effects) {
	c.count = m.ready + m.delay.n
	m.purgeDelayed(fx)
	for _, id := range m.back {
		m.table.remove(id)
		fx.gone = append(fx.gone, uint64(id))
	}
	m.back = nil
	for i := range m.lanes {
		m.lanes[i].each(m.table.remove)
		m.lanes[i] = lane{}
	}
	m.ready, m.readyBytes, m.memory = 0, 0, 0
}
