package cases_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A frame that cannot be is answered with the close the specification names,
// and nobody else notices (lavinmq#1999, lavinmq#1813, amqp-client.js#29,
// amqp091-go#42, pika#65).
func TestBadFramesCloseTheConnection(t *testing.T) {
	publish := methodFrame(1, basicPublish, u16(0), short(""), short("nobody"), u8(0))
	declare := methodFrame(1, queueDeclare, u16(0), short("q"), u8(0), table{}.encode())
	for _, tt := range []struct {
		name string
		send []byte
		want string
	}{
		{"heartbeat on a channel", frame(frameHeartbeat, 1, nil),
			"connection 505 UNEXPECTED_FRAME - type 8, all octets = <<>> (0,0)"},
		{"heartbeat on an unopened channel", frame(frameHeartbeat, 7, nil),
			"connection 505 UNEXPECTED_FRAME - type 8, all octets = <<>> (0,0)"},
		{"heartbeat with a payload", frame(frameHeartbeat, 0, []byte("a")),
			`connection 501 FRAME_ERROR - type 8, all octets = <<"a">>: unknown_frame (0,0)`},
		{"frame type 9", frame(9, 1, []byte("a")),
			`connection 501 FRAME_ERROR - type 9, all octets = <<"a">>: unknown_frame (0,0)`},
		{"frame type 0", frame(0, 0, nil),
			`connection 501 FRAME_ERROR - type 0, all octets = <<>>: unknown_frame (0,0)`},
		{"frame type 4 with a long payload", frame(4, 1, []byte("0123456789abcdefXYZ")),
			`connection 501 FRAME_ERROR - type 4, first 16 octets = <<"0123456789abcdef">>: unknown_frame (0,0)`},
		{"frame type 5 with UTF-8", frame(5, 1, []byte("é\t")),
			`connection 501 FRAME_ERROR - type 5, all octets = <<"é\t"/utf8>>: unknown_frame (0,0)`},
		{"frame type 5 with Latin-1", frame(5, 1, []byte("\xe9\t")),
			`connection 501 FRAME_ERROR - type 5, all octets = <<"é\t">>: unknown_frame (0,0)`},
		{"method without an id", frame(frameMethod, 1, []byte{0, 60, 0}),
			`connection 501 FRAME_ERROR - type 1, all octets = <<0,60,0>>: unknown_frame (0,0)`},
		{"method without an id on channel 0", frame(frameMethod, 0, nil),
			`connection 501 FRAME_ERROR - type 1, all octets = <<>>: unknown_frame (0,0)`},
		{"header without a size", frame(frameHeader, 1, []byte{0, 60, 0, 0}),
			`connection 501 FRAME_ERROR - type 2, all octets = <<0,60,0,0>>: unknown_frame (0,0)`},
		{"ack of three octets", methodFrame(1, basicAck, []byte("abc")),
			"connection 501 FRAME_ERROR - cannot decode <<97,98,99>> (60,80)"},
		{"update-secret with a reason that is no UTF-8", methodFrame(0, method{10, 70}, long("x"), short("\xff")),
			"connection 501 FRAME_ERROR - Malformed UTF-8 in shortstr (10,70)"},
		{"end octet 0", slices.Concat(declare[:len(declare)-1], u8(0)),
			`connection 501 FRAME_ERROR - type 1, all octets = <<0,50,0,10,0,0,1,113,0,0,0,0,0>>: {invalid_frame_end_marker,...`},
		{"end octet wrong on a body", slices.Concat(publish, frame(frameHeader, 1, header(2, u16(0))), []byte("\x03\x00\x01\x00\x00\x00\x02ab\xCF")),
			`connection 501 FRAME_ERROR - type 3, all octets = <<"ab">>: {invalid_frame_end_marker,207} (0,0)`},
		{"queue.declare where a header is due", slices.Concat(publish, declare),
			"connection 505 UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead (60,40)"},
		{"body where a header is due", slices.Concat(publish, frame(frameBody, 1, []byte("x"))),
			"connection 505 UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead (60,40)"},
		{"channel.close where a header is due", slices.Concat(publish, methodFrame(1, channelClose, u16(200), short(""), u16(0), u16(0))),
			"connection 505 UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead (60,40)"},
		{"header with a weight", slices.Concat(publish, frame(frameHeader, 1, slices.Concat(u16(60), u16(1), u64(0), u16(0)))),
			"connection 505 UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead (60,40)"},
		{"header where a body is due", slices.Concat(publish, frame(frameHeader, 1, header(3, u16(0))), frame(frameHeader, 1, header(3, u16(0)))),
			"connection 505 UNEXPECTED_FRAME - expected content body, got non content body frame instead (60,40)"},
		{"header without publish", frame(frameHeader, 1, header(0, u16(0))),
			"connection 505 UNEXPECTED_FRAME - expected method frame, got non method frame instead (0,0)"},
		{"channel.open on an open channel", methodFrame(1, channelOpen, short("")),
			"connection 504 CHANNEL_ERROR - second 'channel.open' seen (20,10)"},
		{"queue.declare on channel 5", methodFrame(5, queueDeclare, u16(0), short("q"), u8(0), table{}.encode()),
			"connection 504 CHANNEL_ERROR - expected 'channel.open' (50,10)"},
		{"publish on channel 5", slices.Concat(methodFrame(5, basicPublish, u16(0), short(""), short("nobody"), u8(0)), frame(frameHeader, 5, header(0, u16(0)))),
			"connection 504 CHANNEL_ERROR - expected 'channel.open' (60,40)"},
		{"channel.close-ok on channel 5", methodFrame(5, channelCloseOk),
			"connection 504 CHANNEL_ERROR - expected 'channel.open' (20,41)"},
		{"channel.close on channel 5", methodFrame(5, channelClose, u16(200), short(""), u16(0), u16(0)),
			"connection 504 CHANNEL_ERROR - expected 'channel.open' (20,40)"},
		{"channel.close-ok on an open channel", methodFrame(1, channelCloseOk),
			"connection 503 COMMAND_INVALID - unimplemented method (20,41)"},
		{"basic.get-empty from a client", methodFrame(1, basicGetEmpty, short("")),
			"connection 503 COMMAND_INVALID - unimplemented method (60,72)"},
		{"connection.open on a channel", methodFrame(1, connectionOpen, short("/"), short(""), u8(0)),
			"connection 503 COMMAND_INVALID - unimplemented method (10,40)"},
		{"connection.start-ok while running", methodFrame(0, connectionStartOk, table{}.encode(), short("PLAIN"), long("\x00guest\x00guest"), short("en_US")),
			"connection 504 CHANNEL_ERROR - unexpected method in connection state running (10,11)"},
		{"tune-ok while running", methodFrame(0, connectionTuneOk, u16(10), u32(8192), u16(0)),
			"connection 504 CHANNEL_ERROR - unexpected method in connection state running (10,31)"},
		{"basic.publish on channel 0", methodFrame(0, basicPublish, u16(0), short(""), short("q"), u8(0)),
			"connection 504 CHANNEL_ERROR - unexpected method in connection state running (60,40)"},
		{"channel.open on channel 0", methodFrame(0, channelOpen, short("")),
			"connection 504 CHANNEL_ERROR - unexpected method in connection state running (20,10)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ready()
			c.send(tt.send)
			c.is(c.next(), tt.want)
			other := c.again(login{})
			other.is(other.declare("q", "p", nil), "channel 404 NOT_FOUND - no queue 'q' in vhost '/' (50,10)")
		})
	}
}

// A channel that the broker has closed drops what comes, but it has to be a proper
// sequence of frames still.
func TestBadFramesOnAClosedChannel(t *testing.T) {
	publish := methodFrame(1, basicPublish, u16(0), short(""), short("nobody"), u8(0))
	head := frame(frameHeader, 1, header(2, u16(0)))
	for _, tt := range []struct {
		name string
		send []byte
		want string
	}{
		{"heartbeat", frame(frameHeartbeat, 1, nil), "connection 505 UNEXPECTED_FRAME - type 8, all octets = <<>> (0,0)"},
		{"body without a method", frame(frameBody, 1, []byte("b")),
			"connection 505 UNEXPECTED_FRAME - expected method frame, got non method frame instead (0,0)"},
		{"name that is no UTF-8", methodFrame(1, queuePurge, u16(0), short("\xff"), u8(0)),
			"connection 501 FRAME_ERROR - Malformed UTF-8 in shortstr (0,0)"},
		{"ack of three octets", methodFrame(1, basicAck, []byte("abc")),
			"connection 501 FRAME_ERROR - cannot decode <<97,98,99>> (60,80)"},
		{"close-ok where a header is due", slices.Concat(publish, methodFrame(1, channelCloseOk)),
			"connection 505 UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead (60,40)"},
		{"header of another class", slices.Concat(publish, frame(frameHeader, 1, slices.Concat(u16(50), u16(0), u64(2), u16(0)))),
			"connection 505 UNEXPECTED_FRAME - expected content header for class 60, got one for class 50 instead (60,40)"},
		{"close-ok where the body is due", slices.Concat(publish, head, frame(frameBody, 1, []byte("b")), methodFrame(1, channelCloseOk)),
			"connection 505 UNEXPECTED_FRAME - expected content body, got non content body frame instead (60,40)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ready()
			c.send(methodFrame(1, queueDeclare, u16(0), short("no-such-queue"), u8(1), table{}.encode()),
				publish, head, frame(frameBody, 1, nil), frame(frameBody, 1, []byte("ab")), tt.send) // the message is dropped
			got := c.reply()
			if strings.HasPrefix(got, "channel 404 ") { // RabbitMQ may close the connection first
				got = c.reply()
			}
			c.is(got, tt.want)
		})
	}
}

// A method that came after the fault has no effect (lavinmq#1813).
func TestNothingAfterABadFrameCounts(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	c.send(c.message("", "q", "before", props{}, ""), frame(9, 1, nil), c.message("", "q", "after", props{}, ""))
	c.is(c.next(), "connection 501 FRAME_ERROR - type 9, all octets = <<>>: unknown_frame (0,0)")
	d := c.again(login{})
	d.eventually("1 0", func() string { return d.depth("q") })
	d.is(d.bodies("q"), "before")
}

// Old Node clients ask for the smallest frame (amqplib#791, rascal#241).
func TestSmallestFrameMax(t *testing.T) {
	c := connectAs(t, login{frameMax: 4096})
	c.ok(c.declare("q", "", nil))
	for _, size := range []int{0, 1, 4087, 4088, 4089, 8176, 8177, 100_000} {
		body := strings.Repeat("b", size)
		c.is(c.put("", "q", body, props{}, ""), "ack")
		c.take("q") // read checks the size of the frames
		if string(c.last.body) != body {
			t.Errorf("got %d bytes, want %d", len(c.last.body), size)
		}
	}
	c.send([]byte{frameBody, 0, 1}, u32(4097))
	c.is(c.next(), "connection 501 FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,4097,4088} (0,0)")
}

// The overhead of 8 bytes is tolerated: a payload may be as large as the frame.
func TestPayloadOfFrameMax(t *testing.T) {
	c := connectAs(t, login{frameMax: 4096})
	c.ok(c.declare("q", "", nil))
	body := strings.Repeat("b", 4096)
	c.send(methodFrame(1, basicPublish, u16(0), short(""), short(c.name("q")), u8(0)),
		frame(frameHeader, 1, header(4096, u16(0))), frame(frameBody, 1, []byte(body)))
	c.is(c.sync(), "ok")
	c.is(c.depth("q"), "1 0")
}

// Refused tune answers end the connection; a 530 may be sent first
// (rabbitmq-c#513).
func TestRefusedTuneOk(t *testing.T) {
	for _, tune := range [][2]uint32{{2047, 1000}, {2047, 0}, {2047, 200_000}, {2047, 4095}, {0, 131072}, {5000, 131072}} {
		t.Run(fmt.Sprint(tune), func(t *testing.T) {
			t.Parallel()
			c := dial(t)
			c.send([]byte("AMQP\x00\x00\x09\x01"))
			c.is(c.control(connectionStart), "ok")
			c.send(methodFrame(0, connectionStartOk, table{}.encode(), short("PLAIN"), long("\x00guest\x00guest"), short("en_US")))
			c.is(c.control(connectionTune), "ok")
			c.send(methodFrame(0, connectionTuneOk, u16(uint16(tune[0])), u32(tune[1]), u16(0)), methodFrame(0, connectionOpen, short("/"), short(""), u8(0)))
			if got := c.control(connectionOpenOk); got != "eof" && !strings.HasPrefix(got, "connection 530 NOT_ALLOWED - negotiated ") {
				t.Errorf("got %s, want 530 or the end", got)
			}
		})
	}
}

// channel_max limits how many channels are open, not their numbers.
func TestChannelMaxCountsChannels(t *testing.T) {
	c := connectAs(t, login{channelMax: 2})
	c.is(c.on(60000).sync(), "ok")
	c.is(c.on(7).sync(), "ok")
	c.is(c.on(7).close(), "ok")
	c.is(c.on(65535).sync(), "ok")
	c.send(methodFrame(1, channelOpen, short("")))
	c.is(c.next(), "connection 530 NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2) (0,0)")
}

// A channel number can be used again at once, however the channel ended.
func TestChannelNumberIsFreeAgain(t *testing.T) {
	c := connect(t)
	for range 5 {
		c.is(c.declare("nope", "p", nil), "channel 404 NOT_FOUND - no queue 'nope' in vhost '/' (50,10)")
		c.is(c.sync(), "ok")
		c.is(c.close(), "ok")
	}
}

// Opening again before close-ok is the client's fault.
func TestChannelOpenBeforeCloseOk(t *testing.T) {
	c := connect(t)
	c.ready()
	c.send(methodFrame(1, queueDeclare, u16(0), short("no-such-queue"), u8(1), table{}.encode()),
		methodFrame(1, channelOpen, short("")))
	c.is(c.reply(), "channel 404 NOT_FOUND - no queue 'no-such-queue' in vhost '/' (50,10)")
	c.is(c.next(), "connection 504 CHANNEL_ERROR - second 'channel.open' seen (20,10)")
}

// A client's channel.close that crosses the broker's is answered.
func TestChannelClosesCross(t *testing.T) {
	c := connect(t)
	c.ready()
	c.send(methodFrame(1, queueDeclare, u16(0), short("no-such-queue"), u8(1), table{}.encode()),
		methodFrame(1, channelClose, u16(200), short(""), u16(0), u16(0)))
	c.is(c.reply(), "channel 404 NOT_FOUND - no queue 'no-such-queue' in vhost '/' (50,10)")
	c.is(c.reply(), "ok") // close-ok
	c.open = false
	c.is(c.sync(), "ok")
}

// What another thread sends on a channel that is being closed is dropped.
func TestFramesBehindChannelCloseAreDropped(t *testing.T) {
	for name, late := range map[string][]byte{
		"declare": methodFrame(1, queueDeclare, u16(0), short("no-such-queue"), u8(1), table{}.encode()),
		"ack":     methodFrame(1, basicAck, u64(1), u8(0)),
		"publish": slices.Concat(methodFrame(1, basicPublish, u16(0), short(""), short("nobody"), u8(0)), frame(frameHeader, 1, header(1, u16(0))), frame(frameBody, 1, []byte("b"))),
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t)
			c.ready()
			c.send(methodFrame(1, channelClose, u16(200), short(""), u16(0), u16(0)), late, late)
			c.is(c.reply(), "ok")
			c.open = false
			c.is(c.on(2).sync(), "ok") // the connection lives
			c.pause(quiet)
			c.is(c.sync(), "ok") // and the number is free
		})
	}
}

// Two threads that publish on one channel mix their frames: no part of a
// message is kept (dotnet-client#800, EasyNetQ#157).
func TestMixedPublishStoresNothing(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	one, two := c.message("", "q", "one", props{}, ""), c.message("", "q", "two", props{}, "")
	c.send(one[:len(one)-11], two)
	c.is(c.next(), "connection 505 UNEXPECTED_FRAME - expected content body, got non content body frame instead (60,40)")
	d := c.again(login{})
	d.is(d.depth("q"), "0 0")
}

// allTypes has a field of each type, as clients write them.
var allTypes = table{ // sorted: RabbitMQ 4.0 sorts long tables
	"A", array{1, "two", array{nil, table{"x", uint8(1)}}}, "B", uint8(250), "D", decimal{2, 314}, "F", table{"nested", table{}},
	"I", int32(-70000), "S", "\xff\xfe\x00", "T", time.Unix(1_700_000_000, 0), "V", nil,
	"b", int8(-5), "d", 2.25, "f", float32(1.5), "i", uint32(4_000_000_000), "l", int64(-5_000_000_000),
	"s", int16(-300), "t", true, "u", uint16(65000), "x", []byte{0, 1, 255},
}

// Header tables come back byte for byte (php-amqplib#126, #924, #26,
// SimpleAmqpClient#258).
func TestFieldTableTypesTravelUnchanged(t *testing.T) {
	for _, tt := range []struct {
		name    string
		headers table
	}{
		{"each type", allTypes},
		{"empty", table{}},
		{"a name of 255 bytes", table{strings.Repeat("n", 255), 1}},
		{"an empty name", table{"", 1}},
		{"extremes", table{"I", int32(-1 << 31), "T", wire("T\xff\xff\xff\xff\xff\xff\xff\xff"), "b", int8(-128), "i", uint32(1<<32 - 1), "l", int64(-1 << 63)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("q", "", nil))
			sent := props{headers: tt.headers}.encode()
			c.is(c.put("", "q", "m", props{raw: sent}, ""), "ack")
			c.take("q")
			if string(c.last.props) != string(sent) {
				t.Errorf("got  %q\nwant %q", c.last.props, sent)
			}
		})
	}
}

// When the broker has to write the table anew, it keeps all types but writes
// uint64 as l and sorts by name.
func TestFieldTableTypesSurviveReencoding(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "", nil))
	headers := append(slices.Clone(allTypes), "L", uint64(7), "BCC", array{"nobody"})
	c.is(c.put("", "q", "m", props{headers: headers}, ""), "ack")
	c.take("q")
	c.is(c.props(), `headers={A:[I1 "two" [void {x:B1}]] B:B250 D:D2/314 F:{nested:{}} I:I-70000 L:l7 S:"\xff\xfe\x00" T:T1700000000 V:void `+
		`b:b-5 d:d2.25 f:f1.5 i:i4000000000 l:l-5000000000 s:s-300 t:true u:u65000 x:x"\x00\x01\xff"}`)
}

// Consumers in Java know no type L, so what py-amqp sends as one arrives as l.
func TestUnsignedLongsArriveAsLongs(t *testing.T) {
	for _, tt := range []struct {
		sent table
		want string
	}{
		{table{"a", uint64(7)}, "{a:l7}"},
		{table{"t", table{"a", uint64(7)}}, "{t:{a:l7}}"},
		{table{"l", array{"a", uint64(7)}}, `{l:["a" l7]}`},
	} {
		c := connect(t)
		c.ok(c.declare("q", "", nil))
		c.is(c.put("", "q", "m", props{headers: tt.sent}, ""), "ack")
		c.take("q")
		c.is(c.props(), "headers="+tt.want)
	}
}

// An expiration travels as the number that it is.
func TestExpirationIsANumber(t *testing.T) {
	for sent, want := range map[string]string{"+50000": "50000", "00060000": "60000", "60000": "60000"} {
		c := connect(t)
		c.ok(c.declare("q", "", nil))
		c.is(c.put("", "q", "m", props{expiration: sent}, ""), "ack")
		c.take("q")
		c.is(c.props(), "expiration="+want)
	}
}

// Properties are the clients' business (lavinmq#1705).
func TestOddPropertiesTravelUnchanged(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    props
	}{
		{"timestamp 0", props{timestamp: uint64(0)}},
		{"largest signed timestamp", props{timestamp: uint64(1<<63 - 1)}},
		{"largest timestamp", props{timestamp: uint64(1<<64 - 1)}},
		{"delivery mode 0", props{mode: 0}},
		{"delivery mode 7", props{mode: 7}},
		{"priority 255", props{priority: 255}},
		{"empty headers", props{headers: table{}}},
		{"cluster id", props{cluster: "c"}},
		{"correlation id without UTF-8", props{correlation: "\xff\xfe"}},
		{"empty texts", props{contentType: "", contentEncoding: "", correlation: "", replyTo: "", id: "", kind: "", app: "", cluster: ""}},
		{"all", props{contentType: "text/plain", contentEncoding: "gzip", headers: table{"a", "b"}, mode: 2, priority: 3, correlation: "c",
			replyTo: "r", expiration: "100000", id: "i", timestamp: uint64(12), kind: "t", user: "guest", app: "a", cluster: "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.declare("q", "d", nil))
			c.is(c.put("", "q", "m", tt.p, ""), "ack")
			c.take("q")
			if want := tt.p.encode(); string(c.last.props) != string(want) {
				t.Errorf("got  %q\nwant %q", c.last.props, want)
			}
		})
	}
}

// Whatever does not speak AMQP 0-9-1 is turned away at once (flower#1036, #830).
func TestForeignProtocolsAreTurnedAway(t *testing.T) {
	for _, hello := range []string{"GET /api HTTP/1.1\r\nHost: x\r\n\r\n", "AMQP\x00\x00\x08\x00", "AMQP\x00\x00\x09\x02", "AMQP\x02\x01\x00\x00", "AMQP\x01\x01\x00\x0a", "SSH-2.0-OpenSSH_9.2\r\n"} {
		t.Run(fmt.Sprintf("%q", hello), func(t *testing.T) {
			c := dial(t)
			began := time.Now()
			c.send([]byte(hello))
			answer := make([]byte, 64)
			n := 0
			for {
				m, err := c.in.Read(answer[n:])
				if n += m; err != nil {
					break
				}
			}
			if took := time.Since(began); took > 5*time.Second { // half of what a handshake may take
				t.Errorf("closed after %v, want at once", took)
			}
			if n != 8 || string(answer[:4]) != "AMQP" {
				t.Errorf("answered %q, want a protocol header", answer[:n])
			}
		})
	}
}

// The interval is the client's (dart_amqp#106, streadway/amqp#158). A machine
// that halts for a moment changes what comes in a time: one undisturbed round
// is enough.
func TestHeartbeatInterval(t *testing.T) {
	for _, tt := range []struct {
		interval            uint16
		least, most         int           // heartbeats within 2.2 s
		cutAfter, cutBefore time.Duration // 0 is never, within 4 s
	}{
		{1, 3, 5, 1900 * time.Millisecond, 4 * time.Second},
		{2, 1, 3, 0, 0},
		{0, 0, 0, 0, 0},
	} {
		t.Run(fmt.Sprint(tt.interval), func(t *testing.T) {
			t.Parallel()
			for range 8 {
				beats, took, ended := heartbeatsFor(connectAs(t, login{heartbeat: tt.interval}), 4*time.Second, 2200*time.Millisecond)
				cut := ended != ""
				if cut == (tt.cutBefore > 0) && beats >= tt.least && beats <= tt.most && (!cut || took >= tt.cutAfter && took <= tt.cutBefore) {
					return
				}
				t.Logf("%d heartbeats, cut off: %v after %v (%s)", beats, cut, took, ended)
			}
			t.Errorf("want %d to %d heartbeats, cut off between %v and %v (0 is never)", tt.least, tt.most, tt.cutAfter, tt.cutBefore)
		})
	}
}

// heartbeatsFor reads for a time, or until the broker cuts the connection off:
// the heartbeats that came up to a moment, when it ended and how.
func heartbeatsFor(c *channel, long, moment time.Duration) (beats int, took time.Duration, ended string) {
	began := time.Now()
	for time.Since(began) < long && c.ended == "" {
		f, ok := c.frame(long - time.Since(began))
		if ok && f.kind == frameHeartbeat && time.Since(began) < moment {
			beats++
		}
	}
	return beats, time.Since(began), c.ended
}

// Any frame, even a part of one, is a sign of life (kourier#60).
func TestAnyByteIsASignOfLife(t *testing.T) {
	t.Parallel()
	c := connectAs(t, login{heartbeat: 2})
	c.ok(c.declare("q", "x", nil))
	c.send(methodFrame(1, basicPublish, u16(0), short(""), short(c.name("q")), u8(0)), frame(frameHeader, 1, header(40, u16(0))))
	for range 40 { // 10 s
		c.send(frame(frameBody, 1, []byte("x")))
		c.pause(250 * time.Millisecond)
	}
	c.is(c.sync(), "ok")
	c.is(c.depth("q"), "1 0")
}

// channel.flow and access.request are answered as RabbitMQ does.
func TestChannelFlowAndAccessRequest(t *testing.T) {
	c := connect(t)
	c.is(c.call(channelFlow, u8(1)), "ok true")
	c.is(c.call(accessRequest, short("/data"), u8(31)), `method 30,11 "\x00\x01"`)
	c.is(c.call(channelFlow, u8(0)), "connection 540 NOT_IMPLEMENTED - active=false (20,20)")
}

// Requests that the specification leaves out are refused as such.
func TestNotImplemented(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(c *channel) string
		want string
	}{
		{"immediate", func(c *channel) string { c.publish("", "q", "m", props{}, "i"); return c.next() }, "connection 540 NOT_IMPLEMENTED - immediate=true (60,40)"},
		{"prefetch size", func(c *channel) string { return c.call(basicQos, u32(10), u16(1), u8(0)) }, "connection 540 NOT_IMPLEMENTED - prefetch_size!=0 (10) (60,10)"},
		{"recover without requeue", func(c *channel) string { return c.call(basicRecover, u8(0)) }, "connection 540 NOT_IMPLEMENTED - requeue=false (60,110)"},
		{"recover-async without requeue", func(c *channel) string { return c.call(basicRecoverAsync, u8(0)) }, "connection 540 NOT_IMPLEMENTED - requeue=false (60,100)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.is(tt.do(c), tt.want)
		})
	}
}

// Names and keys of a publish are bytes: RabbitMQ 4.0 checks UTF-8 in all
// methods but this one.
func TestPublishWithBytesThatAreNoUTF8(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("x", "fanout", "", nil))
	c.ok(c.declare("q", "x", nil))
	c.ok(c.bind("q", "x", "", nil))
	c.is(c.put("x", "caf\xe9", "m", props{}, "m"), "ack")
	c.is(c.take("q"), "#1 x/caf\xe9 \"m\" left 0")
	c.is(c.put("", "\xff", "m", props{}, ""), "ack")
	c.publish("no\xe9", "k", "m", props{}, "")
	c.is(c.next(), "channel 404 NOT_FOUND - no exchange 'noé' in vhost '/' (60,40)") // what is no UTF-8 is Latin-1
	c.is(c.bind("q", "x", "\xff", nil), "connection 501 FRAME_ERROR - Malformed UTF-8 in shortstr (0,0)")
}

// Bits of the property flags that mean nothing do no harm.
func TestUnusedPropertyFlags(t *testing.T) {
	c := connect(t)
	c.ok(c.declare("q", "x", nil))
	for _, unused := range []byte{1, 2, 3} {
		c.is(c.put("", "q", "m", props{raw: []byte{0x10, unused, 2}}, ""), "ack")
		c.take("q")
		if got := string(c.last.props); got != "\x10\x00\x02" {
			t.Errorf("flag %d: got the properties %q, want the mode alone", unused, got)
		}
	}
}

// Error texts are cut to what a short string can hold.
func TestLongErrorTextsAreCut(t *testing.T) {
	c := connect(t)
	name := strings.Repeat("n", 255)
	got := c.call(queueDeclare, u16(0), short(name), u8(1), table{}.encode())
	c.is(got, "channel 404 "+("NOT_FOUND - no queue '" + name)[:252]+"... (50,10)")
}
