package cases_test

import (
	"fmt"
	"strings"
	"testing"
)

// Words of a topic: '*' is exactly one, an empty one too; '#' any number
// (kombu#2568, bunny-mock#37).
func TestTopicWords(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("x", "topic", "", nil))
	patterns := []string{"#", "*", "a.#", "#.z", "a.*.c", "*.*", "a..c", "", "#.#", "a.#.z", "*.#", "A", "*.", ".*", "#.*.#", "a.*.#.c"}
	for i, p := range patterns {
		q := fmt.Sprintf("q%d", i)
		c.ok(c.declare(q, "x", nil))
		c.is(c.bind(q, "x", p, nil), "ok")
	}
	for _, tt := range []struct{ key, want string }{
		{"", "#  #.#"},
		{"a", "# * a.# #.# *.# #.*.#"},
		{"a.b", "# a.# *.* #.# *.# #.*.#"},
		{"a.b.c", "# a.# a.*.c #.# *.# #.*.# a.*.#.c"},
		{"a..c", "# a.# a.*.c a..c #.# *.# #.*.# a.*.#.c"},
		{"a.b.x.c", "# a.# #.# *.# #.*.# a.*.#.c"},
		{"a.c", "# a.# *.* #.# *.# #.*.#"},
		{"z", "# * #.z #.# *.# #.*.#"},
		{"a.z", "# a.# #.z *.* #.# a.#.z *.# #.*.#"},
		{"a.b.y.z", "# a.# #.z #.# a.#.z *.# #.*.#"},
		{".", "# *.* #.# *.# *. .* #.*.#"},
		{"a.", "# a.# *.* #.# *.# *. #.*.#"},
		{".a", "# *.* #.# *.# .* #.*.#"},
		{"A", "# * #.# *.# A #.*.#"},
		{"#", "# * #.# *.# #.*.#"},
		{"*", "# * #.# *.# #.*.#"},
	} {
		c.is(c.put("x", tt.key, "m", props{}, ""), "ack")
		var got []string
		for i, p := range patterns {
			if c.bodies(fmt.Sprintf("q%d", i)) == "m" {
				got = append(got, p)
			}
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("key %q: matched %q, want %q", tt.key, text, tt.want)
		}
	}
}

// A pattern is gone when its last binding is, and only then.
func TestTopicUnbind(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("x", "topic", "", nil))
	for _, q := range []string{"q1", "q2"} {
		c.ok(c.declare(q, "x", nil))
		c.is(c.bind(q, "x", "a.#", nil), "ok")
		c.is(c.bind(q, "x", "a.*", nil), "ok")
		c.is(c.bind(q, "x", "a.#", table{"n", 1}), "ok")
	}
	route := func() string {
		c.is(c.put("x", "a.b", "m", props{}, ""), "ack")
		return c.bodies("q1") + "," + c.bodies("q2")
	}
	c.is(c.unbind("q1", "x", "a.#", nil), "ok")
	c.is(c.unbind("q1", "x", "a.*", nil), "ok")
	c.is(route(), "m,m") // by the binding with arguments
	c.is(c.unbind("q1", "x", "a.#", table{"n", 2}), "ok")
	c.is(route(), "m,m") // no such binding
	c.is(c.unbind("q1", "x", "a.#", table{"n", 1}), "ok")
	c.is(route(), ",m")
	c.is(c.unbind("q1", "x", "a.#", table{"n", 1}), "ok") // again
	c.is(c.remove("q2", ""), "ok 0")
	c.is(c.put("x", "a.b", "m", props{}, "m"), `return 312 NO_ROUTE x/a.b "m", ack`)
}

// A binding belongs to one exchange, whatever its key (rabbitmq-server#16425).
func TestEmptyKeyStaysInItsExchange(t *testing.T) {
	for _, kind := range []string{"topic", "direct"} {
		t.Run(kind, func(t *testing.T) {
			c := connect(t)
			for _, n := range []string{"a", "b"} {
				c.ok(c.exchange("x"+n, kind, "", nil))
				c.ok(c.declare("q"+n, "x", nil))
				c.is(c.bind("q"+n, "x"+n, "", nil), "ok")
				c.ok(c.declare("k"+n, "x", nil))
				c.is(c.bind("k"+n, "x"+n, "k", nil), "ok")
			}
			c.is(c.put("xa", "", "m", props{}, ""), "ack")
			c.is(c.bodies("qa")+","+c.bodies("qb")+","+c.bodies("ka")+","+c.bodies("kb"), "m,,,")
		})
	}
}

// Headers bindings against headers (rabbitmq-server#4143, #4203; lavinmq
// failed on tables).
func TestHeadersMatch(t *testing.T) {
	for _, tt := range []struct {
		name             string
		binding, headers table
		match            bool
	}{
		{"any skips x- keys", table{"x-match", "any", "x-foo", "1"}, table{"x-foo", "1"}, false},
		{"all skips x- keys", table{"x-match", "all", "x-foo", "1"}, table{"x-foo", "2"}, true},
		{"all skips x- keys without headers", table{"x-match", "all", "x-foo", "1"}, nil, true},
		{"any-with-x equal", table{"x-match", "any-with-x", "x-foo", "1"}, table{"x-foo", "1"}, true},
		{"any-with-x different", table{"x-match", "any-with-x", "x-foo", "1"}, table{"x-foo", "2"}, false},
		{"all-with-x equal", table{"x-match", "all-with-x", "x-foo", "1", "a", 1}, table{"x-foo", "1", "a", 1}, true},
		{"all-with-x missing", table{"x-match", "all-with-x", "x-foo", "1", "a", 1}, table{"a", 1}, false},
		{"any-with-x does not count x-match", table{"x-match", "any-with-x"}, table{"x-match", "any-with-x"}, false},
		{"table", table{"t", table{"a", 1}}, table{"t", table{"a", 1}}, true},
		{"table of another value", table{"t", table{"a", 1}}, table{"t", table{"a", 2}}, false},
		{"table of more", table{"t", table{"a", 1}}, table{"t", table{"a", 1, "b", 1}}, false},
		{"array", table{"l", array{1, 2}}, table{"l", array{1, 2}}, true},
		{"array in another order", table{"l", array{1, 2}}, table{"l", array{2, 1}}, false},
		{"bool", table{"b", true}, table{"b", true}, true},
		{"other bool", table{"b", true}, table{"b", false}, false},
		{"2^40", table{"n", int64(1 << 40)}, table{"n", int64(1 << 40)}, true},
		{"int widths", table{"n", 5}, table{"n", int64(5)}, true},
		{"int byte width", table{"n", uint8(200)}, table{"n", int16(200)}, true},
		{"int and double", table{"n", 1}, table{"n", 1.0}, false},
		{"float widths", table{"n", float32(1.5)}, table{"n", 1.5}, true},
		{"int and string", table{"n", 1}, table{"n", "1"}, false},
		{"int and bool", table{"n", 1}, table{"n", true}, false},
		{"string and bytes", table{"n", "a"}, table{"n", []byte("a")}, true},
		{"void tests presence", table{"n", nil}, table{"n", "whatever"}, true},
		{"void needs presence", table{"n", nil}, table{"m", 1}, false},
		{"void matches void", table{"n", nil}, table{"n", nil}, true},
		{"value against void", table{"n", 1}, table{"n", nil}, false},
		{"no arguments all", table{}, table{"n", 1}, true},
		{"no arguments any", table{"x-match", "any"}, table{"n", 1}, false},
		{"all of two, one given", table{"a", 1, "b", 2}, table{"a", 1}, false},
		{"all of two among more", table{"a", 1, "b", 2}, table{"c", 3, "b", 2, "a", 1}, true},
		{"any of two", table{"x-match", "any", "a", 1, "b", 2}, table{"b", 2}, true},
		{"any with the wrong values", table{"x-match", "any", "a", 1, "b", 2}, table{"a", 2, "b", 1}, false},
		{"names are case-sensitive", table{"a", 1}, table{"A", 1}, false},
		{"empty string", table{"a", ""}, table{"a", ""}, true},
		{"decimal", table{"a", decimal{2, 314}}, table{"a", decimal{2, 314}}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.exchange("x", "headers", "", nil))
			c.ok(c.declare("q", "x", nil))
			c.is(c.bind("q", "x", "", tt.binding), "ok")
			want := ""
			if tt.match {
				want = "m"
			}
			c.is(c.put("x", "any key", "m", props{headers: tt.headers}, ""), "ack")
			c.is(c.bodies("q"), want)
		})
	}
}

func TestHeadersBindingRefused(t *testing.T) {
	for _, tt := range []struct {
		args table
		want string
	}{
		{table{"x-match", "foo"}, `channel 406 PRECONDITION_FAILED - Invalid x-match field value <<"foo">>; expected all, any, all-with-x, or any-with-x (50,20)`},
		{table{"x-match", 1}, "channel 406 PRECONDITION_FAILED - Invalid x-match field type signedint (value 1); expected longstr (50,20)"},
		{table{"x-match", ""}, `channel 406 PRECONDITION_FAILED - Invalid x-match field value <<>>; expected all, any, all-with-x, or any-with-x (50,20)`},
	} {
		c := connect(t)
		c.ok(c.exchange("x", "headers", "", nil))
		c.ok(c.declare("q", "x", nil))
		c.is(c.bind("q", "x", "", tt.args), tt.want)
	}
}

// An alternate exchange takes what its exchange cannot route; what that
// reaches is not returned (NServiceBus.RabbitMQ#135, rabbitmq-website#1623).
func TestAlternateExchange(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("ae", "fanout", "", nil))
	c.ok(c.exchange("x", "direct", "", table{"alternate-exchange", c.name("ae")}))
	c.is(c.put("x", "k", "1", props{}, "m"), `return 312 NO_ROUTE x/k "1", ack`) // no binding there yet
	c.ok(c.declare("q", "x", nil))
	c.is(c.bind("q", "ae", "", nil), "ok")
	c.is(c.put("x", "k", "2", props{}, "m"), "ack")
	c.is(c.take("q"), `#1 x/k "2" left 0`)
	c.ok(c.declare("direct", "x", nil))
	c.is(c.bind("direct", "x", "k", nil), "ok")
	c.is(c.put("x", "k", "3", props{}, "m"), "ack")
	c.is(c.bodies("q")+"/"+c.bodies("direct"), "/3")
	c.is(c.exchange("y", "direct", "", table{"alternate-exchange", c.name("missing")}), "ok")
	c.is(c.put("y", "k", "4", props{}, "m"), `return 312 NO_ROUTE y/k "4", ack`)
	c.is(c.put("y", "k", "5", props{}, ""), "ack")
	// The alternate exchange may come later, and go.
	c.ok(c.exchange("missing", "fanout", "", nil))
	c.is(c.bind("q", "missing", "", nil), "ok")
	c.is(c.put("y", "k", "6", props{}, "m"), "ack")
	c.is(c.bodies("q"), "6")
	c.is(c.removeExchange("missing", ""), "ok")
	c.is(c.put("y", "k", "7", props{}, "m"), `return 312 NO_ROUTE y/k "7", ack`)
}

// Alternates form chains and cycles, and look at destinations, not queues.
func TestAlternateExchangeChains(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("a", "direct", "", table{"alternate-exchange", c.name("b")}))
	c.ok(c.exchange("b", "direct", "", table{"alternate-exchange", c.name("c")}))
	c.ok(c.exchange("c", "direct", "", table{"alternate-exchange", c.name("a")}))
	c.is(c.put("a", "k", "1", props{}, "m"), `return 312 NO_ROUTE a/k "1", ack`)
	c.ok(c.declare("q", "x", nil))
	c.is(c.bind("q", "c", "k", nil), "ok")
	c.is(c.put("a", "k", "2", props{}, "m"), "ack")
	c.is(c.bodies("q"), "2")
	// An exchange without queues is a destination all the same.
	c.ok(c.exchange("dead", "fanout", "", nil))
	c.is(c.link("dead", "a", "k", nil), "ok")
	c.is(c.put("a", "k", "3", props{}, "m"), `return 312 NO_ROUTE a/k "3", ack`)
	c.is(c.bodies("q"), "")
	// The default exchange is no alternate.
	c.ok(c.exchange("d", "direct", "", table{"alternate-exchange", ""}))
	c.is(c.put("d", c.name("q"), "4", props{}, "m"), `return 312 NO_ROUTE d/q "4", ack`)
}

// Declarations that are refused (MassTransit#911, #3492, wolverine#1464).
func TestExchangeDeclareTexts(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(c *channel) string
		want string
	}{
		{"unknown type", func(c *channel) string { return c.exchange("new", "nosuch", "", nil) }, "channel 406 PRECONDITION_FAILED - unknown exchange type 'nosuch' (40,10)"},
		{"unknown type of an existing one", func(c *channel) string { return c.exchange("x", "nosuch", "", nil) }, "channel 406 PRECONDITION_FAILED - unknown exchange type 'nosuch' (40,10)"},
		{"no type", func(c *channel) string { return c.exchange("new", "", "", nil) }, "channel 406 PRECONDITION_FAILED - invalid exchange type '' (40,10)"},
		{"unknown type, passive", func(c *channel) string { return c.exchange("x", "nosuch", "p", nil) }, "ok"},
		{"other type, passive", func(c *channel) string { return c.exchange("x", "fanout", "pdi", nil) }, "ok"},
		{"same", func(c *channel) string { return c.exchange("x", "direct", "", nil) }, "ok"},
		{"other arguments are not compared", func(c *channel) string { return c.exchange("x", "direct", "", table{"foo", 1}) }, "ok"},
		{"type", func(c *channel) string { return c.exchange("x", "fanout", "dai", nil) }, "channel 406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct' (40,10)"},
		{"durable", func(c *channel) string { return c.exchange("x", "direct", "dai", nil) }, "channel 406 PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost '/': received 'true' but current is 'false' (40,10)"},
		{"auto-delete", func(c *channel) string { return c.exchange("x", "direct", "ai", nil) }, "channel 406 PRECONDITION_FAILED - inequivalent arg 'auto_delete' for exchange 'x' in vhost '/': received 'true' but current is 'false' (40,10)"},
		{"internal", func(c *channel) string { return c.exchange("x", "direct", "i", nil) }, "channel 406 PRECONDITION_FAILED - inequivalent arg 'internal' for exchange 'x' in vhost '/': received 'true' but current is 'false' (40,10)"},
		{"type of a plugin", func(c *channel) string { return c.exchange("x", "x-consistent-hash", "", nil) }, "channel 406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': received ''x-consistent-hash'' but current is 'direct' (40,10)"},
		{"alternate added", func(c *channel) string {
			return c.exchange("x", "direct", "", table{"alternate-exchange", "ae"})
		}, "channel 406 PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' for exchange 'x' in vhost '/': received the value 'ae' of type 'longstr' but current is none (40,10)"},
		{"alternate of another type", func(c *channel) string { return c.exchange("new", "direct", "", table{"alternate-exchange", 1}) },
			"channel 406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'new' in vhost '/' (40,10)"},
		{"default", func(c *channel) string { return c.exchange("", "direct", "", nil) }, "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange (40,10)"},
		{"default, passive", func(c *channel) string { return c.exchange("", "direct", "p", nil) }, "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange (40,10)"},
		{"reserved", func(c *channel) string { return c.exchange("amq.foo", "direct", "", nil) }, "channel 403 ACCESS_REFUSED - exchange name 'amq.foo' contains reserved prefix 'amq.*' (40,10)"},
		{"reserved, passive", func(c *channel) string { return c.exchange("amq.foo", "direct", "p", nil) }, "channel 404 NOT_FOUND - no exchange 'amq.foo' in vhost '/' (40,10)"},
		{"predeclared", func(c *channel) string { return c.exchange("amq.topic", "topic", "d", nil) }, "ok"},
		{"predeclared, other flags", func(c *channel) string { return c.exchange("amq.topic", "topic", "", nil) }, "channel 406 PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'amq.topic' in vhost '/': received 'false' but current is 'true' (40,10)"},
		{"missing, passive", func(c *channel) string { return c.exchange("new", "direct", "p", nil) }, "channel 404 NOT_FOUND - no exchange 'new' in vhost '/' (40,10)"},
		{"delete predeclared", func(c *channel) string { return c.removeExchange("amq.direct", "") }, "channel 403 ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed (40,20)"},
		{"delete reserved that is missing", func(c *channel) string { return c.removeExchange("amq.foo", "") }, "channel 403 ACCESS_REFUSED - deletion of system exchange 'amq.foo' in vhost '/' not allowed (40,20)"},
		{"delete default", func(c *channel) string { return c.removeExchange("", "") }, "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange (40,20)"},
		{"delete missing", func(c *channel) string { return c.removeExchange("new", "") }, "ok"},
		{"delete missing if unused", func(c *channel) string { return c.removeExchange("new", "u") }, "ok"},
		{"bind to default", func(c *channel) string { c.ok(c.declare("q", "x", nil)); return c.bind("q", "", "k", nil) }, "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange (50,20)"},
		{"unbind from default", func(c *channel) string { c.ok(c.declare("q", "x", nil)); return c.unbind("q", "", c.name("q"), nil) }, "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange (50,50)"},
		{"bind missing queue", func(c *channel) string { return c.bind("nope", "x", "k", nil) }, "channel 404 NOT_FOUND - no queue 'nope' in vhost '/' (50,20)"},
		{"bind to missing exchange", func(c *channel) string { c.ok(c.declare("q", "x", nil)); return c.bind("q", "nope", "k", nil) }, "channel 404 NOT_FOUND - no exchange 'nope' in vhost '/' (50,20)"},
		{"bind, both missing", func(c *channel) string { return c.bind("nope", "nox", "k", nil) }, "channel 404 NOT_FOUND - no exchange 'nox' in vhost '/' (50,20)"},
		{"unbind, both missing", func(c *channel) string { return c.unbind("nope", "nox", "k", nil) }, "ok"},
		{"unbind another's exclusive queue, not bound", func(c *channel) string {
			c.ok(c.again(login{}).declare("q", "x", nil))
			return c.unbind("q", "x", "k", nil)
		}, "ok"},
		{"unbind another's exclusive queue", func(c *channel) string {
			other := c.again(login{})
			other.ok(other.declare("q", "x", nil))
			other.ok(other.bind("q", "x", "k", nil))
			return c.unbind("q", "x", "k", nil)
		}, "channel 405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration. (50,50)"},
		{"link to default", func(c *channel) string { return c.link("", "x", "k", nil) }, "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange (40,30)"},
		{"link from default", func(c *channel) string { return c.link("x", "", "k", nil) }, "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange (40,30)"},
		{"link missing destination", func(c *channel) string { return c.link("nope", "x", "k", nil) }, "channel 404 NOT_FOUND - no exchange 'nope' in vhost '/' (40,30)"},
		{"link missing source", func(c *channel) string { return c.link("x", "nope", "k", nil) }, "channel 404 NOT_FOUND - no exchange 'nope' in vhost '/' (40,30)"},
		{"unlink missing", func(c *channel) string { return c.unlink("x", "nope", "k", nil) }, "ok"},
		{"publish to missing", func(c *channel) string { return c.put("nope", "k", "m", props{}, "") }, "channel 404 NOT_FOUND - no exchange 'nope' in vhost '/' (60,40)"},
		{"publish to internal", func(c *channel) string {
			c.ok(c.exchange("int", "direct", "i", nil))
			return c.put("int", "k", "m", props{}, "")
		}, "channel 403 ACCESS_REFUSED - cannot publish to internal exchange 'int' in vhost '/' (60,40)"},
		{"publish to the tracer's", func(c *channel) string { return c.put("amq.rabbitmq.trace", "k", "m", props{}, "") }, "channel 403 ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/' (60,40)"},
		{"if-unused of a source", func(c *channel) string {
			c.ok(c.declare("q", "x", nil))
			c.ok(c.bind("q", "x", "k", nil))
			return c.removeExchange("x", "u")
		}, "channel 406 PRECONDITION_FAILED - exchange 'x' in vhost '/' in use (40,20)"},
		{"if-unused of a destination", func(c *channel) string { c.ok(c.link("x", "amq.fanout", "", nil)); return c.removeExchange("x", "u") }, "ok"},
		{"CR and LF are taken out of names", func(c *channel) string { return c.exchange("x\r\n", "direct", "", nil) }, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.exchange("x", "direct", "", nil))
			c.is(tt.do(c), tt.want)
		})
	}
}

// CC and BCC are further routing keys; a queue gets one copy (node-amqp#95,
// rabbitmq-delimiter-exchange#9, lavinmq#1550).
func TestCarbonCopies(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("x", "direct", "", nil))
	for _, q := range []string{"a", "b", "c"} {
		c.ok(c.declare(q, "x", nil))
		c.is(c.bind(q, "x", q, nil), "ok")
	}
	c.is(c.bind("a", "x", "b", nil), "ok")
	c.is(c.put("x", "a", "m", props{headers: table{"BCC", array{"c"}, "CC", array{"b"}, "k", 1}}, ""), "ack")
	for _, q := range []string{"a", "b", "c"} {
		c.is(c.take(q)[3:], `x/a "m" left 0`)
		c.is(c.props(), `headers={CC:["b"] k:I1}`)
	}
	// Returned as it was published.
	c.is(c.put("x", "n", "m", props{headers: table{"BCC", array{"o"}}}, "m"), `return 312 NO_ROUTE x/n "m", ack`)
	// What is no text is no key.
	c.is(c.put("x", "n", "m", props{headers: table{"CC", array{1, "c", table{}}}}, ""), "ack")
	c.is(c.bodies("a")+"/"+c.bodies("b")+"/"+c.bodies("c"), "//m")
	// Through the default exchange too.
	c.is(c.put("", "a", "m", props{headers: table{"CC", array{c.name("b"), c.name("b")}}}, ""), "ack")
	c.is(c.bodies("a")+"/"+c.bodies("b")+"/"+c.bodies("c"), "m/m/")
	for header, value := range map[string]any{"CC": "b", "BCC": table{"b", 1}} {
		got := c.put("x", "a", "m", props{headers: table{header, value}}, "")
		c.is(got, fmt.Sprintf("channel 406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,%q,%s} (60,40)",
			header, map[string]string{"CC": "longstr", "BCC": "table"}[header]))
	}
}

// The publisher's own copy has no BCC either.
func TestReturnedMessageHasNoBCC(t *testing.T) {
	c := connect(t)
	c.publish("amq.direct", "no-such-key", "m", props{headers: table{"BCC", array{"no-such-key-either"}, "CC", array{"nor-this"}}}, "m")
	c.want(`return 312 NO_ROUTE amq.direct/no-such-key "m"`)
	c.is(c.props(), `headers={CC:["nor-this"]}`)
}

// Cycles of exchanges deliver once (lavinmq#1495).
func TestExchangeCycles(t *testing.T) {
	c := connect(t)
	for _, x := range []string{"a", "b"} {
		c.ok(c.exchange(x, "fanout", "", nil))
	}
	c.ok(c.declare("q", "x", nil))
	c.is(c.link("a", "b", "", nil), "ok")
	c.is(c.link("b", "a", "", nil), "ok")
	c.is(c.link("a", "a", "", nil), "ok")
	c.is(c.bind("q", "a", "", nil), "ok")
	c.is(c.bind("q", "b", "", nil), "ok")
	c.is(c.put("a", "k", "1", props{}, ""), "ack")
	c.is(c.put("b", "k", "2", props{}, ""), "ack")
	c.is(c.bodies("q"), "1 2")
	c.is(c.unlink("b", "a", "", nil), "ok")
	c.is(c.unbind("q", "a", "", nil), "ok")
	c.is(c.put("a", "k", "3", props{}, ""), "ack")
	c.is(c.put("b", "k", "4", props{}, ""), "ack")
	c.is(c.bodies("q"), "4")
}

// An auto-delete exchange goes with its last binding as a source, however that
// goes (and never before it had one).
func TestAutoDeleteExchange(t *testing.T) {
	gone := "channel 404 NOT_FOUND - no exchange 'x' in vhost '/' (40,10)"
	for _, tt := range []struct {
		name string
		do   func(c *channel) string
		want string
	}{
		{"never bound", func(c *channel) string { return "ok" }, "ok"},
		{"unbound", func(c *channel) string { c.ok(c.bind("q", "x", "k", nil)); return c.unbind("q", "x", "k", nil) }, gone},
		{"one of two unbound", func(c *channel) string {
			c.ok(c.bind("q", "x", "k", nil))
			c.ok(c.bind("q", "x", "l", nil))
			return c.unbind("q", "x", "k", nil)
		}, "ok"},
		{"unbind of what is not bound", func(c *channel) string { return c.unbind("q", "x", "k", nil) }, "ok"},
		{"queue deleted", func(c *channel) string { c.ok(c.bind("q", "x", "k", nil)); return c.remove("q", "") }, gone},
		{"destination exchange deleted", func(c *channel) string {
			c.ok(c.exchange("d", "fanout", "", nil))
			c.ok(c.link("d", "x", "k", nil))
			return c.removeExchange("d", "")
		}, gone},
		{"unlinked", func(c *channel) string {
			c.ok(c.exchange("d", "fanout", "", nil))
			c.ok(c.link("d", "x", "k", nil))
			return c.unlink("d", "x", "k", nil)
		}, gone},
		{"unlinked as a destination", func(c *channel) string {
			c.ok(c.link("x", "amq.fanout", "", nil))
			return c.unlink("x", "amq.fanout", "", nil)
		}, "ok"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := connect(t)
			c.ok(c.exchange("x", "direct", "a", nil))
			c.ok(c.declare("q", "x", nil))
			c.ok(tt.do(c))
			c.is(c.exchange("x", "direct", "p", nil), tt.want)
		})
	}
}

// The chain of auto-delete exchanges goes as a whole.
func TestAutoDeleteExchangeChain(t *testing.T) {
	c := connect(t)
	for _, x := range []string{"a", "b", "c"} {
		c.ok(c.exchange(x, "fanout", "a", nil))
	}
	c.ok(c.link("b", "a", "", nil))
	c.ok(c.link("c", "b", "", nil))
	c.ok(c.declare("q", "x", nil))
	c.ok(c.bind("q", "c", "", nil))
	c.is(c.remove("q", ""), "ok 0")
	for _, x := range []string{"a", "b", "c"} {
		c.is(c.exchange(x, "fanout", "p", nil), "channel 404 NOT_FOUND - no exchange '"+x+"' in vhost '/' (40,10)")
	}
}

// Internal exchanges get what other exchanges and dead letters bring.
func TestInternalExchangeTakesExchangesAndDeadLetters(t *testing.T) {
	c := connect(t)
	c.ok(c.exchange("int", "fanout", "i", nil))
	c.ok(c.exchange("x", "fanout", "", nil))
	c.ok(c.link("int", "x", "", nil))
	c.ok(c.declare("q", "x", nil))
	c.ok(c.bind("q", "int", "", nil))
	c.is(c.put("x", "k", "1", props{}, ""), "ack")
	c.is(c.bodies("q"), "1")
	c.ok(c.declare("d", "x", table{"x-dead-letter-exchange", c.name("int")}))
	c.puts("d", "2")
	c.get("d")
	c.reject(2, "")
	c.eventually("1 0", func() string { return c.depth("q") })
}
