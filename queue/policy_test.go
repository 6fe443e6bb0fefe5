package queue

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// definition decodes a definition as the front doors do.
func definition(t *testing.T, s string) Definition {
	t.Helper()
	var d Definition
	if err := json.Unmarshal([]byte(s), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestValidateDefinition(t *testing.T) {
	long := strings.Repeat("k", 255)
	for _, tt := range []struct {
		def      string
		operator bool
		want     string
	}{
		{`{"max-length": 5, "message-ttl": 100, "overflow": "reject-publish", "dead-letter-exchange": ""}`, false, ""},
		{`{}`, false, "no policy provided"},
		{`{"max-length": -1}`, false, "-1 is not a valid maximum length"},
		{`{"max-length": "5"}`, false, `<<"5">> is not a valid maximum length`},
		{`{"max-length": 1.5}`, false, "1.5 is not a valid maximum length"},
		{`{"message-ttl": "a"}`, false, `<<"a">> is not a valid message TTL`},
		{`{"expires": 0}`, false, "0 is not a valid queue expiry"},
		{`{"queue-master-locator": "balanced"}`, false, ""},
		{`{"queue-master-locator": "here"}`, false, `<<"here">> is not a valid master locator`},
		{`{"dead-letter-routing-key": "` + long + `"}`, false, ""},
		{`{"dead-letter-routing-key": "` + long + `x"}`, false, `<<"` + long + `x">> is not a valid dead letter routing key`},
		{`{"overflow": "x"}`, false, `<<"x">> is not a valid overflow value`},
		{`{"foo": 1}`, false, `[{<<"foo">>,1}] are not recognised policy settings`},
		{`{"foo": {"a": [1, true, null]}, "bar": "x"}`, false, `[{<<"bar">>,<<"x">>},{<<"foo">>,#{<<"a">> => [1,true,null]}}] are not recognised policy settings`},
		{`{"ha-mode": "all"}`, false, `[{<<"ha-mode">>,<<"all">>}] are not recognised policy settings`},
		{`{"delivery-limit": -1}`, false, ""},
		{`{"max-length": 9223372036854775807, "expires": 10000000000000000000000, "delivery-limit": -9223372036854775809}`, false, ""},
		{`{"queue-version": 10000000000000000000000}`, false, "1.0e22 is not a valid queue-version value"},
		{`{"max-age": "1h", "stream-filter-size-bytes": 16}`, false, ""},
		{`{"federation-upstream": "u", "federation-upstream-pattern": "^u"}`, false, ""},
		{`{"federation-upstream-set": 1}`, false, "1 is not a valid federation upstream set"},
		{`{"federation-upstream-set": "all"}`, true, `[{<<"federation-upstream-set">>,<<"all">>}] are not recognised policy settings`},
		{`{"stream-filter-size-bytes": 15}`, false, "15 is not a valid filter size. Valid range is 16-255"},
		{`{"max-length": 5, "delivery-limit": 3, "overflow": "drop-head"}`, true, ""},
		{`{"dead-letter-exchange": "x"}`, true, `[{<<"dead-letter-exchange">>,<<"x">>}] are not recognised policy settings`},
		{`{"redelivery-delay": 100, "redelivery-delay-multiplier": 1.5, "redelivery-delay-max": 1000, "redelivery-jitter": 0.5}`, false, ""},
		{`{"redelivery-delay": -1}`, false, "-1 is not a valid redelivery delay"},
		{`{"redelivery-delay": 1.5}`, false, "1.5 is not a valid redelivery delay"},
		{`{"redelivery-delay-multiplier": 0.5}`, false, "0.5 is not a valid redelivery delay multiplier"},
		{`{"redelivery-delay-multiplier": "2"}`, false, `<<"2">> is not a valid redelivery delay multiplier`},
		{`{"redelivery-delay-max": 0}`, false, "0 is not a valid maximum redelivery delay"},
		{`{"redelivery-jitter": 1.5}`, false, "1.5 is not a valid redelivery jitter"},
		{`{"consumer-timeout-action": "shrug"}`, false, `<<"shrug">> is not a valid consumer timeout action`},
		{`{"redelivery-delay": 5}`, true, `[{<<"redelivery-delay">>,5}] are not recognised policy settings`},
		{`{"queue-mode": "lazy"}`, true, `[{<<"queue-mode">>,<<"lazy">>}] are not recognised policy settings`},
	} {
		got := ""
		if err := ValidateDefinition(definition(t, tt.def), tt.operator); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s, operator %t:\n got %q\nwant %q", tt.def, tt.operator, got, tt.want)
		}
	}
}

func TestSupports(t *testing.T) {
	for _, tt := range []struct {
		def                     string
		classic, quorum, stream bool
	}{
		{`{"max-length": 5}`, true, true, false},
		{`{"max-length": 5, "delivery-limit": 2}`, false, true, false},
		{`{"redelivery-jitter": 1, "delivery-limit": 2}`, true, true, false},
		{`{"redelivery-delay": 5}`, true, true, false},
		{`{"consumer-timeout-action": "requeue"}`, true, true, false},
		{`{"max-length-bytes": 5}`, true, true, true},
		{`{"max-length-bytes": 5, "max-age": "1h"}`, false, false, true},
		{`{"queue-mode": "lazy"}`, true, false, false},
		{`{"dead-letter-strategy": "at-least-once"}`, false, true, false},
		{`{"consumer-timeout": 5}`, true, true, true},
		{`{"federation-upstream-set": "all"}`, true, true, true},
		{`{"unknown": 5}`, false, false, false},
	} {
		for queueType, want := range map[string]bool{Classic: tt.classic, Quorum: tt.quorum, Stream: tt.stream} {
			if got := Supports(queueType, definition(t, tt.def)); got != want {
				t.Errorf("Supports(%s, %s) = %t", queueType, tt.def, got)
			}
		}
	}
}

func TestMerge(t *testing.T) {
	ours := &NamedDefinition{"ours", definition(t, `{"max-length": 5, "message-ttl": 100, "overflow": "reject-publish", "delivery-limit": -1,
		"dead-letter-exchange": "x", "dead-letter-routing-key": "k"}`)}
	theirs := &NamedDefinition{"theirs", definition(t, `{"max-length": 3, "message-ttl": 200, "overflow": "drop-head", "delivery-limit": 7, "expires": 9}`)}
	p := Merge(ours, theirs)
	want := definition(t, `{"max-length": 3, "message-ttl": 100, "overflow": "drop-head", "delivery-limit": 7, "expires": 9,
		"dead-letter-exchange": "x", "dead-letter-routing-key": "k"}`)
	if !reflect.DeepEqual(p.Definition, want) {
		t.Errorf("merged %v, want %v", p.Definition, want)
	}
	if p.Name != "ours" || p.Operator != "theirs" || p.MaxLength != 3 || p.MessageTTL != 100 || p.Expires != 9 || p.MaxLengthBytes != None ||
		p.Overflow != DropHead || p.DeliveryLimit != 7 || *p.DeadLetterExchange != "x" || *p.DeadLetterRoutingKey != "k" {
		t.Errorf("policy %+v", p)
	}
	if ours.Definition["max-length"] != 5.0 {
		t.Error("Merge has changed a definition")
	}
	if none := Merge(nil, nil); none.Expires != None || none.MessageTTL != None || none.DeliveryLimit != NoDeliveryLimit || len(none.Definition) != 0 {
		t.Errorf("no policy is %+v", none)
	}
}

func TestDeliveryLimit(t *testing.T) {
	for _, tt := range []struct{ a, b, want int64 }{
		{5, 3, 3}, {3, 5, 3}, {-1, 5, 5}, {5, -1, 5}, {-1, -2, -1}, {0, 5, 0},
		{NoDeliveryLimit, 5, 5}, {5, NoDeliveryLimit, 5}, {NoDeliveryLimit, -1, -1},
	} {
		if got := deliveryLimit(tt.a, tt.b); got != tt.want {
			t.Errorf("deliveryLimit(%d, %d) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestEffective(t *testing.T) {
	a := NewArguments()
	a.MaxLength, a.Overflow, a.MessageTTL, a.ConsumerTimeout = 4, RejectPublish, 50, 1000
	// Seen on RabbitMQ 4.0.5: limit 3, and the argument's overflow.
	p := Merge(&NamedDefinition{"p", Definition{"max-length": 5.0, "message-ttl": 70.0, "consumer-timeout": 500.0}},
		&NamedDefinition{"o", Definition{"max-length": 3.0, "overflow": "drop-head"}})
	s := Effective(a, p)
	if s.MaxLength != 3 || s.Overflow != RejectPublish || s.MessageTTL != 50 || s.ConsumerTimeout != 500 || s.Expires != None || s.DeadLetter != nil {
		t.Errorf("classic: %+v", s)
	}
	a.Type = Quorum
	if s := Effective(a, p); s.Overflow != DropHead {
		t.Errorf("quorum: overflow %d, want the policy's", s.Overflow)
	}
	if s := Effective(NewArguments(), Merge(nil, nil)); s.Overflow != DropHead || s.MaxLength != None || s.MessageTTL != None {
		t.Errorf("nothing set: %+v", s)
	}
	if s := Effective(Arguments{}, Policy{}); s.Overflow != DropHead || s.MaxLength != None || s.MessageTTL != None || s.Expires != None {
		t.Errorf("zero values: %+v", s)
	}
}

// Integers of JSON have no bounds (RabbitMQ 4.0), those of queues have.
func TestIntegersBeyondAllBounds(t *testing.T) {
	const def = `{"max-length": 9223372036854775807, "expires": 10000000000000000000000, "delivery-limit": -9223372036854775808}`
	numbers := Definition{}
	dec := json.NewDecoder(strings.NewReader(def))
	dec.UseNumber()
	if err := dec.Decode(&numbers); err != nil {
		t.Fatal(err)
	}
	for _, d := range []Definition{definition(t, def), numbers} {
		p := Merge(&NamedDefinition{"p", d}, nil)
		if p.MaxLength != math.MaxInt64 || p.Expires != maxExpiry || p.DeliveryLimit == NoDeliveryLimit || p.DeliveryLimit >= 0 {
			t.Errorf("max-length %d, expires %d, delivery-limit %d of %v", p.MaxLength, p.Expires, p.DeliveryLimit, d)
		}
		p = Merge(&NamedDefinition{"p", d}, &NamedDefinition{"o", Definition{"max-length": 5.0}})
		if p.MaxLength != 5 {
			t.Errorf("max-length %d with an operator's of 5", p.MaxLength)
		}
	}
}

// Times that RabbitMQ does not bound must not overflow when they are added up, or
// as durations: 1e13 ms does.
func TestTimesWithoutBound(t *testing.T) {
	for _, tt := range []struct{ set, want int64 }{
		{math.MaxInt64, maxExpiry}, {1e13, maxExpiry}, {maxExpiry + 1, maxExpiry}, {maxExpiry, maxExpiry}, {1000, 1000},
	} {
		number := json.Number(strconv.FormatInt(tt.set, 10))
		p := Merge(&NamedDefinition{"p", Definition{"expires": number, "message-ttl": number, "consumer-timeout": number}}, nil)
		s := Effective(NewArguments(), p)
		if s.Expires != tt.want || s.MessageTTL != tt.want || s.ConsumerTimeout != tt.want {
			t.Errorf("a policy with %d: expires %d, message TTL %d, consumer timeout %d, want %d",
				tt.set, s.Expires, s.MessageTTL, s.ConsumerTimeout, tt.want)
		}
		if p.Definition["expires"] != number {
			t.Errorf("a policy with %d is shown as %v", tt.set, p.Definition)
		}
		a, err := ParseArguments(table("x-consumer-timeout", tt.set), "/", "q", true, false, false)
		if err != nil || a.ConsumerTimeout != tt.want {
			t.Errorf("x-consumer-timeout %d is %d, error %v, want %d", tt.set, a.ConsumerTimeout, err, tt.want)
		}
	}
}

func TestEffectiveDeadLetter(t *testing.T) {
	policy := Merge(&NamedDefinition{"p", Definition{"dead-letter-exchange": "px", "dead-letter-routing-key": "pk"}}, nil)
	with := func(t *Target) Arguments {
		a := NewArguments()
		a.DeadLetter = t
		return a
	}
	for _, tt := range []struct {
		a    Arguments
		p    Policy
		want *Target
	}{
		{with(nil), policy, &Target{"px", "pk", true}},
		{with(&Target{Exchange: "ax"}), policy, &Target{"ax", "pk", true}},
		{with(&Target{"ax", "", true}), policy, &Target{"ax", "", true}},
		{with(&Target{Exchange: ""}), Merge(nil, nil), &Target{}},
		{with(nil), Merge(&NamedDefinition{"p", Definition{"dead-letter-routing-key": "pk"}}, nil), nil},
	} {
		if got := Effective(tt.a, tt.p).DeadLetter; !reflect.DeepEqual(got, tt.want) {
			t.Errorf("arguments %v, policy %v: %+v, want %+v", tt.a.DeadLetter, tt.p.Definition, got, tt.want)
		}
	}
}

func TestWindow(t *testing.T) {
	var w Window
	if w.Limited() || w.Take(5) != 5 {
		t.Error("a window without limit has one")
	}
	w.SetLimit(7)
	if w.Room() != 2 || w.Take(5) != 2 || w.Take(1) != 0 || w.Room() != 0 {
		t.Errorf("room %d", w.Room())
	}
	w.Force(1)
	if w.Give(1) {
		t.Error("a place beyond the limit makes room")
	}
	if !w.Give(1) || w.Give(1) {
		t.Error("Give does not tell the moment when there is room again")
	}
}

func TestBudget(t *testing.T) {
	b := NewBudget(800)
	b.Add(800)
	if b.Exceeded() || b.Pressed() {
		t.Error("exceeded at the limit")
	}
	b.Add(1)
	if !b.Exceeded() || b.Pressed() || b.Excess() != 101 {
		t.Errorf("exceeded %t, pressed %t, excess %d", b.Exceeded(), b.Pressed(), b.Excess())
	}
	b.Add(100)
	if !b.Pressed() || b.Used() != 901 {
		t.Errorf("pressed %t, used %d", b.Pressed(), b.Used())
	}
	b.SetLimit(0)
	if b.Exceeded() || b.Excess() > 0 || b.Limit() != 0 {
		t.Error("exceeded without a limit")
	}
}
