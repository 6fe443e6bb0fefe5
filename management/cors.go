package management

import (
	"net/http"
	"slices"
	"strconv"
)

// cors allows a browser's page of another origin to read the answer, if that
// origin is configured. An unknown one gets no header at all.
func (s *Server) cors(out http.Header, h *http.Request) {
	allowed := s.allowedOrigin(h)
	if allowed == "" {
		return
	}
	out.Set("Access-Control-Allow-Origin", allowed)
	if allowed != "*" {
		out.Set("Access-Control-Allow-Credentials", "true")
	}
}

// allowedOrigin is the configured origin that the page is of which asks: its own or "*";
// "" is none.
func (s *Server) allowedOrigin(h *http.Request) string {
	origin := h.Header.Get("Origin")
	switch {
	case origin == "" || origin == "null" || origin == "*":
	case slices.Contains(s.cfg.AllowOrigins, origin):
		return origin
	case slices.Contains(s.cfg.AllowOrigins, "*"):
		return "*"
	}
	return ""
}

// refuseOtherSites refuses what pages of other origins would change unless they are
// configured: browsers send a login that they know along with any page's form. Clients
// that are no browsers name neither site nor origin. It goes beyond RabbitMQ.
func (s *Server) refuseOtherSites(h http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		if protection.Check(hr) != nil && s.allowedOrigin(hr) == "" {
			r := &request{s: s, w: w, http: hr}
			r.fail(errOtherSite)
			return
		}
		h.ServeHTTP(w, hr)
	})
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
