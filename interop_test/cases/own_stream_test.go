//go:build !foreign

package cases_test

import (
	"fmt"
	"strings"
	"testing"
)

// streamOf declares a stream with so many messages, each a chunk of its own:
// their bodies are their offsets.
func (ch *channel) streamOf(name string, n int) {
	ch.Helper()
	ch.ok(ch.declare(name, "d", table{"x-queue-type", "stream"}))
	for i := range n {
		ch.is(ch.put("", name, fmt.Sprint(i), props{}, ""), "ack")
	}
}

// A stream is read with a prefetch and acknowledgements (rabbitgd#3,
// dart_amqp#127).
func TestStreamConsumePreconditions(t *testing.T) {
	c := connect(t)
	c.streamOf("s", 1)
	c.is(c.consume("s", "t", "", nil), "channel 406 PRECONDITION_FAILED - consumer prefetch count is not set for stream queue 's' in vhost '/' (60,20)")
	for _, tt := range []struct {
		call func(d *channel) string
		want string
	}{
		{func(d *channel) string { return d.consume("s", "t", "a", nil) }, "automatic acknowledgement not supported by stream queue 's' in vhost '/' (60,20)"},
		{func(d *channel) string { return d.get("s") }, "basic.get not supported by stream queues queue 's' in vhost '/' (60,70)"},
		{func(d *channel) string { return d.purge("s") }, "queue.purge not supported by stream queues queue 's' in vhost '/' (50,30)"},
	} {
		d := c.again(login{})
		d.ok(d.qos(10, false))
		d.is(tt.call(d), "connection 540 NOT_IMPLEMENTED - "+tt.want)
	}
	c.ok(c.qos(10, true))
	c.is(c.consume("s", "t", "a", table{"x-stream-offset", "0"}), `channel 406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 's' in vhost '/': {invalid_stream_offset_arg,{longstr,<<"0">>}} (60,20)`)
	c.ok(c.qos(10, true))
	c.is(c.consume("s", "t", "a", nil), "channel 406 PRECONDITION_FAILED - consumer prefetch count is not set for stream queue 's' in vhost '/' (60,20)")
	c.ok(c.qos(10, false))
	c.ok(c.qos(10, true))
	c.is(c.consume("s", "t", "", nil), "connection 540 NOT_IMPLEMENTED - queue 's' in vhost '/' does not support global qos (60,20)")
}

// All forms of x-stream-offset (amqplib#673, telegraf#13479, lavinmq#1941).
func TestStreamOffsets(t *testing.T) {
	c := connect(t)
	c.streamOf("s", 5)
	for i, tt := range []struct {
		offset any // nil is no argument
		want   string
	}{
		{"first", "0 1 2 3 4"},
		{"last", "4"},
		{"next", ""},
		{nil, ""},
		{2, "2 3 4"},
		{int64(4), "4"},
		{99, ""},
		{"1h", "0 1 2 3 4"},
	} {
		t.Run(fmt.Sprint(tt.offset), func(t *testing.T) {
			d := c.on(uint16(i + 2))
			d.ok(d.qos(10, false))
			var args table
			if tt.offset != nil {
				args = table{"x-stream-offset", tt.offset}
			}
			d.ok(d.consume("s", "t", "", args))
			for n, body := range strings.Fields(tt.want) {
				d.is(d.next(), fmt.Sprintf(`deliver t #%d /s "%s"`, n+1, body))
				d.is(d.props(), "headers={x-stream-offset:l"+body+"} mode=1")
			}
			d.wantNothing()
			d.ok(d.close())
		})
	}
	c.ok(c.qos(10, false))
	c.is(c.consume("s", "t", "", table{"x-stream-offset", "foo"}),
		"channel 406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 's' in vhost '/': ...")
}

// An offset beyond the end waits until it is there.
func TestStreamOffsetBeyondTheEnd(t *testing.T) {
	c := connect(t)
	c.streamOf("s", 2)
	d := c.on(2)
	d.ok(d.qos(10, false))
	d.ok(d.consume("s", "t", "", table{"x-stream-offset", 3}))
	c.is(c.put("", "s", "2", props{}, ""), "ack")
	d.wantNothing()
	c.is(c.put("", "s", "3", props{}, ""), "ack")
	d.want(`deliver t #1 /s "3"`)
}

// The readers of a deleted stream are told, if they know basic.cancel
// (rabbitmq-server#4192).
func TestDeletedStreamCancelsItsReaders(t *testing.T) {
	c := connect(t)
	c.streamOf("s", 1)
	knows, not := c.again(login{}), c.again(login{capabilities: table{}})
	for _, d := range []*channel{knows, not} {
		d.ok(d.qos(10, false))
		d.ok(d.consume("s", "t", "", table{"x-stream-offset", "first"}))
		d.want(`deliver t #1 /s "0"`)
	}
	c.ok(c.remove("s", ""))
	knows.want("cancel t")
	not.wantNothing()
	for _, d := range []*channel{knows, not} {
		d.ack(1, "")
		d.is(d.sync(), "ok")
	}
}

// What streams do not have is refused by name.
func TestStreamDeclareRules(t *testing.T) {
	c := connect(t)
	for flags, want := range map[string]string{"": "non-durable", "dx": "exclusive-owner", "da": "auto-delete"} {
		c.is(c.declare("s", flags, table{"x-queue-type", "stream"}),
			"channel 406 PRECONDITION_FAILED - invalid property '"+want+"' for queue 's' in vhost '/' (50,10)")
	}
	for name, value := range map[string]any{"x-expires": 1000, "x-message-ttl": 1000, "x-max-priority": 3, "x-dead-letter-exchange": "x"} {
		c.is(c.declare("s", "d", table{"x-queue-type", "stream", name, value}),
			"channel 406 PRECONDITION_FAILED - invalid arg '"+name+"' for queue 's' in vhost '/' of queue type rabbit_stream_queue (50,10)")
	}
}

// Nothing is delivered after cancel-ok (rabbitmq-server#3729).
func TestNothingAfterCancelOkOnAStream(t *testing.T) {
	c := connect(t)
	c.streamOf("s", 1)
	c.ok(c.qos(1000, false))
	c.cancelsUnderLoad("s", "", table{"x-stream-offset", "first"})
}
