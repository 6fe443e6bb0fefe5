package main

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// connect opens a connection with a consumer.
func connect(t *testing.T, address string) *amqp.Connection {
	t.Helper()
	c, err := amqp.Dial("amqp://guest:guest@" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) // fails if the test has closed it already
	ch, err := c.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare("q", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.Consume(q.Name, "tag", false, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConnectionsAreListedAndClosed(t *testing.T) {
	_, addr := startBrokerAt(t)
	c := connect(t, addr.String())
	closed := c.NotifyClose(make(chan *amqp.Error, 1))
	for line, want := range map[string]string{
		"list_connections user vhost state channels":             "guest\t/\trunning\t1\n",
		"list_channels number user consumer_count":               "1\tguest\t1\n",
		"list_consumers queue_name consumer_tag ack_required":    "q\ttag\ttrue\n",
		"list_queues name consumers exclusive_consumer_tag type": "q\t1\ttag\tclassic\n",
	} {
		if code, out, errs := call(t, "", append([]string{"rabbitmqctl", "-s"}, words(line)...)...); code != 0 || out != want {
			t.Errorf("%s: exit %d, %q, %s; want %q", line, code, out, errs, want)
		}
	}
	_, out, _ := call(t, "", "rabbitmqctl", "-s", "list_connections", "pid")
	if code, _, errs := call(t, "", "rabbitmqctl", "close_connection", strings.TrimSpace(out), "maintenance"); code != 0 {
		t.Fatalf("close_connection %q: exit %d, %s", out, code, errs)
	}
	if e := <-closed; e == nil || e.Code != amqp.ConnectionForced || !strings.Contains(e.Reason, "maintenance") {
		t.Errorf("the client gets %v, want 320 with the reason", e)
	}
}

func TestAllConnectionsAreClosed(t *testing.T) {
	_, addr := startBrokerAt(t)
	closed := connect(t, addr.String()).NotifyClose(make(chan *amqp.Error, 1))
	if _, out, errs := call(t, "", "rabbitmqctl", "close_all_connections", "maintenance"); out != "Closing all connections in vhost /, reason: maintenance...\nClosed 1 connections\n" {
		t.Errorf("prints %q, %s; want that one was closed", out, errs)
	}
	if e := <-closed; e == nil || e.Code != amqp.ConnectionForced {
		t.Errorf("the client gets %v, want 320", e)
	}
}

func TestClearedPassword(t *testing.T) {
	startBroker(t)
	call(t, "", "rabbitmqctl", "add_user", "bob", "secret")
	if code, _, errs := call(t, "", "rabbitmqctl", "clear_password", "bob"); code != 0 {
		t.Fatalf("clear_password: exit %d, %s", code, errs)
	}
	if code, _, _ := call(t, "", "rabbitmqctl", "authenticate_user", "bob", "secret"); code != exitData {
		t.Errorf("authenticate_user with the old password: exit %d, want %d", code, exitData)
	}
}
