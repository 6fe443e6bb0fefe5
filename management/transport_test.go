package management

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCredentials(t *testing.T) {
	a := newAPI(t, nil)
	a.user("plain", "")
	for _, tt := range []struct {
		name       string
		edit       func(*http.Request)
		code       int
		body       string
		challenged bool
	}{
		{"none", func(r *http.Request) { r.Header.Del("Authorization") }, 401, "", true},
		{"wrong password", func(r *http.Request) { r.SetBasicAuth("guest", "x") }, 401, `{"error":"not_authorized","reason":"Not_Authorized"}`, false},
		{"unknown user", as("nobody"), 401, `{"error":"not_authorized","reason":"Not_Authorized"}`, false},
		{"no tag", as("plain"), 401, `{"error":"not_authorised","reason":"Not management user"}`, false},
		{"guest from afar", func(r *http.Request) { r.RemoteAddr = "10.1.1.1:99" }, 401, `{"error":"not_authorised","reason":"User can only log in via localhost"}`, false},
	} {
		w := a.request("GET", "/whoami", "", tt.edit)
		if w.Code != tt.code || w.Body.String() != tt.body {
			t.Errorf("%s: %d %s, want %d %s", tt.name, w.Code, w.Body, tt.code, tt.body)
		}
		if got := w.Header().Get("Www-Authenticate") == `Basic realm="RabbitMQ Management"`; got != tt.challenged {
			t.Errorf("%s: challenged %v, want %v", tt.name, got, tt.challenged)
		}
	}
}

func TestFailedLoginsAreLimited(t *testing.T) {
	const failedLogins = 60 // of package auth
	a := newAPI(t, nil)
	a.user("u", "management")
	wrong := func(r *http.Request) { r.SetBasicAuth("guest", "x") }
	for range failedLogins {
		a.request("GET", "/whoami", "", wrong)
	}
	if w := a.request("GET", "/whoami", "", nil); w.Code != http.StatusTooManyRequests {
		t.Errorf("after %d failures: %d, want 429", failedLogins, w.Code)
	}
	other := func(r *http.Request) { r.RemoteAddr = "[::1]:1" }
	if w := a.request("GET", "/whoami", "", other); w.Code != 200 {
		t.Errorf("from another address: %d, want 200", w.Code)
	}
	if w := a.request("GET", "/whoami", "", as("u")); w.Code != 200 {
		t.Errorf("another user: %d, want 200", w.Code)
	}
}

func TestOpenPaths(t *testing.T) {
	a := newAPI(t, nil)
	for path, want := range map[string]string{"/version": `"4.0.5"`, "/auth": `{"oauth_enabled":false}`} {
		w := a.request("GET", path, "", func(r *http.Request) { r.Header.Del("Authorization") })
		if w.Code != 200 || w.Body.String() != want {
			t.Errorf("%s = %d %s, want 200 %s", path, w.Code, w.Body, want)
		}
	}
}

func TestPaths(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/m", "", 201)
	a.do("PUT", "/queues/m/m%2Fq%20a+b", "", 201)
	for _, tt := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/queues/%2F", 200},
		{"GET", "/queues/%2f", 200},
		{"GET", "/queues/%2F/", 200},
		{"GET", "/queues/%2F//", 404},
		{"GET", "/queues///x", 404},
		{"GET", "/queues/m/m%2Fq%20a+b", 200}, // + is a plus in a path
		{"GET", "/queues/m/m%2Fq%20a%20b", 404},
		{"GET", "/no-such-thing", 404},
		{"HEAD", "/no-such-thing", 404},
		{"OPTIONS", "/no-such-thing", 200},
		{"POST", "/no-such-thing", 405},
		{"DELETE", "/no-such-thing", 405},
		{"PUT", "/overview", 405},
		{"PATCH", "/queues/%2F/q", 405},
		{"FOO", "/overview", 501}, // no method of HTTP's
		{"TRACE", "/no-such-thing", 501},
		{"HEAD", "/overview", 200},
	} {
		if w := a.request(tt.method, tt.path, "", nil); w.Code != tt.code {
			t.Errorf("%s %s = %d %s, want %d", tt.method, tt.path, w.Code, w.Body, tt.code)
		}
	}
	for path, want := range map[string]string{"/queues/%2F/q": "HEAD, GET, PUT, DELETE, OPTIONS", "/no-such-thing": "HEAD, GET, OPTIONS"} {
		if got := a.request("POST", path, "", nil).Header().Get("Allow"); got != want {
			t.Errorf("POST %s, Allow: %s, want %s", path, got, want)
		}
	}
	equal(t, "not found", a.do("GET", "/queues/%2F/none", "", 404), `{"error":"Object Not Found","reason":"Not Found"}`)
}

func TestPathPrefix(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.PathPrefix = "/mq" })
	for path, want := range map[string]int{"/mq/api/whoami": 200, "/api/whoami": 404} {
		w := a.request("GET", "/whoami", "", func(r *http.Request) { r.URL.Path = path })
		if w.Code != want {
			t.Errorf("%s = %d, want %d", path, w.Code, want)
		}
	}
}

func TestAccept(t *testing.T) {
	a := newAPI(t, nil)
	for accept, want := range map[string]int{"": 200, "*/*": 200, "application/json": 200, "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8": 200, "text/html": 406} {
		w := a.request("GET", "/whoami", "", func(r *http.Request) { r.Header.Set("Accept", accept) })
		if w.Code != want {
			t.Errorf("Accept %q = %d, want %d", accept, w.Code, want)
		}
	}
}

func TestHeadersOfAnAnswer(t *testing.T) {
	w := newAPI(t, nil).request("GET", "/whoami", "", nil)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-cache", "Vary": "accept, accept-encoding, origin",
		"Content-Length": fmt.Sprint(w.Body.Len()),
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestHeadersOfErrorsAndEmptyAnswers(t *testing.T) {
	const negotiated, not = "accept, accept-encoding, origin", "origin, accept-encoding"
	a := newAPI(t, nil)
	a.do("PUT", "/users/nobody", `{"password": "p", "tags": ""}`, 201)
	for _, tt := range []struct {
		method, path, user string
		status             int
		vary               string
	}{
		{"GET", "/whoami", "nobody", 401, not},
		{"GET", "/no-such-thing", "", 404, not},
		{"GET", "/queues/none", "", 404, negotiated},
		{"GET", "/queues?page=x", "", 400, negotiated},
		{"PUT", "/queues/%2F/q", "", 201, negotiated},
		{"PUT", "/queues/none/q", "", 404, negotiated},
		{"DELETE", "/queues/%2F/q", "", 204, negotiated},
	} {
		w := a.request(tt.method, tt.path, "", func(r *http.Request) {
			if tt.user != "" {
				r.SetBasicAuth(tt.user, "p")
			}
		})
		if w.Code != tt.status || w.Header().Get("Cache-Control") != "public, max-age=0, must-revalidate" || w.Header().Get("Vary") != tt.vary {
			t.Errorf("%s %s = %d %v, want %d and Vary: %s", tt.method, tt.path, w.Code, w.Header(), tt.status, tt.vary)
		}
	}
}

func TestGzip(t *testing.T) {
	a := newAPI(t, nil)
	w := a.request("GET", "/overview", "", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip, deflate") })
	if w.Header().Get("Content-Encoding") != "gzip" {
		t.Fatal("not compressed")
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	has(t, decode(t, z), J{"node": "rabbit@test"})
}

func TestWhoTakesGzip(t *testing.T) {
	a := newAPI(t, nil)
	for accept, want := range map[string]bool{"gzip": true, "GZIP": true, "*": true, "br;q=1, gzip;q=0.2": true, "gzip;q=0": false, "gzip; q=0.000, br": false, "br": false, "": false} {
		w := a.request("GET", "/overview", "", func(r *http.Request) { r.Header.Set("Accept-Encoding", accept) })
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: compressed %v, want %v", accept, got, want)
		}
	}
}

// Caches must not give one origin's answer to another (RabbitMQ 4.0).
func TestHeadersOfEmptyAnswers(t *testing.T) {
	a := newAPI(t, nil)
	for _, method := range []string{"OPTIONS", "PATCH"} {
		w := a.request(method, "/queues/%2F/q", "", nil)
		if got := w.Header().Get("Vary"); got != "origin, accept-encoding" {
			t.Errorf("%s: Vary %q, want origin, accept-encoding", method, got)
		}
	}
}

func TestRootLeadsToThePage(t *testing.T) {
	for prefix, path := range map[string]string{"": "/", "/mq": "/mq/"} {
		a := newAPI(t, func(c *Config) { c.PathPrefix = prefix })
		if w := ask(t, a.s, "GET", path, nil); w.Code != 301 || w.Header().Get("Location") != prefix+"/api/index.html" {
			t.Errorf("GET %s = %d to %q, want 301 to %s/api/index.html", path, w.Code, w.Header().Get("Location"), prefix)
		}
	}
}

func TestCORS(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.AllowOrigins = []string{"https://a.example"} })
	any := newAPI(t, func(c *Config) { c.AllowOrigins = []string{"*"} })
	for _, tt := range []struct {
		a                   *api
		origin, allow, cred string
	}{
		{a, "https://a.example", "https://a.example", "true"},
		{a, "https://b.example", "", ""},
		{any, "https://b.example", "*", ""},
		{any, "null", "", ""},
	} {
		w := tt.a.request("GET", "/whoami", "", func(r *http.Request) { r.Header.Set("Origin", tt.origin) })
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != tt.allow {
			t.Errorf("%s: allow %q, want %q", tt.origin, got, tt.allow)
		}
		if got := w.Header().Get("Access-Control-Allow-Credentials"); got != tt.cred {
			t.Errorf("%s: credentials %q, want %q", tt.origin, got, tt.cred)
		}
	}
	w := a.request("OPTIONS", "/queues/%2F/q", "", func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("Origin", "https://a.example")
		r.Header.Set("Access-Control-Request-Headers", "authorization")
	})
	for name, want := range map[string]string{"Access-Control-Allow-Methods": "HEAD, GET, PUT, DELETE, OPTIONS",
		"Access-Control-Allow-Headers": "authorization", "Access-Control-Max-Age": "1800"} {
		if got := w.Header().Get(name); w.Code != 200 || got != want {
			t.Errorf("OPTIONS: %d %s: %q, want 200 %q", w.Code, name, got, want)
		}
	}
}

func TestBodies(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.MaxBodySize = 64 })
	for _, tt := range []struct{ body, reason string }{
		{"{bad", "not_json"},
		{"[]", "not_json"},
		{`{"durable":"maybe"}`, "durable must be true or false"},
		{`{"arguments":3}`, "arguments must be an object"},
		{`{"arguments":{"a":[-1e999]}}`, "not_json"},
		{strings.Repeat(" ", 65), "the request body is larger than the limit of 64 bytes; raise management.http.max_body_size"},
	} {
		has(t, a.do("PUT", "/queues/%2F/q", tt.body, 400), J{"error": "bad_request", "reason": tt.reason})
	}
	a.do("PUT", "/queues/%2F/q", `{"durable":"true"}`, 201) // as rabbitmqadmin sends it
	has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"durable": true})
}

func TestReference(t *testing.T) {
	a := newAPI(t, nil)
	open := func(r *http.Request) { r.Header.Del("Authorization") }
	doc := decode(t, a.request("GET", "/openapi.json", "", open).Body).(J)
	has(t, doc, J{"openapi": "3.1.0"})
	paths := doc["paths"].(J)
	page := a.request("GET", "/index.html", "", open).Body.String()
	for _, row := range routes() {
		item, _ := paths[row.path].(J)
		if item[strings.ToLower(row.method)] == nil {
			t.Errorf("openapi.json lacks %s %s", row.method, row.path)
		}
		if !strings.Contains(page, "<td>"+row.method+"</td><td><code>/api"+row.path+"<") {
			t.Errorf("index.html lacks %s %s", row.method, row.path)
		}
	}
	want := []any{J{"name": "vhost", "in": "path", "required": true, "schema": J{"type": "string"}}}
	has(t, paths["/queues/{vhost}"].(J), J{"parameters": want})
}

func TestEveryRouteAnswers(t *testing.T) {
	a := newAPI(t, nil)
	for _, row := range routes() {
		path := row.path
		for name, value := range map[string]string{"vhost": "%2F", "name": "x", "node": "rabbit@test", "type": "q", "within": "1", "unit": "weeks", "user": "guest"} {
			path = strings.ReplaceAll(path, "{"+name+"}", value)
		}
		path = strings.NewReplacer("{", "", "}", "").Replace(path)
		if strings.HasPrefix(row.path, "/users/") && row.method == "DELETE" || path == "/events" {
			continue // it would delete the user of this test, or never end
		}
		if w := a.request(row.method, path, "", nil); w.Code >= 500 && !strings.HasPrefix(path, "/health/") || w.Code == 405 {
			t.Errorf("%s %s = %d %s", row.method, path, w.Code, w.Body)
		}
	}
}

func TestSettingsAreText(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.Settings = "heartbeat = 30s  # default\n" })
	w := a.request("GET", "/config/effective", "", nil)
	if got := w.Header().Get("Content-Type"); w.Code != 200 || w.Body.String() != "heartbeat = 30s  # default\n" || got != "text/plain; charset=utf-8" {
		t.Errorf("%d %q of type %s, want the settings as text", w.Code, w.Body, got)
	}
}

func TestLoginForm(t *testing.T) {
	a := newAPI(t, nil)
	form := func(r *http.Request) {
		r.Header.Del("Authorization")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, tt := range []struct {
		body string
		code int
	}{
		{"username=guest&password=guest", 200},
		{"username=guest&password=x", 401},
		{"username=guest&password=guest&x=" + strings.Repeat("x", 100_000), 413},
		{strings.Repeat("a=&", 33_000) + "username=guest&password=guest", 413},
	} {
		if w := a.request("POST", "/login", tt.body, form); w.Code != tt.code {
			t.Errorf("login of %d bytes = %d %s, want %d", len(tt.body), w.Code, w.Body, tt.code)
		}
	}
}

// one is a listener with one connection.
type one struct {
	net.Listener
	conns chan net.Conn
}

func (l one) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l one) Addr() net.Addr { return &net.TCPAddr{} }
func (l one) Close() error   { return nil }

func TestABodyThatDoesNotComeEndsTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(t, nil)
		client, server := net.Pipe()
		l := one{conns: make(chan net.Conn, 1)}
		l.conns <- server
		var serving sync.WaitGroup
		serving.Go(func() { a.s.Serve(t.Context(), l) })
		fmt.Fprintf(client, "POST /api/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 29\r\n\r\nusername=guest")
		began := time.Now()
		w, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); w.StatusCode != 400 || took != slowClient {
			t.Errorf("status %d after %s, want 400 after %s", w.StatusCode, took, slowClient)
		}
		client.Close()
		close(l.conns)
		a.s.Shutdown(t.Context())
		serving.Wait()
	})
}
