package management

import "testing"

// Text that is no Unicode is refused and not changed into other text.
func TestBodyMustBeUnicode(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	publish := func(payload string, status int) any {
		return a.do("POST", "/exchanges/%2F/amq.default/publish",
			`{"properties":{},"routing_key":"q","payload":"`+payload+`","payload_encoding":"string"}`, status)
	}
	for _, payload := range []string{"\xff", `\ud83d`, `\ude00`, `\ude00\ud83d`, `\ud83dx`, `\\\ud83d`, `\ud83d\u0041`} {
		has(t, publish(payload, 400), J{"error": "bad_request", "reason": "not_json"})
	}
	has(t, a.do("POST", "/definitions", "{\"queues\":\"\xff\"}", 400), J{"reason": "failed_to_parse_json: text that is no Unicode"})
	for _, payload := range []string{`\ud83d\ude00`, `\\ud83d`, `é\u0000\n`, ``} {
		publish(payload, 200)
	}
	got := names(t, a.do("POST", "/queues/%2F/q/get", `{"count":9,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200), "payload")
	equal(t, "payloads", []any{got[0], got[1], got[2], got[3]}, `["😀","\\ud83d","é\u0000\n",""]`)
}

// A body of blanks is no empty one.
func TestBlankBody(t *testing.T) {
	a := newAPI(t, nil)
	has(t, a.do("PUT", "/queues/%2F/q", " ", 400), J{"reason": "not_json"})
	a.do("PUT", "/queues/%2F/q", "", 201)
}
