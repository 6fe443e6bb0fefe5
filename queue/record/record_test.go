package record

import (
	"reflect"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/persistence"
)

func TestRecordRoundTrip(t *testing.T) {
	p := frames.Properties{Flags: frames.FlagDeliveryMode | frames.FlagPriority | frames.FlagExpiration,
		DeliveryMode: 2, Priority: 7, Expiration: []byte("+500")}
	for _, m := range []*message.Message{
		{
			Envelope: &message.Envelope{Exchange: "x", RoutingKey: "k", Header: p.Append(nil), TTL: 500, Priority: 7, Persistent: true},
			Body:     []byte("body"), Time: 77, More: &message.More{CC: []string{"c"}},
		},
		{Envelope: &message.Envelope{Header: []byte{0, 0}, TTL: message.NoTTL}, Body: []byte{}, Time: 1},
	} {
		var rec persistence.Record
		Fill(&rec, m)
		if got, err := Revive(&rec); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("became %+v, %v, want %+v", got, err, m)
		}
	}
}

func TestReviveDamaged(t *testing.T) {
	for _, rec := range []persistence.Record{
		{ID: 5, Header: []byte{0xff}},
		{ID: 5, Header: []byte{0, 0}, Extra: []byte{9}},
	} {
		if _, err := Revive(&rec); err == nil {
			t.Errorf("Revive(%+v) has no error", rec)
		}
	}
}
