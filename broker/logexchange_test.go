package broker

import (
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

func TestLogLinesArePublished(t *testing.T) {
	b := New(testConfig(t), nil)
	addr, err := b.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	conn, err := amqp091.Dial("amqp://guest:guest@" + addr.String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(q.Name, "warning", "amq.rabbitmq.log", false, nil); err != nil {
		t.Fatal(err)
	}
	lines, err := ch.Consume(q.Name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.QueueDeclarePassive("no such queue", false, false, false, false, nil); err == nil {
		t.Fatal("a passive declare of a missing queue succeeded")
	}
	var d amqp091.Delivery
	select {
	case d = <-lines:
	case <-time.After(10 * time.Second):
		t.Fatal("no log line arrived within 10 s")
	}
	if d.RoutingKey != "warning" || d.ContentType != "text/plain" || !strings.Contains(string(d.Body), "no queue 'no such queue'") {
		t.Errorf("got key %q, type %q, body %q; want the warning of the closed channel", d.RoutingKey, d.ContentType, d.Body)
	}
}
