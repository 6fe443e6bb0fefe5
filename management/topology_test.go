package management

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
)

func TestQueueLife(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", `{"durable":true,"arguments":{"x-max-length":10},"type":"ignored"}`, 201)
	a.do("PUT", "/queues/%2F/q", `{"durable":true,"arguments":{"x-max-length":10}}`, 204)
	got := a.do("GET", "/queues/%2F/q", "", 200)
	has(t, got, J{"name": "q", "vhost": "/", "durable": true, "auto_delete": false, "exclusive": false, "type": "classic", "state": "running",
		"arguments": J{"x-max-length": 10.0, "x-queue-type": "classic"}, "messages": 0.0, "consumers": 0.0, "policy": nil, "operator_policy": nil,
		"effective_policy_definition": J{}, "consumer_details": []any{}, "node": "rabbit@test"})
	has(t, got, J{"consumer_utilisation": 0.0, "consumer_capacity": 0.0}) // RabbitMQ 4.0: without consumers, too
	if stats, there := got.(J)["message_stats"]; there {
		t.Errorf("a queue that was never used has message_stats %v", stats)
	}
	has(t, a.do("PUT", "/queues/%2F/q", `{"durable":false}`, 400), J{"error": "bad_request",
		"reason": "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"})
	a.do("DELETE", "/queues/%2F/q", "", 204)
	a.do("GET", "/queues/%2F/q", "", 404)
	a.do("DELETE", "/queues/%2F/q", "", 404)
}

func TestQueueRefusals(t *testing.T) {
	a := newAPI(t, nil)
	for _, tt := range []struct {
		path, body string
		code       int
		reason     string
	}{
		{"/queues/%2F/q", `{"arguments":{"x-message-ttl":-1}}`, 400, "invalid arg 'x-message-ttl' for queue 'q' in vhost '/': {value_negative,-1}"},
		{"/queues/%2F/q", `{"node":"rabbit@other"}`, 400, "Node rabbit@other could not be contacted"},
		{"/queues/%2F/" + strings.Repeat("x", 256), `{}`, 400, "queue should be less than 255 bytes, actually was 256\n"},
		{"/queues/%2F/amq.q", `{}`, 401, "Access refused."},
		{"/queues/none/q", `{}`, 404, "vhost_not_found"},
	} {
		has(t, a.do("PUT", tt.path, tt.body, tt.code), J{"reason": tt.reason})
	}
}

func TestExchangeLife(t *testing.T) {
	a := newAPI(t, nil)
	body := `{"type":"topic","durable":true,"arguments":{"alternate-exchange":"amq.fanout"}}`
	a.do("PUT", "/exchanges/%2F/x", body, 201)
	a.do("PUT", "/exchanges/%2F/x", body, 204)
	a.is("/exchanges/%2F/x", `{"name":"x","vhost":"/","type":"topic","durable":true,"auto_delete":false,"internal":false,
		"arguments":{"alternate-exchange":"amq.fanout"},"user_who_performed_action":"guest","incoming":[],"outgoing":[]}`)
	has(t, a.do("PUT", "/exchanges/%2F/x", `{"type":"fanout"}`, 400), J{
		"reason": "inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'topic'"})
	has(t, a.do("PUT", "/exchanges/%2F/y", `{"type":"nosuch"}`, 400), J{"reason": "unknown exchange type 'nosuch'"})
	for _, known := range exchangeTypes {
		body := `{"type":"` + known.name + `","arguments":{"x-delayed-type":"direct","x-cache-size":10,"x-recent-history-length":5}}`
		a.do("PUT", "/exchanges/%2F/of-"+known.name, body, 201)
		has(t, a.do("GET", "/exchanges/%2F/of-"+known.name, "", 200), J{"type": known.name})
	}
	a.do("PUT", "/exchanges/%2F/y", ``, 201)
	has(t, a.do("GET", "/exchanges/%2F/y", "", 200), J{"type": "direct", "durable": false})
	a.do("DELETE", "/exchanges/%2F/amq.topic", "", 401)
	has(t, a.do("GET", "/exchanges/%2F/amq.default", "", 200), J{"name": ""})
	a.do("DELETE", "/exchanges/%2F/x", "", 204)
	a.do("DELETE", "/exchanges/%2F/x", "", 404)
}

func TestExchangesOfANewVHost(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/v", "", 201)
	got := names(t, a.do("GET", "/exchanges/v", "", 200), "name")
	want := []string{"", "amq.direct", "amq.fanout", "amq.headers", "amq.match", "amq.rabbitmq.trace", "amq.topic"}
	if !slices.Equal(got, want) {
		t.Errorf("exchanges %v, want %v", got, want)
	}
}

func TestBindings(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/exchanges/%2F/x", `{"type":"topic"}`, 201)
	const between = "/bindings/%2F/e/x/q/q"
	w := a.request("POST", between, `{"routing_key":"a/b #","arguments":{}}`, nil)
	if got := w.Header().Get("Location"); w.Code != 201 || got != "q/a%252Fb%2B%2523" {
		t.Errorf("POST = %d, location %q, want 201 q/a%%252Fb%%2B%%2523", w.Code, got)
	}
	a.do("POST", between, `{"routing_key":"a/b #"}`, 201) // again is no error
	one := `{"source":"x","vhost":"/","destination":"q","destination_type":"queue","routing_key":"a/b #","arguments":{},"properties_key":"a%2Fb+%23"}`
	a.is(between, `[`+one+`]`)
	a.is(between+"/a%252Fb+%2523", one) // as the location has it
	a.is(between+"/a%2Fb+%23", one)     // encoded once
	a.is(between+"/a%2Fb%20%23", one)   // the same with another blank
	a.is("/exchanges/%2F/x/bindings/source", `[`+one+`]`)
	a.is("/exchanges/%2F/none/bindings/source", `[]`)
	implicit := `{"source":"","vhost":"/","destination":"q","destination_type":"queue","routing_key":"q","arguments":{},"properties_key":"q"}`
	a.is("/queues/%2F/q/bindings", `[`+implicit+`,`+one+`]`)
	a.is("/bindings", `[`+implicit+`,`+one+`]`)
	a.do("PUT", between+"/a%252Fb+%2523", "", 405)
	a.do("DELETE", between+"/a%252Fb+%2523", "", 204)
	a.do("DELETE", between+"/a%252Fb+%2523", "", 404)
	a.is(between, `[]`)
}

func TestExchangeToExchangeBinding(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/exchanges/%2F/x", `{"type":"fanout"}`, 201)
	a.do("POST", "/bindings/%2F/e/amq.topic/e/x", `{"routing_key":null}`, 201)
	a.is("/exchanges/%2F/x/bindings/destination", `[{"source":"amq.topic","vhost":"/","destination":"x","destination_type":"exchange",
		"routing_key":"","arguments":{},"properties_key":"~"}]`)
	a.do("DELETE", "/bindings/%2F/e/amq.topic/e/x/~", "", 204)
}

func TestExchangeTypesThatAreNone(t *testing.T) {
	a := newAPI(t, nil)
	for body, reason := range map[string]string{
		`{"type":null}`: "type must be a string",
		`{"type":7}`:    "type must be a string",
		`{"type":""}`:   "unknown exchange type ''",
		`{"type":"no"}`: "unknown exchange type 'no'",
	} {
		has(t, a.do("PUT", "/exchanges/%2F/x", body, 400), J{"reason": reason})
	}
	a.do("PUT", "/exchanges/%2F/x", `{}`, 201) // direct
}

// The path ~ is the binding without a key, and not the one whose key is ~.
func TestBindingsWithATildeAreToldApart(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	const between = "/bindings/%2F/e/amq.direct/q/q"
	for _, key := range []string{"~", ""} {
		a.do("POST", between, `{"routing_key":"`+key+`"}`, 201)
	}
	has(t, a.do("GET", between+"/%257E", "", 200), J{"routing_key": "~"})
	has(t, a.do("GET", between+"/~", "", 200), J{"routing_key": ""})
	a.do("DELETE", between+"/%7E", "", 204)
	a.do("DELETE", between+"/~", "", 404)
	has(t, a.do("GET", between+"/%257E", "", 200), J{"routing_key": "~"})
}

func TestBindingListsOfUnknownVHostsAreEmpty(t *testing.T) {
	a := newAPI(t, nil)
	a.user("m", "management")
	for _, path := range []string{"/exchanges/none/x/bindings/source", "/exchanges/none/x/bindings/destination", "/queues/none/q/bindings", "/bindings/none/e/x/q/q"} {
		a.is(path, `[]`)
		if w := a.request("GET", path, "", as("m")); w.Code != 200 {
			t.Errorf("GET %s by a manager = %d, want 200", path, w.Code)
		}
		if w := a.request("GET", strings.Replace(path, "none", "%2F", 1), "", as("m")); w.Code != 401 {
			t.Errorf("GET %s of a vhost without permission = %d, want 401", path, w.Code)
		}
	}
	a.do("GET", "/bindings/none", "", 404)
	a.do("GET", "/bindings/none/e/x/z/q", "", 404)
}

func TestBindingRefusals(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	for _, tt := range []struct {
		path, body string
		code       int
	}{
		{"/bindings/%2F/e/none/q/q", `{}`, 404},
		{"/bindings/%2F/e/amq.topic/q/none", `{}`, 404},
		{"/bindings/%2F/e/amq.default/q/q", `{}`, 401},
		{"/bindings/%2F/e/amq.topic/z/q", `{}`, 404},
		{"/bindings/%2F/e/amq.headers/q/q", `{"arguments":{"x-match":"foo"}}`, 400},
		{"/bindings/%2F/e/amq.headers/q/q", `{"arguments":{"h":null}}`, 400},
	} {
		a.do("POST", tt.path, tt.body, tt.code)
	}
}

// What cannot be read back would be missing after the next start.
func TestNestedArgumentsAreRefused(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", `{"durable":true}`, 201)
	nest := func(levels int) string {
		return `{"durable":true,"arguments":` + strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels) + "}"
	}
	const reason = "arguments is no field table that can be read back: SYNTAX_ERROR - a field table is nested more than 128 deep"
	for _, tt := range []struct{ method, path string }{
		{"PUT", "/queues/%2F/deep"}, {"PUT", "/exchanges/%2F/deep"}, {"POST", "/bindings/%2F/e/amq.direct/q/q"},
	} {
		has(t, a.do(tt.method, tt.path, nest(130), 400), J{"reason": reason})
		a.do(tt.method, tt.path, nest(129), 201)
	}
	a.do("POST", "/definitions", `{"queues":[{"name":"imported","vhost":"/","auto_delete":false,`+nest(130)[1:]+`]}`, 400)
	a.do("GET", "/queues/%2F/imported", "", 404)
}

func TestPropertiesKey(t *testing.T) {
	args := tableOf(J{"n": "x"})
	for _, tt := range []struct {
		key  string
		args frames.Table
		want string
	}{
		{"", nil, "~"},
		{"50%", nil, "50%25"},
		{"a b/c~d", nil, "a+b%2Fc%7Ed"},
		{"k.*#-_!$()", nil, "k.%2A%23-_%21%24%28%29"},
		{"", args, "~xDwwhA"},
		{"k", args, "k~xDwwhA"},
	} {
		if got := propertiesKey(tt.key, tt.args); got != tt.want {
			t.Errorf("propertiesKey(%q, %v) = %q, want %q", tt.key, tt.args, got, tt.want)
		}
	}
}

func TestVHostLife(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/v", `{"description":"d","tags":"x,y"}`, 201)
	a.do("PUT", "/vhosts/v", `{"description":"d2","tracing":true}`, 204)
	has(t, a.do("GET", "/vhosts/v", "", 200), J{"name": "v", "description": "d2", "tags": []any{"x", "y"}, "tracing": true, "default_queue_type": "classic",
		"cluster_state": J{"rabbit@test": "running"}, "metadata": J{"description": "d2", "tags": []any{"x", "y"}, "default_queue_type": "classic"}})
	a.is("/permissions/v/guest", `{"user":"guest","vhost":"v","configure":".*","write":".*","read":".*"}`)
	has(t, a.do("PUT", "/vhosts/w", `{"default_queue_type":"nosuch"}`, 400), J{"error": "bad_request"})
	a.do("DELETE", "/vhosts/v", "", 204)
	a.do("DELETE", "/vhosts/v", "", 404)
	a.do("GET", "/permissions/v/guest", "", 404)
	a.do("PUT", "/vhosts/v", `{"default_queue_type":"undefined"}`, 201) // what old definitions have
}

func TestPolicies(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	body := `{"pattern":"^q","definition":{"max-length":5,"message-ttl":100},"apply-to":"queues","priority":2}`
	a.do("PUT", "/policies/%2F/p", body, 201)
	a.do("PUT", "/policies/%2F/p", body, 204)
	one := `{"vhost":"/","name":"p","pattern":"^q","apply-to":"queues","definition":{"max-length":5,"message-ttl":100},"priority":2}`
	a.is("/policies/%2F/p", one)
	a.is("/policies", `[`+one+`]`)
	a.do("PUT", "/operator-policies/%2F/o", `{"pattern":"","definition":{"max-length":3}}`, 201)
	has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"policy": "p", "operator_policy": "o",
		"effective_policy_definition": J{"max-length": 3.0, "message-ttl": 100.0}}) // at once
	a.is("/parameters/operator_policy/%2F/o", `{"value":{"pattern":"","apply-to":"all","definition":{"max-length":3},"priority":0},"vhost":"/","component":"operator_policy","name":"o"}`)
	a.do("DELETE", "/policies/%2F/p", "", 204)
	a.do("DELETE", "/policies/%2F/p", "", 404)
}

// Lists of policies are in order of priority, whichever vhost they are of.
func TestPoliciesByPriority(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/a", "", 201)
	for _, kind := range []string{"policies", "operator-policies"} {
		for path, priority := range map[string]int{"a/x": 1, "a/y": -1, "%2F/m": 0, "%2F/n": 1, "%2F/l": 1} {
			a.do("PUT", "/"+kind+"/"+path, fmt.Sprintf(`{"pattern":"","definition":{"max-length":1},"priority":%d}`, priority), 201)
		}
		if got := names(t, a.do("GET", "/"+kind, "", 200), "name"); !slices.Equal(got, []string{"y", "m", "l", "n", "x"}) {
			t.Errorf("%s: %v", kind, got)
		}
		if got := names(t, a.do("GET", "/"+kind+"/a", "", 200), "name"); !slices.Equal(got, []string{"y", "x"}) {
			t.Errorf("%s of one vhost: %v", kind, got)
		}
	}
}

// All policies that fit, whose patterns may have a look-ahead, the one in force first.
func TestPoliciesThatFit(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	policy := func(name, pattern, applyTo string, priority int) string {
		return fmt.Sprintf(`{"vhost":"/","name":%q,"pattern":%q,"apply-to":%q,"definition":{"max-length":5},"priority":%d}`, name, pattern, applyTo, priority)
	}
	b, c := policy("b", "^q", "queues", 2), policy("c", "^(?!amq.).*", "all", 2)
	d := policy("d", ".*", "all", 1)
	for name, body := range map[string]string{"b": b, "c": c, "d": d, "x": policy("x", "^x", "all", 9), "y": policy("y", ".*", "streams", 9)} {
		a.do("PUT", "/policies/%2F/"+name, body, 201)
	}
	a.is("/queues/%2F/q/policies", "["+b+","+c+","+d+"]")
	a.is("/exchanges/%2F/amq.topic/policies", "["+d+"]")
	a.do("GET", "/queues/%2F/none/policies", "", 404)
	a.do("GET", "/exchanges/%2F/none/policies", "", 404)
}

func TestPolicyRefusals(t *testing.T) {
	a := newAPI(t, nil)
	for body, reason := range map[string]string{
		`{"pattern":"^a"}`: "[{key_missing,definition}]",
		`{"pattern":"(","definition":{"max-length":1}}`:                   "Validation failed\n\npattern should be regular expression but is invalid: {\"missing )\",1}\n",
		`{"pattern":"","definition":{"max-length":"5"}}`:                  `Validation failed` + "\n\n" + `<<"5">> is not a valid maximum length` + "\n",
		`{"pattern":"","definition":{"nosuch":1}}`:                        "Validation failed\n\n[{<<\"nosuch\">>,1}] are not recognised policy settings\n",
		`{"pattern":"","definition":{}}`:                                  "Validation failed\n\nno policy provided\n",
		`{"pattern":"","definition":{"max-length":1},"apply-to":"foo"}`:   "Validation failed\n\napply-to 'foo' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'\n",
		`{"pattern":"","definition":{"max-length":1},"apply-to":""}`:      "Validation failed\n\napply-to '' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'\n",
		`{"pattern":"","definition":{"max-length":1},"apply-to":null}`:    "Validation failed\n\napply-to 'null' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'\n",
		`{"pattern":"","definition":{"max-length":1},"priority":null}`:    "Validation failed\n\npriority should be a number, actually was null\n",
		`{"pattern":5,"definition":{"max-length":1}}`:                     "Validation failed\n\npattern should be a binary but was 5\n",
		`{"pattern":"","definition":{"target-group-size":0}}`:             "Validation failed\n\n0 is not a valid qq target count value\n",
		`{"pattern":"","definition":{"queue-version":3}}`:                 "Validation failed\n\n3 is not a valid queue-version value\n",
		`{"pattern":"","definition":{"max-length":1},"priority":"first"}`: "Validation failed\n\npriority should be a number, actually was <<\"first\">>\n",
	} {
		has(t, a.do("PUT", "/policies/%2F/p", body, 400), J{"error": "bad_request", "reason": reason})
	}
	a.do("PUT", "/operator-policies/%2F/p", `{"pattern":"","definition":{"dead-letter-exchange":"x"}}`, 400)
}

func TestParameters(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/parameters/shovel/%2F/s", `{"value":{"src-uri":"amqp://","src-queue":"a","dest-uri":"amqp://"}}`, 201)
	a.do("PUT", "/parameters/shovel/%2F/s", `{"value":{"src-uri":"amqp://","src-queue":"b","dest-uri":"amqp://"}}`, 204)
	one := `{"value":{"src-uri":"amqp://","src-queue":"b","dest-uri":"amqp://"},"vhost":"/","component":"shovel","name":"s"}`
	a.is("/parameters/shovel/%2F/s", one)
	a.is("/parameters/shovel", `[`+one+`]`)
	a.is("/parameters/nosuch", `[]`)
	has(t, a.do("PUT", "/parameters/nosuch/%2F/s", `{"value":1}`, 400), J{"reason": "Validation failed\n\ncomponent nosuch not found\n"})
	a.do("DELETE", "/parameters/shovel/%2F/s", "", 204)
	a.do("DELETE", "/parameters/shovel/%2F/s", "", 404)
}

func TestParametersNeedATag(t *testing.T) {
	a := newAPI(t, nil)
	a.user("p", "policymaker")
	a.user("m", "management")
	for _, user := range []string{"p", "m"} {
		a.do("PUT", "/permissions/%2F/"+user, `{"configure":"","write":"","read":""}`, 201)
	}
	for _, tt := range []struct{ path, body string }{
		{"/parameters/operator_policy/%2F/o", `{"value":{"pattern":"","definition":{"max-length":3}}}`},
		{"/parameters/vhost-limits/%2F/limits", `{"value":{"max-queues":10}}`},
	} {
		for user, want := range map[string]int{"p": 201, "m": 401} { // RabbitMQ 4.0
			if w := a.request("PUT", tt.path, tt.body, as(user)); w.Code != want {
				t.Errorf("PUT %s by %s = %d, want %d", tt.path, user, w.Code, want)
			}
		}
		if w := a.request("DELETE", tt.path, "", as("p")); w.Code != 204 {
			t.Errorf("DELETE %s by p = %d, want 204", tt.path, w.Code)
		}
	}
	for _, path := range []string{"/operator-policies/%2F/o", "/vhost-limits/%2F/max-queues"} {
		if w := a.request("PUT", path, `{"pattern":"","definition":{"max-length":3},"value":1}`, as("p")); w.Code != 401 {
			t.Errorf("PUT %s by p = %d, want 401", path, w.Code)
		}
	}
}

func TestGlobalParameters(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/global-parameters/g", `{"value":{"a":1}}`, 201)
	a.is("/global-parameters/g", `{"name":"g","value":{"a":1}}`)
	a.do("DELETE", "/global-parameters/g", "", 204)
	a.do("GET", "/global-parameters/g", "", 404)
	a.is("/cluster-name", `{"name":"rabbit@test"}`)
	a.do("PUT", "/cluster-name", `{"name":"new"}`, 204)
	a.is("/cluster-name", `{"name":"new"}`)
	a.is("/global-parameters/cluster_name", `{"name":"cluster_name","value":"new"}`)
}

func TestLimits(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhost-limits/%2F/max-queues", `{"value":1}`, 204)
	a.is("/vhost-limits/%2F", `[{"vhost":"/","value":{"max-queues":1}}]`)
	a.do("PUT", "/queues/%2F/a", "", 201)
	has(t, a.do("PUT", "/queues/%2F/b", "", 400), J{"reason": "cannot declare queue 'b': queue limit in vhost '/' (1) is reached"})
	a.do("DELETE", "/vhost-limits/%2F/max-queues", "", 204)
	a.is("/vhost-limits", `[]`)
	a.do("PUT", "/vhost-limits/%2F/nosuch", `{"value":1}`, 400)
	a.do("PUT", "/user-limits/guest/max-channels", `{"value":3}`, 204)
	a.is("/user-limits/guest", `[{"user":"guest","value":{"max-channels":3}}]`)
	a.do("PUT", "/user-limits/nobody/max-channels", `{"value":3}`, 400)
	a.do("PUT", "/user-limits/guest/max-channels", `{}`, 400)
	a.do("DELETE", "/user-limits/guest/max-channels", "", 204)
	a.is("/user-limits", `[]`)
}

// All users of the API see the limits of all users.
func TestUserLimitsOfOthers(t *testing.T) {
	a := newAPI(t, nil)
	a.user("plain", "management")
	a.do("PUT", "/user-limits/guest/max-channels", `{"value":3}`, 204)
	for _, path := range []string{"/user-limits", "/user-limits/guest"} {
		equal(t, path, decode(t, a.request("GET", path, "", as("plain")).Body), `[{"user":"guest","value":{"max-channels":3}}]`)
	}
	a.is("/user-limits/plain", `[]`)
}

// RabbitMQ 4.0 takes numbers of any size.
func TestLimitsThatAreTooLarge(t *testing.T) {
	a := newAPI(t, nil)
	const body, reason = `{"value":10000000000000000000000}`, "should be from -9223372036854775808 to 9223372036854775807, actually was 10000000000000000000000"
	has(t, a.do("PUT", "/user-limits/guest/max-channels", body, 400), J{"reason": "max-channels " + reason})
	has(t, a.do("PUT", "/vhost-limits/%2F/max-queues", body, 400), J{"reason": "Validation failed\n\nmax-queues " + reason + "\n"})
}

func TestLimitsThatAreNone(t *testing.T) {
	a := newAPI(t, nil)
	for value, term := range map[string]string{
		`null`: "null", `1.5`: "1.5", `1.0`: "1.0", `1e2`: "100.0", `"a"`: `<<"a">>`, `"3"`: `<<"3">>`, `["a",1]`: `[<<"a">>,1]`, `{}`: "#{}", `{"b":[],"a":1}`: `#{<<"a">> => 1,<<"b">> => []}`,
	} {
		body := `{"value":` + value + `}`
		has(t, a.do("PUT", "/user-limits/guest/max-channels", body, 400), J{"reason": "max-channels should be a number, actually was " + term})
		has(t, a.do("PUT", "/user-limits/guest/x", body, 400), J{"reason": `Unrecognised terms [{<<"x">>,` + term + `}] in user-limits`})
		has(t, a.do("PUT", "/vhost-limits/%2F/max-queues", body, 400), J{"reason": "Validation failed\n\nmax-queues should be a number, actually was " + term + "\n"})
		has(t, a.do("PUT", "/vhost-limits/%2F/x", body, 400), J{"reason": `Validation failed` + "\n\n" + `Unrecognised terms [{<<"x">>,` + term + "}] in limits\n"})
	}
	a.do("DELETE", "/user-limits/guest/x", "", 204)
	a.do("DELETE", "/vhost-limits/%2F/x", "", 204)
	a.do("DELETE", "/user-limits/nobody/x", "", 404)
	a.do("DELETE", "/vhost-limits/nosuch/x", "", 404)
}
