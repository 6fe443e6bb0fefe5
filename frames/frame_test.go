package frames

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// wantReply fails unless err is an Error with this reply text; "" is no error.
func wantReply(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if e, ok := errors.AsType[*Error](err); ok {
		got = e.ReplyText()
	} else if err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in      string
		typ     byte
		channel uint16
		payload string
		n       int
	}{
		{"\x01\x00\x02\x00\x00\x00\x04\x00\x0a\x00\x0b\xce", MethodFrame, 2, "\x00\x0a\x00\x0b", 12},
		{"\x02\xff\xfe\x00\x00\x00\x0c\x00\x3cheader....\xce", HeaderFrame, 0xfffe, "\x00\x3cheader....", 20},
		{"\x03\x00\x01\x00\x00\x00\x00\xce", BodyFrame, 1, "", 8},
		{"\x08\x00\x00\x00\x00\x00\x00\xce", HeartbeatFrame, 0, "", 8},
		{"\x03\x00\x01\x00\x00\x00\x01\xce\xce\x03\x00", BodyFrame, 1, "\xce", 9}, // the next frame begins after it
	} {
		f, n, err := Parse([]byte(tt.in), 4096)
		if err != nil || n != tt.n || f.Type != tt.typ || f.Channel != tt.channel || string(f.Payload) != tt.payload {
			t.Errorf("%q: %+v, %d, %v", tt.in, f, n, err)
		}
		for i := range tt.n { // every shorter piece is only part of it
			if f, n, err := Parse([]byte(tt.in[:i]), 4096); n != 0 || err != nil || f.Payload != nil {
				t.Errorf("%q: %+v, %d, %v, want nothing yet", tt.in[:i], f, n, err)
			}
		}
	}
}

func TestParseAliasesAndProtectsTheBuffer(t *testing.T) {
	b := []byte("\x03\x00\x01\x00\x00\x00\x02ab\xce")
	f, _, err := Parse(b, 4096)
	if err != nil {
		t.Fatal(err)
	}
	if &f.Payload[0] != &b[7] {
		t.Error("the payload was copied")
	}
	_ = append(f.Payload, 'x')
	if b[9] != frameEnd {
		t.Error("appending to the payload wrote into the buffer")
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		in   string
		max  uint32
		want string
	}{
		{"\x03\x00\x01\x00\x02\x00\x01", 131072, "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}"},
		{"\x01\x00\x00\xff\xff\xff\xff", 4096, "FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,4294967295,4088}"},
		{"\x01\x00\x00\x00\x00\x00\x04abcdX", 4096, "FRAME_ERROR - type 1, all octets = <<\"abcd\">>: {invalid_frame_end_marker,88}"},
		{"\x05\x00\x00\x00\x00\x00\x03abc\xce", 4096, "FRAME_ERROR - type 5, all octets = <<\"abc\">>: unknown_frame"},
		{"\x00\x00\x00\x00\x00\x00\x00\xce", 4096, "FRAME_ERROR - type 0, all octets = <<>>: unknown_frame"},
		{"\x04\x00\x01\x00\x00\x00\x02\x00\x01\xce", 4096, "FRAME_ERROR - type 4, all octets = <<0,1>>: unknown_frame"},
		{"\x01\x00\x00\x00\x00\x00\x00\xce", 4096, "FRAME_ERROR - type 1, all octets = <<>>: unknown_frame"},
		{"\x01\x00\x01\x00\x00\x00\x03\x00\x3c\x00\xce", 4096, "FRAME_ERROR - type 1, all octets = <<0,60,0>>: unknown_frame"},
		{"\x02\x00\x01\x00\x00\x00\x0b\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x05\xce", 4096,
			"FRAME_ERROR - type 2, all octets = <<0,60,0,0,0,0,0,0,0,0,5>>: unknown_frame"},
		{"\x05\x00\x00\x00\x00\x00\x11abcdefghijklmnopq\xce", 4096, "FRAME_ERROR - type 5, first 16 octets = <<\"abcdefghijklmnop\">>: unknown_frame"},
		{"AMQP\x00\x00\x09\x01", 4096, "FRAME_ERROR - type 65, all octets = <<>>: {frame_too_large,1342177289,4088}"},
	} {
		f, n, err := Parse([]byte(tt.in), tt.max)
		wantReply(t, err, tt.want)
		if e, ok := errors.AsType[*Error](err); !ok || !e.Unbound || !e.Code.Hard() || n != 0 || f.Payload != nil {
			t.Errorf("%q: %+v, %d, %+v", tt.in, f, n, e)
		}
	}
}

// appendFrame appends a frame with this payload.
func appendFrame(dst []byte, typ byte, channel uint16, payload []byte) []byte {
	start := len(dst)
	dst = begin(dst, typ, channel)
	dst = append(dst, payload...)
	return end(dst, start)
}

func TestParseTakesAPayloadOfFrameMax(t *testing.T) {
	b := appendFrame(nil, BodyFrame, 1, make([]byte, 4096))
	if _, n, err := Parse(b, 4096); n != 4096+Overhead || err != nil {
		t.Errorf("%d bytes, %v, want all", n, err)
	}
	b = appendFrame(nil, BodyFrame, 1, make([]byte, 4097))
	_, _, err := Parse(b, 4096)
	wantReply(t, err, "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,4097,4088}")
}

func TestAppendFrames(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"heartbeat", string(AppendHeartbeat([]byte("x"))), "x\x08\x00\x00\x00\x00\x00\x00\xce"},
		{"header", string(AppendContentHeader([]byte("x"), 258, 1<<40|5, []byte{0x10, 0, 2})),
			"x\x02\x01\x02\x00\x00\x00\x0f\x00\x3c\x00\x00\x00\x00\x01\x00\x00\x00\x00\x05\x10\x00\x02\xce"},
		{"body in parts", string(AppendBodyEnd(append(AppendBodyStart(nil, 258, 3), "abc"...))), "\x03\x01\x02\x00\x00\x00\x03abc\xce"},
		{"empty body", string(AppendBody([]byte("x"), 1, nil, 4096)), "x"},
		{"body", string(AppendBody(nil, 1, []byte("abc"), 4096)), "\x03\x00\x01\x00\x00\x00\x03abc\xce"},
		{"body of two frames", string(AppendBody(nil, 1, []byte("abcde"), 12)), "\x03\x00\x01\x00\x00\x00\x04abcd\xce\x03\x00\x01\x00\x00\x00\x01e\xce"},
		{"body that just fits", string(AppendBody(nil, 1, []byte("abcd"), 12)), "\x03\x00\x01\x00\x00\x00\x04abcd\xce"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestParseContentHeader(t *testing.T) {
	class, weight, size, properties, ok := ParseContentHeader([]byte("\x00\x3c\x00\x07\x00\x00\x01\x00\x00\x00\x00\x05\x10\x00\x02"))
	if class != 60 || weight != 7 || size != 1<<40|5 || string(properties) != "\x10\x00\x02" || !ok {
		t.Errorf("%d %d %d %q %v", class, weight, size, properties, ok)
	}
	if _, _, _, _, ok := ParseContentHeader(make([]byte, 14)); !ok {
		t.Error("a header without properties was refused")
	}
	if _, _, _, _, ok := ParseContentHeader(make([]byte, 13)); ok {
		t.Error("a header without a whole flag word was taken")
	}
}

func TestReplyText(t *testing.T) {
	for _, tt := range []struct {
		err  *Error
		want string
	}{
		{Errorf(NotFound, "no queue '%s' in vhost '%s'", "q", "/"), "NOT_FOUND - no queue 'q' in vhost '/'"},
		{Errorf(InternalError, ""), "INTERNAL_ERROR"},
		// What is no UTF-8 is Latin-1, or a client could not decode the text.
		{Errorf(NotFound, "%s, %s, %s", "é", "\xe9", []byte("\xff")), "NOT_FOUND - é, é, ÿ"},
		{Unboundf(NotFound, "%s", "\xe9"), "NOT_FOUND - é"},
		{Errorf(NotFound, "%s", strings.Repeat("x", 243)), "NOT_FOUND - " + strings.Repeat("x", 243)}, // 255 bytes
		{Errorf(NotFound, "%s", strings.Repeat("x", 244)), "NOT_FOUND - " + strings.Repeat("x", 240) + "..."},
		{Errorf(NotFound, "%s", strings.Repeat("x", 9999)), "NOT_FOUND - " + strings.Repeat("x", 240) + "..."},
		{Errorf(NotFound, "%s", strings.Repeat("é", 200)), "NOT_FOUND - " + strings.Repeat("é", 120) + "..."},
		// A character is not cut in two: that would be no UTF-8.
		{Errorf(NotFound, "x%s", strings.Repeat("é", 200)), "NOT_FOUND - x" + strings.Repeat("é", 119) + "..."},
		{Errorf(NotFound, "%s", strings.Repeat("😀", 99)), "NOT_FOUND - " + strings.Repeat("😀", 60) + "..."},
		{Errorf(NotFound, "xxx%s", strings.Repeat("😀", 99)), "NOT_FOUND - xxx" + strings.Repeat("😀", 59) + "..."},
	} {
		if got := tt.err.ReplyText(); got != tt.want || len(got) > 255 {
			t.Errorf("%d bytes: %q, want %q", len(got), got, tt.want)
		}
		if tt.err.Error() != tt.want {
			t.Errorf("Error() is %q, want %q", tt.err.Error(), tt.want)
		}
	}
}

func TestCodes(t *testing.T) {
	for _, tt := range []struct {
		code Code
		name string
		hard bool
	}{
		{Success, "REPLY_SUCCESS", true},
		{NoRoute, "NO_ROUTE", false},
		{ConnectionForced, "CONNECTION_FORCED", true},
		{InvalidPath, "INVALID_PATH", true},
		{AccessRefused, "ACCESS_REFUSED", false},
		{NotFound, "NOT_FOUND", false},
		{ResourceLocked, "RESOURCE_LOCKED", false},
		{PreconditionFailed, "PRECONDITION_FAILED", false},
		{FrameError, "FRAME_ERROR", true},
		{SyntaxError, "SYNTAX_ERROR", true},
		{CommandInvalid, "COMMAND_INVALID", true},
		{ChannelError, "CHANNEL_ERROR", true},
		{UnexpectedFrame, "UNEXPECTED_FRAME", true},
		{ResourceError, "RESOURCE_ERROR", true},
		{NotAllowed, "NOT_ALLOWED", true},
		{NotImplemented, "NOT_IMPLEMENTED", true},
		{InternalError, "INTERNAL_ERROR", true},
		{Code(999), "CODE_999", true},
	} {
		if tt.code.String() != tt.name || tt.code.Hard() != tt.hard {
			t.Errorf("%d: %s, hard %v, want %s, %v", tt.code, tt.code, tt.code.Hard(), tt.name, tt.hard)
		}
	}
}

func TestOctets(t *testing.T) {
	for in, want := range map[string]string{
		"":                     `type 8, all octets = <<>>`,
		"0123456789abcdef":     `type 8, all octets = <<"0123456789abcdef">>`,
		"0123456789abcdef\x00": `type 8, first 16 octets = <<"0123456789abcdef">>`,
	} {
		if got := Octets(8, []byte(in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(AppendHeartbeat(nil), uint32(4096))
	f.Add(AppendMethod(nil, 1, &BasicPublish{Exchange: "x", RoutingKey: "k"}), uint32(131072))
	f.Add(AppendBody(nil, 1, []byte("0123456789"), 12), uint32(12))
	f.Add([]byte("\x03\x00\x01\x00\x02\x00\x01"), uint32(131072))
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x01aX"), uint32(4096))
	f.Add([]byte(ProtocolHeader), uint32(4096))
	f.Fuzz(func(t *testing.T, b []byte, max uint32) {
		frame, n, err := Parse(b, max)
		if n == 0 {
			return // part of a frame, or none
		}
		if err != nil {
			t.Fatalf("%d bytes and %v", n, err)
		}
		if again := appendFrame(nil, frame.Type, frame.Channel, frame.Payload); !bytes.Equal(again, b[:n]) {
			t.Fatalf("%q became %q", b[:n], again)
		}
		if _, part, err := Parse(b[:n-1], max); part != 0 || err != nil {
			t.Errorf("all but the last byte: %d, %v", part, err)
		}
		if whole, m, err := Parse(b[:n], max); m != n || err != nil || !bytes.Equal(whole.Payload, frame.Payload) {
			t.Errorf("without what follows: %d, %v", m, err)
		}
	})
}
