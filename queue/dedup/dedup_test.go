package dedup

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// entry is a message with an id in the header "id"; nil is none.
func entry(id any, r *message.Receipt) queue.Entry {
	var p frames.Properties
	if id != nil {
		p.SetTable(frames.Table{{Name: "other", Value: "a"}, {Name: "id", Value: id}})
	}
	return queue.Entry{Msg: &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}}, Receipt: r}
}

func TestSift(t *testing.T) {
	a, b := new(message.Receipt), new(message.Receipt)
	for _, tt := range []struct {
		name  string
		batch []queue.Entry
		rest  []int // places in batch
		lost  []*message.Receipt
	}{
		{"no ids", []queue.Entry{entry(nil, a), entry(nil, a)}, []int{0, 1}, nil},
		{"different", []queue.Entry{entry("1", a), entry("2", a)}, []int{0, 1}, nil},
		{"another type", []queue.Entry{entry("1", a), entry(int32(1), a)}, []int{0, 1}, nil},
		{"another width", []queue.Entry{entry(int64(1), a), entry(int32(1), a)}, []int{0}, nil},
		{"a part of a run", []queue.Entry{entry("1", a), entry("1", a), entry("2", b)}, []int{0, 2}, nil},
		{"a whole run", []queue.Entry{entry("1", a), entry("1", b), entry("2", a)}, []int{0, 2}, []*message.Receipt{b, a}},
		{"the last run", []queue.Entry{entry("1", a), entry("1", b)}, []int{0}, []*message.Receipt{b}},
		{"without receipt", []queue.Entry{entry("1", nil), entry("1", nil), entry("2", a)}, []int{0, 2}, nil},
	} {
		rest, lost := NewSet("id").Sift(tt.batch)
		var want []queue.Entry
		for _, i := range tt.rest {
			want = append(want, tt.batch[i])
		}
		if !slices.Equal(rest, want) || !slices.Equal(lost, tt.lost) {
			t.Errorf("%s: %d left, %d lost receipts, want %d, %d", tt.name, len(rest), len(lost), len(want), len(tt.lost))
		}
	}
}

func TestIDCountsWhileItsMessageIsThere(t *testing.T) {
	s := NewSet("id")
	dropped := func(id any) bool {
		rest, _ := s.Sift([]queue.Entry{entry(id, nil)})
		return len(rest) == 0
	}
	m := entry("1", nil).Msg
	if dropped("1") || !dropped("1") {
		t.Error("the first is dropped, or the second is not")
	}
	s.Hand([]queue.Delivery{{Msg: m}}, true)
	if s.Purge(); !dropped("1") {
		t.Error("an id is forgotten with a purge while a consumer has the message")
	}
	s.Hand([]queue.Delivery{{Msg: m}}, false)
	if s.Purge(); dropped("1") {
		t.Error("an id is there after a purge")
	}
	if s.Settled([]queue.Delivery{{Msg: m}}); len(s.ids) != 0 {
		t.Errorf("%d ids are left", len(s.ids))
	}
}

func FuzzSetOfAnyHeader(f *testing.F) {
	f.Add(entry("1", nil).Msg.Header)
	f.Add([]byte{0x20, 0, 0, 0, 0, 9, 2, 'i', 'd'})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := NewSet("id")
		e := queue.Entry{Msg: &message.Message{Envelope: &message.Envelope{Header: b}}}
		s.Sift([]queue.Entry{e})
		s.Forget(e.Msg)
		if len(s.ids) != 0 {
			t.Errorf("%x leaves an id", b)
		}
	})
}
