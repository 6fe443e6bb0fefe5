package frames

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestPublishParse(t *testing.T) {
	for _, tt := range []struct {
		args          string
		exchange, key string
		flags         [2]bool // mandatory, immediate
	}{
		{"\x00\x00\x00\x00\x00", "", "", [2]bool{}},
		{"\x00\x01\x02ex\x03key\x01", "ex", "key", [2]bool{true, false}},
		{"\x00\x00\x00\x01k\x02", "", "k", [2]bool{false, true}},
		{"\x00\x00\x02\xc3\xbc\x00\xff", "ü", "", [2]bool{true, true}},
	} {
		var p Publish
		if err := p.Parse([]byte(tt.args)); err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		if string(p.Exchange) != tt.exchange || string(p.RoutingKey) != tt.key || [2]bool{p.Mandatory, p.Immediate} != tt.flags {
			t.Errorf("%q: %+v", tt.args, p)
		}
	}
}

func TestPublishParseErrors(t *testing.T) {
	for args, want := range map[string]string{
		"":                         "FRAME_ERROR - cannot decode <<>>",
		"ab":                       "FRAME_ERROR - cannot decode <<97,98>>",
		"\x00\x00":                 "FRAME_ERROR - cannot decode <<0,0>>",
		"\x00\x00\x00":             "FRAME_ERROR - cannot decode <<0,0,0>>",
		"\x00\x00\x05ab":           "FRAME_ERROR - cannot decode <<0,0,5,97,98>>",
		"\x00\x00\x02ab":           "FRAME_ERROR - cannot decode <<0,0,2,97,98>>",
		"\x00\x00\x00\x00":         "FRAME_ERROR - cannot decode <<0,0,0,0>>",
		"\x00\x00\x00\x01k":        "FRAME_ERROR - cannot decode <<0,0,0,1,107>>",
		"\x00\x00\x00\x00\x00\x00": "FRAME_ERROR - cannot decode <<0,0,0,0,0,0>>",
	} {
		var p Publish
		wantReply(t, p.Parse([]byte(args)), want)
	}
}

func TestParseSettle(t *testing.T) {
	tag, bits, err := ParseSettle([]byte("\x00\x00\x00\x00\x00\x00\x01\x02\x03"))
	if tag != 258 || bits != 3 || err != nil {
		t.Errorf("%d, %d, %v", tag, bits, err)
	}
	for _, args := range []string{"", "\x00\x00\x00\x00\x00\x00\x01\x02", "\x00\x00\x00\x00\x00\x00\x01\x02\x03\x04"} {
		_, _, err := ParseSettle([]byte(args))
		wantReply(t, err, "FRAME_ERROR - cannot decode <<"+numbers([]byte(args))+">>")
	}
}

// TestHotPathsMakeTheSameBytes compares each hand-made codec with the method's
// own.
func TestHotPathsMakeTheSameBytes(t *testing.T) {
	long, props := strings.Repeat("x", 255), []byte("\x10\x00\x02")
	for _, names := range [][3]string{{"", "", ""}, {"tag", "ex", "key"}, {long, long, long},
		{long + "x", long + "x", long + "x"}, {"tag", "ex", strings.Repeat("\xce", 70_000)}} {
		for _, flag := range []bool{false, true} {
			got := AppendDeliver([]byte("x"), 258, names[0], 1<<40|7, flag, names[1], names[2])
			want := AppendMethod([]byte("x"), 258, &BasicDeliver{names[0], 1<<40 | 7, flag, names[1], names[2]})
			if !bytes.Equal(got, want) {
				t.Errorf("deliver: %q, want %q", got, want)
			}
			want = AppendContentHeader(want, 258, 1<<33|5, props)
			want = AppendMethod(append(want, "body"...), 258, &BasicDeliver{names[0], 1<<50 | 9, !flag, names[1], names[2]})
			want = AppendContentHeader(want, 258, 6, props)
			got, head := AppendDeliverHead([]byte("x"), 258, names[0], 1<<40|7, flag, names[1], names[2], 1<<33|5, props)
			if got = head.AppendAgain(append(got, "body"...), 1<<50|9, !flag, 6); !bytes.Equal(got, want) {
				t.Errorf("heads: %q, want %q", got, want)
			}
			got = AppendAck([]byte("x"), 258, 1<<40|7, flag)
			want = AppendMethod([]byte("x"), 258, &BasicAck{1<<40 | 7, flag})
			if !bytes.Equal(got, want) {
				t.Errorf("ack: %q, want %q", got, want)
			}
		}
	}
}

// FuzzPublish compares the hand-made decoder with the method's own.
func FuzzPublish(f *testing.F) {
	f.Add([]byte("\x00\x00\x02ex\x03key\x01"))
	f.Add([]byte("\x00\x00\x05ab"))
	f.Add([]byte("\x00\x00\x01\xff\x00\x00"))
	f.Fuzz(func(t *testing.T, args []byte) {
		var p Publish
		err := p.Parse(args)
		m, slow := DecodeMethod(BasicPublishID, args)
		if slow == errShortUTF8 {
			return // the names of a publish need not be UTF-8
		}
		if (err == nil) != (slow == nil) {
			t.Fatalf("%q: %v, want %v", args, err, slow)
		}
		if err != nil {
			return
		}
		want := m.(*BasicPublish)
		got := &BasicPublish{want.Ticket, string(p.Exchange), string(p.RoutingKey), p.Mandatory, p.Immediate}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", args, got, want)
		}
	})
}

// A hotPath is an operation of the publish, deliver or settle path, none of
// which may allocate.
type hotPath struct {
	name string
	run  func()
}

func hotPaths() []hotPath {
	frame := appendFrame(nil, BodyFrame, 1, make([]byte, 16))
	publish := []byte("\x00\x00\x06orders\x0corder.new.eu\x00")
	properties := []byte(allProperties)
	small := []byte("\x10\x00\x02")
	settle := []byte("\x00\x00\x00\x00\x00\x00\x01\x02\x00")
	headers := []byte("\x01at\x01\x05x-key" + "S\x00\x00\x00\x05value")
	body := make([]byte, 16)
	dst := make([]byte, 0, 4096)
	var parsedPublish Publish
	var parsedProperties Properties
	check := func(ok bool) {
		if !ok {
			panic("hot path does not work")
		}
	}
	return []hotPath{
		{"Parse", func() { _, n, _ := Parse(frame, 4096); check(n == len(frame)) }},
		{"Publish.Parse", func() { check(parsedPublish.Parse(publish) == nil) }},
		{"Properties.Parse", func() { check(parsedProperties.Parse(properties) == nil) }},
		{"Properties.Parse/delivery-mode", func() { check(parsedProperties.Parse(small) == nil) }},
		{"Properties.Append", func() { check(len(parsedProperties.Append(dst)) > 0) }},
		{"CheckTable", func() { check(CheckTable(headers) == nil) }},
		{"FindField", func() { _, _, ok := FindField(headers, "x-key"); check(ok) }},
		{"Deliver", func() {
			b := AppendDeliver(dst, 1, "consumer-1", 7, false, "orders", "order.new.eu")
			b = AppendContentHeader(b, 1, 16, small)
			b = AppendBody(b, 1, body, 131072)
			check(len(b) > 0)
		}},
		{"ParseSettle", func() { tag, _, _ := ParseSettle(settle); check(tag == 258) }},
		{"AppendAck", func() { check(len(AppendAck(dst, 1, 7, true)) > 0) }},
		{"SplitMethod", func() { id, _, _ := SplitMethod(publish); check(id != 0) }},
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	for _, p := range hotPaths() {
		if n := testing.AllocsPerRun(100, p.run); n != 0 {
			t.Errorf("%s: %v allocations, want 0", p.name, n)
		}
	}
}

func BenchmarkHotPath(b *testing.B) {
	for _, p := range hotPaths() {
		b.Run(p.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.run()
			}
		})
	}
}
