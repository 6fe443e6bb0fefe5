package amqp

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// TestUnusedFlagIsNotPassedOn: consumers do not see a flag that is no property's
// (RabbitMQ 4.0).
func TestUnusedFlagIsNotPassedOn(t *testing.T) {
	c := dialTCP(t, newTestServer(t, zap.NewNop()))
	c.call(&frames.QueueDeclare{Queue: "q"}, frames.QueueDeclareOkID)
	c.write(appendPublish(nil, 1, "q", []byte("\x08\x02\x05"), nil))
	c.call(&frames.BasicGet{Queue: "q", NoAck: true}, frames.BasicGetOkID)
	_, _, _, properties, ok := frames.ParseContentHeader(c.next().Payload)
	if want := "\x08\x00\x05"; !ok || string(properties) != want {
		t.Errorf("got the properties %q, want %q", properties, want)
	}
}

// TestRepeatedProperties: a property block that was the last message's, too, means
// the same again, and so does the next one after a block that is wrong.
func TestRepeatedProperties(t *testing.T) {
	c := newTestConn(t, newTestServer(t, zap.NewNop()))
	persistent, urgent := []byte("\x10\x00\x02"), []byte("\x18\x00\x01\x07")
	for _, tt := range []struct {
		block      []byte
		mode, prio uint8
		again      bool // the next one like it need not be read
	}{
		{persistent, 2, 0, true}, {persistent, 2, 0, true}, {urgent, 1, 7, true}, {urgent, 1, 7, true}, {persistent, 2, 0, true},
		{[]byte("\x00\x00"), 0, 0, true}, {[]byte("\x01\x00\x031000"), 0, 0, false}, {[]byte("\x01\x00\x0210"), 0, 0, false}, {persistent, 2, 0, true},
	} {
		if err := c.parse(tt.block); (err != nil) != (string(tt.block) == "\x01\x00\x031000") {
			t.Fatalf("%q: error %v", tt.block, err)
		} else if err != nil {
			continue
		}
		if c.props.DeliveryMode != tt.mode || c.props.Priority != tt.prio {
			t.Errorf("%q: mode %d, priority %d, want %d and %d", tt.block, c.props.DeliveryMode, c.props.Priority, tt.mode, tt.prio)
		}
		if again := string(c.parsed) == string(tt.block); again != tt.again {
			t.Errorf("%q: remembered %t, want %t", tt.block, again, tt.again)
		}
	}
}

// TestMessagesShareAnEnvelope: messages that go the same way with the same properties
// have one envelope from the second on, and each says what its publisher said.
func TestMessagesShareAnEnvelope(t *testing.T) {
	c := newTestConn(t, newTestServer(t, zap.NewNop()))
	for _, name := range []string{"q", "r"} {
		if err := c.channels[1].dispatch(&frames.QueueDeclare{Queue: name}); err != nil {
			t.Fatal(err)
		}
	}
	persistent, urgent, odd, timed := "\x10\x00\x02", "\x18\x00\x01\x07", "\x10\x01\x02", "\x01\x00\x049999"
	publishes := []struct {
		key, block string
		mandatory  bool
		like       int // the number of the publish before that has the same envelope; 0 is none
	}{
		{"q", persistent, false, 0},
		{"q", persistent, false, 0},
		{"q", persistent, false, 2},
		{"r", persistent, false, 0}, // the block is known, but the route is new
		{"r", persistent, false, 0},
		{"r", persistent, false, 5},
		{"q", persistent, false, 2},
		{"q", persistent, true, 0},
		{"q", persistent, true, 8},
		{"q", urgent, true, 0},
		{"q", urgent, true, 0},
		{"q", urgent, true, 11},
		{"q", odd, false, 0}, // what is sent on is not what came
		{"q", odd, false, 0},
		{"q", timed, false, 0}, // a property that is looked into
		{"q", timed, false, 0},
	}
	var read []byte
	for i, p := range publishes {
		read = frames.AppendMethod(read, 1, &frames.BasicPublish{RoutingKey: p.key, Mandatory: p.mandatory})
		read = frames.AppendContentHeader(read, 1, 1, []byte(p.block))
		read = frames.AppendBody(read, 1, []byte{byte(i)}, 131072)
	}
	c.buf, c.r, c.w, c.now = read, 0, len(read), time.Now().UnixMilli()
	if _, err := c.batch(); err != nil {
		t.Fatal(err)
	}
	seen := map[*message.Envelope]int{}
	for i, p := range publishes {
		q, err := c.vhost.Queue(c.channels[1], p.key)
		if err != nil {
			t.Fatal(err)
		}
		d, _, ok, err := q.Get(true)
		if !ok || err != nil {
			t.Fatalf("publish %d: no message, %v", i+1, err)
		}
		m := d.Msg
		if len(m.Body) != 1 || int(m.Body[0]) != i || m.RoutingKey != p.key || m.Mandatory != p.mandatory || m.Time != c.now {
			t.Errorf("publish %d: got %+v in %+v", i+1, m, m.Envelope)
		}
		if m.Persistent != (p.block == persistent || p.block == odd) || m.Priority == 7 != (p.block == urgent) || (m.TTL == 9999) != (p.block == timed) {
			t.Errorf("publish %d: got the envelope %+v", i+1, m.Envelope)
		}
		if got := seen[m.Envelope]; got != p.like {
			t.Errorf("publish %d shares the envelope of %d, want %d", i+1, got, p.like)
		}
		if seen[m.Envelope] == 0 {
			seen[m.Envelope] = i + 1
		}
	}
}
