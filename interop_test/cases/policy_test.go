package cases_test

import (
	"fmt"
	"testing"
	"time"
)

// inVHost connects to a vhost of the test's own.
func inVHost(t *testing.T, set func(v string)) *channel {
	t.Helper()
	v := vhostOf(t, "")
	if set != nil {
		set(v)
	}
	return connectAs(t, login{vhost: v})
}

// A policy takes effect on queues that exist, and never on equivalence.
func TestPolicyOnRunningQueues(t *testing.T) {
	v := vhostOf(t, "")
	c := connectAs(t, login{vhost: v})
	c.ok(c.declare("dead", "d", nil))
	c.ok(c.declare("q", "d", nil))
	c.puts("q", "1", "2", "3", "4")
	mustAdmin(t, administration.putPolicy(v, "limit", policy{pattern: "^q", applyTo: "queues",
		definition: map[string]any{"max-length": 2, "dead-letter-exchange": "", "dead-letter-routing-key": c.name("dead")}}))
	c.eventually("2 0/2 0", func() string { return c.depth("q") + "/" + c.depth("dead") })
	c.is(c.bodies("dead"), "1 2")
	c.is(c.declare("q", "d", nil), "ok q 2 0")
	c.ok(c.declare("q2", "d", nil)) // matches from the start
	c.puts("q2", "1", "2", "3")
	c.eventually("1 0", func() string { return c.depth("dead") })
	mustAdmin(t, administration.deletePolicy(v, "limit", false))
	c.eventually("4 0", func() string { c.puts("q2", "x", "x"); return "4 0" })
	c.eventually("4 0", func() string { return c.depth("q2") })
}

// The argument wins or the smaller value, an operator policy on top.
func TestPolicyAgainstArguments(t *testing.T) {
	for _, tt := range []struct {
		name             string
		args             table
		policy, operator map[string]any
		publish, keep    int
		verdict          string
	}{
		{"smaller argument", table{"x-max-length", 2}, map[string]any{"max-length": 3}, nil, 5, 2, "ack"},
		{"smaller policy", table{"x-max-length", 3}, map[string]any{"max-length": 2}, nil, 5, 2, "ack"},
		{"smaller operator policy", table{"x-max-length", 4}, map[string]any{"max-length": 3}, map[string]any{"max-length": 2}, 5, 2, "ack"},
		{"operator policy alone", nil, nil, map[string]any{"max-length": 2}, 5, 2, "ack"},
		{"overflow of the argument", table{"x-max-length", 4, "x-overflow", "reject-publish"}, map[string]any{"max-length": 5}, map[string]any{"max-length": 3, "overflow": "drop-head"}, 5, 3, "nack"},
		{"overflow of the policy", table{"x-max-length", 2}, map[string]any{"overflow": "reject-publish"}, nil, 5, 2, "nack"},
		{"overflow of the operator", table{"x-max-length", 2}, map[string]any{"overflow": "drop-head"}, map[string]any{"overflow": "reject-publish"}, 5, 2, "nack"},
		{"bytes", nil, map[string]any{"max-length-bytes": 3}, nil, 5, 3, "ack"},
		{"a key the type does not know voids the policy", nil, map[string]any{"max-length": 2, "dead-letter-strategy": "at-most-once"}, nil, 5, 5, "ack"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := inVHost(t, func(v string) {
				if tt.policy != nil {
					mustAdmin(t, administration.putPolicy(v, "p", policy{pattern: ".*", applyTo: "queues", definition: tt.policy}))
				}
				if tt.operator != nil {
					mustAdmin(t, administration.putPolicy(v, "o", policy{pattern: ".*", applyTo: "queues", definition: tt.operator, operator: true}))
				}
			})
			c.ok(c.declare("q", "d", tt.args))
			last := ""
			for i := range tt.publish {
				last = c.put("", "q", fmt.Sprint(i), props{}, "")
			}
			c.is(last, tt.verdict)
			c.is(c.depth("q"), fmt.Sprint(tt.keep, " 0"))
		})
	}
}

// One policy applies: the one of the highest priority that fits.
func TestOnePolicyApplies(t *testing.T) {
	c := inVHost(t, func(v string) {
		for _, p := range []struct {
			name, pattern, to string
			priority, n       int
		}{{"a", ".*", "all", 0, 4}, {"b", "^q", "queues", 5, 3}, {"c", "^q", "exchanges", 9, 1}, {"d", "^q", "quorum_queues", 9, 1}, {"e", "^x", "classic_queues", 1, 2}} {
			mustAdmin(t, administration.putPolicy(v, p.name, policy{pattern: p.pattern, applyTo: p.to, priority: p.priority, definition: map[string]any{"max-length": p.n}}))
		}
	})
	for queue, keep := range map[string]int{"q": 3, "x": 2, "other": 4} {
		c.ok(c.declare(queue, "d", nil))
		c.puts(queue, "1", "2", "3", "4", "5")
		c.is(c.depth(queue), fmt.Sprint(keep, " 0"))
	}
}

// TTL, expiry and alternate exchange by policy.
func TestPolicyTimesAndAlternateExchange(t *testing.T) {
	t.Parallel()
	v := vhostOf(t, "")
	c := connectAs(t, login{vhost: v})
	c.ok(c.declare("ttl", "d", nil))
	c.ok(c.declare("lease", "d", nil))
	c.puts("ttl", "m")
	c.ok(c.exchange("ae", "fanout", "", nil))
	c.ok(c.exchange("x", "direct", "", nil))
	c.ok(c.declare("caught", "d", nil))
	c.ok(c.bind("caught", "ae", "", nil))
	mustAdmin(t, administration.putPolicy(v, "t", policy{pattern: "^ttl", applyTo: "queues", definition: map[string]any{"message-ttl": 100}}))
	mustAdmin(t, administration.putPolicy(v, "e", policy{pattern: "^lease", applyTo: "queues", definition: map[string]any{"expires": 300}}))
	mustAdmin(t, administration.putPolicy(v, "a", policy{pattern: "^x", applyTo: "exchanges", definition: map[string]any{"alternate-exchange": c.name("ae")}}))
	c.is(c.put("x", "k", "m", props{}, "m"), "ack")
	c.is(c.bodies("caught"), "m")
	c.puts("ttl", "n")
	c.gone("lease")
	c.pause(200 * time.Millisecond)
	c.is(c.bodies("ttl"), "m") // it came before the policy, and n expired behind it
	c.puts("ttl", "o")
	c.eventually("0 0", func() string { return c.depth("ttl") })
	mustAdmin(t, administration.deletePolicy(v, "a", false))
	c.is(c.put("x", "k", "m", props{}, "m"), `return 312 NO_ROUTE x/k "m", ack`)
}

// consumer-timeout by policy is enforced (lavinmq#2189).
func TestConsumerTimeoutByPolicy(t *testing.T) {
	t.Parallel()
	c := inVHost(t, func(v string) {
		mustAdmin(t, administration.putPolicy(v, "p", policy{pattern: ".*", applyTo: "queues", definition: map[string]any{"consumer-timeout": 1000}}))
	})
	c.ok(c.declare("q", "d", nil))
	c.ok(c.declare("r", "d", table{"x-consumer-timeout", 3_600_000}))
	for _, q := range []string{"q", "r"} {
		c.puts(q, "m")
	}
	c.ok(c.on(2).consume("q", "t", "", nil))
	c.on(2).want(`deliver t #1 /q "m"`)
	c.is(c.on(2).nextWithin(130*time.Second), "channel 406 PRECONDITION_FAILED - delivery acknowledgement on channel 2 timed out. "+
		"Timeout value used: 1000 ms. This timeout value can be configured, see consumers doc guide to learn more (0,0)")
}

// Bad policies are refused (lavinmq#2015, lavinmq#1199).
func TestPolicyValidation(t *testing.T) {
	v := vhostOf(t, "")
	def := func(k string, value any) map[string]any { return map[string]any{k: value} }
	for _, tt := range []struct {
		name string
		p    policy
		ok   bool
	}{
		{"classic_queues", policy{pattern: "a", applyTo: "classic_queues", definition: def("max-length", 1)}, true},
		{"quorum_queues", policy{pattern: "a", applyTo: "quorum_queues", definition: def("max-length", 1)}, true},
		{"streams", policy{pattern: "a", applyTo: "streams", definition: def("max-length", 1)}, true},
		{"foo", policy{pattern: "a", applyTo: "foo", definition: def("max-length", 1)}, false},
		{"text as a number", policy{pattern: "a", applyTo: "all", definition: def("max-length", "5")}, false},
		{"fraction", policy{pattern: "a", applyTo: "all", definition: def("max-length", 1.5)}, false},
		{"negative", policy{pattern: "a", applyTo: "all", definition: def("max-length", -1)}, false},
		{"unknown key", policy{pattern: "a", applyTo: "all", definition: def("nosuch", 5)}, false},
		{"ha-mode", policy{pattern: "a", applyTo: "all", definition: def("ha-mode", "all")}, false},
		{"bad pattern", policy{pattern: "(a", applyTo: "all", definition: def("max-length", 1)}, false},
		{"empty definition", policy{pattern: "a", applyTo: "all", definition: map[string]any{}}, false},
		{"ttl 0", policy{pattern: "a", applyTo: "all", definition: def("message-ttl", 0)}, true},
		{"expires 0", policy{pattern: "a", applyTo: "all", definition: def("expires", 0)}, false},
		{"consumer-timeout", policy{pattern: "a", applyTo: "all", definition: def("consumer-timeout", 1000)}, true},
		{"overflow", policy{pattern: "a", applyTo: "all", definition: def("overflow", "x")}, false},
		{"max-priority is an argument only", policy{pattern: "a", applyTo: "all", definition: def("max-priority", 5)}, false},
		{"operator, dead-letter-exchange", policy{pattern: "a", applyTo: "all", definition: def("dead-letter-exchange", "x"), operator: true}, false},
		{"operator, expires", policy{pattern: "a", applyTo: "all", definition: def("expires", 1000), operator: true}, true},
		{"lookahead", policy{pattern: "^(?!amq\\.).*", applyTo: "all", definition: def("max-length", 1)}, true},
	} {
		err := administration.putPolicy(v, tt.name, tt.p)
		if (err == nil) != tt.ok {
			t.Errorf("%s: error %v, want accepted %v", tt.name, err, tt.ok)
		}
	}
}

// A pattern may look ahead, as many do to leave out amq. names.
func TestPolicyPatternLooksAhead(t *testing.T) {
	c := inVHost(t, func(v string) {
		mustAdmin(t, administration.putPolicy(v, "p", policy{pattern: "^(?!keep).*", applyTo: "queues", definition: map[string]any{"max-length": 1}}))
	})
	for queue, depth := range map[string]string{"keep": "3 0", "other": "1 0"} {
		c.ok(c.declare(queue, "d", nil))
		c.puts(queue, "1", "2", "3")
		c.is(c.depth(queue), depth)
	}
}
