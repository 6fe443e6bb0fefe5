package management

import (
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestConnectionObject(t *testing.T) {
	a := newAPI(t, nil)
	a.aConn("c", "guest", "/", "q")
	a.is("/connections/c?disable_stats=true", `{"name":"c","node":"rabbit@test","vhost":"/","user":"guest","user_who_performed_action":"guest",
		"protocol":"AMQP 0-9-1","type":"network","state":"running","channels":1,"channel_max":2047,"frame_max":131072,"timeout":30,
		"connected_at":1700000000000,"auth_mechanism":"PLAIN","client_properties":{"product":"test","capabilities":{"basic.nack":true}},
		"host":"10.0.0.1","port":5672,"peer_host":"10.0.0.7","peer_port":4711,"ssl":false,"ssl_protocol":null,"ssl_cipher":null,"ssl_hash":null,
		"ssl_key_exchange":null,"peer_cert_subject":null,"peer_cert_issuer":null,"peer_cert_validity":null,"user_provided_name":"app"}`)
	has(t, a.do("GET", "/connections/c", "", 200), J{"recv_oct": 100.0, "send_oct": 200.0, "recv_cnt": 3.0, "send_cnt": 4.0, "send_pend": 5.0, "recv_oct_details": J{"rate": 0.0}})
	a.is("/connections/username/guest", `[{"name":"c","vhost":"/","user":"guest","node":"rabbit@test"}]`)
	a.is("/connections/username/nobody", `[]`)
}

func TestChannelAndConsumerObjects(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.aConn("c", "guest", "/", "q")
	consumer := J{"consumer_tag": "tag-c", "queue": J{"name": "q", "vhost": "/"}, "ack_required": true, "exclusive": false, "prefetch_count": 7.0,
		"arguments": J{"x-priority": 3.0}, "active": true, "activity_status": "up", "consumer_timeout": 1800000.0,
		"channel_details": J{"name": "c (1)", "number": 1.0, "node": "rabbit@test", "connection_name": "c", "user": "guest", "peer_host": "10.0.0.7", "peer_port": 4711.0}}
	got := a.do("GET", "/channels/c%20(1)", "", 200)
	has(t, got, J{"name": "c (1)", "number": 1.0, "confirm": true, "transactional": false, "consumer_count": 1.0, "prefetch_count": 7.0, "state": "running",
		"messages_unacknowledged": 2.0, "connection_details": J{"name": "c", "peer_host": "10.0.0.7", "peer_port": 4711.0}, "consumer_details": []any{consumer}})
	has(t, got.(J)["message_stats"], J{"publish": 5.0, "confirm": 5.0, "drop_unroutable": 1.0, "deliver": 4.0, "deliver_get": 4.0, "ack": 2.0, "get": 0.0})
	has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"consumer_details": []any{consumer}})
	if l := a.do("GET", "/connections/c/channels", "", 200).([]any); len(l) != 1 {
		t.Errorf("channels of the connection: %v, want one", l)
	}
	a.conns.mu.Lock()
	a.conns.channels[0].Closing = true
	a.conns.mu.Unlock()
	has(t, a.do("GET", "/channels/c%20(1)", "", 200), J{"state": "closing"})
}

func TestNode(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.MemoryLimit = 1 << 30 })
	n := a.do("GET", "/nodes", "", 200).([]any)[0]
	has(t, n, J{"name": "rabbit@test", "type": "disc", "running": true, "mem_limit": float64(1 << 30), "mem_alarm": false, "disk_free_alarm": false,
		"partitions": []any{}, "sockets_used": 0.0, "io_read_count": 0.0, "io_read_count_details": J{"rate": 0.0}})
	if used, _ := n.(J)["mem_used"].(float64); used <= 0 {
		t.Errorf("mem_used = %v", n.(J)["mem_used"])
	}
	a.do("GET", "/nodes/rabbit@other", "", 404)
	binary := a.do("GET", "/nodes/rabbit@test?binary=true", "", 200).(J)["binary"].(J)
	if other, _ := binary["other"].(float64); len(binary) != 15 || other <= 0 {
		t.Errorf("binary = %v, want 15 members, and something else than messages", binary)
	}
	n = a.do("GET", "/nodes/rabbit@test?node_stats_age=10&node_stats_incr=5", "", 200)
	for _, name := range []string{"mem_used", "connection_created", "queue_declared", "io_sync_count"} {
		if samples, _ := n.(J)[name+"_details"].(J)["samples"].([]any); len(samples) != 3 {
			t.Errorf("%s has samples %v, want 3", name, samples)
		}
	}
	m := a.do("GET", "/nodes/rabbit@test/memory", "", 200).(J)["memory"]
	has(t, m, J{"strategy": "rss"})
	has(t, a.do("GET", "/nodes/rabbit@test/memory/relative", "", 200).(J)["memory"], J{"total": 100.0})
}

func TestFeatureFlagsThatToolsNeed(t *testing.T) {
	a := newAPI(t, nil)
	enabled := map[string]bool{}
	for _, f := range a.do("GET", "/feature-flags", "", 200).([]any) {
		enabled[f.(J)["name"].(string)] = f.(J)["state"] == "enabled"
	}
	for _, name := range []string{"stream_queue", "quorum_queue"} {
		if !enabled[name] {
			t.Errorf("%s is not enabled", name)
		}
	}
	a.do("PUT", "/feature-flags/stream_queue/enable", "", 204)
	has(t, a.do("PUT", "/feature-flags/nosuch/enable", "", 400), J{"reason": "unsupported"})
}

func TestHealthChecks(t *testing.T) {
	var alarms []string
	a := newAPI(t, func(c *Config) { c.Alarms = func() []string { return alarms } })
	a.s.AddListener("amqp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5672})
	for path, want := range map[string]string{
		"alarms":                          `{"status":"ok"}`,
		"port-listener/5672":              `{"status":"ok","port":5672}`,
		"protocol-listener/amqp091":       `{"status":"ok","protocol":"amqp"}`,
		"node-is-quorum-critical":         `{"status":"ok","reason":"single node cluster"}`,
		"certificate-expiration/1/months": `{"status":"ok"}`,
		"is-in-service":                   `{"status":"ok"}`,
	} {
		a.is("/health/checks/"+path, want)
	}
	for path, want := range map[string]string{
		"port-listener/9":             `{"status":"failed","reason":"No active listener","missing":9,"ports":[5672]}`,
		"protocol-listener/amqp,mqtt": `{"status":"failed","reason":"No active listener","missing":"mqtt","protocols":["amqp"]}`,
	} {
		equal(t, path, a.do("GET", "/health/checks/"+path, "", http.StatusServiceUnavailable), want)
	}
	a.do("GET", "/health/checks/port-listener/x", "", 400)
	a.do("GET", "/health/checks/certificate-expiration/1/moons", "", 400)
	alarms = []string{"memory"}
	equal(t, "alarms", a.do("GET", "/health/checks/alarms", "", http.StatusServiceUnavailable),
		`{"status":"failed","reason":"There are alarms in effect in the cluster","alarms":[{"node":"rabbit@test","resource":"memory"}]}`)
}

func TestAliveness(t *testing.T) {
	a := newAPI(t, nil)
	a.is("/aliveness-test/%2F", `{"status":"ok"}`)
	a.is("/queues", `[]`)
	a.do("GET", "/aliveness-test/none", "", 404)
}

// What is refused is 401, with more to read for a user who has permissions at all.
func TestRefusedMessages(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.user("u", "administrator")
	const (
		publish = `{"properties":{},"routing_key":"q","payload":"","payload_encoding":"string"}`
		get     = `{"count":1,"ackmode":"ack_requeue_true","encoding":"auto"}`
		onQueue = `ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'u'`
		onPut   = `ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'u'`
	)
	want := func(method, path, body string, code int, reason string) {
		t.Helper()
		w := a.request(method, path, body, as("u"))
		if got := w.Body.String(); w.Code != code || !strings.Contains(got, `"reason":"`+reason+`"`) {
			t.Errorf("%s %s: %d %s, want %d %s", method, path, w.Code, got, code, reason)
		}
	}
	want("POST", "/exchanges/%2F/amq.default/publish", publish, 401, "Access refused.")
	want("POST", "/queues/%2F/q/get", get, 401, "Access refused.")
	want("GET", "/aliveness-test/%2F", "", 401, "Access refused.")
	a.do("PUT", "/permissions/%2F/u", `{"configure":".*","write":"","read":""}`, 201)
	want("POST", "/exchanges/%2F/amq.default/publish", publish, 400, "403 "+onPut)
	want("POST", "/queues/%2F/q/get", get, 401, onQueue)
	want("GET", "/aliveness-test/%2F", "", 401, onPut)
}

func TestOverview(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	got := a.do("GET", "/overview", "", 200)
	has(t, got, J{"rabbitmq_version": "4.0.5", "product_name": "Leveret", "cluster_name": "rabbit@test", "node": "rabbit@test", "rates_mode": "basic",
		"statistics_db_event_queue": 0.0, "object_totals": J{"channels": 0.0, "consumers": 0.0, "connections": 0.0, "exchanges": 9.0, "queues": 1.0}})
	has(t, got.(J)["queue_totals"], J{"messages": 0.0, "messages_ready": 0.0, "messages_unacknowledged": 0.0})
	has(t, got.(J)["message_stats"], J{"publish": 0.0, "publish_details": J{"rate": 0.0}})
}
