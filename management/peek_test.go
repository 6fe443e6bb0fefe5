package management

import (
	"fmt"
	"testing"
)

// Who asks from where the answer before has ended sees each message once.
func TestPeekFollowsAQueue(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	from := 0.0
	seen := func() any {
		t.Helper()
		got := a.do("POST", "/queues/%2F/q/peek", fmt.Sprintf(`{"count":2,"from":%.0f}`, from), 200).(map[string]any)
		payloads := []any{}
		from = got["next"].(float64)
		for _, m := range got["messages"].([]any) {
			payloads = append(payloads, m.(map[string]any)["payload"])
		}
		return payloads
	}
	equal(t, "an empty queue", seen(), `[]`)
	a.publish("q", "a")
	a.publish("q", "b")
	a.publish("q", "c")
	equal(t, "the first two", seen(), `["a","b"]`)
	equal(t, "the rest", seen(), `["c"]`)
	equal(t, "nothing new", seen(), `[]`)
	a.do("POST", "/queues/%2F/q/get", `{"count":2,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200)
	a.publish("q", "d")
	equal(t, "what came while others left", seen(), `["d"]`)
}
