//go:build tools

// Package tools_test runs tools that people use with RabbitMQ against a broker: a
// real RabbitMQ as the other end of definitions, rabbitmqadmin, Prometheus. It
// needs Debian's packages rabbitmq-server and prometheus:
//
//	make interop-tools
//
// API_URL, METRICS_URL and AMQP_URL name the broker, RABBITMQ_API the RabbitMQ.
package tools_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
)

// setting is a variable of the environment that must be there.
func setting(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; run this with make interop-tools", name)
	}
	return value
}

// An api is a RabbitMQ-like HTTP API.
type api struct {
	*testing.T
	url string
}

func apiAt(t *testing.T, variable string) api {
	t.Helper()
	return api{t, setting(t, variable)}
}

// do makes a request as guest and returns the body of the answer, which must have
// this status.
func (a api) do(method, path string, body any, status int) []byte {
	a.Helper()
	return a.as("guest", "guest", method, path, body, status)
}

func (a api) as(user, password, method, path string, body any, status int) []byte {
	a.Helper()
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			a.Fatal(err)
		}
		send = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(a.Context(), method, a.url+"/api/"+path, send)
	if err != nil {
		a.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		a.Fatal(err)
	}
	if res.StatusCode != status {
		a.Fatalf("%s %s at %s: %s %s, want %d", method, path, a.url, res.Status, got, status)
	}
	return got
}
