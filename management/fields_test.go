package management

import (
	"runtime"
	"testing"
)

// The indexes of a quorum queue move with its log, not with what was published since
// the start, and do not go back.
func TestQuorumStatusFollowsTheLog(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", `{"durable":true,"arguments":{"x-queue-type":"quorum"}}`, 201)
	status := func() J { return a.do("GET", "/queues/quorum/%2F/q/status", "", 200).([]any)[0].(J) }
	has(t, status(), J{"Node Name": "rabbit@test", "Raft State": "leader", "Membership": "voter", "Term": 1.0,
		"Last Log Index": 0.0, "Last Written": 0.0, "Commit Index": 0.0, "Last Applied": 0.0})
	for range 3 {
		a.publish("q", "m")
	}
	has(t, status(), J{"Last Log Index": 3.0, "Last Applied": 3.0, "Commit Index": 3.0, "Last Written": 3.0})
	a.do("DELETE", "/queues/%2F/q/contents", "", 204)
	has(t, status(), J{"Last Log Index": 3.0})
	a.do("PUT", "/queues/%2F/c", "", 201)
	a.do("GET", "/queues/quorum/%2F/c/status", "", 503)
	a.do("GET", "/queues/quorum/%2F/none/status", "", 404)
}

// A detailed list, and one with columns, has null for what a queue does not have; a
// plain one leaves it out.
func TestDetailedList(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	one := func(path string) J { return a.do("GET", path, "", 200).([]any)[0].(J) }
	for _, name := range []string{"policy", "operator_policy", "single_active_consumer_tag", "garbage_collection", "head_message_timestamp"} {
		if _, there := one("/queues")[name]; there {
			t.Errorf("a plain list has %s", name)
		}
		if _, there := one("/queues/detailed")[name]; !there {
			t.Errorf("a detailed list has no %s", name)
		}
	}
	equal(t, "columns", one("/queues?columns=name,policy"), `{"name":"q","policy":null}`)
}

func TestTotalsOfAQuorumQueueWithoutStats(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", `{"durable":true,"arguments":{"x-queue-type":"quorum"}}`, 201)
	has(t, a.do("GET", "/queues?disable_stats=true&enable_queue_totals=true", "", 200).([]any)[0],
		J{"messages": 0.0, "online": []any{"rabbit@test"}, "leader": "rabbit@test", "members": []any{"rabbit@test"}})
}

// The limits of a vhost's definitions are an object (RabbitMQ 4.0).
func TestLimitsOfAnExportedVHost(t *testing.T) {
	a := newAPI(t, nil)
	equal(t, "limits", a.do("GET", "/definitions/%2F", "", 200).(J)["limits"], `{}`)
	a.do("PUT", "/vhost-limits/%2F/max-queues", `{"value":7}`, 204)
	equal(t, "limits", a.do("GET", "/definitions/%2F", "", 200).(J)["limits"], `{"max-queues":7}`)
}

// What a node has done since its start is counted, where the system says so.
func TestNodeCountsCollectionsAndSwitches(t *testing.T) {
	a := newAPI(t, nil)
	runtime.GC()
	o := a.do("GET", "/nodes/rabbit@test", "", 200).(J)
	for _, name := range []string{"gc_num", "gc_bytes_reclaimed", "context_switches"} {
		if n, isNumber := o[name].(float64); !isNumber || n <= 0 && (runtime.GOOS == "linux" || name != "context_switches") {
			t.Errorf("%s = %v, want a number above 0", name, o[name])
		}
		if _, there := o[name+"_details"].(J)["rate"].(float64); !there {
			t.Errorf("%s_details = %v, want a rate", name, o[name+"_details"])
		}
	}
	if n, isNumber := o["fd_used"].(float64); !isNumber || runtime.GOOS == "linux" && n < 3 {
		t.Errorf("fd_used = %v, want the open files", o["fd_used"])
	}
}
