package persistence

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leveretmq/leveret/message"
)

// openTest opens a store in dir that does nothing by itself but commit.
func openTest(t testing.TB, o Options) *Disk {
	t.Helper()
	o.gcStep = cmp.Or(o.gcStep, 1<<40)
	o.mergeTiny = cmp.Or(o.mergeTiny, 1<<30)
	if o.DiskLimit == 0 {
		o.DiskLimit = 1
	}
	if o.Log == nil {
		o.Log = strictLog(t)
	}
	s, err := Open(o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

// strictLog fails the test when an error is logged.
func strictLog(t testing.TB) *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), failing{t}, zap.ErrorLevel))
}

// failing is where lines go that must not be written.
type failing struct{ testing.TB }

func (f failing) Write(line []byte) (int, error) {
	f.Errorf("logged: %s", line)
	return len(line), nil
}

func (failing) Sync() error { return nil }

func closeTest(t testing.TB, s *Disk) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// A waiter is the owner of one receipt.
type waiter chan *message.Receipt

func (w waiter) Settled(r *message.Receipt) { w <- r }

func newWaiter() (*message.Receipt, waiter) {
	w := make(waiter, 1)
	r := message.NewReceipt(w, 0, 0)
	r.Hold(1)
	return r, w
}

// wait waits for the receipt and reports whether it failed.
func (w waiter) wait() bool {
	_, failed := (<-w).Outcome()
	return failed
}

// mustAppend appends and waits for the commit.
func mustAppend(t testing.TB, l Log, recs ...Record) {
	t.Helper()
	r, w := newWaiter()
	l.Append(recs, r)
	if w.wait() {
		t.Fatal("Append failed")
	}
}

// A modelLog is the stupid twin of a log: all records by id.
type modelLog struct {
	log  Log
	recs map[uint64]Record
	last uint64
}

// A modelTest does at random to a store and to its twin the same.
type modelTest struct {
	t     *testing.T
	rnd   *rand.Rand
	opts  Options
	store *Disk
	logs  []*modelLog
}

func TestModel(t *testing.T) {
	seeds := 3
	if n, err := strconv.Atoi(os.Getenv("LEVERET_MODEL_SEEDS")); err == nil {
		seeds = n
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &modelTest{t: t, rnd: rand.New(rand.NewPCG(uint64(seed), 1)), opts: Options{Dir: t.TempDir()}}
			if seed%3 == 1 {
				m.opts.Profile = Server
			}
			if seed%2 == 1 {
				m.opts.Durability = Relaxed
			}
			m.store = openTest(t, m.opts)
			defer func() { m.store.Close() }()
			for range 300 {
				m.step()
			}
			m.check()
		})
	}
}

func (m *modelTest) step() {
	if len(m.logs) < 2 {
		m.newLog()
	}
	ml := m.logs[m.rnd.IntN(len(m.logs))]
	switch n := m.rnd.IntN(100); {
	case n < 35:
		m.append(ml)
	case n < 40:
		m.fanout()
	case n < 60:
		m.settle(ml)
	case n < 72:
		m.settleRange(ml)
	case n < 82:
		m.load(ml)
	case n < 86:
		m.commit(ml)
	case n < 92:
		m.move(ml)
	case n < 95:
		m.newLog()
	case n < 96:
		ml.log.Drop()
		m.logs = slices.DeleteFunc(m.logs, func(o *modelLog) bool { return o == ml })
	case n < 98:
		m.check()
	default:
		m.reopen()
	}
}

func (m *modelTest) newLog() {
	l, err := m.store.NewLog()
	if err != nil {
		m.t.Fatalf("NewLog: %v", err)
	}
	for _, other := range m.logs {
		if other.log.ID() == l.ID() {
			m.t.Fatalf("log id %d was given twice", l.ID())
		}
	}
	m.logs = append(m.logs, &modelLog{log: l, recs: make(map[uint64]Record)})
}

// record is a record with a few fields that vary.
func (m *modelTest) record(ml *modelLog, body []byte) Record {
	ml.last++
	if m.rnd.IntN(8) == 0 {
		ml.last += uint64(m.rnd.IntN(100))
	}
	if m.rnd.IntN(400) == 0 {
		ml.last += 1 << 33
	}
	r := Record{
		ID: ml.last, Time: 1e12 + int64(m.rnd.IntN(1000)), Exchange: "x", Key: fmt.Sprint("key", m.rnd.IntN(3)),
		Header: []byte{1, byte(m.rnd.IntN(2))}, Body: body,
	}
	if m.rnd.IntN(4) == 0 {
		r.Lane = Lane(m.rnd.IntN(3))
	}
	if m.rnd.IntN(5) == 0 {
		r.Expires = r.Time + int64(m.rnd.IntN(100))
		r.Extra = []byte("extra")
	}
	return r
}

func (m *modelTest) body() []byte {
	n := m.rnd.IntN(200)
	switch m.rnd.IntN(100) {
	case 0:
		n = m.rnd.IntN(2 << 20)
	case 1, 2, 3, 4:
		n = m.rnd.IntN(40 << 10)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.rnd.Uint32())
	}
	return b
}

func (m *modelTest) append(ml *modelLog) {
	recs := make([]Record, 1+m.rnd.IntN(40))
	for i := range recs {
		recs[i] = m.record(ml, m.body())
		ml.recs[recs[i].ID] = recs[i]
	}
	ml.log.Append(recs, nil)
}

func (m *modelTest) fanout() {
	for range 1 + m.rnd.IntN(10) {
		shared, body := new(SharedBody), m.body()
		for _, ml := range m.logs {
			r := m.record(ml, body)
			r.Shared = shared
			ml.log.Append([]Record{r}, nil)
			ml.recs[r.ID] = r
		}
	}
}

func (m *modelTest) ids(ml *modelLog) []uint64 { return slices.Sorted(maps.Keys(ml.recs)) }

func (m *modelTest) settle(ml *modelLog) {
	ids := m.ids(ml)
	if len(ids) == 0 {
		return
	}
	if m.rnd.IntN(2) == 0 {
		ids = ids[:m.rnd.IntN(len(ids)+1)]
	} else {
		m.rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
		ids = ids[:m.rnd.IntN(min(30, len(ids)+1))]
	}
	ids = append(ids, ml.last+5, uint64(m.rnd.IntN(200)))
	ml.log.Settle(ids)
	for _, id := range ids {
		delete(ml.recs, id)
	}
}

func (m *modelTest) settleRange(ml *modelLog) {
	ids := m.ids(ml)
	if len(ids) == 0 {
		return
	}
	lo := ids[m.rnd.IntN(len(ids))] - uint64(m.rnd.IntN(2))
	hi := lo + uint64(m.rnd.IntN(100))
	lane, want := Lane(m.rnd.IntN(3)/2), 0
	for id, r := range ml.recs {
		if r.Lane == lane && id >= lo && id <= hi {
			delete(ml.recs, id)
			want++
		}
	}
	if got := ml.log.SettleRange(lane, lo, hi); got != want {
		m.t.Fatalf("SettleRange(%d, %d, %d) = %d, want %d", lane, lo, hi, got, want)
	}
}

// load compares a stretch of a lane.
func (m *modelTest) load(ml *modelLog) {
	from := uint64(m.rnd.IntN(int(min(ml.last, 1<<20) + 2)))
	m.compare(ml, Lane(m.rnd.IntN(3)), from, m.rnd.IntN(100_000))
}

func (m *modelTest) compare(ml *modelLog, lane Lane, from uint64, maxBytes int) {
	m.t.Helper()
	got, err := ml.log.Load(lane, from, nil, maxBytes)
	if err != nil {
		m.t.Fatalf("Load(%d, %d): %v", lane, from, err)
	}
	size := 0
	for _, id := range m.ids(ml) {
		want := ml.recs[id]
		if want.Lane != lane || id < from || size > 0 && size >= maxBytes {
			continue
		}
		if len(got) == 0 {
			m.t.Fatalf("Load of log %d lane %d from %d lacks %d", ml.log.ID(), lane, from, id)
		}
		size += len(want.Body) + len(want.Header)
		if r := got[0]; !sameRecord(r, want) {
			m.t.Fatalf("log %d, lane %d from %d: loaded %d with %d bytes, want %d with %d bytes", ml.log.ID(), lane, from, r.ID, len(r.Body), want.ID, len(want.Body))
		}
		got = got[1:]
	}
	if len(got) > 0 {
		m.t.Fatalf("Load of log %d lane %d from %d has %d too many, first %d", ml.log.ID(), lane, from, len(got), got[0].ID)
	}
}

func sameRecord(a, b Record) bool {
	return a.ID == b.ID && a.Lane == b.Lane && a.Time == b.Time && a.Expires == b.Expires && a.Exchange == b.Exchange &&
		a.Key == b.Key && bytes.Equal(a.Header, b.Header) && bytes.Equal(a.Extra, b.Extra) && bytes.Equal(a.Body, b.Body)
}

func (m *modelTest) commit(ml *modelLog) {
	r := m.record(ml, nil)
	mustAppend(m.t, ml.log, r)
	ml.recs[r.ID] = r
}

// move moves some neighbouring runs, while others settle.
func (m *modelTest) move(ml *modelLog) {
	l := ml.log.(*diskLog)
	l.mu.Lock()
	var groups [][]ref
	for i := range l.lanes {
		ln := &l.lanes[i]
		ln.compact()
		if n := len(ln.refs); n > 0 {
			at := m.rnd.IntN(n)
			groups = append(groups, slices.Clone(ln.refs[at:min(n, at+1+m.rnd.IntN(20))]))
		}
	}
	l.mu.Unlock()
	small := groups[:0]
	for _, g := range groups {
		g = slices.DeleteFunc(g, func(r ref) bool { return r.c.parts > 1 })
		if len(g) > 0 && g[len(g)-1].run().last()-g[0].run().first < 1<<32 && neighbours(l, g) {
			small = append(small, g)
		}
	}
	if len(small) == 0 {
		return
	}
	done := make(chan error, 1)
	go func() { done <- m.store.keep.move(small) }()
	m.settle(ml)
	m.append(ml)
	if err := <-done; err != nil && !errors.Is(err, errSettled) && !errors.Is(err, errNoKey) {
		m.t.Fatalf("move: %v", err)
	}
}

// neighbours reports whether nothing else lies between the runs.
func neighbours(l *diskLog, g []ref) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	refs := l.laneLocked(g[0].run().lane).refs
	i := slices.Index(refs, g[0])
	return i >= 0 && i+len(g) <= len(refs) && slices.Equal(refs[i:i+len(g)], g)
}

func (m *modelTest) check() {
	m.t.Helper()
	for _, ml := range m.logs {
		for lane := range Lane(3) {
			m.compare(ml, lane, 0, 1<<40)
		}
		m.checkLanes(ml)
	}
}

func (m *modelTest) checkLanes(ml *modelLog) {
	m.t.Helper()
	want := make(map[Lane]LaneInfo)
	for id, r := range ml.recs {
		w, ok := want[r.Lane]
		if !ok {
			w = LaneInfo{First: id, Last: id}
		}
		w.First, w.Last = min(w.First, id), max(w.Last, id)
		w.Count++
		want[r.Lane] = w
	}
	got := ml.log.Lanes()
	if len(got) != len(want) {
		m.t.Fatalf("Lanes() = %+v, want %d lanes", got, len(want))
	}
	for _, g := range got {
		if w := want[g.Lane]; g.Count != w.Count || g.First != w.First || g.Last != w.Last || g.Bytes < 0 {
			m.t.Fatalf("lane %d of log %d is %+v, want %+v", g.Lane, ml.log.ID(), g, w)
		}
	}
}

func (m *modelTest) reopen() {
	closeTest(m.t, m.store)
	m.store = openTest(m.t, m.opts)
	for _, ml := range m.logs {
		l, err := m.store.OpenLog(ml.log.ID())
		if err != nil {
			m.t.Fatalf("OpenLog: %v", err)
		}
		ml.log = l
		if got := l.LastID(); got != ml.last {
			m.t.Fatalf("LastID() of log %d = %d after reopening, want %d", l.ID(), got, ml.last)
		}
	}
	if err := m.store.Recovered(); err != nil {
		m.t.Fatalf("Recovered: %v", err)
	}
	m.check()
}
