package management

import (
	"fmt"
	"slices"
	"testing"
)

// payloads peeks at a queue: what is ready, in order.
func (a *api) payloads(queue string) []string {
	a.t.Helper()
	got := a.do("POST", "/queues/%2F/"+queue+"/peek", "{}", 200).(J)
	return names(a.t, got["messages"], "payload")
}

func (a *api) wantPayloads(queue string, want ...string) {
	a.t.Helper()
	if got := a.payloads(queue); !slices.Equal(got, want) {
		a.t.Errorf("%s has %q, want %q", queue, got, want)
	}
}

func TestPeekChangesNothing(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	for i := range 4 {
		a.do("POST", "/exchanges/%2F/amq.default/publish", fmt.Sprintf(`{"properties":{"type":"t%d","headers":{"n":%d}},"routing_key":"q",
			"payload":"m%d","payload_encoding":"string"}`, i%2, i, i), 200)
	}
	for body, want := range map[string][]string{
		`{"count":2,"offset":1}`:                        {"m1", "m2"},
		`{"filter":{"headers":{"n":3}}}`:                {"m3"},
		`{"filter":{"headers":{"n":null,"none":null}}}`: {},
		`{"filter":{"properties":{"type":"t1"}}}`:       {"m1", "m3"},
		`{"filter":{"text":"2"}}`:                       {"m2"},
		`{"filter":{"exchange":"x"}}`:                   {},
		`{"filter":{"routing_key":"q"},"count":1}`:      {"m0"},
	} {
		got := a.do("POST", "/queues/%2F/q/peek", body, 200).(J)
		if p := names(t, got["messages"], "payload"); !slices.Equal(p, want) {
			t.Errorf("peek %s: %v, want %v", body, p, want)
		}
	}
	for i := range 4 {
		has(t, a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200).([]any)[0],
			J{"payload": fmt.Sprintf("m%d", i), "redelivered": false})
	}
}

func TestMove(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/queues/%2F/r", "", 201)
	for _, p := range []string{"a1", "b1", "a2", "b2", "a3"} {
		a.publish("q", p)
	}
	equal(t, "move", a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"r"},"filter":{"text":"a"},"count":2}`, 200),
		`{"transferred":2,"skipped":1,"unroutable":0,"refused":0,"left":2}`)
	a.wantPayloads("r", "a1", "a2")
	a.wantPayloads("q", "b1", "b2", "a3")
	equal(t, "move to itself", a.do("POST", "/queues/%2F/r/move", `{"to":{"queue":"r"}}`, 200), `{"transferred":2,"skipped":0,"unroutable":0,"refused":0,"left":0}`)
	a.wantPayloads("r", "a1", "a2")
}

func TestCopy(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/vhosts/v", "", 201)
	a.do("PUT", "/queues/v/r", "", 201)
	a.do("POST", "/bindings/v/e/amq.topic/q/r", `{"routing_key":"k.*"}`, 201)
	a.publish("q", "m")
	equal(t, "copy", a.do("POST", "/queues/%2F/q/copy", `{"to":{"vhost":"v","exchange":"amq.topic","routing_key":"k.1"}}`, 200),
		`{"transferred":1,"skipped":0,"unroutable":0,"refused":0,"left":0}`)
	a.wantPayloads("q", "m")
	has(t, a.do("GET", "/queues/v/r", "", 200), J{"messages": 1.0})
}

func TestWhatDoesNotArriveStays(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/queues/%2F/small", `{"arguments":{"x-max-length":1,"x-overflow":"reject-publish"}}`, 201)
	a.publish("q", "a")
	a.publish("q", "b")
	equal(t, "unroutable", a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"none"}}`, 200), `{"transferred":0,"skipped":0,"unroutable":2,"refused":0,"left":0}`)
	equal(t, "full", a.do("POST", "/queues/%2F/q/move", `{"to":{"queue":"small"}}`, 200), `{"transferred":1,"skipped":0,"unroutable":0,"refused":1,"left":0}`)
	a.wantPayloads("small", "a")
	a.wantPayloads("q", "b")
	for _, body := range []string{`{}`, `{"to":{}}`, `{"to":{"queue":"q","vhost":"none"}}`} {
		a.do("POST", "/queues/%2F/q/move", body, 400)
	}
	a.do("POST", "/queues/%2F/q/move", `{"to":{"exchange":"none"}}`, 404)
	a.wantPayloads("q", "b")
}

func TestRedriveReturnsDeadLetters(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/dead", "", 201)
	for _, q := range []string{"q1", "q2"} {
		a.do("PUT", "/queues/%2F/"+q, `{"arguments":{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead"}}`, 201)
		a.publish(q, "of "+q)
		a.do("POST", "/queues/%2F/"+q+"/get", `{"count":1,"ackmode":"reject_requeue_false","encoding":"auto"}`, 200)
	}
	a.publish("dead", "no dead letter")
	equal(t, "redrive", a.do("POST", "/queues/%2F/dead/redrive", `{}`, 200), `{"transferred":2,"skipped":0,"unroutable":1,"refused":0,"left":0}`)
	a.wantPayloads("q1", "of q1")
	a.wantPayloads("q2", "of q2")
	a.wantPayloads("dead", "no dead letter")
}
