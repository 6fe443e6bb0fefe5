package message

import (
	"bytes"
	"reflect"
	"testing"
)

func TestApart(t *testing.T) {
	for _, tt := range []struct {
		body int
		own  bool // it gets a copy of the body
	}{{0, true}, {100, true}, {MaxInline, true}, {maxTogether, true}, {maxTogether + 1, false}} {
		m := &Message{
			Envelope: &Envelope{Exchange: "x", RoutingKey: "k", Header: []byte{0x10, 0, 2}, TTL: 6, Priority: 3, Persistent: true, Mandatory: true},
			Body:     bytes.Repeat([]byte{7}, tt.body), More: &More{CC: []string{"c"}}, Time: 5,
		}
		c := m.Apart()
		if !reflect.DeepEqual(c, m) {
			t.Fatalf("%d bytes: the copy is %+v, want %+v", tt.body, c, m)
		}
		c.Priority, c.Header[2] = 4, 1
		if m.Priority != 3 || m.Header[2] != 2 {
			t.Errorf("%d bytes: the envelope is shared", tt.body)
		}
		if tt.body > 0 && (&c.Body[0] != &m.Body[0]) != tt.own {
			t.Errorf("%d bytes: own body %t, want %t", tt.body, !tt.own, tt.own)
		}
	}
}
