// Package storetest states what every persistence.Store does, as a test.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

// An Open opens the store under test. Called again after the store of the call
// before was closed it reopens the same data, if the store keeps any.
type Open func(t *testing.T) persistence.Store

// Run runs the suite. fresh makes an Open with a place of its own; keeps says
// that the store keeps its data when it is closed.
func Run(t *testing.T, keeps bool, fresh func(t *testing.T) Open) {
	for _, tt := range tests {
		if tt.reopens && !keeps {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			h := &harness{t: t, open: fresh(t)}
			h.store = h.open(t)
			t.Cleanup(h.close)
			tt.run(h)
		})
	}
}

var tests = []struct {
	name    string
	reopens bool
	run     func(h *harness)
}{
	{"append then load", false, appendThenLoad},
	{"append nothing releases", false, appendNothing},
	{"record fields", false, recordFields},
	{"load stops at the size asked for", false, loadSize},
	{"load of an empty lane", false, loadEmpty},
	{"settled records are gone", false, settled},
	{"settle of unknown ids", false, settleUnknown},
	{"settle range", false, settleRange},
	{"lanes", false, lanes},
	{"holds", false, holds},
	{"gaps in the ids", false, gaps},
	{"settle before the commit releases", false, settleReleases},
	{"receipt of several logs", false, receiptOfLogs},
	{"drop", false, drop},
	{"definitions", false, definitions},
	{"shared bodies", false, sharedBodies},
	{"big bodies", false, bigBodies},
	{"closed store", false, closedStore},
	{"concurrent use", false, concurrent},

	{"records survive", true, recordsSurvive},
	{"settled records stay gone", true, settledStayGone},
	{"gaps survive", true, gapsSurvive},
	{"definitions survive", true, definitionsSurvive},
	{"definitions with long keys survive", true, longKeysSurvive},
	{"shared bodies survive", true, sharedSurvive},
	{"big bodies survive", true, bigSurvive},
	{"delivered records are redelivered", true, redelivered},
	{"delivered mark outlives its chunk", true, redeliveredLater},
	{"ownerless logs are dropped", true, ownerless},
	{"log ids are not used again", true, logIDs},
	{"what is held survives", true, holdsAgain},
	{"lane info survives", true, laneInfo},
	{"last ids survive", true, lastIDsSurvive},
}

// A harness is one test with a store.
type harness struct {
	t     *testing.T
	open  Open
	store persistence.Store
	done  bool
}

func (h *harness) close() {
	if !h.done {
		h.done = true
		if err := h.store.Close(); err != nil {
			h.t.Errorf("Close: %v", err)
		}
	}
}

func (h *harness) reopen() {
	h.t.Helper()
	h.close()
	h.store, h.done = h.open(h.t), false
}

func (h *harness) newLog() *log {
	h.t.Helper()
	l, err := h.store.NewLog()
	if err != nil {
		h.t.Fatalf("NewLog: %v", err)
	}
	return &log{h, l}
}

func (h *harness) openLog(id persistence.LogID) *log {
	h.t.Helper()
	l, err := h.store.OpenLog(id)
	if err != nil {
		h.t.Fatalf("OpenLog(%d): %v", id, err)
	}
	return &log{h, l}
}

// A log is a Log with methods that fail the test.
type log struct {
	h *harness
	persistence.Log
}

// rec is a record whose fields follow from its id.
func rec(id uint64) persistence.Record {
	return persistence.Record{
		ID: id, Time: 1_700_000_000_000 + int64(id), Exchange: "x", Key: "k",
		Header: []byte{0x80, 0}, Body: fmt.Appendf(nil, "body %d", id),
	}
}

func recs(ids ...uint64) []persistence.Record {
	all := make([]persistence.Record, len(ids))
	for i, id := range ids {
		all[i] = rec(id)
	}
	return all
}

// span is the ids from lo to hi.
func span(lo, hi uint64) []uint64 {
	ids := make([]uint64, 0, hi-lo+1)
	for id := lo; id <= hi; id++ {
		ids = append(ids, id)
	}
	return ids
}

// owner waits for a receipt.
type owner struct{ settled chan *message.Receipt }

func (o *owner) Settled(r *message.Receipt) { o.settled <- r }

func newReceipt(parties int) (*message.Receipt, *owner) {
	o := &owner{make(chan *message.Receipt, 1)}
	r := message.NewReceipt(o, 1, 1)
	r.Hold(parties)
	return r, o
}

// wait waits until the receipt is settled and returns whether it failed.
func (o *owner) wait(t *testing.T) (failed bool) {
	t.Helper()
	_, failed = (<-o.settled).Outcome()
	return failed
}

// append appends and waits until it is durable.
func (l *log) append(all ...persistence.Record) {
	l.h.t.Helper()
	r, o := newReceipt(1)
	if !l.Append(all, r) {
		l.h.t.Fatalf("Append took none of %d records", len(all))
	}
	if o.wait(l.h.t) {
		l.h.t.Fatalf("Append of %d records failed", len(all))
	}
}

// want checks which ids lane 0 has, all at once and in small steps.
func (l *log) want(ids ...uint64) {
	l.h.t.Helper()
	l.wantLane(0, ids...)
}

func (l *log) wantLane(lane persistence.Lane, ids ...uint64) {
	l.h.t.Helper()
	for _, maxBytes := range []int{1 << 30, 1} {
		got := l.ids(lane, maxBytes)
		if !slices.Equal(got, ids) {
			l.h.t.Fatalf("lane %d loaded %d bytes at a time has the ids %v, want %v", lane, maxBytes, clip(got), clip(ids))
		}
	}
}

func clip(ids []uint64) string {
	if len(ids) <= 40 {
		return fmt.Sprint(ids)
	}
	return fmt.Sprintf("%v... (%d ids)", ids[:40], len(ids))
}

// ids loads a lane to its end.
func (l *log) ids(lane persistence.Lane, maxBytes int) []uint64 {
	l.h.t.Helper()
	var got []uint64
	from := uint64(0)
	for {
		all, err := l.Load(lane, from, nil, maxBytes)
		if err != nil {
			l.h.t.Fatalf("Load from %d: %v", from, err)
		}
		if len(all) == 0 {
			return got
		}
		for _, r := range all {
			got = append(got, r.ID)
		}
		from = all[len(all)-1].ID + 1
	}
}

// load loads all records of a lane.
func (l *log) load(lane persistence.Lane) []persistence.Record {
	l.h.t.Helper()
	all, err := l.Load(lane, 0, nil, 1<<40)
	if err != nil {
		l.h.t.Fatalf("Load: %v", err)
	}
	return all
}

func appendThenLoad(h *harness) {
	l := h.newLog()
	l.append(recs(span(1, 1000)...)...)
	l.want(span(1, 1000)...)
	l.Append(recs(span(1001, 2000)...), nil)
	l.want(span(1, 2000)...)
	l.append(rec(2001))
	l.want(span(1, 2001)...)
	if got := l.LastID(); got != 2001 {
		h.t.Errorf("LastID() = %d, want 2001", got)
	}
	if got := l.Durable(); got != 2001 {
		h.t.Errorf("Durable() = %d, want 2001", got)
	}
	all, err := l.Load(0, 1500, recs(7), 1<<20)
	if err != nil || len(all) != 503 || all[0].ID != 7 || all[1].ID != 1500 {
		h.t.Errorf("Load from 1500 onto one record: %d records, error %v; want 503", len(all), err)
	}
}

func appendNothing(h *harness) {
	r, o := newReceipt(1)
	h.newLog().Append(nil, r)
	if o.wait(h.t) {
		h.t.Error("a receipt of no records failed")
	}
}

func recordFields(h *harness) {
	l := h.newLog()
	want := []persistence.Record{
		{ID: 3, Time: 1_700_000_000_000, Exchange: "e", Key: "k", Header: []byte{1}, Body: []byte("one")},
		{ID: 4, Time: 1_700_000_000_000, Exchange: "e", Key: "k", Header: []byte{1}, Body: []byte("two")},
		{ID: 9, Time: 1_600_000_000_000, Expires: 1_600_000_060_000, Exchange: "", Key: "other", Header: []byte{2, 3}, Extra: []byte("more")},
		{ID: 10, Time: 1_600_000_000_001, Exchange: "e", Key: "", Header: nil, Body: make([]byte, 5000)},
	}
	check := func() {
		h.t.Helper()
		got := l.load(0)
		if len(got) != len(want) {
			h.t.Fatalf("loaded %d records, want %d", len(got), len(want))
		}
		for i := range want {
			wantRecord(h.t, got[i], want[i])
		}
	}
	l.Append(want, nil)
	check()
	l.append(rec(11))
	l.Settle([]uint64{11})
	check()
}

func wantRecord(t *testing.T, got, want persistence.Record) {
	t.Helper()
	if got.ID != want.ID || got.Lane != want.Lane || got.Time != want.Time || got.Expires != want.Expires ||
		got.Exchange != want.Exchange || got.Key != want.Key || string(got.Header) != string(want.Header) ||
		string(got.Extra) != string(want.Extra) || string(got.Body) != string(want.Body) {
		t.Fatalf("record %d is %.300v, want %.300v", want.ID, got, want)
	}
}

func loadSize(h *harness) {
	l := h.newLog()
	for id := uint64(1); id <= 20; id++ {
		r := rec(id)
		r.Body = make([]byte, 98)
		l.Append([]persistence.Record{r}, nil)
	}
	all, err := l.Load(0, 0, nil, 450)
	if err != nil || len(all) != 5 {
		h.t.Errorf("Load of 450 bytes of records of 100 gave %d records, error %v; want 5", len(all), err)
	}
	l.append(rec(21))
	all, err = l.Load(0, 3, nil, 450)
	if err != nil || len(all) != 5 || all[0].ID != 3 {
		h.t.Errorf("Load of 450 bytes of committed records of 100 gave %d records, error %v; want 5", len(all), err)
	}
	if all, err = l.Load(0, 21, nil, 0); err != nil || len(all) != 1 {
		h.t.Errorf("Load of 0 bytes gave %d records, error %v; want 1", len(all), err)
	}
}

func loadEmpty(h *harness) {
	l := h.newLog()
	l.want()
	if got := l.Lanes(); len(got) != 0 {
		h.t.Errorf("Lanes() = %v of an empty log", got)
	}
	if got := l.LastID(); got != 0 {
		h.t.Errorf("LastID() = %d of an empty log", got)
	}
	l.append(rec(5))
	l.wantLane(3)
	l.Settle([]uint64{5})
	l.want()
	if got := l.LastID(); got != 5 {
		h.t.Errorf("LastID() = %d after 5 was settled", got)
	}
}

func settled(h *harness) {
	l := h.newLog()
	l.append(recs(span(1, 100)...)...)
	l.Settle(span(1, 10))
	l.Settle([]uint64{50, 20, 99, 100})
	l.Append(recs(span(101, 110)...), nil)
	l.Settle([]uint64{105, 101})
	var want []uint64
	for _, id := range span(11, 110) {
		if !slices.Contains([]uint64{50, 20, 99, 100, 105, 101}, id) {
			want = append(want, id)
		}
	}
	l.want(want...)
	if got := l.Lanes()[0]; got.Count != len(want) || got.First != 11 || got.Last != 110 {
		h.t.Errorf("Lanes()[0] = %+v, want %d records from 11 to 110", got, len(want))
	}
	l.Settle(want)
	l.want()
	if got := l.Lanes(); len(got) != 0 {
		h.t.Errorf("Lanes() = %v after all was settled", got)
	}
}

func settleUnknown(h *harness) {
	l := h.newLog()
	l.Settle([]uint64{0, 1, 5})
	l.append(recs(2, 4, 6)...)
	l.Settle([]uint64{1, 3, 5, 7, 4, 4})
	l.want(2, 6)
	if got := l.Lanes()[0].Count; got != 2 {
		h.t.Errorf("count %d after ids were settled that are not there, want 2", got)
	}
}

func settleRange(h *harness) {
	l := h.newLog()
	l.append(recs(span(1, 50)...)...)
	l.append(recs(span(51, 100)...)...)
	l.Append(recs(span(101, 150)...), nil)
	for _, tt := range []struct {
		lane     persistence.Lane
		from, to uint64
		want     int
	}{
		{0, 0, 0, 0},
		{0, 1, 10, 10},
		{0, 5, 12, 2},
		{1, 1, 150, 0},
		{0, 40, 60, 21},
		{0, 95, 105, 11},
		{0, 149, 1 << 60, 2},
		{0, 149, 1 << 60, 0},
	} {
		if got := l.SettleRange(tt.lane, tt.from, tt.to); got != tt.want {
			h.t.Errorf("SettleRange(%d, %d, %d) = %d, want %d", tt.lane, tt.from, tt.to, got, tt.want)
		}
	}
	l.want(slices.Concat(span(13, 39), span(61, 94), span(106, 148))...)
	if got := l.SettleRange(0, 0, 1<<63); got != 27+34+43 {
		h.t.Errorf("SettleRange of all = %d, want %d", got, 27+34+43)
	}
	l.want()
}

func lanes(h *harness) {
	l := h.newLog()
	for round := range 2 {
		for id := uint64(round*300 + 1); id <= uint64(round*300+300); id++ {
			r := rec(id)
			r.Lane = persistence.Lane(id % 3 * 100)
			r.Expires = int64(id)
			l.Append([]persistence.Record{r}, nil)
		}
		if round == 0 {
			r := rec(301)
			r.ID = 300 // only to wait: settled at once, and unknown
			l.Settle([]uint64{900})
		}
	}
	info := l.Lanes()
	if len(info) != 3 || info[0].Lane != 0 || info[1].Lane != 100 || info[2].Lane != 200 {
		h.t.Fatalf("Lanes() = %+v, want the lanes 0, 100, 200", info)
	}
	for i, first := range []uint64{3, 1, 2} {
		if got := info[i]; got.Count != 200 || got.First != first || got.Last != 597+first || got.Earliest != int64(first) {
			h.t.Errorf("Lanes()[%d] = %+v, want 200 records from %d", i, got, first)
		}
	}
	if n := l.SettleRange(100, 0, 300); n != 100 {
		h.t.Errorf("SettleRange = %d, want 100", n)
	}
	l.Settle([]uint64{2, 3})
	l.append(rec(1000))
	if got := l.ids(200, 100); len(got) != 199 || got[0] != 5 {
		h.t.Errorf("lane 200 has %d records from %d, want 199 from 5", len(got), got[0])
	}
	if got := l.ids(100, 100); len(got) != 100 || got[0] != 301 {
		h.t.Errorf("lane 100 has %d records, want 100", len(got))
	}
}

// heldLog makes a log of which some records are settled, each in another way.
func heldLog(h *harness) *log {
	l := h.newLog()
	second := rec(5)
	second.Lane = 3
	l.append(append(recs(1, 2, 4), second)...)
	l.append(recs(8, 9)...)
	l.Settle([]uint64{2, 9})
	l.SettleRange(0, 3, 4)
	return l
}

func (l *log) wantHeld(ids ...uint64) {
	l.h.t.Helper()
	var held []uint64
	for id := range uint64(12) {
		if l.Holds(id) {
			held = append(held, id)
		}
	}
	if !slices.Equal(held, ids) {
		l.h.t.Errorf("the log holds %v, want %v", held, ids)
	}
}

func holds(h *harness) {
	l := heldLog(h)
	l.wantHeld(1, 5, 8)
	l.Settle([]uint64{1, 5, 8})
	l.wantHeld()
}

func holdsAgain(h *harness) {
	l := heldLog(h)
	h.reopen()
	l = h.openLog(l.ID())
	l.wantHeld(1, 5, 8)
	l.append(rec(10))
	l.wantHeld(1, 5, 8, 10)
}

func gapIDs() (ids []uint64) {
	for i := uint64(1); i <= 100; i++ {
		ids = append(ids, i*2)
	}
	for i := uint64(1); i <= 100; i++ {
		ids = append(ids, 1000+i*5000)
	}
	return append(ids, 1<<33, 1<<40, 1<<40+1)
}

func gaps(h *harness) {
	l := h.newLog()
	ids := gapIDs()
	l.append(recs(ids...)...)
	l.want(ids...)
	l.Settle([]uint64{1, 3, 4, 6001, 6000, 1 << 40})
	want := slices.DeleteFunc(slices.Clone(ids), func(id uint64) bool { return id == 4 || id == 6000 || id == 1<<40 })
	l.want(want...)
	if n := l.SettleRange(0, 11, 11000); n != 95+1 {
		h.t.Errorf("SettleRange(11, 11000) = %d, want 96", n)
	}
}

func settleReleases(h *harness) {
	l := h.newLog()
	r, o := newReceipt(1)
	l.Append(recs(1, 2, 3), r)
	l.Settle([]uint64{2, 1, 3})
	if o.wait(h.t) {
		h.t.Error("a receipt of settled records failed")
	}
	l.want()
}

func receiptOfLogs(h *harness) {
	a, b := h.newLog(), h.newLog()
	r, o := newReceipt(3)
	a.Append(recs(1, 2), r)
	b.Append(recs(1), r)
	b.Append(recs(2), r)
	if o.wait(h.t) {
		h.t.Error("the receipt failed")
	}
	a.want(1, 2)
	b.want(1, 2)
}

func drop(h *harness) {
	a, b := h.newLog(), h.newLog()
	a.append(recs(1, 2)...)
	r, o := newReceipt(1)
	a.Append(recs(3), r)
	b.append(recs(1)...)
	a.Drop()
	if o.wait(h.t) {
		h.t.Error("the receipt of a dropped log failed")
	}
	r, o = newReceipt(1)
	a.Append(recs(4), r)
	o.wait(h.t)
	b.want(1)
}

func definitions(h *harness) {
	put := func(kind persistence.Kind, key, value string) {
		h.t.Helper()
		if err := h.store.Put(kind, key, []byte(value)); err != nil {
			h.t.Fatalf("Put: %v", err)
		}
	}
	put(persistence.Queues, "b", "2")
	put(persistence.Queues, "a", "1")
	put(persistence.Queues, "c\x00d", string(make([]byte, 5000)))
	put(persistence.Exchanges, "a", "x")
	put(persistence.Queues, "b", "3")
	put(persistence.Queues, "", "empty")
	if err := h.store.Delete(persistence.Queues, "a"); err != nil {
		h.t.Errorf("Delete: %v", err)
	}
	if err := h.store.Delete(persistence.Queues, "missing"); err != nil {
		h.t.Errorf("Delete of a missing definition: %v", err)
	}
	wantDefinitions(h)
}

func wantDefinitions(h *harness) {
	h.t.Helper()
	var keys []string
	for key, value := range h.store.All(persistence.Queues) {
		keys = append(keys, key)
		switch {
		case key == "" && string(value) != "empty", key == "b" && string(value) != "3", key == "c\x00d" && len(value) != 5000:
			h.t.Errorf("definition %q is %.20q of %d bytes", key, value, len(value))
		}
	}
	if want := []string{"", "b", "c\x00d"}; !slices.Equal(keys, want) {
		h.t.Errorf("All has the keys %q, want %q", keys, want)
	}
	for range h.store.All(persistence.Users) {
		h.t.Error("All of a kind without definitions is not empty")
	}
}

func shareBody(h *harness, logs []*log) {
	body := make([]byte, 4000)
	for id := uint64(1); id <= 50; id++ {
		shared := new(persistence.SharedBody)
		r, o := newReceipt(len(logs))
		for _, l := range logs {
			one := rec(id)
			one.Body, one.Shared = append(body[:3990:3990], fmt.Sprintf("%10d", id)...), shared
			l.Append([]persistence.Record{one}, r)
		}
		if id%10 == 0 {
			o.wait(h.t)
		}
	}
}

func wantShared(h *harness, logs []*log) {
	h.t.Helper()
	for _, l := range logs {
		all := l.load(0)
		if len(all) != 50 {
			h.t.Fatalf("log %d has %d records, want 50", l.ID(), len(all))
		}
		for i, r := range all {
			if want := fmt.Sprintf("%10d", i+1); len(r.Body) != 4000 || string(r.Body[3990:]) != want {
				h.t.Fatalf("body %d has %d bytes and ends in %q, want %q", r.ID, len(r.Body), r.Body[3990:], want)
			}
		}
	}
}

func sharedBodies(h *harness) {
	logs := []*log{h.newLog(), h.newLog(), h.newLog()}
	shareBody(h, logs)
	logs[0].append(rec(100))
	logs[0].Settle([]uint64{100})
	wantShared(h, logs)
	logs[0].SettleRange(0, 0, 1000)
	logs[1].Drop()
	wantShared(h, logs[2:])
}

// bigSizes are in bytes, and more than a value, a group and a file may have.
var bigSizes = []int{300 << 10, 700 << 10, 1<<20 + 1, 3 << 20, 10 << 20}

func appendBig(l *log) {
	for i, n := range bigSizes {
		r := rec(uint64(i + 1))
		r.Body = make([]byte, n)
		for k := range r.Body {
			r.Body[k] = byte(k * (i + 3) >> 8)
		}
		l.append(r)
	}
}

func wantBig(l *log) {
	l.h.t.Helper()
	all := l.load(0)
	if len(all) != len(bigSizes) {
		l.h.t.Fatalf("%d records, want %d", len(all), len(bigSizes))
	}
	for i, r := range all {
		if len(r.Body) != bigSizes[i] {
			l.h.t.Fatalf("body %d has %d bytes, want %d", i, len(r.Body), bigSizes[i])
		}
		for k := range r.Body {
			if r.Body[k] != byte(k*(i+3)>>8) {
				l.h.t.Fatalf("body %d differs at byte %d", i, k)
			}
		}
	}
}

func bigBodies(h *harness) {
	l := h.newLog()
	appendBig(l)
	wantBig(l)
	l.Settle(span(1, 10))
	l.want()
}

func closedStore(h *harness) {
	l := h.newLog()
	l.append(rec(1))
	h.close()
	if err := h.store.Put(persistence.Queues, "q", nil); err == nil {
		h.t.Error("Put on a closed store succeeded")
	}
	if _, err := h.store.NewLog(); err == nil {
		h.t.Error("NewLog on a closed store succeeded")
	}
}

func concurrent(h *harness) {
	var wg sync.WaitGroup
	for range 8 {
		l := h.newLog()
		wg.Go(func() {
			for id := uint64(1); id <= 400; id += 4 {
				r, o := newReceipt(1)
				l.Append(recs(span(id, id+3)...), r)
				if err := h.store.Wait(context.Background()); err != nil {
					h.t.Errorf("Wait: %v", err)
				}
				l.Settle([]uint64{id, id + 1})
				if id%40 == 1 {
					o.wait(h.t)
					if _, err := l.Load(0, 0, nil, 1<<20); err != nil {
						h.t.Errorf("Load: %v", err)
					}
				}
				l.Settle([]uint64{id + 2})
			}
			if got := l.ids(0, 1000); len(got) != 100 || got[99] != 400 {
				h.t.Errorf("%d records are left, want 100", len(got))
			}
		})
	}
	wg.Go(func() {
		for i := range 50 {
			if err := h.store.Put(persistence.Parameters, fmt.Sprint(i), []byte("v")); err != nil {
				h.t.Errorf("Put: %v", err)
			}
		}
	})
	wg.Wait()
}
