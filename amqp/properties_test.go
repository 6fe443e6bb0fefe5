package amqp

import (
	"testing"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

func TestParseExpiration(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want int64
		err  string
	}{
		{"0", 0, ""},
		{"5", 5, ""},
		{"+5", 5, ""},
		{"315360000000", 315360000000, ""},
		{"abc", 0, "PRECONDITION_FAILED - invalid expiration 'abc': no_integer"},
		{"", 0, "PRECONDITION_FAILED - invalid expiration '': no_integer"},
		{" 5", 0, "PRECONDITION_FAILED - invalid expiration ' 5': no_integer"},
		{"-", 0, "PRECONDITION_FAILED - invalid expiration '-': no_integer"},
		{"--1", 0, "PRECONDITION_FAILED - invalid expiration '--1': no_integer"},
		{"1.5", 0, `PRECONDITION_FAILED - invalid expiration '1.5': {leftover_string,".5"}`},
		{"10s", 0, `PRECONDITION_FAILED - invalid expiration '10s': {leftover_string,"s"}`},
		{"-1", 0, "PRECONDITION_FAILED - invalid expiration '-1': {value_negative,-1}"},
		{"315360000001", 0, "PRECONDITION_FAILED - invalid expiration '315360000001': {value_too_large,315360000001}"},
		{"99999999999999999999", 0, "PRECONDITION_FAILED - invalid expiration '99999999999999999999': {value_too_large,99999999999999999999}"},
		{"-99999999999999999999", 0, "PRECONDITION_FAILED - invalid expiration '-99999999999999999999': {value_negative,-99999999999999999999}"},
	} {
		got, err := parseExpiration(tt.s)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tt.want || text != tt.err {
			t.Errorf("parseExpiration(%q) = %d, %q; want %d, %q", tt.s, got, text, tt.want, tt.err)
		}
	}
}

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
