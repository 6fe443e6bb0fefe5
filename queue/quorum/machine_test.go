package quorum

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// text makes a message with a priority and, if it is not negative, an
// expiration.
func text(body string, priority uint8, ttl int64) *message.Message {
	p := frames.Properties{Flags: frames.FlagPriority, Priority: priority}
	if ttl >= 0 {
		p.Flags |= frames.FlagExpiration
		p.Expiration = fmt.Append(nil, ttl)
	}
	h := p.Append(nil)
	m := message.New(len(h), len(body))
	copy(m.Header, h)
	copy(m.Body, body)
	m.RoutingKey, m.Priority, m.TTL, m.Time = "k", priority, ttl, 1000
	return m
}

// A driver gives commands to a machine and keeps them as a log.
type driver struct {
	m   *machine
	log []command
	fx  effects
}

func (d *driver) do(c command) *effects {
	d.fx = effects{}
	d.m.apply(&c, &d.fx)
	d.log = append(d.log, c)
	return &d.fx
}

func (d *driver) publish(msgs ...*message.Message) {
	d.do(command{op: opEnqueue, time: 1000, first: d.m.last + 1, messages: msgs})
}

// take checks out n messages and returns their bodies and ids.
func (d *driver) take(n int) (string, []queue.ID) {
	var bodies []string
	var ids []queue.ID
	for _, h := range d.do(command{op: opCheckout, time: 1000, count: n, fresh: noneFresh}).handed {
		bodies = append(bodies, string(h.Msg.Body))
		ids = append(ids, h.ID)
	}
	return strings.Join(bodies, " "), ids
}

// The order that RabbitMQ 4.0 was seen to deliver in.
func TestUrgentAndNormal(t *testing.T) {
	for _, tt := range []struct {
		name       string
		priorities []uint8
		want       string
	}{
		{"observed", []uint8{0, 0, 4, 5, 9, 200, 1, 6, 0, 5}, "m3 m4 m0 m5 m7 m1 m9 m2 m6 m8"},
		{"three urgent before a normal one", []uint8{5, 5, 5, 0}, "m0 m1 m2 m3"},
		{"normal ones only", []uint8{0, 1, 4}, "m0 m1 m2"},
		{"urgent ones only", []uint8{9, 5, 7}, "m0 m1 m2"},
		{"one each", []uint8{0, 9}, "m1 m0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := driver{m: newMachine()}
			for i, p := range tt.priorities {
				d.publish(text(fmt.Sprintf("m%d", i), p, -1))
			}
			if got, _ := d.take(100); got != tt.want {
				t.Errorf("delivered %s, want %s", got, tt.want)
			}
		})
	}
}

func TestReturnedGoFirstInOrder(t *testing.T) {
	d := driver{m: newMachine()}
	d.publish(text("n0", 0, -1), text("u1", 9, -1), text("n2", 0, -1), text("u3", 9, -1), text("n4", 0, -1))
	_, ids := d.take(3) // u1 u3 n0
	d.do(command{op: opRequeue, ids: []queue.ID{ids[1], ids[0], ids[2]}})
	if got, _ := d.take(9); got != "n0 u1 u3 n2 n4" {
		t.Errorf("delivered %s, want n0 u1 u3 n2 n4", got)
	}
}

func TestDeliveryLimits(t *testing.T) {
	for _, tt := range []struct{ limit, deliveries int64 }{{0, 1}, {2, 3}, {20, 21}} {
		d := driver{m: newMachine()}
		d.do(command{op: opRules, rules: rules{ttl: -1, maxLength: -1, maxBytes: -1, deliveryLimit: tt.limit, graves: sent}})
		d.publish(text("m", 0, -1))
		n := int64(0)
		for d.m.ready > 0 {
			n++
			_, ids := d.take(1)
			d.do(command{op: opReturn, ids: ids}) // does not count
			_, ids = d.take(1)
			d.do(command{op: opRequeue, ids: ids})
		}
		if n != tt.deliveries || len(d.fx.dead) != 1 || d.fx.dead[0].reason != deliveryLimit {
			t.Errorf("limit %d: %d deliveries, then dead %v, want %d", tt.limit, n, d.fx.dead, tt.deliveries)
		}
	}
}

func TestStopsTakingWhenFull(t *testing.T) {
	d := driver{m: newMachine()}
	d.do(command{op: opRules, rules: rules{ttl: -1, maxLength: 5, maxBytes: -1, deliveryLimit: -1, refuses: true}})
	for i, want := range []bool{false, false, false, false, false, true} {
		d.publish(text("m", 0, -1))
		if d.m.full != want {
			t.Errorf("with %d messages of 5: full %t, want %t", i+1, d.m.full, want)
		}
	}
	d.take(1)
	if !d.m.full {
		t.Error("takes publishes again at the limit, want from four fifths of it on")
	}
	d.take(1)
	if d.m.full {
		t.Error("still full at four fifths of the limit")
	}
}

func TestDownReturnsAllOfAConsumer(t *testing.T) {
	d := driver{m: newMachine()}
	d.publish(text("a", 0, -1), text("b", 0, -1), text("c", 0, -1))
	d.do(command{op: opCheckout, consumer: 1, count: 1, fresh: noneFresh})
	d.do(command{op: opCheckout, consumer: 2, count: 1, fresh: noneFresh})
	d.do(command{op: opDown, consumer: 1})
	if got, _ := d.take(9); got != "a c" {
		t.Errorf("delivered %s, want a c", got)
	}
}

func TestIgnoresWhatIsNotOut(t *testing.T) {
	d := driver{m: newMachine()}
	d.publish(text("a", 0, -1), text("b", 0, -1))
	_, ids := d.take(1)
	for _, op := range []op{opSettle, opRequeue, opDiscard, opReturn, opForget} {
		d.do(command{op: op, ids: []queue.ID{2, 3, 1000}}) // ready, unknown, unknown
	}
	d.do(command{op: opSettle, ids: append(ids, ids...)})
	if d.m.ready != 1 || d.m.out != 0 || d.m.outBytes != 0 || d.m.readyBytes != 1 {
		t.Errorf("%d ready and %d out, want 1 and 0", d.m.ready, d.m.out)
	}
}

// walk gives random commands.
func (d *driver) walk(rnd *rand.Rand, steps int) {
	for range steps {
		d.do(d.step(rnd))
	}
}

func (d *driver) step(rnd *rand.Rand) command {
	now := 1000 + int64(len(d.log))
	c := command{time: now, count: rnd.IntN(6), fresh: noneFresh, consumer: uint32(rnd.IntN(3))}
	switch n := rnd.IntN(100); {
	case n < 30:
		c.op, c.first = opEnqueue, d.m.last+1+queue.ID(rnd.IntN(3)/2)
		for i := range 1 + rnd.IntN(8) {
			ttl := int64(-1)
			if rnd.IntN(4) == 0 {
				ttl = int64(rnd.IntN(60))
			}
			m := text(fmt.Sprintf("%d.%d", len(d.log), i), uint8(rnd.IntN(10)), ttl)
			m.Time = now
			if rnd.IntN(5) == 0 {
				m.More = &message.More{CC: []string{"cc"}}
			}
			c.messages = append(c.messages, m)
		}
	case n < 55:
		c.op = opCheckout
	case n < 85:
		c.op = []op{opSettle, opSettle, opRequeue, opReturn, opDiscard}[rnd.IntN(5)]
		c.ids = d.some(rnd, out)
		if c.op == opRequeue && rnd.IntN(2) == 0 {
			for range c.ids {
				c.dues = append(c.dues, max(0, now+int64(rnd.IntN(40))-10))
			}
		}
	case n < 87:
		c.op, c.count = opWake, 1+rnd.IntN(9)
	case n < 90:
		c.op, c.count = opExpire, math.MaxInt
	case n < 93:
		c.op, c.count = opTrim, math.MaxInt
	case n < 96:
		c.op, c.ids = opForget, d.some(rnd, dead)
	case n < 97:
		c.op = opPurge
	case n < 98:
		c.op = opDown
	default:
		c.op = opRules
		c.rules = rules{ttl: int64(rnd.IntN(200)) - 100, maxLength: int64(rnd.IntN(40)) - 1, maxBytes: int64(rnd.IntN(400)) - 1,
			deliveryLimit: int64(rnd.IntN(5)) - 1, refuses: rnd.IntN(2) == 0, graves: graves(rnd.IntN(3))}
	}
	return c
}

// some are random messages of a fate, in random order, and one that is unknown.
func (d *driver) some(rnd *rand.Rand, f fate) []queue.ID {
	ids := []queue.ID{d.m.last + 7}
	for id, s := range d.m.table.all() {
		if s.fate == f && rnd.IntN(3) == 0 {
			ids = append(ids, id)
		}
	}
	rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids
}

// replay gives the commands of a log, each by way of its bytes, to a machine.
func replay(t *testing.T, m *machine, log []command) *machine {
	t.Helper()
	for i := range log {
		b := log[i].appendTo(nil)
		c, err := parseCommand(b)
		if err != nil {
			t.Fatalf("command %d, op %d: %v", i, log[i].op, err)
		}
		if again := c.appendTo(nil); !bytes.Equal(again, b) {
			t.Fatalf("command %d, op %d: %x became %x", i, log[i].op, b, again)
		}
		var fx effects
		m.apply(c, &fx)
		if c.op != opDown && c.op != opPurge && c.op != opSettle && c.count != log[i].count && (c.op == opCheckout || c.op == opExpire || c.op == opTrim) {
			t.Fatalf("command %d, op %d: %d messages, want %d", i, c.op, c.count, log[i].count)
		}
	}
	return m
}

func wantSame(t *testing.T, what string, got, want *machine) {
	t.Helper()
	if g, w := got.snapshot(nil), want.snapshot(nil); !bytes.Equal(g, w) {
		t.Fatalf("%s: the states differ:\n%s\nwant\n%s", what, got.sums(), want.sums())
	}
	if g, w := got.sums(), want.sums(); g != w {
		t.Fatalf("%s: %s, want %s", what, g, w)
	}
}

func (m *machine) sums() string {
	return fmt.Sprintf("ready %d, %d bytes, out %d, %d bytes, dead %d, %d bytes, full %t, turn %d, last %d, memory %d, sizes %d %d, delayed %d, %d bytes",
		m.ready, m.readyBytes, m.out, m.outBytes, m.dead, m.deadBytes, m.full, m.turn, m.last, m.memory,
		m.lanes[0].headSize+m.lanes[0].tailSize, m.lanes[1].headSize+m.lanes[1].tailSize, m.delay.n, m.delay.bytes)
}

// A log of commands gives the same state again, whole or from any snapshot on.
func TestReplay(t *testing.T) {
	for seed := range uint64(25) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		d := driver{m: newMachine()}
		var snapshots [][]byte
		var places []int
		for range 12 {
			d.walk(rnd, 30)
			snapshots = append(snapshots, d.m.snapshot(nil))
			places = append(places, len(d.log))
		}
		wantSame(t, fmt.Sprintf("seed %d, whole log", seed), replay(t, newMachine(), d.log), d.m)
		for i, b := range snapshots {
			m, err := restore(b)
			if err != nil {
				t.Fatalf("seed %d, snapshot %d: %v", seed, i, err)
			}
			if again := m.snapshot(nil); !bytes.Equal(again, b) {
				t.Fatalf("seed %d: snapshot %d is another one when restored", seed, i)
			}
			wantSame(t, fmt.Sprintf("seed %d, from snapshot %d on", seed, i), replay(t, m, d.log[places[i]:]), d.m)
		}
	}
}

// The machine does what a simple one does: a slice of messages per fate.
func TestAgainstModel(t *testing.T) {
	for seed := range uint64(25) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		d := driver{m: newMachine()}
		mo := model{}
		for i := range 400 {
			c := d.step(rnd)
			fx := d.do(c)
			mo.apply(t, &d.log[len(d.log)-1], fx)
			if got, want := d.m.sums(), mo.sums(d.m); got != want {
				t.Fatalf("seed %d, command %d, op %d:\n%s, want\n%s", seed, i, c.op, got, want)
			}
		}
	}
}

// model is messages in a list each; it believes the machine in what the order
// of lanes is (TestUrgentAndNormal has that) but not in who is there.
type model struct {
	ready, out, dead, delayed map[queue.ID]*message.Message
	owner                     map[queue.ID]uint32
	due                       map[queue.ID]int64
	lifetime                  map[*message.Message]int64
	ttl                       int64
	keeps                     graves
}

func (mo *model) apply(t *testing.T, c *command, fx *effects) {
	t.Helper()
	if mo.ready == nil {
		mo.owner, mo.due = map[queue.ID]uint32{}, map[queue.ID]int64{}
		mo.delayed, mo.lifetime, mo.ttl = map[queue.ID]*message.Message{}, map[*message.Message]int64{}, queue.None
		mo.ready, mo.out, mo.dead = map[queue.ID]*message.Message{}, map[queue.ID]*message.Message{}, map[queue.ID]*message.Message{}
	}
	move := func(id queue.ID, from, to map[queue.ID]*message.Message) {
		m := from[id]
		if m == nil {
			return
		}
		delete(from, id)
		if to != nil {
			to[id] = m
		}
	}
	grave := map[queue.ID]*message.Message(nil)
	if mo.keeps == kept {
		grave = mo.dead
	}
	switch c.op {
	case opEnqueue:
		for i, m := range c.messages {
			mo.ready[c.first+queue.ID(i)] = m
			if mo.ttl >= 0 || m.TTL >= 0 {
				mo.lifetime[m] = expiry(m, mo.ttl)
			}
		}
	case opCheckout:
		for _, h := range fx.handed {
			if m := mo.ready[h.ID]; m == nil || !reflect.DeepEqual(m, h.Msg) { // one that waited is a copy
				t.Fatalf("message %d was handed out and is not ready", h.ID)
			}
			move(h.ID, mo.ready, mo.out)
			mo.owner[h.ID] = c.consumer
		}
	case opSettle:
		for _, id := range c.ids {
			move(id, mo.out, nil)
		}
	case opRequeue, opReturn:
		for i, id := range c.ids {
			if c.dues != nil && c.dues[i] > c.time {
				move(id, mo.out, mo.delayed)
				mo.due[id] = c.dues[i]
			} else {
				move(id, mo.out, mo.ready)
			}
		}
	case opWake:
		mo.wake(t, c)
	case opPurge:
		clear(mo.ready)
		clear(mo.delayed)
	case opForget:
		for _, id := range c.ids {
			move(id, mo.dead, nil)
		}
	case opRules:
		mo.keeps, mo.ttl = c.rules.graves, c.rules.ttl
	case opDown:
		for id := range mo.out {
			if mo.owner[id] == c.consumer {
				move(id, mo.out, mo.ready)
			}
		}
	}
	for _, x := range fx.dead {
		move(x.id, mo.ready, grave)
		move(x.id, mo.out, grave)
		move(x.id, mo.delayed, grave)
	}
	if c.op == opSettle || c.op == opForget || c.op == opPurge {
		return
	}
	for _, id := range fx.gone {
		move(queue.ID(id), mo.ready, nil)
		move(queue.ID(id), mo.out, nil)
		move(queue.ID(id), mo.delayed, nil)
	}
}

// wake moves as many as the machine did, of those that are due, to those that are
// ready; the expired ones among them are told by the effects.
func (mo *model) wake(t *testing.T, c *command) {
	t.Helper()
	at := func(id queue.ID) int64 {
		if m := mo.delayed[id]; mo.expires(m) != 0 {
			return min(mo.due[id], mo.expires(m))
		}
		return mo.due[id]
	}
	ids := slices.SortedFunc(maps.Keys(mo.delayed), func(a, b queue.ID) int { return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a, b)) })
	n := 0
	for n < len(ids) && at(ids[n]) <= c.time {
		n++
	}
	if c.count > n || c.count == 0 && n > 0 {
		t.Fatalf("%d were made ready, %d are due", c.count, n)
	}
	for _, id := range ids[:c.count] {
		mo.ready[id] = mo.delayed[id]
		delete(mo.delayed, id)
	}
}

// expires is when the message expires by the rules of its time, 0 is never.
func (mo *model) expires(m *message.Message) int64 { return mo.lifetime[m] }

func (mo *model) sums(m *machine) string {
	c := *m
	count := func(of map[queue.ID]*message.Message) (n int, bytes, size int64) {
		for _, m := range of {
			bytes += int64(len(m.Body))
			size += int64(m.Size())
		}
		return len(of), bytes, size
	}
	c.ready, c.readyBytes, c.memory = count(mo.ready)
	c.out, c.outBytes, _ = count(mo.out)
	c.dead, c.deadBytes, _ = count(mo.dead)
	size := int64(0)
	c.delay.n, c.delay.bytes, size = count(mo.delayed)
	c.memory += size
	return c.sums()
}

// Evicting and admitting is no change of state.
func TestAwayIsTheSameState(t *testing.T) {
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 10))
		d, shadow := driver{m: newMachine()}, driver{m: newMachine()}
		stored := map[queue.ID]arrival{}
		for range 40 {
			var msgs []*message.Message
			for range rnd.IntN(60) {
				msgs = append(msgs, text(strings.Repeat("x", 10_000+rnd.IntN(10_000)), uint8(rnd.IntN(7)), int64(rnd.IntN(900_000))))
			}
			for i, m := range msgs {
				stored[d.m.last+1+queue.ID(i)] = arrival{id: d.m.last + 1 + queue.ID(i), msg: m, expires: expiry(m, -1)}
			}
			if len(msgs) > 0 {
				d.publish(msgs...)
				shadow.publish(msgs...)
			}
			for i := range d.m.lanes {
				d.m.evict(i, d.m.last-queue.ID(min(rnd.IntN(20), int(d.m.last))), int64(rnd.IntN(400_000)))
			}
			if rnd.IntN(10) == 0 {
				again, err := restore(d.m.snapshot(nil))
				if err != nil {
					t.Fatalf("seed %d, %d away: %v", seed, d.m.absent(), err)
				}
				wantSame(t, fmt.Sprintf("seed %d, restored with %d away", seed, d.m.absent()), again, d.m)
			}
			fx := d.do(command{op: opCheckout, time: 1000, count: rnd.IntN(40), fresh: noneFresh})
			n := len(fx.handed)
			if got := len(shadow.do(d.log[len(d.log)-1]).handed); got != n {
				t.Fatalf("seed %d: %d handed out of %d with nothing away", seed, n, got)
			}
			for i := range d.m.lanes {
				if rnd.IntN(2) == 0 {
					admitSome(d.m, i, stored, rnd.IntN(30))
				}
			}
		}
		for i := range d.m.lanes {
			admitSome(d.m, i, stored, math.MaxInt)
		}
		wantSame(t, fmt.Sprintf("seed %d", seed), d.m, shadow.m)
	}
}

// admitSome brings up to n messages of a lane back.
func admitSome(m *machine, number int, stored map[queue.ID]arrival, n int) {
	a := m.lanes[number].away
	if a.count == 0 || n == 0 {
		return
	}
	var items []arrival
	end := a.to
	for id := a.from; id <= a.to; id++ {
		if it, ok := stored[id]; ok && laneOf(it.msg) == number {
			items = append(items, it)
			if len(items) == n {
				end = id
				break
			}
		}
	}
	m.admit(number, items, end)
}

func TestAdmitMissing(t *testing.T) {
	d := driver{m: newMachine()}
	for i := range 100 {
		d.publish(text(fmt.Sprintf("%d%s", i, strings.Repeat("x", 20_000)), 0, -1))
	}
	d.m.evict(normal, d.m.last, math.MaxInt64)
	away := d.m.lanes[normal].away
	first := arrival{id: away.from, msg: text("first", 0, -1)}
	if n := d.m.admit(normal, []arrival{first}, away.to); n != away.count-1 {
		t.Errorf("%d are missing, want %d", n, away.count-1)
	}
	if want := d.m.lanes[normal].n; d.m.ready != want || d.m.absent() != 0 {
		t.Errorf("%d ready and %d away, want %d and 0", d.m.ready, d.m.absent(), want)
	}
}

func FuzzRestore(f *testing.F) {
	d := driver{m: newMachine()}
	d.walk(rand.New(rand.NewPCG(1, 2)), 40)
	f.Add(d.m.snapshot(nil))
	f.Add(newMachine().snapshot(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := restore(b)
		if err != nil {
			return
		}
		again, err := restore(m.snapshot(nil))
		if err != nil {
			t.Fatalf("its own snapshot: %v", err)
		}
		wantSame(t, "restored twice", again, m)
	})
}

func FuzzCommand(f *testing.F) {
	d := driver{m: newMachine()}
	d.walk(rand.New(rand.NewPCG(3, 4)), 200)
	for i := range d.log {
		f.Add(d.log[i].appendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCommand(b)
		if err != nil {
			return
		}
		if again := c.appendTo(nil); !bytes.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func TestDamagedBytes(t *testing.T) {
	d := driver{m: newMachine()}
	d.walk(rand.New(rand.NewPCG(5, 6)), 60)
	b := d.m.snapshot(nil)
	for n := range b {
		if _, err := restore(b[:n]); err == nil {
			t.Errorf("%d of %d bytes of a snapshot are restored", n, len(b))
		}
	}
	if _, err := restore(append(slices.Clone(b), 0)); err == nil {
		t.Error("a snapshot with a byte too many is restored")
	}
	for i := range d.log {
		b := d.log[i].appendTo(nil)
		for n := range b {
			if _, err := parseCommand(b[:n]); err == nil {
				t.Fatalf("%d of %d bytes of a command of op %d are parsed", n, len(b), d.log[i].op)
			}
		}
	}
}
