package record

import (
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

func TestMessagesOfABlockShareEnvelopes(t *testing.T) {
	plain := []byte{0x10, 0, 2}
	urgent := (&frames.Properties{Flags: frames.FlagPriority, Priority: 9}).Append(nil)
	recs := []persistence.Record{
		{ID: 1, Exchange: "x", Key: "k", Header: plain, Body: []byte("1"), Time: 11},
		{ID: 2, Exchange: "x", Key: "k", Header: plain, Body: []byte("2"), Time: 12, Extra: AppendMore(nil, &message.More{CC: []string{"c"}})},
		{ID: 3, Exchange: "x", Key: "other", Header: plain, Body: []byte("3"), Time: 13},
		{ID: 4, Exchange: "y", Key: "other", Header: plain, Body: []byte("4"), Time: 14},
		{ID: 5, Exchange: "y", Key: "other", Header: urgent, Body: []byte("5"), Time: 15},
		{ID: 6, Exchange: "y", Key: "other", Header: urgent, Body: []byte("6"), Time: 16},
	}
	rv := NewReviver(len(recs))
	var got []*message.Message
	for i := range recs {
		m, err := rv.Revive(&recs[i])
		if err != nil {
			t.Fatal(err)
		}
		if m.Exchange != recs[i].Exchange || m.RoutingKey != recs[i].Key || m.Time != recs[i].Time || &m.Body[0] != &recs[i].Body[0] || &m.Header[0] != &recs[i].Header[0] {
			t.Errorf("record %d became %+v in %+v", i+1, m, m.Envelope)
		}
		got = append(got, m)
	}
	for i, same := range []bool{false, true, false, false, false, true} {
		if i > 0 && (got[i].Envelope == got[i-1].Envelope) != same {
			t.Errorf("message %d shares the envelope of the one before: %t, want %t", i+1, !same, same)
		}
	}
	if !got[0].Persistent || got[0].Priority != 0 || got[0].More != nil || got[5].Persistent || got[5].Priority != 9 {
		t.Errorf("the first became %+v, the last %+v", got[0].Envelope, got[5].Envelope)
	}
	if got[1].More == nil || got[1].More.CC[0] != "c" {
		t.Errorf("the second has %+v, want its further key", got[1].More)
	}
}

func TestReviverAllocations(t *testing.T) {
	const n = 4 * slabSize
	same, each, large := make([]persistence.Record, n), make([]persistence.Record, n), make([]persistence.Record, n)
	block := []byte{0x10, 0, 2}
	for i := range same {
		same[i] = persistence.Record{Header: block}
		each[i] = persistence.Record{Header: []byte{0x10, 0, 2}}
		large[i] = persistence.Record{Header: block, Body: make([]byte, 8000)}
	}
	for _, tt := range []struct {
		name string
		recs []persistence.Record
		want float64
	}{{"one property block", same, 5}, {"each its own", each, 4 + 8 + 11}, {"four of them have 32 KB", large, n/4 + 1}} {
		got := testing.AllocsPerRun(10, func() {
			rv := NewReviver(n)
			for i := range tt.recs {
				if _, err := rv.Revive(&tt.recs[i]); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got != tt.want {
			t.Errorf("%s: %v allocations for %d messages, want %v", tt.name, got, n, tt.want)
		}
	}
}
