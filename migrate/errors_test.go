package migrate

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What concerns everything ends the run, and says what to do.
func TestErrorsSayWhatToDo(t *testing.T) {
	answers := func(status int) *API {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(s.Close)
		return &API{Base: s.URL}
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, tt := range []struct {
		name     string
		from, to *API
		opts     Options
		want     string
	}{
		{"no source", &API{Base: gone.URL}, nil, Options{}, "rabbitmq-plugins enable rabbitmq_management); name its address with --management"},
		{"no source, messages only", &API{Base: gone.URL}, nil, Options{NoDefinitions: true}, "name its address with --management"},
		{"a wrong login", answers(http.StatusUnauthorized), nil, Options{}, "the login in the URI has to be right, and that of an administrator"},
		{"an unknown vhost", answers(http.StatusNotFound), nil, Options{VHosts: []string{"v"}}, "the source has no virtual host 'v'"},
		{"no source for a vhost", &API{Base: gone.URL}, nil, Options{VHosts: []string{"v"}}, "look up virtual host 'v' at the source"},
	} {
		_, err := Run(t.Context(), Endpoint{API: tt.from}, Endpoint{API: tt.to}, tt.opts)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", tt.name, err, tt.want)
		}
	}
}
