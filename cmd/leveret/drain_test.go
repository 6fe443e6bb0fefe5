package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A drained broker closes its connections, refuses new ones and fails the checks
// of load balancers; a revived one is as before.
func TestDrainAndRevive(t *testing.T) {
	_, addr := startBrokerAt(t)
	url := "amqp://guest:guest@" + addr.String()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	code, out, errs := call(t, "", "rabbitmq-upgrade", "drain")
	if code != 0 || !strings.HasPrefix(out, "Will put node ") || !strings.Contains(out, "into maintenance mode") {
		t.Fatalf("drain: code %d, %q, %q", code, out, errs)
	}
	if e := <-closed; e == nil || e.Code != amqp.ConnectionForced || !strings.Contains(e.Reason, "maintenance") {
		t.Errorf("the connection was closed with %v", e)
	}
	if _, err := amqp.Dial(url); err == nil || !strings.Contains(err.Error(), "this node is in maintenance") {
		t.Errorf("a connection in maintenance: %v", err)
	}
	for path, want := range map[string]int{"ready-to-serve-clients": 503, "is-in-service": 503, "local-alarms": 200} {
		if got := statusOf(t, "health/checks/"+path); got != want {
			t.Errorf("%s answers %d in maintenance, want %d", path, got, want)
		}
	}
	if _, out, _ := call(t, "", "rabbitmqctl", "cluster_status", "--formatter", "json"); !strings.Contains(out, "marked for maintenance") {
		t.Errorf("cluster_status: %s", out)
	}
	if code, _, errs := call(t, "", "leveret", "drain", "--revive"); code != 0 {
		t.Fatalf("drain --revive: code %d, %q", code, errs)
	}
	if got := statusOf(t, "health/checks/ready-to-serve-clients"); got != 200 {
		t.Errorf("a revived broker answers %d to ready-to-serve-clients", got)
	}
	if conn, err = amqp.Dial(url); err != nil {
		t.Fatalf("a connection after the maintenance: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// statusOf is the status of a GET of the API.
func statusOf(t *testing.T, path string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, os.Getenv("LEVERET_URL")+"/api/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("guest", "guest")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
