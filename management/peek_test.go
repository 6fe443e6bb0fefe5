package management

import (
	"fmt"
	"strings"
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

func TestPeekShowsAsMuchAsIsAsked(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.publish("q", strings.Repeat("x", 30_000))
	for truncate, want := range map[string]int{`{}`: 30_000, `{"truncate":20000}`: 20_000, `{"truncate":0}`: 0} {
		m := a.do("POST", "/queues/%2F/q/peek", truncate, 200).(map[string]any)["messages"].([]any)[0].(map[string]any)
		if got := len(m["payload"].(string)); got != want {
			t.Errorf("%s: %d bytes, want %d", truncate, got, want)
		}
	}
}
