package management

import "testing"

// Paths that name something that is not there say so, as RabbitMQ 4.0's do.
func TestMissingNamesAreNotFound(t *testing.T) {
	a := newAPI(t, nil)
	for _, path := range []string{"/healthchecks/node/rabbit@other", "/connections/none/sessions", "/connections/none/channels"} {
		a.do("GET", path, "", 404)
	}
	a.do("GET", "/healthchecks/node/rabbit@test", "", 200)
	a.do("DELETE", "/reset/rabbit@other", "", 404)
	a.do("DELETE", "/reset/rabbit@test", "", 204)
	has(t, a.do("POST", "/queues/%2F/none/actions", `{"action":"sync"}`, 404), J{"error": "not_found", "reason": "queue_not_found"})
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.do("POST", "/queues/%2F/q/actions", `{"action":"sync"}`, 400)
}

// RabbitMQ 4.0 leaves the name of the code out of what a get of a stream answers.
func TestGetOfAStream(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/s", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`, 201)
	has(t, a.do("POST", "/queues/%2F/s/get", `{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}`, 400),
		J{"reason": "540 basic.get not supported by stream queues queue 's' in vhost '/'"})
}
