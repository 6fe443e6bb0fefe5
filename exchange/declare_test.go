package exchange

import (
	"testing"

	"github.com/leveretmq/leveret/frames"
)

func field(name string, v any) frames.Table { return frames.Table{{Name: name, Value: v}} }

func TestNewRefuses(t *testing.T) {
	const prefix = "PRECONDITION_FAILED - "
	for _, tt := range []struct {
		kind string
		args frames.Table
		want string
	}{
		{"nosuch", nil, "unknown exchange type 'nosuch'"},
		{"", nil, "invalid exchange type ''"},
		{"Direct", nil, "unknown exchange type 'Direct'"},
		{"nosuch", field("alternate-exchange", int32(1)), "unknown exchange type 'nosuch'"},
		{"direct", field("alternate-exchange", int32(1)), "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'N' in vhost 'V'"},
		{"direct", field("alternate-exchange", nil), "invalid type 'void' for arg 'alternate-exchange' in exchange 'N' in vhost 'V'"},
		{"direct", field("alternate-exchange", []any{}), "invalid type 'array' for arg 'alternate-exchange' in exchange 'N' in vhost 'V'"},
		{"x-consistent-hash", frames.Table{{Name: "hash-header", Value: "h"}, {Name: "hash-property", Value: "message_id"}},
			"hash-header and hash-property are mutually exclusive"},
		{"x-consistent-hash", field("hash-property", "bogus"), "Unsupported property: bogus"},
		{"x-consistent-hash", field("hash-property", int32(7)), "Unsupported property: 7"},
		{"x-consistent-hash", field("hash-header", int32(7)), "Unsupported header: 7; expected the name of a header, a longstr"},
		{"x-recent-history", field("x-recent-history-length", int32(-1)), "Invalid argument -1, 'x-recent-history-length' must be a positive integer"},
		{"x-recent-history", field("x-recent-history-length", int64(0)), "Invalid argument 0, 'x-recent-history-length' must be a positive integer"},
		{"x-recent-history", field("x-recent-history-length", "5"), `Invalid argument <<"5">>, 'x-recent-history-length' must be a positive integer`},
		{"x-delayed-message", nil, "Invalid argument, 'x-delayed-type' must be an existing exchange type"},
		{"x-delayed-message", field("x-delayed-type", "nosuch"), "Invalid argument, 'x-delayed-type' must be an existing exchange type"},
		{"x-delayed-message", field("x-delayed-type", int32(1)), "Invalid argument, 'x-delayed-type' must be an existing exchange type"},
		{"x-delayed-message", field("x-delayed-type", "x-delayed-message"), "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'"},
		{"x-delayed-message", frames.Table{{Name: "x-delayed-type", Value: "x-consistent-hash"}, {Name: "hash-property", Value: "app_id"}},
			"Unsupported property: app_id"},
	} {
		_, err := New(Spec{Name: "N", Type: tt.kind, Arguments: tt.args, VHost: "V"})
		wantText(t, err, prefix+tt.want)
	}
}

func TestNewAccepts(t *testing.T) {
	for _, tt := range []struct {
		kind string
		args frames.Table
	}{
		{"direct", field("alternate-exchange", "not there yet")},
		{"topic", field("x-anything", int32(1))},
		{"x-consistent-hash", field("hash-header", "id")},
		{"x-consistent-hash", field("hash-property", "correlation_id")},
		{"x-consistent-hash", field("hash-property", "message_id")},
		{"x-consistent-hash", field("hash-property", "timestamp")},
		{"x-recent-history", field("x-recent-history-length", uint8(3))},
		{"x-delayed-message", field("x-delayed-type", "topic")},
	} {
		x, err := New(Spec{Name: "N", Type: tt.kind, Durable: true, Internal: true, Arguments: tt.args, VHost: "V"})
		if err != nil {
			t.Errorf("New(%s, %v): %v", tt.kind, tt.args, err)
			continue
		}
		if x.Name != "N" || x.Type != tt.kind || !x.Durable || x.AutoDelete || !x.Internal || len(x.Arguments) != 1 {
			t.Errorf("New(%s, %v) = %+v", tt.kind, tt.args, x)
		}
	}
}

func TestKnownType(t *testing.T) {
	for _, name := range []string{"direct", "fanout", "topic", "headers", "x-consistent-hash", "x-random", "x-local-random",
		"x-modulus-hash", "x-recent-history", "x-delayed-message"} {
		if !KnownType(name) {
			t.Errorf("KnownType(%q) = false", name)
		}
	}
	for _, name := range []string{"", "classic", "x-jms-topic"} {
		if KnownType(name) {
			t.Errorf("KnownType(%q) = true", name)
		}
	}
}

func TestEquivalent(t *testing.T) {
	const prefix = "PRECONDITION_FAILED - inequivalent arg "
	plain := Spec{Name: "N", Type: "direct", VHost: "V", Durable: true}
	withAE := plain
	withAE.Arguments = field("alternate-exchange", "one")
	change := func(s Spec, f func(*Spec)) Spec { f(&s); return s }
	for _, tt := range []struct {
		current, received Spec
		want              string // "" is equivalent
	}{
		{plain, plain, ""},
		{withAE, withAE, ""},
		{plain, change(plain, func(s *Spec) { s.Arguments = field("x-other", int32(1)) }), ""},
		{plain, change(plain, func(s *Spec) { s.Type = "fanout" }), "'type' for exchange 'N' in vhost 'V': received 'fanout' but current is 'direct'"},
		{plain, change(plain, func(s *Spec) { s.Type = "x-random" }), "'type' for exchange 'N' in vhost 'V': received ''x-random'' but current is 'direct'"},
		{plain, change(plain, func(s *Spec) { s.Arguments = field("alternate-exchange", 1e20) }),
			"'alternate-exchange' for exchange 'N' in vhost 'V': received the value '1.0e20' of type 'double' but current is none"},
		{plain, change(plain, func(s *Spec) { s.Type, s.Durable = "fanout", false }), "'type' for exchange 'N' in vhost 'V': received 'fanout' but current is 'direct'"},
		{plain, change(plain, func(s *Spec) { s.Durable, s.AutoDelete = false, true }), "'durable' for exchange 'N' in vhost 'V': received 'false' but current is 'true'"},
		{plain, change(plain, func(s *Spec) { s.AutoDelete, s.Internal = true, true }), "'auto_delete' for exchange 'N' in vhost 'V': received 'true' but current is 'false'"},
		{plain, change(withAE, func(s *Spec) { s.Internal = true }), "'internal' for exchange 'N' in vhost 'V': received 'true' but current is 'false'"},
		{plain, withAE, "'alternate-exchange' for exchange 'N' in vhost 'V': received the value 'one' of type 'longstr' but current is none"},
		{withAE, plain, "'alternate-exchange' for exchange 'N' in vhost 'V': received none but current is the value 'one' of type 'longstr'"},
		{withAE, change(plain, func(s *Spec) { s.Arguments = field("alternate-exchange", "two") }),
			"'alternate-exchange' for exchange 'N' in vhost 'V': received 'two' but current is 'one'"},
		{withAE, change(plain, func(s *Spec) { s.Arguments = field("alternate-exchange", int32(1)) }),
			"'alternate-exchange' for exchange 'N' in vhost 'V': received '1' but current is 'one'"},
		{withAE, change(plain, func(s *Spec) { s.Arguments = field("alternate-exchange", nil) }),
			"'alternate-exchange' for exchange 'N' in vhost 'V': received none but current is 'one'"},
		{withAE, change(plain, func(s *Spec) { s.Arguments = field("alternate-exchange", []byte("one")) }), ""},
		{withAE, change(plain, func(s *Spec) { s.Arguments = field("alternate-exchange", []any{}) }),
			"'alternate-exchange' for exchange 'N' in vhost 'V': received '[]' but current is 'one'"},
	} {
		x, err := New(tt.current)
		if err != nil {
			t.Fatal(err)
		}
		err = x.Equivalent(tt.received)
		if tt.want != "" {
			wantText(t, err, prefix+tt.want)
		} else if err != nil {
			t.Errorf("Equivalent(%+v) = %v, want nil", tt.received, err)
		}
	}
}

func TestEquivalentNamesAnUnknownType(t *testing.T) {
	err := newExchange(t, "direct").Equivalent(Spec{Name: "direct", Type: "nosuch", VHost: "/"})
	wantText(t, err, "PRECONDITION_FAILED - unknown exchange type 'nosuch'")
}

// TestPolicyAlternateIsNotDeclared: a policy plays no part in equivalence.
func TestPolicyAlternateIsNotDeclared(t *testing.T) {
	x := newExchange(t, "direct")
	x.SetAlternate("policy", true)
	if err := x.Equivalent(Spec{Name: "direct", Type: "direct", VHost: "/"}); err != nil {
		t.Errorf("Equivalent() = %v, want nil", err)
	}
}

func TestBindRefuses(t *testing.T) {
	classic, quorum, stream := newQueue("c"), &fakeQueue{name: "q", kind: "quorum"}, &fakeQueue{name: "s", kind: "stream"}
	for _, tt := range []struct {
		kind string
		b    Binding
		want string
	}{
		{"headers", Binding{Queue: classic, Arguments: field("x-match", "foo")},
			`Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x`},
		{"headers", Binding{Queue: classic, Arguments: field("x-match", int32(1))}, "Invalid x-match field type signedint (value 1); expected longstr"},
		{"headers", Binding{Queue: classic, Arguments: field("x-match", frames.Decimal{Scale: 0, Value: 1})}, "Invalid x-match field type decimal (value {0,1}); expected longstr"},
		{"headers", Binding{Queue: classic, Arguments: field("x-match", true)}, "Invalid x-match field type bool (value true); expected longstr"},
		{"x-consistent-hash", Binding{Queue: classic, Key: "abc"}, `The binding key must be an integer: <<"abc">>`},
		{"x-consistent-hash", Binding{Queue: classic, Key: "1.5"}, `The binding key must be an integer: <<"1.5">>`},
		{"x-consistent-hash", Binding{Queue: classic, Key: ""}, "The binding key must be an integer: <<>>"},
		{"x-consistent-hash", Binding{Queue: classic, Key: "0"}, "The binding key must be greater than 0"},
		{"x-consistent-hash", Binding{Queue: classic, Key: "-3"}, "The binding key must be greater than 0"},
		{"x-consistent-hash", Binding{Queue: classic, Key: "99999999999999999999"}, "The binding key must be at most 1000000: it is a weight"},
		{"x-local-random", Binding{Queue: classic, Key: "k0"}, "Non empty binding 'k0' key not permitted"},
		{"x-local-random", Binding{Queue: quorum}, "Queue type rabbit_quorum_queue not valid for this exchange type"},
		{"x-local-random", Binding{Queue: stream}, "Queue type rabbit_stream_queue not valid for this exchange type"},
		{"x-local-random", Binding{To: newExchange(t, "fanout")}, "Destination not found"},
	} {
		x := newExchange(t, tt.kind)
		added, err := x.Bind(&tt.b)
		wantText(t, err, "PRECONDITION_FAILED - "+tt.want)
		if added || !x.Empty() {
			t.Errorf("%s: a refused binding is there", tt.kind)
		}
	}
	delayed := newExchange(t, "x-delayed-message", frames.Field{Name: "x-delayed-type", Value: "x-consistent-hash"})
	_, err := delayed.Bind(&Binding{Queue: classic, Key: "a"})
	wantText(t, err, `PRECONDITION_FAILED - The binding key must be an integer: <<"a">>`)
}
