package broker

import "testing"

// Permissions go first: a crash in between must leave none for a later vhost of the
// name.
func TestPermissionsGoBeforeTheirVHost(t *testing.T) {
	h := newHTTPBroker(t)
	ch := h.channel()
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.call("PUT", "/vhosts/v", "", nil) // guest gets permissions
	for _, key := range []string{"permission.deleted", "vhost.deleted"} {
		if err := ch.QueueBind(q.Name, key, "amq.rabbitmq.event", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	events, err := ch.Consume(q.Name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.call("DELETE", "/vhosts/v", "", nil)
	for _, want := range []string{"permission.deleted", "vhost.deleted"} {
		e := <-events
		if who := e.Headers["user_who_performed_action"]; e.RoutingKey != want || who != "guest" {
			t.Fatalf("%s by %v, want %s by guest", e.RoutingKey, who, want)
		}
	}
	var rows []struct{ VHost string }
	h.call("GET", "/permissions", "", &rows)
	for _, row := range rows {
		if row.VHost == "v" {
			t.Error("permissions in a deleted vhost are left")
		}
	}
}
