//go:build !foreign

package cases_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// An embedded broker is a whole one in this process, with its log and HTTP API.
type embedded struct {
	*testing.T
	addr string // of AMQP
	api  *httpAdmin
	log  *observer.ObservedLogs
}

var apiLine = regexp.MustCompile(`HTTP API on http://([0-9.:]+)`)

// embed starts one that ends with the test.
func embed(t *testing.T, edit func(*config.Config)) *embedded {
	t.Helper()
	cfg := config.Default()
	cfg.Listen, cfg.ManagementListen, cfg.DataDir = "127.0.0.1:0", "127.0.0.1:0", t.TempDir()
	if edit != nil {
		edit(&cfg)
	}
	core, log := observer.New(zapcore.InfoLevel)
	b := broker.New(cfg, zap.New(core))
	addr, err := b.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := b.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	e := &embedded{T: t, addr: addr.String(), log: log}
	for _, line := range log.All() {
		if m := apiLine.FindStringSubmatch(line.Message); m != nil {
			e.api = &httpAdmin{"http://guest:guest@" + m[1]}
		}
	}
	if e.api == nil {
		t.Fatal("the log does not say where the HTTP API is")
	}
	return e
}

// connect opens a connection to it; names are as they are.
func (e *embedded) connect() *channel {
	e.Helper()
	c := dialTo(e.T, e.addr)
	c.suffix = ""
	if got := c.login(login{}); got != "ok" {
		e.Fatalf("login: %s", got)
	}
	return c.on(1)
}

// ask sends a request to the HTTP API: the status and the body. Headers are
// name, value.
func (e *embedded) ask(verb, path, body string, headers ...string) (int, string) {
	e.Helper()
	req, err := http.NewRequest(verb, e.api.base+"/api"+path, strings.NewReader(body))
	if err != nil {
		e.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		e.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// want asks and compares the status; it returns the body.
func (e *embedded) want(code int, verb, path, body string, headers ...string) string {
	e.Helper()
	got, text := e.ask(verb, path, body, headers...)
	if got != code {
		e.Errorf("%s %s = %d %s, want %d", verb, path, got, text, code)
	}
	return text
}

// One line says that an HTTP client has come to the wrong port (flower#1036,
// flower#830, flower#418).
func TestHTTPClientOnTheAMQPPort(t *testing.T) {
	e := embed(t, nil)
	before := e.log.Len()
	client := &http.Client{Timeout: patience}
	if resp, err := client.Get("http://" + e.addr + "/api/overview"); err == nil {
		_ = resp.Body.Close()
		t.Errorf("an HTTP answer: %s", resp.Status)
	}
	c := e.connect() // waits
	lines := func() (all []observer.LoggedEntry) {
		for _, line := range e.log.All()[before:] {
			if line.Level >= zapcore.WarnLevel {
				all = append(all, line)
			}
		}
		return all
	}
	c.eventually("1", func() string {
		if len(lines()) == 1 {
			return "1"
		}
		return "another number of lines"
	})
	for _, line := range lines() {
		const want = "an HTTP client has connected to the AMQP port; the management API has another one"
		if got := line.ContextMap()["reason"]; got != want {
			t.Errorf("the log says %s: %v, want the reason %s", line.Message, line.ContextMap(), want)
		}
		if line.Stack != "" {
			t.Errorf("the log has a stack: %s", line.Stack)
		}
	}
}

// The setting holds where neither argument nor policy says anything; a policy
// may raise as well as lower it (lavinmq#2189).
func TestConsumerTimeoutSetting(t *testing.T) {
	t.Parallel()
	e := embed(t, func(cfg *config.Config) { cfg.Limits.ConsumerTimeout = time.Second })
	policy := func(name string, ms string) {
		e.want(201, "PUT", "/policies/%2F/"+name, `{"pattern":"^`+name+`$","apply-to":"queues","definition":{"consumer-timeout":`+ms+`}}`)
	}
	policy("raised", "3600000")
	policy("lowered", "500")
	c := e.connect()
	queues := []string{"raised", "lowered", "argued", "plain"}
	for i, q := range queues {
		var args table
		if q == "argued" {
			args = table{"x-consumer-timeout", 3_600_000}
		}
		c.ok(c.declare(q, "d", args))
		c.puts(q, "m")
		d := c.on(uint16(i + 2))
		d.ok(d.consume(q, "t", "", nil))
		d.want("deliver t #1 /" + q + ` "m"`)
	}
	timedOut := func(channel, ms string) string {
		return "channel 406 PRECONDITION_FAILED - delivery acknowledgement on channel " + channel + " timed out. " +
			"Timeout value used: " + ms + " ms. This timeout value can be configured, see consumers doc guide to learn more (0,0)"
	}
	c.on(3).want(timedOut("3", "500"))
	c.on(5).want(timedOut("5", "1000"))
	c.pause(time.Second) // twice the time of the setting
	for _, n := range []uint16{2, 4} {
		d := c.on(n)
		d.is(d.sync(), "ok")
		d.ack(1, "")
		d.is(d.sync(), "ok")
	}
	for q, want := range map[string]string{"raised": "0 1", "argued": "0 1", "lowered": "1 0", "plain": "1 0"} {
		c.is(c.depth(q), want)
	}
}

// A memory alarm fails the check of alarms, and nothing else is hurt
// (rabbitmq-server#23).
func TestHealthDuringAnAlarm(t *testing.T) {
	e := embed(t, func(cfg *config.Config) { cfg.MemoryLimit = 100 }) // any process takes more
	c := e.connect()
	c.eventually("503", func() string {
		if code, _ := e.ask("GET", "/health/checks/alarms", ""); code == http.StatusServiceUnavailable {
			return "503"
		}
		return "another status"
	})
	if text := e.want(503, "GET", "/health/checks/alarms", ""); !strings.Contains(text, `"resource":"memory"`) {
		t.Errorf("the check says %s, want it to name memory", text)
	}
	if text := e.want(200, "GET", "/aliveness-test/%2F", ""); text != `{"status":"ok"}` {
		t.Errorf("aliveness says %s, want ok", text)
	}
}

// A client that is closed over the HTTP API sees why (nest#1571).
func TestForcedCloseTellsTheReason(t *testing.T) {
	e := embed(t, nil)
	for reason, want := range map[string]string{"bye": "bye", "": "Closed via management plugin"} {
		c := e.connect()
		name := strings.NewReplacer(":", "%3A", " ", "%20", ">", "%3E").Replace(
			c.sock.LocalAddr().(*net.TCPAddr).String() + " -> " + c.sock.RemoteAddr().String())
		var headers []string
		if reason != "" {
			headers = []string{"X-Reason", reason}
		}
		e.want(204, "DELETE", "/connections/"+name, "", headers...)
		c.is(c.next(), "connection 320 CONNECTION_FORCED - "+want+" (0,0)")
	}
}

// Exclusive queues and their bindings are not exported (rabbitmq-server#6599).
func TestExclusiveQueuesAreNotExported(t *testing.T) {
	e := embed(t, nil)
	c := e.connect()
	c.ok(c.declare("mine", "dx", nil))
	c.ok(c.declare("kept", "d", nil))
	for _, q := range []string{"mine", "kept"} {
		c.ok(c.bind(q, "amq.topic", "key.of."+q, nil))
	}
	for _, path := range []string{"/definitions", "/definitions/%2F"} {
		text := e.want(200, "GET", path, "")
		if strings.Contains(text, "mine") || !strings.Contains(text, `"name":"kept"`) || !strings.Contains(text, "key.of.kept") {
			t.Errorf("%s has the exclusive queue, or lacks the other: %s", path, text)
		}
	}
}

// Bindings that cannot be are refused with words that help
// (rabbitmq-server#2608, lavinmq#1734).
func TestRefusedBindingsOverHTTP(t *testing.T) {
	e := embed(t, nil)
	e.want(201, "PUT", "/queues/%2F/q", `{"durable":true}`)
	for arguments, want := range map[string]string{
		`{"x-match":"foo"}`: "expected all, any, all-with-x, or any-with-x",
		`{"h":null}`:        `"error":"bad_request"`,
	} {
		if text := e.want(400, "POST", "/bindings/%2F/e/amq.headers/q/q", `{"routing_key":"","arguments":`+arguments+`}`); !strings.Contains(text, want) {
			t.Errorf("%s: %s, want it to say %s", arguments, text, want)
		}
	}
}
