package management

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A browser sends the login of who uses it with any page's form.
func TestPagesOfOtherSitesChangeNothing(t *testing.T) {
	const evil, ours, own = "https://evil.test", "https://ours.test", "http://example.com" // httptest's host is example.com
	for _, tt := range []struct {
		origins            []string
		method, site, from string
		want               int
	}{
		{nil, "PUT", "", "", 201}, // no browser
		{nil, "PUT", "cross-site", evil, 403},
		{nil, "PUT", "cross-site", "null", 403},
		{nil, "PUT", "same-site", "http://other.example.com", 403},
		{nil, "PUT", "", evil, 403}, // over HTTP a browser says no more
		{nil, "PUT", "", own, 201},
		{nil, "PUT", "same-origin", own, 201},
		{nil, "PUT", "none", "", 201},
		{nil, "GET", "cross-site", evil, 404},
		{nil, "OPTIONS", "cross-site", evil, 200},
		{[]string{ours}, "PUT", "cross-site", ours, 201},
		{[]string{ours}, "PUT", "cross-site", evil, 403},
		{[]string{"*"}, "PUT", "cross-site", evil, 201},
	} {
		a := newAPI(t, func(c *Config) { c.AllowOrigins = tt.origins })
		w := ask(t, a.s.http.Handler, tt.method, "/api/users/made", func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(`{"password":"x","tags":"administrator"}`))
			r.Header.Set("Content-Type", "text/plain")
			if tt.site != "" {
				r.Header.Set("Sec-Fetch-Site", tt.site)
			}
			if tt.from != "" {
				r.Header.Set("Origin", tt.from)
			}
		})
		if _, made := a.auth.User("made"); w.Code != tt.want || made != (tt.want == 201) {
			t.Errorf("%+v: %d %s, user made %t", tt, w.Code, w.Body, made)
		}
	}
}
