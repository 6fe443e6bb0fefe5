package management

import (
	"net/http"
	"slices"
	"strconv"
)

// cors allows a browser's page of another origin to read the answer, if that
// origin is configured. An unknown one gets no header at all.
func (s *Server) cors(out http.Header, h *http.Request) {
	origin := h.Header.Get("Origin")
	switch {
	case origin == "" || origin == "null" || origin == "*":
	case slices.Contains(s.cfg.AllowOrigins, origin):
		out.Set("Access-Control-Allow-Origin", origin)
		out.Set("Access-Control-Allow-Credentials", "true")
	case slices.Contains(s.cfg.AllowOrigins, "*"):
		out.Set("Access-Control-Allow-Origin", "*")
	}
}

// options answers a browser's question before the request proper. It needs no
// credentials: browsers send none.
func (r *request) options() {
	out := r.w.Header()
	out.Set("Allow", r.resource.allow)
	if out.Get("Access-Control-Allow-Origin") != "" {
		out.Set("Access-Control-Allow-Methods", r.resource.allow)
		out.Set("Access-Control-Max-Age", strconv.Itoa(int(r.s.cfg.CORSMaxAge.Seconds())))
		if asked := r.http.Header.Get("Access-Control-Request-Headers"); asked != "" {
			out.Set("Access-Control-Allow-Headers", asked)
		}
	}
	out.Set("Content-Length", "0")
	r.w.WriteHeader(http.StatusOK)
}
