package management

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// anUnacked is a delivery to the connection of aConn.
func anUnacked(tag uint64, age time.Duration, body string) Unacked {
	m := message.New(2, 0)
	p := frames.Properties{Flags: frames.FlagType, Type: []byte("t")}
	m.Header, m.Body, m.Exchange, m.RoutingKey = p.Append(nil), []byte(body), "x", "k"
	return Unacked{Connection: "c", User: "guest", Channel: 1, Consumer: "tag-c", DeliveryTag: tag, At: time.Now().Add(-age), Redelivered: tag > 1, Count: 1, Message: m}
}

func TestUnackedShowsHoldersAndAges(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.aConn("c", "guest", "/", "q")
	a.conns.unacked = map[string][]Unacked{"//q": {anUnacked(1, time.Hour, "first"), anUnacked(2, 0, "\xff"), anUnacked(7, 0, "third")}}
	got := a.do("GET", "/queues/%2F/q/unacked?truncate=3", "", 200)
	has(t, got, J{"total_count": 3.0, "item_count": 3.0, "page": 1.0, "page_count": 1.0})
	items := got.(J)["items"].([]any)
	has(t, items[0], J{"delivery_tag": 1.0, "consumer_tag": "tag-c", "redelivered": false, "delivery_count": 1.0, "exchange": "x", "routing_key": "k",
		"properties": J{"type": "t"}, "payload": "fir", "payload_bytes": 5.0, "payload_encoding": "string",
		"channel_details": J{"name": "c (1)", "number": 1.0, "node": "rabbit@test", "connection_name": "c", "user": "guest", "peer_host": "10.0.0.7", "peer_port": 4711.0}})
	if age, _ := items[0].(J)["age_ms"].(float64); age < 3_600_000 || age > 3_700_000 {
		t.Errorf("age_ms = %v, want about an hour", age)
	}
	has(t, items[1], J{"payload": "/w==", "payload_encoding": "base64", "redelivered": true})
	got = a.do("GET", "/queues/%2F/q/unacked?page=2&page_size=2", "", 200)
	if l := got.(J)["items"].([]any); len(l) != 1 || l[0].(J)["delivery_tag"] != 7.0 {
		t.Errorf("second page %v, want delivery tag 7", l)
	}
	a.do("GET", "/queues/%2F/q/unacked?page=9", "", 400)
	a.do("GET", "/queues/%2F/q/unacked?page=9223372036854775807&page_size=200", "", 400)
	a.do("GET", "/queues/%2F/q/unacked?truncate=x", "", 400)
	a.do("GET", "/queues/%2F/none/unacked", "", 404)
}

func TestUnackedNeedsReadPermission(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.user("ann", "management")
	a.do("PUT", "/permissions/%2F/ann", `{"configure":".*","write":".*","read":"^other$"}`, 201)
	if w := a.request("GET", "/queues/%2F/q/unacked", "", as("ann")); w.Code != http.StatusUnauthorized {
		t.Errorf("unacked = %d, want 401", w.Code)
	}
}

func TestDelayedMessagesAreListedAndCancelled(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("PUT", "/exchanges/%2F/later", `{"type":"x-delayed-message","arguments":{"x-delayed-type":"fanout"}}`, 201)
	a.do("POST", "/bindings/%2F/e/later/q/q", "{}", 201)
	for i := range 5 {
		a.do("POST", "/exchanges/%2F/later/publish", fmt.Sprintf(`{"properties":{"headers":{"x-delay":%d}},"routing_key":"k%d",
			"payload":"m%d","payload_encoding":"string"}`, 600_000-i*1000, i, i), 200)
	}
	got := a.do("GET", "/exchanges/%2F/later/delayed?page=1&page_size=2", "", 200)
	has(t, got, J{"total_count": 5.0, "page_count": 3.0})
	if p := names(t, got.(J)["items"], "payload"); fmt.Sprint(p) != "[m4 m3]" {
		t.Errorf("the first page has %v, want those due first: m4 and m3", p)
	}
	got = a.do("GET", "/exchanges/%2F/later/delayed?page=1&name=K2", "", 200)
	has(t, got, J{"total_count": 1.0})
	one := got.(J)["items"].([]any)[0].(J)
	id := one["id"].(string)
	has(t, a.do("GET", "/exchanges/%2F/later/delayed/"+id, "", 200), J{"id": id, "payload": "m2", "routing_key": "k2", "exchange": "later", "payload_bytes": 2.0, "due": one["due"]})
	a.do("DELETE", "/exchanges/%2F/later/delayed/"+id, "", 204)
	a.do("DELETE", "/exchanges/%2F/later/delayed/"+id, "", 404)
	a.do("GET", "/exchanges/%2F/later/delayed/"+id, "", 404)
	a.do("GET", "/exchanges/%2F/later/delayed/nonsense", "", 404)
	equal(t, "cancel all", a.do("DELETE", "/exchanges/%2F/later/delayed", "", 200), `{"cancelled":4}`)
	has(t, a.do("GET", "/exchanges/%2F/later/delayed", "", 200), J{"total_count": 0.0, "items": []any{}})
	a.do("GET", "/exchanges/%2F/later/delayed?page=9223372036854775807&page_size=200", "", 400)
	a.do("GET", "/exchanges/%2F/none/delayed", "", 404)
	a.wantPayloads("q")
}

func TestDelayedMessagesNeedReadPermission(t *testing.T) {
	a := newAPI(t, nil)
	a.user("ann", "management")
	for _, tt := range []struct {
		permissions     string
		listed, deleted int
	}{
		{`{"configure":".*","write":".*","read":"^$"}`, 401, 401},
		{`{"configure":".*","write":"^$","read":".*"}`, 200, 401},
		{`{"configure":"^$","write":".*","read":".*"}`, 200, 200},
	} {
		a.request("PUT", "/permissions/%2F/ann", tt.permissions, nil)
		for method, want := range map[string]int{"GET": tt.listed, "DELETE": tt.deleted} {
			if w := a.request(method, "/exchanges/%2F/amq.direct/delayed", "", as("ann")); w.Code != want {
				t.Errorf("with %s: %s = %d, want %d", tt.permissions, method, w.Code, want)
			}
		}
	}
}
