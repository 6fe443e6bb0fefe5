package management

import (
	"errors"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"

	"go.uber.org/zap"
)

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	r := &request{s: s, w: w, http: h}
	defer r.recovered()
	setPlain(w.Header())
	s.cors(w.Header(), h)
	if s.redirected(w, h) || r.serveFile() {
		return
	}
	segments, ok := s.router.split(h.URL.EscapedPath())
	if !ok {
		r.serveUnknown()
		return
	}
	res := s.router.find(segments)
	if res == nil {
		r.serveUnknown()
		return
	}
	r.resource, r.segments = res, segments
	r.serve()
}

// serveUnknown answers a request whose path is not known: reading it finds nothing,
// and nothing else may be done with it (RabbitMQ 4.0).
func (r *request) serveUnknown() {
	r.resource = &resource{allow: "HEAD, GET, OPTIONS"}
	switch r.http.Method {
	case http.MethodGet, http.MethodHead:
		r.fail(errNotFound)
	case http.MethodOptions:
		r.options()
	default:
		r.refuseMethod()
	}
}

// serve answers a request whose path is known.
func (r *request) serve() {
	method := r.http.Method
	if method == http.MethodOptions {
		r.options()
		return
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	row := r.resource.methods[method]
	if row == nil {
		r.refuseMethod()
		return
	}
	if method == http.MethodGet && !acceptsJSON(r.http.Header) && !r.resource.other() {
		r.w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	r.query = queryOf(r.http.URL)
	err := row.access(r)
	if f := failureOf(err); f == nil || f.status != http.StatusUnauthorized {
		setNegotiated(r.w.Header())
	}
	if err != nil {
		r.fail(err)
		return
	}
	answer, err := row.handle(r)
	if err == nil {
		err = r.answer(answer)
	}
	if err != nil {
		r.fail(err)
	}
}

// refuseMethod says which methods the path has. A method that HTTP does not have is
// another matter (RabbitMQ 4.0).
func (r *request) refuseMethod() {
	if !anyOf(strings.Fields("GET HEAD POST PUT PATCH DELETE"), r.http.Method) {
		r.w.WriteHeader(http.StatusNotImplemented)
		return
	}
	r.w.Header().Set("Allow", r.resource.allow)
	r.w.WriteHeader(http.StatusMethodNotAllowed)
}

// queryOf reads the query; what is malformed in it is left out.
func queryOf(u *url.URL) url.Values {
	if u.RawQuery == "" {
		return nil
	}
	v, _ := url.ParseQuery(u.RawQuery) // the values that could be read are returned all the same
	return v
}

// recovered keeps a bug in one handler from taking the broker down.
func (r *request) recovered() {
	v := recover()
	switch {
	case v == nil:
		return
	case v == http.ErrAbortHandler: // a panic value is compared as it is
		panic(v)
	}
	r.s.log.Error("a bug of the broker ended a request; report it with this line", zap.String("method", r.http.Method), zap.String("path", loggedPath(r.http.URL)),
		zap.Any("panic", v), zap.ByteString("stack", debug.Stack()))
	r.fail(errors.New("panic"))
}

// redirected answers /api and /cli, and / of who looks for a page, with their pages
// for people.
func (s *Server) redirected(w http.ResponseWriter, h *http.Request) bool {
	path, below := strings.CutPrefix(strings.TrimSuffix(h.URL.Path, "/"), s.router.prefix)
	switch {
	case below && (path == "/api" || path == ""):
		http.Redirect(w, h, s.router.prefix+"/api/index.html", http.StatusMovedPermanently)
	case below && path == "/cli":
		http.Redirect(w, h, s.router.prefix+"/cli/index.html", http.StatusMovedPermanently)
	default:
		return false
	}
	return true
}

// acceptsJSON says whether a client takes JSON as an answer.
func acceptsJSON(h http.Header) bool {
	accept := strings.Join(h.Values("Accept"), ",")
	if accept == "" {
		return true
	}
	for item := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(item, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "*/*", "application/*", "application/json":
			return true
		}
	}
	return false
}
