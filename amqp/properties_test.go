package amqp

import (
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
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
