package retry

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// The schedule against a list that is sorted each time.
func TestScheduleAgainstSortedList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var s Schedule
	var list []entry
	for i := range 1000 {
		if rnd.IntN(5) < 3 || len(list) == 0 {
			e := entry{at: int64(rnd.IntN(100)), id: queue.ID(rnd.IntN(1000))}
			s.Push(e.at, e.id)
			list = append(list, e)
		} else {
			s.Pop()
			list = list[1:]
		}
		slices.SortFunc(list, func(a, b entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) })
		if s.Len() != len(list) {
			t.Fatalf("step %d: %d entries, want %d", i, s.Len(), len(list))
		}
		if len(list) == 0 {
			continue
		}
		if at, id := s.First(); at != list[0].at || id != list[0].id {
			t.Fatalf("step %d: first is %d at %d, want %d at %d", i, id, at, list[0].id, list[0].at)
		}
	}
	n := 0
	for range s.All() {
		n++
	}
	if n != len(list) {
		t.Errorf("All has %d entries, want %d", n, len(list))
	}
}

func TestNotes(t *testing.T) {
	var n Notes
	always := func(queue.ID) bool { return true }
	n.Write(Note{ID: 1, Count: 2, Due: 500, Lane: 3, Size: 9})
	n.Write(Note{ID: 2, Count: 1})
	n.Write(Note{ID: 2, Count: 2})
	recs := n.Flush(nil, 4, 10, 77, always)
	if len(recs) != 3 || recs[0].ID != 11 || recs[2].ID != 13 || recs[0].Lane != 4 || recs[0].Time != 77 {
		t.Fatalf("records to be written: %+v", recs)
	}
	if got := n.Of(1); got != (Note{ID: 1, Count: 2, Due: 500, Lane: 3, Size: 9}) {
		t.Errorf("of message 1: %+v", got)
	}
	if got := n.TakeStale(nil); !slices.Equal(got, []uint64{12}) {
		t.Errorf("to be settled: %v, want the first one of message 2", got)
	}
	n.Write(Note{ID: 1, Count: 3})
	n.Write(Note{ID: 7, Count: 3})
	if recs := n.Flush(nil, 4, 13, 78, func(id queue.ID) bool { return id != 7 }); len(recs) != 1 {
		t.Errorf("records to be written: %+v, want one", recs)
	}
	if got := n.Of(7); got != (Note{}) {
		t.Errorf("of a message that has left: %+v", got)
	}
	n.Forget(2)
	if got := n.TakeStale(nil); !slices.Equal(got, []uint64{11, 13}) {
		t.Errorf("to be settled: %v, want 11 and 13", got)
	}
	n.ForgetAll(func(v Note) bool { return v.Count == 3 })
	if got := n.TakeStale(nil); !slices.Equal(got, []uint64{14}) || n.Any() {
		t.Errorf("to be settled: %v, want 14, and nothing left", got)
	}
}

// A record that notes several messages is settled with the last of them.
func TestJointNotes(t *testing.T) {
	var n Notes
	n.restore([]Note{{ID: 1, Count: 1}, {ID: 2, Count: 1}}, 9)
	n.Forget(1)
	if got := n.TakeStale(nil); len(got) != 0 {
		t.Errorf("to be settled: %v, want nothing yet", got)
	}
	n.Forget(2)
	if got := n.TakeStale(nil); !slices.Equal(got, []uint64{9}) {
		t.Errorf("to be settled: %v, want 9", got)
	}
}

// What the first version wrote is read.
func TestNotesOfTheFirstVersion(t *testing.T) {
	list, err := parseNotes([]byte{1, 5, 2, 0, 6, 1, 4})
	if want := []Note{{ID: 5, Count: 2}, {ID: 6, Count: 1, Reason: 4}}; err != nil || !slices.Equal(list, want) {
		t.Errorf("parsed %+v, %v, want %+v", list, err, want)
	}
}

// The latest mark of each lane counts; the one before is settled.
func TestMarks(t *testing.T) {
	var n Notes
	always := func(queue.ID) bool { return true }
	n.Mark(3, 7)
	n.Mark(3, 5)
	n.Mark(4, 6)
	recs := n.Flush(nil, 9, 10, 77, always)
	if len(recs) != 2 || n.Fresh() || n.Marked(3) != 7 || n.Marked(4) != 6 || n.Marked(5) != 0 {
		t.Fatalf("records %+v, marks %d %d %d", recs, n.Marked(3), n.Marked(4), n.Marked(5))
	}
	n.Mark(3, 7)
	if n.Fresh() {
		t.Error("the same mark is to be written again")
	}
	n.Mark(3, 8)
	if recs = append(recs, n.Flush(nil, 9, 12, 77, always)...); len(recs) != 3 || len(n.TakeStale(nil)) != 1 {
		t.Errorf("records %+v, want one more, and the one before settled", recs)
	}
	var again Notes
	for i := range recs {
		if err := again.restoreMark(recs[i].Extra, recs[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	if again.Marked(3) != 8 || again.Marked(4) != 6 || len(again.TakeStale(nil)) != 1 {
		t.Errorf("restored marks %d %d, want 8 6", again.Marked(3), again.Marked(4))
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add([]byte{markVersion, 3, 200, 1})
	f.Add([]byte{markVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		lane, upTo, err := parseMark(b)
		if err != nil {
			return
		}
		if again := binary.AppendUvarint([]byte{markVersion, byte(lane)}, uint64(upTo)); !slices.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
	})
}

func FuzzParseNotes(f *testing.F) {
	f.Add(appendNotes(nil, []Note{{ID: 1, Count: 2, Reason: 3, Due: 4, Lane: 5, Size: 6}, {ID: 300, Count: 1}}))
	f.Add([]byte{1, 5, 2, 0})
	f.Add([]byte{9})
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseNotes(b)
		if err != nil {
			return
		}
		again := appendNotes(nil, list)
		if b[0] == noteVersion && !slices.Equal(again, b) {
			t.Errorf("%x became %x", b, again)
		}
		if got, err := parseNotes(again); err != nil || !slices.Equal(got, list) {
			t.Errorf("%+v became %+v, %v", list, got, err)
		}
	})
}

func TestCountHeader(t *testing.T) {
	p := frames.Properties{Flags: frames.FlagDeliveryMode, DeliveryMode: 2}
	plain := &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}, Body: []byte("b")}
	p.SetTable(frames.Table{{Name: "z", Value: int32(1)}, {Name: "x-delivery-count", Value: "a client's"}})
	own := &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}, Body: []byte("b")}
	for _, m := range []*message.Message{plain, own} {
		before := string(m.Header)
		c := Counted(m, 3)
		if v, _ := headers(t, c).Lookup("x-delivery-count"); v != int64(3) || &c.Body[0] != &m.Body[0] {
			t.Errorf("x-delivery-count is %v, want 3, and the body the same", v)
		}
		if string(m.Header) != before {
			t.Error("the message itself was changed")
		}
	}
	if got := Uncounted(Counted(plain, 3)); string(got.Header) != string(plain.Header) {
		t.Errorf("without the count: %x, want %x", got.Header, plain.Header)
	}
	if got := headers(t, Uncounted(own)); len(got) != 1 || got[0].Name != "z" {
		t.Errorf("without the count: %v, want z only", got)
	}
}

func headers(t *testing.T, m *message.Message) frames.Table {
	t.Helper()
	var p frames.Properties
	if err := p.Parse(m.Header); err != nil {
		t.Fatal(err)
	}
	table, err := p.Table()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func BenchmarkSchedule(b *testing.B) {
	var s Schedule
	for i := range 1_000_000 {
		s.Push(int64(i), queue.ID(i))
	}
	b.ReportAllocs()
	at := int64(1_000_000)
	for b.Loop() {
		s.Pop()
		s.Push(at, queue.ID(at))
		at++
	}
}
