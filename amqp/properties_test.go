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
