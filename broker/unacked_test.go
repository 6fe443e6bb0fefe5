package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// An httpBroker is a broker in this process with an HTTP API.
type httpBroker struct {
	t    *testing.T
	api  string
	conn *amqp.Connection
}

func newHTTPBroker(t *testing.T) *httpBroker {
	t.Helper()
	cfg := testConfig(t)
	cfg.ManagementListen = "127.0.0.1:0"
	b := New(cfg, nil)
	addr, err := b.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	h := &httpBroker{t: t, api: "http://" + b.apiListener.Addr().String() + "/api"}
	if h.conn, err = amqp.Dial("amqp://" + addr.String() + "/"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.conn.Close() }) // the test may have closed it
	return h
}

// call returns the decoded answer.
func (h *httpBroker) call(method, path, body string, into any) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.api+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.SetBasicAuth("guest", "guest")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	b.ReadFrom(resp.Body)
	if resp.StatusCode >= 300 {
		h.t.Fatalf("%s %s = %s %s", method, path, resp.Status, &b)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(b.Bytes(), into); err != nil {
		h.t.Fatal(err)
	}
}

func (h *httpBroker) channel() *amqp.Channel {
	h.t.Helper()
	ch, err := h.conn.Channel()
	if err != nil {
		h.t.Fatal(err)
	}
	return ch
}

func TestUnackedOfEveryTypeOfQueue(t *testing.T) {
	h := newHTTPBroker(t)
	for _, typ := range []string{"classic", "quorum", "stream"} {
		ch := h.channel()
		if _, err := ch.QueueDeclare(typ, true, false, false, false, amqp.Table{"x-queue-type": typ}); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{"one", "two", "three"} {
			if err := ch.PublishWithContext(context.Background(), "", typ, false, false, amqp.Publishing{Body: []byte(body), Type: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		ch.Qos(10, 0, false)
		var arguments amqp.Table
		if typ == "stream" {
			arguments = amqp.Table{"x-stream-offset": "first"}
		}
		ds, err := ch.Consume(typ, "tag", false, false, false, false, arguments)
		if err != nil {
			t.Fatal(err)
		}
		first := <-ds
		<-ds
		<-ds
		first.Ack(false)
		ch.Qos(11, 0, false) // answered after the ack was done
		var got struct {
			Total int `json:"total_count"`
			Items []struct {
				Tag         uint64 `json:"delivery_tag"`
				Consumer    string `json:"consumer_tag"`
				Payload     string
				Redelivered bool
				Details     struct{ User string } `json:"channel_details"`
			}
		}
		h.call("GET", "/queues/%2F/"+typ+"/unacked?page=1&page_size=1", "", &got)
		if got.Total != 2 || len(got.Items) != 1 {
			t.Fatalf("%s: %+v, want one of two", typ, got)
		}
		if i := got.Items[0]; i.Tag != 2 || i.Consumer != "tag" || i.Payload != "two" || i.Redelivered || i.Details.User != "guest" {
			t.Errorf("%s: %+v, want delivery tag 2 of the consumer tag, held by guest", typ, i)
		}
	}
}

func TestChurnCountsWhatLivedShortly(t *testing.T) {
	h := newHTTPBroker(t)
	for range 3 {
		h.channel().Close()
	}
	h.conn.Close()
	var got struct {
		Churn map[string]any `json:"churn_rates"`
	}
	h.call("GET", "/overview", "", &got)
	for name, want := range map[string]float64{"connection_created": 1, "channel_created": 3, "channel_closed": 3} {
		if got.Churn[name] != want {
			t.Errorf("%s = %v, want %v", name, got.Churn[name], want)
		}
	}
}

// Events name the user of the HTTP API who made the change.
func TestEventsNameTheUserOfTheHTTPAPI(t *testing.T) {
	h := newHTTPBroker(t)
	ch := h.channel()
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(q.Name, "#", "amq.rabbitmq.event", false, nil); err != nil {
		t.Fatal(err)
	}
	events, err := ch.Consume(q.Name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.call("PUT", "/vhosts/v", "", nil)
	h.call("PUT", "/users/ann", `{"password":"x","tags":""}`, nil)
	h.call("PUT", "/permissions/v/ann", `{"configure":"","write":"","read":""}`, nil)
	h.call("DELETE", "/permissions/v/ann", "", nil)
	h.call("DELETE", "/users/ann", "", nil)
	h.call("DELETE", "/vhosts/v", "", nil)
	want := map[string]bool{"vhost.created": true, "user.created": true, "permission.created": true, "permission.deleted": true, "user.deleted": true, "vhost.deleted": true}
	for len(want) > 0 {
		e := <-events
		if !want[e.RoutingKey] {
			continue
		}
		delete(want, e.RoutingKey)
		if who := e.Headers["user_who_performed_action"]; who != "guest" {
			t.Errorf("%s was made by %v, want guest", e.RoutingKey, who)
		}
	}
}
