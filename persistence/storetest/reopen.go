package storetest

import (
	"bytes"
	"slices"
	"strings"

	"github.com/leveretmq/leveret/persistence"
)

func recordsSurvive(h *harness) {
	l := h.newLog()
	l.append(recs(span(1, 500)...)...)
	l.Append(recs(span(501, 600)...), nil) // Close commits it
	h.reopen()
	l = h.openLog(l.ID())
	l.want(span(1, 600)...)
	for i, r := range l.load(0) {
		wantRecord(h.t, r, rec(uint64(i+1)))
	}
	if got := l.LastID(); got != 600 {
		h.t.Errorf("LastID() = %d after reopening, want 600", got)
	}
	l.append(rec(601))
	h.reopen()
	h.openLog(l.ID()).want(span(1, 601)...)
}

func settledStayGone(h *harness) {
	l, other := h.newLog(), h.newLog()
	for id := uint64(1); id <= 200; id++ {
		l.Append(recs(id), nil)
		if id%50 == 0 {
			other.append(recs(span(id-49, id)...)...)
		}
	}
	l.Settle(span(1, 120))
	l.Settle([]uint64{150, 170, 199})
	l.SettleRange(0, 180, 190)
	want := slices.DeleteFunc(span(121, 200), func(id uint64) bool {
		return id == 150 || id == 170 || id == 199 || id >= 180 && id <= 190
	})
	for range 2 {
		h.reopen()
		l, other = h.openLog(l.ID()), h.openLog(other.ID())
		l.want(want...)
		other.want(span(1, 200)...)
	}
	l.Settle(want)
	other.SettleRange(0, 0, 1<<62)
	h.reopen()
	h.openLog(l.ID()).want()
	h.openLog(other.ID()).want()
}

func gapsSurvive(h *harness) {
	l := h.newLog()
	ids := gapIDs()
	l.append(recs(ids...)...)
	h.reopen()
	l = h.openLog(l.ID())
	l.want(ids...)
	l.Settle([]uint64{1, 3, 4, 6001, 6000, 1 << 40})
	h.reopen()
	l = h.openLog(l.ID())
	l.want(slices.DeleteFunc(ids, func(id uint64) bool { return id == 4 || id == 6000 || id == 1<<40 })...)
	l.Settle([]uint64{5, 8, 11_001, 11_000})
	h.reopen()
	h.openLog(l.ID()).want(slices.DeleteFunc(ids, func(id uint64) bool {
		return id == 0 || id == 4 || id == 6000 || id == 1<<40 || id == 8 || id == 11_000
	})...)
}

func definitionsSurvive(h *harness) {
	definitions(h)
	h.reopen()
	wantDefinitions(h)
	if err := h.store.Put(persistence.Queues, "c\x00d", []byte("short")); err != nil {
		h.t.Fatalf("Put: %v", err)
	}
	h.reopen()
	for key, value := range h.store.All(persistence.Queues) {
		if key == "c\x00d" && string(value) != "short" {
			h.t.Errorf("definition %q has %d bytes, want 5", key, len(value))
		}
	}
}

// longKeysSurvive has definitions whose keys and values are long, and changes the
// lengths of the values: whatever a definition is cut into, it fits a commit.
func longKeysSurvive(h *harness) {
	for _, size := range []int{60_000, 900, 26_000, 70_000} {
		for _, length := range []int{1600, 4000, 12_500, 25_000, 32 << 10} {
			key := strings.Repeat("k", length)
			value := bytes.Repeat([]byte{byte(size)}, size)
			if err := h.store.Put(persistence.Parameters, key, value); err != nil {
				h.t.Fatalf("Put of %d bytes with a key of %d: %v", size, length, err)
			}
		}
		for _, length := range []int{64_998, 65_000, 70_000} { // longer than any that may be there
			if err := h.store.Delete(persistence.Parameters, strings.Repeat("d", length)); err != nil {
				h.t.Fatalf("Delete of a key of %d bytes: %v", length, err)
			}
		}
		h.newLog().append(rec(1))
		h.reopen()
		n := 0
		for key, value := range h.store.All(persistence.Parameters) {
			n++
			if len(value) != size || bytes.Count(value, []byte{byte(size)}) != size {
				h.t.Errorf("the definition with a key of %d bytes has %d bytes, want the %d written", len(key), len(value), size)
			}
		}
		if n != 5 {
			h.t.Errorf("%d definitions, want 5", n)
		}
	}
}

func sharedSurvive(h *harness) {
	logs := []*log{h.newLog(), h.newLog(), h.newLog()}
	shareBody(h, logs)
	for range 2 {
		h.reopen()
		for i, l := range logs {
			logs[i] = h.openLog(l.ID())
		}
		wantShared(h, logs)
	}
	logs[0].SettleRange(0, 0, 1000)
	logs[1].SettleRange(0, 0, 1000)
	h.reopen()
	wantShared(h, []*log{h.openLog(logs[2].ID())})
	h.openLog(logs[0].ID()).want()
}

func bigSurvive(h *harness) {
	l := h.newLog()
	appendBig(l)
	h.reopen()
	l = h.openLog(l.ID())
	wantBig(l)
	l.Settle([]uint64{1, 2, 4})
	h.reopen()
	h.openLog(l.ID()).want(3, 5)
}

func wantRedelivered(h *harness, l *log, upTo uint64) {
	h.t.Helper()
	for _, r := range l.load(0) {
		if r.Redelivered != (r.ID <= upTo) {
			h.t.Errorf("record %d has Redelivered %v, want all up to %d", r.ID, r.Redelivered, upTo)
		}
	}
}

func redelivered(h *harness) {
	l := h.newLog()
	l.append(recs(span(1, 20)...)...)
	l.Delivered(12)
	l.Delivered(5)
	wantRedelivered(h, l, 0)
	l.append(recs(21)...)
	h.reopen()
	l = h.openLog(l.ID())
	wantRedelivered(h, l, 12)
	h.reopen()
	wantRedelivered(h, h.openLog(l.ID()), 12)
}

func redeliveredLater(h *harness) {
	l, other := h.newLog(), h.newLog()
	l.append(recs(span(1, 10)...)...)
	l.append(recs(span(11, 20)...)...)
	l.append(recs(span(21, 30)...)...)
	l.Delivered(25)
	l.Settle(span(1, 5))
	other.append(recs(1)...)
	l.Settle(span(6, 20)) // what carried the mark is gone
	h.reopen()
	l = h.openLog(l.ID())
	l.want(span(21, 30)...)
	wantRedelivered(h, l, 25)
}

func ownerless(h *harness) {
	a, b := h.newLog(), h.newLog()
	a.append(recs(1, 2)...)
	b.append(recs(1, 2)...)
	h.reopen()
	a = h.openLog(a.ID())
	if err := h.store.Recovered(); err != nil {
		h.t.Errorf("Recovered: %v", err)
	}
	a.want(1, 2)
	h.reopen()
	h.openLog(b.ID()).want()
	h.openLog(a.ID()).want(1, 2)
}

func logIDs(h *harness) {
	seen := make(map[persistence.LogID]bool)
	for range 4 {
		for range 3 {
			l := h.newLog()
			if seen[l.ID()] {
				h.t.Fatalf("log id %d was given twice", l.ID())
			}
			seen[l.ID()] = true
			l.append(rec(1))
			l.Drop()
		}
		h.reopen()
	}
}

func laneInfo(h *harness) {
	l := h.newLog()
	for id := uint64(1); id <= 100; id++ {
		r := rec(id)
		r.Lane = persistence.Lane(id % 2)
		r.Body = make([]byte, 100)
		r.Expires = 5000 - int64(id)
		l.Append([]persistence.Record{r}, nil)
	}
	l.Settle(span(1, 10))
	want := []persistence.LaneInfo{
		{Lane: 0, Count: 45, Bytes: 4500, First: 12, Last: 100, Earliest: 4900},
		{Lane: 1, Count: 45, Bytes: 4500, First: 11, Last: 99, Earliest: 4901},
	}
	for range 3 {
		if got := l.Lanes(); !slices.Equal(got, want) {
			h.t.Errorf("Lanes() = %+v, want %+v", got, want)
		}
		h.reopen()
		l = h.openLog(l.ID())
	}
}

// lastIDsSurvive has logs of which the youngest records, or all, are settled, some
// before they could be written.
func lastIDsSurvive(h *harness) {
	const many = 1000
	logs := make([]*log, many)
	for i := range logs {
		logs[i] = h.newLog()
		if i%2 == 0 {
			logs[i].Append(recs(span(1, uint64(i+1))...), nil)
		} else {
			logs[i].Append(recs(uint64(i+1)), nil)
		}
	}
	h.newLog().append(rec(1))
	for i, l := range logs {
		l.Append(recs(uint64(i+2)), nil)
		l.SettleRange(0, uint64(i%10), 1<<62)
	}
	none := h.newLog()
	for round := range 3 {
		h.reopen()
		for i, l := range logs {
			logs[i] = h.openLog(l.ID())
			if got := logs[i].LastID(); got != uint64(i+2) {
				h.t.Fatalf("LastID() = %d after reopening %d times, want %d", got, round+1, i+2)
			}
		}
		if none = h.openLog(none.ID()); none.LastID() != 0 {
			h.t.Errorf("LastID() = %d of a log that never had a record", none.LastID())
		}
		if round == 0 {
			continue // closed before all is recovered
		}
		if err := h.store.Recovered(); err != nil {
			h.t.Fatalf("Recovered: %v", err)
		}
		for _, l := range logs[20:] { // of those there is less to be written then
			l.Drop()
		}
		logs = logs[:min(20, len(logs))]
	}
	logs[0].append(rec(3))
	h.reopen()
	if got := h.openLog(logs[0].ID()).LastID(); got != 3 {
		h.t.Errorf("LastID() = %d, want 3", got)
	}
}
