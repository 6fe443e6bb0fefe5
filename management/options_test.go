package management

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ask calls a handler as guest from this host.
func ask(t *testing.T, h http.Handler, method, path string, edit func(*http.Request)) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	r.RemoteAddr = "127.0.0.1:40000"
	r.SetBasicAuth("guest", "guest")
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHeadersThatAreConfigured(t *testing.T) {
	a := newAPI(t, func(c *Config) {
		c.Options.Headers = map[string]string{"Content-Security-Policy": "default-src 'self'", "X-Frame-Options": "DENY", "Vary": ""}
	})
	w := ask(t, a.s.http.Handler, "GET", "/api/overview", nil)
	for name, want := range map[string]string{"Content-Security-Policy": "default-src 'self'", "X-Frame-Options": "DENY", "Vary": ""} {
		if got := w.Header().Get(name); got != want || w.Code != 200 {
			t.Errorf("%d, %s: %q, want %q", w.Code, name, got, want)
		}
	}
}

func TestPathsAreLoggedWithoutPasswords(t *testing.T) {
	for path, want := range map[string]string{
		"/api/auth/hash_password/s3cret/more": "/api/auth/hash_password/...",
		"/api/queues/%2F/q":                   "/api/queues///q",
	} {
		u, err := url.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := loggedPath(u); got != want {
			t.Errorf("%s is logged as %s, want %s", path, got, want)
		}
	}
}

func TestAccessLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	a := newAPI(t, func(c *Config) { c.Options.AccessLog = dir })
	ask(t, a.s.http.Handler, "GET", "/api/whoami?x=1", func(r *http.Request) { r.Header.Set("User-Agent", "a\"\nb") })
	ask(t, a.s.http.Handler, "GET", "/api/whoami", func(r *http.Request) { r.SetBasicAuth("no body", "sesame") })
	ask(t, a.s.http.Handler, "GET", "/api/auth/hash%5fpassword/s3cret?s3cret", nil)
	files, err := filepath.Glob(filepath.Join(dir, "access.log.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %q, error %v", files, err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %q, want three lines", lines)
	}
	if !strings.HasPrefix(lines[0], "127.0.0.1 - guest [") || !strings.Contains(lines[0], `] "GET /api/whoami?x=1 HTTP/1.1" 200 `) || !strings.HasSuffix(lines[0], ` "" "a\"\nb"`) {
		t.Errorf("got %s", lines[0])
	}
	if !strings.HasPrefix(lines[1], `127.0.0.1 - no\x20body [`) || !strings.Contains(lines[1], " 401 ") || strings.Contains(lines[1], "sesame") {
		t.Errorf("got %s", lines[1])
	}
	if !strings.Contains(lines[2], `"GET /api/auth/hash_password/... HTTP/1.1" 200 `) || strings.Contains(lines[2], "s3cret") {
		t.Errorf("got %s", lines[2])
	}
}

func TestOperatorPoliciesThatAreFixed(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.Options.FixedOperatorPolicies = true })
	for method, want := range map[string]int{"PUT": 405, "DELETE": 405, "GET": 404} {
		if w := ask(t, a.s.http.Handler, method, "/api/operator-policies/%2f/p", nil); w.Code != want {
			t.Errorf("%s: %d, want %d", method, w.Code, want)
		}
	}
	if w := ask(t, a.s.http.Handler, "PUT", "/api/parameters/operator_policy/%2f/p", nil); w.Code != 405 {
		t.Errorf("as a parameter: %d, want 405", w.Code)
	}
	a.is("/overview?columns=is_op_policy_updating_enabled", `{"is_op_policy_updating_enabled":false}`)
}

func TestTagsAreShown(t *testing.T) {
	a := newAPI(t, func(c *Config) {
		c.Options.NodeTags, c.Options.ClusterTags = map[string]string{"rack": "1"}, map[string]string{"region": "eu"}
	})
	a.is("/overview?columns=node_tags,cluster_tags", `{"cluster_tags":{"region":"eu"},"node_tags":{"rack":"1"}}`)
	a.is("/global-parameters/cluster_tags", `{"name":"cluster_tags","value":{"region":"eu"}}`)
	newAPI(t, nil).is("/global-parameters/cluster_tags", `{"name":"cluster_tags","value":[]}`)
}

func TestMetricsOptions(t *testing.T) {
	a := newAPI(t, func(c *Config) {
		c.Options.MetricsPath, c.Options.MetricsPerObject, c.Options.MetricsLogin = "/mq", true, true
	})
	a.user("plain", "management")
	a.do("PUT", "/queues/%2F/q1", `{}`, 201)
	h := a.s.metrics.Handler
	for _, tt := range []struct {
		path   string
		edit   func(*http.Request)
		code   int
		needle string
	}{
		{"/mq", nil, 200, `queue="q1"`},
		{"/mq/", nil, 200, `queue="q1"`},
		{"/mq/detailed?family=queue_coarse_metrics", nil, 200, "\nrabbitmq_detailed_queue_messages{"},
		{"/metrics", nil, 404, ""},
		{"/mqx", nil, 404, ""},
		{"/mq", func(r *http.Request) { r.Header.Del("Authorization") }, 401, ""},
		{"/mq", func(r *http.Request) { r.SetBasicAuth("guest", "wrong") }, 401, ""},
		{"/mq", as("plain"), 401, "Not monitor user"},
	} {
		w := ask(t, h, "GET", tt.path, tt.edit)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.needle) {
			t.Errorf("%s: %d, want %d with %q in\n%.300s", tt.path, w.Code, tt.code, tt.needle, w.Body)
		}
	}
}
