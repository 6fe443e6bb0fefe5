package management

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// A reply is what a handler answers with. The zero value is 204.
type reply struct {
	status   int
	location string
	body     any          // written as JSON; nil is no body
	list     *list        // in place of body
	page     string       // in place of body: HTML
	stream   func() error // in place of body: writes the answer by itself
}

// noContent is the success of what has nothing to say.
var noContent = reply{status: http.StatusNoContent}

func ok(body any) (reply, error) { return reply{status: http.StatusOK, body: body}, nil }

// put is the success of a PUT: 201 for what is new.
func put(isNew bool, err error) (reply, error) {
	if err == nil && isNew {
		return reply{status: http.StatusCreated}, nil
	}
	return noContent, err
}

// done is the success of what answers nothing.
func done(err error) (reply, error) { return noContent, err }

// answer writes a handler's reply.
func (r *request) answer(a reply) error {
	if a.location != "" {
		r.w.Header().Set("Location", a.location)
	}
	if a.list != nil {
		body, err := a.list.page(r)
		if err != nil {
			return err
		}
		r.write(http.StatusOK, body)
		return nil
	}
	if a.stream != nil {
		return a.stream()
	}
	if a.page != "" {
		r.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(r.w, a.page) // the client has gone if this fails
		return nil
	}
	if a.body == nil {
		r.w.Header().Set("Content-Length", "0")
		r.w.WriteHeader(a.status)
		return nil
	}
	if o, ok := a.body.(object); ok {
		if a.body = r.columns().only(o); len(a.body.(object)) == 0 && len(o) > 0 {
			a.body = []object{}
		}
	}
	r.write(a.status, a.body)
	return nil
}

// writeGzip compresses with a writer that was used before, if there is one: a
// new one allocates 800 KB.
func (s *Server) writeGzip(w io.Writer, b []byte) {
	z, used := s.gzips.Get().(*gzip.Writer)
	if used {
		z.Reset(w)
	} else {
		z, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	}
	z.Write(b) // the client has gone if this fails
	z.Close()
	s.gzips.Put(z)
}

// gzipFrom is the size from which an answer is worth compressing, in bytes.
const gzipFrom = 1 << 10

// write writes an answer as JSON. The headers are RabbitMQ's.
func (r *request) write(status int, body any) {
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache")
	h.Set("Vary", "accept, accept-encoding, origin")
	h.Set("Content-Security-Policy", "script-src 'self' 'unsafe-eval' 'unsafe-inline'; object-src 'self'")
	b := appendJSON(nil, body)
	if len(b) >= gzipFrom && strings.Contains(r.http.Header.Get("Accept-Encoding"), "gzip") && r.http.Method != http.MethodHead {
		h.Set("Content-Encoding", "gzip")
		r.w.WriteHeader(status)
		r.s.writeGzip(r.w, b)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	r.w.WriteHeader(status)
	r.w.Write(b) // the client has gone if this fails
}
