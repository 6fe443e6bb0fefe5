package management

import (
	"net/http"
	"strings"
	"testing"
)

// page asks for a path beside the API, without a login.
func (a *api) page(method, path string, edit func(*http.Request)) (code int, header http.Header, body string) {
	w := a.request(method, "", "", func(r *http.Request) {
		r.URL.Path = path
		r.Header.Del("Authorization")
		if edit != nil {
			edit(r)
		}
	})
	return w.Code, w.Header(), w.Body.String()
}

func TestAdminScriptIsServed(t *testing.T) {
	a := newAPI(t, nil)
	for _, path := range []string{"/cli/rabbitmqadmin", "/cli/rabbitmqadmin/"} {
		code, header, body := a.page("GET", path, nil)
		if code != 200 || header.Get("Content-Type") != "application/octet-stream" || body != string(adminScript) {
			t.Errorf("GET %s = %d %q, %d bytes, want 200 application/octet-stream and the script's %d", path, code, header.Get("Content-Type"), len(body), len(adminScript))
		}
		if got := header.Get("Cache-Control"); got != "public, max-age=0, must-revalidate" {
			t.Errorf("GET %s, Cache-Control: %s", path, got)
		}
	}
	if first, _, _ := strings.Cut(string(adminScript), "\n"); first != "#!/usr/bin/env python3" {
		t.Errorf("the script begins with %q", first)
	}
	if want := `VERSION = "` + a.s.cfg.CompatibleVersion + `"`; !strings.Contains(string(adminScript), want) {
		t.Errorf("the script does not say %s, the API's version", want)
	}
}

func TestAdminPageIsServed(t *testing.T) {
	a := newAPI(t, nil)
	code, header, body := a.page("GET", "/cli/index.html", nil)
	if code != 200 || header.Get("Content-Type") != "text/html" {
		t.Errorf("GET /cli/index.html = %d %q, want 200 text/html", code, header.Get("Content-Type"))
	}
	for _, want := range []string{"<h1>rabbitmqadmin</h1>", `href="rabbitmqadmin"`, "/cli/rabbitmqadmin\n", "rabbitmqadmin --help", "declare queue name=orders"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, path := range []string{"/cli", "/cli/"} {
		code, header, _ := a.page("GET", path, nil)
		if code != 301 || header.Get("Location") != "/cli/index.html" {
			t.Errorf("GET %s = %d to %q, want 301 to /cli/index.html", path, code, header.Get("Location"))
		}
	}
}

func TestFilesCanBeCached(t *testing.T) {
	a := newAPI(t, nil)
	_, script, _ := a.page("GET", "/cli/rabbitmqadmin", nil)
	_, index, _ := a.page("GET", "/cli/index.html", nil)
	if script.Get("Etag") == "" || script.Get("Etag") == index.Get("Etag") {
		t.Errorf("Etag of the script %q, of the page %q, want two", script.Get("Etag"), index.Get("Etag"))
	}
	code, _, body := a.page("GET", "/cli/rabbitmqadmin", func(r *http.Request) { r.Header.Set("If-None-Match", script.Get("Etag")) })
	if code != 304 || body != "" {
		t.Errorf("the same again: %d, %d bytes, want 304 and none", code, len(body))
	}
	code, _, body = a.page("GET", "/cli/rabbitmqadmin", func(r *http.Request) { r.Header.Set("If-None-Match", `"other"`) })
	if code != 200 || body != string(adminScript) {
		t.Errorf("what has changed: %d, %d bytes, want 200 and %d", code, len(body), len(adminScript))
	}
}

func TestMethodsOfFiles(t *testing.T) {
	a := newAPI(t, nil)
	for _, tt := range []struct {
		method, path string
		code         int
		allow        string
	}{
		{"HEAD", "/cli/rabbitmqadmin", 200, ""},
		{"OPTIONS", "/cli/rabbitmqadmin", 200, "HEAD, GET, OPTIONS"},
		{"POST", "/cli/rabbitmqadmin", 405, "HEAD, GET, OPTIONS"},
		{"DELETE", "/cli/index.html", 405, "HEAD, GET, OPTIONS"},
		{"GET", "/cli/other", 404, ""},
		{"GET", "/cli/../cli/rabbitmqadmin", 404, ""},
		{"GET", "/rabbitmqadmin", 404, ""},
	} {
		code, header, body := a.page(tt.method, tt.path, nil)
		if code != tt.code || header.Get("Allow") != tt.allow {
			t.Errorf("%s %s = %d, Allow: %s, want %d, %s", tt.method, tt.path, code, header.Get("Allow"), tt.code, tt.allow)
		}
		if tt.method == "HEAD" && body != "" {
			t.Errorf("HEAD has a body of %d bytes", len(body))
		}
	}
}

func TestFilesBelowAPrefix(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.PathPrefix = "/mq" })
	for path, want := range map[string]int{"/mq/cli/rabbitmqadmin": 200, "/mq/cli/index.html": 200, "/mq/cli": 301, "/cli/rabbitmqadmin": 404, "/cli": 404} {
		if code, _, _ := a.page("GET", path, nil); code != want {
			t.Errorf("GET %s = %d, want %d", path, code, want)
		}
	}
	if _, header, _ := a.page("GET", "/mq/cli/", nil); header.Get("Location") != "/mq/cli/index.html" {
		t.Errorf("GET /mq/cli/ goes to %q, want /mq/cli/index.html", header.Get("Location"))
	}
}
