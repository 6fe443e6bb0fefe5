package management

import (
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// publish publishes a payload to a queue through the default exchange.
func (a *api) publish(queue, payload string) {
	a.t.Helper()
	got := a.do("POST", "/exchanges/%2F/amq.default/publish",
		`{"properties":{},"routing_key":"`+queue+`","payload":"`+payload+`","payload_encoding":"string"}`, 200)
	equal(a.t, "publish", got, `{"routed":true}`)
}

func TestPublishAndGet(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	equal(t, "publish", a.do("POST", "/exchanges/%2F/amq.default/publish", `{"routing_key":"q","payload":"one","payload_encoding":"string",
		"properties":{"delivery_mode":2,"priority":3,"headers":{"i":1,"f":1.5,"s":"v","b":true,"l":[1],"t":{"n":null}},"content_type":"a/b",
		"expiration":60000,"timestamp":1700000000,"message_id":"m","app_id":"app","unknown":1}}`, 200), `{"routed":true}`)
	equal(t, "publish", a.do("POST", "/exchanges/%2F/amq.default/publish",
		`{"routing_key":"q","payload":"/wA=","payload_encoding":"base64","properties":[]}`, 200), `{"routed":true}`)
	equal(t, "get", a.do("POST", "/queues/%2F/q/get", `{"count":"5","ackmode":"ack_requeue_false","encoding":"auto"}`, 200), `[
		{"payload_bytes":3,"redelivered":false,"exchange":"","routing_key":"q","message_count":1,"payload":"one","payload_encoding":"string",
		 "properties":{"content_type":"a/b","headers":{"b":true,"f":1.5,"i":1,"l":[1],"s":"v","t":{"n":null}},"delivery_mode":2,"priority":3,
			"expiration":"60000","message_id":"m","timestamp":1700000000,"app_id":"app"}},
		{"payload_bytes":2,"redelivered":false,"exchange":"","routing_key":"q","message_count":0,"properties":[],"payload":"/wA=","payload_encoding":"base64"}]`)
	equal(t, "get", a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_false","encoding":"auto"}`, 200), `[]`)
}

// publishAll gives messages to a queue that share one body.
func (a *api) publishAll(queue string, n int, body []byte) {
	a.t.Helper()
	v, _ := a.vhosts.Get("/")
	p := v.NewPublisher()
	rt, err := p.Route(nil, []byte(queue))
	if err != nil {
		a.t.Fatal(err)
	}
	for range n {
		p.Add(rt, &message.Message{Envelope: &message.Envelope{Exchange: rt.Exchange, RoutingKey: rt.Key, Header: emptyHeader(), TTL: message.NoTTL}, Body: body}, nil, 0)
	}
	p.Flush()
}

func emptyHeader() []byte {
	var p frames.Properties
	return p.Append(nil)
}

func TestGetEndsAfterManyBytes(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.publishAll("q", 6, make([]byte, maxScanBytes/4))
	got := a.do("POST", "/queues/%2F/q/get", `{"count":6,"ackmode":"ack_requeue_true","encoding":"auto","truncate":1}`, 200)
	if n := len(got.([]any)); n != 4 {
		t.Errorf("got %d messages, want the 4 that have %d bytes", n, maxScanBytes)
	}
	has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"messages_ready": 6.0})
}

func TestPublishUnroutable(t *testing.T) {
	a := newAPI(t, nil)
	equal(t, "publish", a.do("POST", "/exchanges/%2F/amq.topic/publish",
		`{"properties":{},"routing_key":"k","payload":"","payload_encoding":"string"}`, 200), `{"routed":false}`)
}

func TestPublishRefusals(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/exchanges/%2F/in", `{"type":"fanout","internal":true}`, 201)
	a.do("PUT", "/queues/%2F/full", `{"arguments":{"x-max-length":0,"x-overflow":"reject-publish"}}`, 201)
	for _, tt := range []struct {
		exchange, body string
		code           int
		reason         string
	}{
		{"none", `{"properties":{},"routing_key":"","payload":"","payload_encoding":"string"}`, 404, "exchange_not_found"},
		{"in", `{"properties":{},"routing_key":"","payload":"","payload_encoding":"string"}`, 400, "403 ACCESS_REFUSED - cannot publish to internal exchange 'in' in vhost '/'"},
		{"amq.topic", `{"routing_key":"k"}`, 400, "[{key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]"},
		{"amq.topic", `{"properties":{},"routing_key":"","payload":1,"payload_encoding":"string"}`, 400, "payload_not_string"},
		{"amq.topic", `{"properties":{},"routing_key":"` + strings.Repeat("k", 256) + `","payload":"","payload_encoding":"string"}`, 400, "a routing key must not be longer than 255 bytes"},
		{"amq.topic", `{"properties":{},"routing_key":"","payload":"!!","payload_encoding":"base64"}`, 400, "the payload is not base64"},
		{"amq.topic", `{"properties":{},"routing_key":"","payload":"","payload_encoding":"xx"}`, 400, "unsupported payload_encoding 'xx'; it is string or base64"},
		{"amq.topic", `{"properties":{},"routing_key":"","payload":"","payload_encoding":null}`, 400, "unsupported payload_encoding 'null'; it is string or base64"},
		{"amq.topic", `{"properties":{"delivery_mode":"x"},"routing_key":"","payload":"","payload_encoding":"string"}`, 400, "delivery_mode must be an integer"},
		{"amq.topic", `{"properties":{"delivery_mode":"2"},"routing_key":"","payload":"","payload_encoding":"string"}`, 400, "delivery_mode must be an integer"},
		{"amq.topic", `{"properties":{"expiration":"1.5"},"routing_key":"","payload":"","payload_encoding":"string"}`, 400,
			`406 PRECONDITION_FAILED - invalid expiration '1.5': {leftover_string,".5"}`},
		{"amq.topic", `{"properties":{"expiration":".5"},"routing_key":"","payload":"","payload_encoding":"string"}`, 400,
			"406 PRECONDITION_FAILED - invalid expiration '.5': no_integer"},
		{"amq.topic", `{"properties":{"headers":{"CC":"a"}},"routing_key":"","payload":"","payload_encoding":"string"}`, 400,
			`406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}`},
		{"amq.topic", `{"properties":{"headers":{"BCC":1}},"routing_key":"","payload":"","payload_encoding":"string"}`, 400,
			`406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"BCC",long}`},
		{"amq.topic", `{"properties":{"priority":256},"routing_key":"","payload":"","payload_encoding":"string"}`, 400, "the property priority must be between 0 and 255"},
		{"amq.topic", `{"properties":{"user_id":"x"},"routing_key":"","payload":"","payload_encoding":"string"}`, 400,
			"406 PRECONDITION_FAILED - user_id property set to 'x' but authenticated user was 'guest'"},
		{"amq.topic", `{"properties":{"reply_to":"amq.rabbitmq.reply-to"},"routing_key":"","payload":"","payload_encoding":"string"}`, 400,
			"406 PRECONDITION_FAILED - fast reply consumer does not exist"},
		{"amq.default", `{"properties":{},"routing_key":"full","payload":"","payload_encoding":"string"}`, 400, "rejected Unable to publish message. Check queue limits."},
	} {
		has(t, a.do("POST", "/exchanges/%2F/"+tt.exchange+"/publish", tt.body, tt.code), J{"reason": tt.reason})
	}
}

func TestGetModes(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/dead", "", 201)
	a.do("PUT", "/queues/%2F/q", `{"arguments":{"x-dead-letter-exchange":"","x-dead-letter-routing-key":"dead"}}`, 201)
	a.publish("q", "a")
	a.publish("q", "b")
	get := func(queue, mode string) []any {
		t.Helper()
		return a.do("POST", "/queues/%2F/"+queue+"/get", `{"count":1,"ackmode":"`+mode+`","encoding":"auto"}`, 200).([]any)
	}
	for _, tt := range []struct {
		mode        string
		payload     string
		redelivered bool
	}{
		{"ack_requeue_true", "a", false},
		{"reject_requeue_true", "a", true},
		{"reject_requeue_false", "a", true},
		{"ack_requeue_false", "b", false},
	} {
		has(t, get("q", tt.mode)[0], J{"payload": tt.payload, "redelivered": tt.redelivered})
	}
	if l := get("q", "ack_requeue_false"); len(l) != 0 {
		t.Errorf("left in the queue: %v", l)
	}
	has(t, get("dead", "ack_requeue_false")[0], J{"payload": "a", "routing_key": "dead"})
}

func TestGetTruncatesAndEncodes(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.publish("q", "hello")
	has(t, a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_true","encoding":"auto","truncate":2}`, 200).([]any)[0],
		J{"payload": "he", "payload_bytes": 5.0, "payload_encoding": "string"})
	has(t, a.do("POST", "/queues/%2F/q/get", `{"count":1,"ackmode":"ack_requeue_true","encoding":"base64"}`, 200).([]any)[0],
		J{"payload": "aGVsbG8=", "payload_encoding": "base64"})
}

func TestGetRefusals(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	for body, reason := range map[string]string{
		`{}`: "[{key_missing,ackmode},{key_missing,count},{key_missing,encoding}]",
		`{"count":1,"requeue":true,"encoding":"auto"}`:                    "[{key_missing,ackmode}]",
		`{"count":1,"ackmode":{"a":1},"encoding":"auto"}`:                 "unknown ackmode '{\"a\":1}'; it is ack_requeue_true, ack_requeue_false, reject_requeue_true or reject_requeue_false",
		`{"count":1,"ackmode":"maybe","encoding":"auto"}`:                 "unknown ackmode 'maybe'; it is ack_requeue_true, ack_requeue_false, reject_requeue_true or reject_requeue_false",
		`{"count":1,"ackmode":"ack_requeue_true","encoding":"rot13"}`:     "Unsupported encoding. Please use auto or base64.",
		`{"count":"many","ackmode":"ack_requeue_true","encoding":"auto"}`: "count must be an integer",
	} {
		has(t, a.do("POST", "/queues/%2F/q/get", body, 400), J{"reason": reason})
	}
	a.do("POST", "/queues/%2F/none/get", `{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}`, 404)
}

func TestPurge(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.publish("q", "a")
	has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"messages": 1.0, "messages_ready": 1.0, "message_bytes": 1.0})
	a.do("DELETE", "/queues/%2F/q/contents", "", 204)
	has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"messages": 0.0})
	a.do("DELETE", "/queues/%2F/none/contents", "", 404)
}

func TestDeleteConditions(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.publish("q", "a")
	has(t, a.do("DELETE", "/queues/%2F/q?if-empty=true", "", 400), J{"reason": "queue 'q' in vhost '/' not empty"})
	a.do("POST", "/bindings/%2F/e/amq.topic/q/q", "{}", 201)
	a.do("PUT", "/exchanges/%2F/x", "", 201)
	a.do("POST", "/bindings/%2F/e/x/q/q", "{}", 201)
	has(t, a.do("DELETE", "/exchanges/%2F/x?if-unused=true", "", 400), J{"reason": "exchange 'x' in vhost '/' in use"})
	a.do("DELETE", "/exchanges/%2F/x", "", 204)
	a.do("DELETE", "/queues/%2F/q", "", 204)
}

// head_message_timestamp is what the publisher says, not when the message came (RabbitMQ 4.0).
func TestTimestampOfTheHead(t *testing.T) {
	a := newAPI(t, nil)
	for _, arguments := range []string{`{}`, `{"x-max-priority":3}`, `{"x-queue-type":"quorum"}`} {
		a.do("PUT", "/queues/%2F/q", `{"durable":true,"arguments":`+arguments+`}`, 201)
		for _, m := range []struct{ properties, want string }{
			{`{"timestamp":1000000}`, "1000000"},
			{`{}`, "NaN"},
		} {
			a.do("POST", "/exchanges/%2F/amq.default/publish",
				`{"routing_key":"q","payload":"x","payload_encoding":"string","properties":`+m.properties+`}`, 200)
			wantLines(t, a.scrape("/metrics/per-object"), `rabbitmq_queue_head_message_timestamp{queue="q",vhost="/"} `+m.want)
			got := a.do("GET", "/queues/%2F/q", "", 200).(J)["head_message_timestamp"]
			if want := map[string]any{"1000000": 1e6, "NaN": nil}[m.want]; got != want {
				t.Errorf("%s, %s: head_message_timestamp = %v, want %v", arguments, m.properties, got, want)
			}
			a.do("DELETE", "/queues/%2F/q/contents", "", 204)
		}
		a.do("DELETE", "/queues/%2F/q", "", 204)
	}
}
