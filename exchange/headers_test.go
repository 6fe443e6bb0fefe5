package exchange

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// fields makes a table of names and values in turn.
func fields(list ...any) (t frames.Table) {
	for i := 0; i < len(list); i += 2 {
		t = append(t, frames.Field{Name: list[i].(string), Value: list[i+1]})
	}
	return t
}

func TestHeadersModes(t *testing.T) {
	m := withHeaders(
		frames.Field{Name: "a", Value: "1"}, frames.Field{Name: "b", Value: int32(2)},
		frames.Field{Name: "x-c", Value: "3"}, frames.Field{Name: "a", Value: "second"})
	for _, tt := range []struct {
		args frames.Table
		want bool
	}{
		{fields("x-match", "all", "a", "1", "b", int32(2)), true},
		{fields("x-match", "all", "a", "1", "z", "1"), false},
		{fields("a", "1", "b", int32(3)), false},
		{fields("a", "1", "b", int64(2)), true},
		{fields("a", "second"), false}, // the first of a name counts
		{fields("x-match", "any", "a", "1", "b", int32(3)), true},
		{fields("x-match", "any", "a", "1", "b", int32(2)), true},
		{fields("x-match", "any", "a", "2", "z", "1"), false},
		{fields("x-match", "any", "A", "1"), false},
		{fields("x-match", "any"), false},
		{fields("x-match", "all"), true},
		{nil, true},
		{fields("x-match", "all", "a", "1", "x-c", "wrong"), true},
		{fields("x-match", "any", "a", "9", "x-c", "3"), false},
		{fields("x-match", "any", "x-c", "3"), false},
		{fields("x-match", "all", "x-c", "wrong"), true},
		{fields("x-match", "all-with-x", "a", "1", "x-c", "wrong"), false},
		{fields("x-match", "all-with-x", "a", "1", "x-c", "3"), true},
		{fields("x-match", "any-with-x", "a", "9", "x-c", "3"), true},
		{fields("x-match", "any-with-x"), false},
		{fields("x-match", "all", "a", nil), true}, // a void wants any value
		{fields("x-match", "all", "z", nil), false},
		{fields("x-match", "any", "z", nil, "b", nil), true},
	} {
		x := newExchange(t, "headers")
		bind(t, x, newQueue("q"), "ignored", tt.args...)
		if got := len(routed(x, m)) == 1; got != tt.want {
			t.Errorf("arguments %v match = %v, want %v", tt.args, got, tt.want)
		}
	}
}

func TestHeadersWithoutTable(t *testing.T) {
	x := newExchange(t, "headers")
	bind(t, x, newQueue("none"), "")
	bind(t, x, newQueue("all"), "", frames.Field{Name: "a", Value: "1"})
	bind(t, x, newQueue("void"), "", frames.Field{Name: "a", Value: nil})
	bind(t, x, newQueue("any"), "", frames.Field{Name: "x-match", Value: "any"})
	for name, m := range map[string]*message.Message{
		"no property block": {Envelope: &message.Envelope{}},
		"no properties":     {Envelope: &message.Envelope{Header: []byte{0, 0}}},
		"others only":       withProperties(frames.Properties{Flags: frames.FlagMessageID, MessageID: []byte("a")}),
		"an empty table":    withHeaders(),
		"a broken block":    {Envelope: &message.Envelope{Header: []byte{0xff, 0xff, 1}}},
	} {
		if got := routed(x, m); !slices.Equal(got, []string{"none"}) {
			t.Errorf("%s: routed to %v, want [none]", name, got)
		}
	}
}

func TestHeadersValues(t *testing.T) {
	type table = frames.Table
	for _, tt := range []struct {
		arg, header any
		want        bool
	}{
		{int32(5), int64(5), true},
		{int8(-1), int64(-1), true},
		{uint8(255), int16(255), true},
		{uint8(255), int8(-1), false},
		{uint32(1 << 31), int32(math.MinInt32), false},
		{int64(1 << 40), int64(1 << 40), true},
		{int32(1), 1.0, false},
		{int32(1), "1", false},
		{int32(1), true, false},
		{int32(0), nil, false},
		{1.5, float32(1.5), true},
		{1.5, 1.25, false},
		{1.0, int32(1), false},
		{0.0, math.Copysign(0, -1), true},
		{math.NaN(), math.NaN(), false},
		{math.Inf(1), float32(math.Inf(1)), true},
		{true, true, true},
		{true, false, false},
		{true, int8(1), false},
		{"1", "1", true},
		{"", "", true},
		{"1", "2", false},
		{"1", []byte("1"), true}, // RabbitMQ 4.0 does not tell these types apart
		{[]byte{1, 0}, []byte{1, 0}, true},
		{frames.Decimal{Scale: 2, Value: 150}, frames.Decimal{Scale: 2, Value: 150}, true},
		{frames.Decimal{Scale: 2, Value: 150}, frames.Decimal{Scale: 1, Value: 150}, false},
		{nil, nil, true},
		{nil, table{}, true},
		// Timestamps are integers: RabbitMQ 4.0 has a message's in milliseconds, and an
		// argument's in seconds.
		{frames.Timestamp(7), frames.Timestamp(7), false},
		{frames.Timestamp(7000), frames.Timestamp(7), true},
		{frames.Timestamp(0), frames.Timestamp(0), true},
		{int64(7000), frames.Timestamp(7), true},
		{frames.Timestamp(7000), int64(7000), true},
		{frames.Timestamp(7), int8(7), true},
		{frames.Timestamp(7), int8(8), false},
		{frames.Timestamp(7), "7", false},
		{fields("a", int32(1)), fields("a", int64(1)), true},
		{fields("a", int32(1)), fields("a", int32(2)), false},
		{fields("a", int32(1)), fields("b", int32(1)), false},
		{fields("a", int32(1)), fields("a", int32(1), "b", int32(1)), false},
		{fields("a", "x", "b", "y"), fields("b", "y", "a", "x"), true},
		{fields("a", nil), fields("a", "x"), false},
		{fields("a", nil), fields("a", nil), true},
		{fields("a", fields("b", true)), fields("a", fields("b", true)), true},
		{fields("t", frames.Timestamp(7)), fields("t", frames.Timestamp(7)), true},
		{fields("t", frames.Timestamp(7)), fields("t", int64(7)), false},
		{fields("t", int64(7)), fields("t", frames.Timestamp(7)), false},
		{table{}, table{}, true},
		{table{}, []any{}, false},
		{[]any{}, []any{}, true},
		{[]any{int32(1), int32(2)}, []any{int64(1), int64(2)}, true},
		{[]any{int32(1), int32(2)}, []any{int32(2), int32(1)}, false},
		{[]any{int32(1)}, []any{int32(1), int32(2)}, false},
		{[]any{"a", fields("b", "c")}, []any{"a", fields("b", "c")}, true},
		{[]any{"a"}, []any{[]byte("a")}, true},
	} {
		for _, mode := range []string{"all", "any"} {
			x := newExchange(t, "headers")
			bind(t, x, newQueue("q"), "", frames.Field{Name: "x-match", Value: mode}, frames.Field{Name: "h", Value: tt.arg})
			if got := len(routed(x, withHeaders(frames.Field{Name: "h", Value: tt.header}))) == 1; got != tt.want {
				t.Errorf("%s: argument %T(%v) matches %T(%v) = %v, want %v", mode, tt.arg, tt.arg, tt.header, tt.header, got, tt.want)
			}
		}
	}
}

// matchHeaders is the stupid way to match, to test the exchange against; it
// knows integers, strings, bools and voids.
func matchHeaders(args, header frames.Table) bool {
	mode, _ := args.Lookup("x-match")
	met, wanted := 0, 0
	for _, f := range args {
		if f.Name == "x-match" || strings.HasPrefix(f.Name, "x-") && (mode == nil || mode == "all" || mode == "any") {
			continue
		}
		wanted++
		v, ok := header.Lookup(f.Name)
		if n, isInt := frames.Integer(v); isInt {
			v = n
		}
		want := f.Value
		if n, isInt := frames.Integer(want); isInt {
			want = n
		}
		if ok && (want == nil || want == v) {
			met++
		}
	}
	if mode == "any" || mode == "any-with-x" {
		return met > 0
	}
	return met == wanted
}

func TestHeadersAgainstStupidMatch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	values := []any{int32(1), int64(1), int8(2), "1", "2", true, false, nil}
	random := func(n int) (list frames.Table) {
		for range rnd.IntN(n + 1) {
			name := []string{"a", "b", "c", "x-a", "x-b"}[rnd.IntN(5)]
			list = list.Set(name, values[rnd.IntN(len(values))])
		}
		return list
	}
	modes := []any{nil, "all", "any", "all-with-x", "any-with-x"}
	for round := range 300 {
		x := newExchange(t, "headers")
		bound := map[string]frames.Table{}
		for i := range 40 {
			args := random(3)
			if mode := modes[rnd.IntN(len(modes))]; mode != nil {
				args = args.Set("x-match", mode)
			}
			q := newQueue(fmt.Sprint(i))
			bind(t, x, q, "", args...)
			if rnd.IntN(3) == 0 {
				x.UnbindQueue(q)
				continue
			}
			bound[q.name] = args
		}
		for range 40 {
			header := random(4)
			want := []string{}
			for name, args := range bound {
				if matchHeaders(args, header) {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			if got := routed(x, withHeaders(header...)); !slices.Equal(got, want) {
				t.Fatalf("round %d: header %v matches %v, want %v", round, header, got, want)
			}
		}
		for _, b := range x.Bindings() {
			x.UnbindQueue(b.Queue)
		}
		wantRouted(t, x, withHeaders(random(4)...))
	}
}

// FuzzHeaders binds with one table and routes with another: whatever they are,
// nothing panics, and a table without timestamps, NaN and repeated names
// matches itself.
func FuzzHeaders(f *testing.F) {
	f.Add(frames.AppendTable(nil, fields("a", int32(1), "b", "c"))[4:], frames.AppendTable(nil, fields("a", int64(1)))[4:])
	f.Add(frames.AppendTable(nil, fields("x-match", "any", "t", fields("l", []any{1.5, nil})))[4:], []byte{})
	f.Add([]byte{1, 'a', 'V'}, []byte{1, 'a', 'T', 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, args, header []byte) {
		table, err := frames.ParseTable(args)
		if err != nil {
			return
		}
		x, q := newExchange(t, "headers"), newQueue("q")
		if _, err := x.Bind(&Binding{Queue: q, Arguments: table}); err != nil {
			return
		}
		p := frames.Properties{Flags: frames.FlagHeaders, Headers: header}
		routed(x, &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}})
		p.Headers = args
		matched := len(routed(x, &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}})) == 1
		mode, _ := matchModeOf(table)
		if !matched && !mode.any && selfEqual(table) {
			t.Errorf("arguments %v do not match themselves", table)
		}
		x.UnbindQueue(q)
		wantRouted(t, x, &message.Message{Envelope: &message.Envelope{Header: p.Append(nil)}})
	})
}

// selfEqual says that a header table equals itself as arguments.
func selfEqual(table frames.Table) bool {
	for _, f := range table {
		switch v := f.Value.(type) {
		case frames.Timestamp:
			return v == 0
		case float32:
			if v != v {
				return false
			}
		case float64:
			if v != v {
				return false
			}
		}
	}
	return true
}
