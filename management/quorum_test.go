package management

import (
	"net/http"
	"testing"
)

// What RabbitMQ 4.0 answers on one node to who wants other replicas.
func TestReplicas(t *testing.T) {
	a := newAPI(t, nil)
	for _, name := range []string{"classic", "quorum", "stream"} {
		a.do("PUT", "/queues/%2F/"+name, `{"durable":true,"arguments":{"x-queue-type":"`+name+`"}}`, 201)
	}
	for _, tt := range []struct {
		queue, node          string
		add, remove          int
		addReason, delReason string
	}{
		{"quorum", "rabbit@test", 204, 503, "", "last_node"},
		{"quorum", "rabbit@other", 503, 202, "node_not_running", ""},
		{"classic", "rabbit@test", 503, 503, "classic_queue_not_supported", "classic_queue_not_supported"},
		{"stream", "rabbit@test", 503, 503, "not_quorum_queue", "not_quorum_queue"},
		{"nosuch", "rabbit@test", 503, 404, "not_found", "Not Found"},
	} {
		path, body := "/queues/quorum/%2F/"+tt.queue+"/replicas", `{"node":"`+tt.node+`"}`
		wantReason(t, a.do("POST", path+"/add", body, tt.add), tt.addReason)
		wantReason(t, a.do("DELETE", path+"/delete", body, tt.remove), tt.delReason)
	}
	wantReason(t, a.do("POST", "/queues/quorum/%2F/nosuch/replicas/add", `{}`, 400), "[{key_missing,node}]")
	wantReason(t, a.do("POST", "/queues/quorum/nowhere/q/replicas/add", `{"node":"rabbit@test"}`, 503), "not_found")
	wantReason(t, a.do("DELETE", "/queues/quorum/nowhere/q/replicas/delete", `{"node":"rabbit@test"}`, 404), "Not Found")
	wantReason(t, a.do("DELETE", "/queues/quorum/%2F/stream/replicas/delete", `{}`, 400), "[{key_missing,node}]")
	wantReason(t, a.do("POST", "/queues/quorum/replicas/on/rabbit@test/grow", `{"strategy":"all","vhost_pattern":".*","queue_pattern":".*"}`, 204), "")
	wantReason(t, a.do("POST", "/queues/quorum/replicas/on/rabbit@test/grow", `{}`, 400),
		"[{key_missing,vhost_pattern},\n {key_missing,queue_pattern},\n {key_missing,strategy}]")
	wantReason(t, a.do("DELETE", "/queues/quorum/replicas/on/rabbit@test/shrink", "", 202), "")
	wantReason(t, a.do("GET", "/queues/quorum/%2F/quorum/status", "", 200), "")
	wantReason(t, a.do("GET", "/queues/quorum/%2F/classic/status", "", 503), "classic_queue_not_supported")
	wantReason(t, a.do("GET", "/queues/quorum/%2F/stream/status", "", 503), "not_quorum_queue")
}

// wantReason wants an error with this reason, or with "" none.
func wantReason(t *testing.T, body any, reason string) {
	t.Helper()
	if reason != "" {
		has(t, body, J{"reason": reason})
	} else if o, isObject := body.(J); isObject {
		t.Errorf("got %v, want no error", o)
	}
}

// Long lists of missing members are printed on several lines.
func TestMissingMembers(t *testing.T) {
	a := newAPI(t, nil)
	for body, want := range map[string]string{
		`{}`:                      "[{key_missing,routing_key},\n {key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]",
		`{"routing_key":""}`:      "[{key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]",
		`{"payload_encoding":""}`: "[{key_missing,routing_key},{key_missing,properties},{key_missing,payload}]",
	} {
		has(t, a.do("POST", "/exchanges/%2F/amq.topic/publish", body, http.StatusBadRequest), J{"reason": want})
	}
}
