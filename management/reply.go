package management

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A reply is what a handler answers with. The zero value is 204.
type reply struct {
	status   int
	location string
	body     any          // written as JSON; nil is no body
	list     *list        // in place of body
	page     string       // in place of body: HTML
	plain    string       // in place of body: text
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
		return a.list.write(r)
	}
	if a.stream != nil {
		return a.stream()
	}
	if a.page != "" {
		r.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		io.WriteString(r.w, a.page) // the client has gone if this fails
		return nil
	}
	if a.plain != "" {
		setPlain(r.w.Header())
		r.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(r.w, a.plain)
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
	z := s.gzip(w)
	z.Write(b) // the client has gone if this fails
	z.Close()
	s.gzips.Put(z)
}

// gzip is a writer to w, to be given back to s.gzips.
func (s *Server) gzip(w io.Writer) *gzip.Writer {
	z, used := s.gzips.Get().(*gzip.Writer)
	if !used {
		z, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		return z
	}
	z.Reset(w)
	return z
}

// gzipFrom is the size from which an answer is worth compressing, in bytes.
const gzipFrom = 1 << 10

// write writes an answer as JSON.
func (r *request) write(status int, body any) {
	b := r.s.buffer()
	*b = appendJSON(*b, body)
	r.writeRaw(status, *b)
	r.s.release(b)
}

// writeRaw writes an answer that is JSON.
func (r *request) writeRaw(status int, b []byte) {
	setJSON(r.w.Header())
	r.send(status, b)
}

// send writes bytes whose headers are set.
func (r *request) send(status int, b []byte) {
	h := r.w.Header()
	to := steady(r.w)
	if len(b) >= gzipFrom && r.takesGzip() {
		h.Set("Content-Encoding", "gzip")
		r.w.WriteHeader(status)
		r.s.writeGzip(to, b)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	r.w.WriteHeader(status)
	to.Write(b) // the client has gone if this fails
}

// contentPolicy is what a browser may run of an answer (RabbitMQ 4.0).
const contentPolicy = "script-src 'self' 'unsafe-eval' 'unsafe-inline'; object-src 'self'"

// setPlain sets the headers that all have but the answers of handlers: files, errors
// and empty answers (RabbitMQ 4.0).
func setPlain(h http.Header) {
	h.Set("Cache-Control", "public, max-age=0, must-revalidate")
	h.Set("Vary", "origin, accept-encoding")
	h.Set("Content-Security-Policy", contentPolicy)
}

// setNegotiated sets the header that all answers have to who was let in: from
// there on they depend on what he accepts (RabbitMQ 4.0).
func setNegotiated(h http.Header) { h.Set("Vary", "accept, accept-encoding, origin") }

// setJSON sets the headers that answers in JSON have (RabbitMQ 4.0).
func setJSON(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-cache")
	setNegotiated(h)
}

func (r *request) takesGzip() bool {
	return acceptsGzip(r.http.Header) && r.http.Method != http.MethodHead
}

// acceptsGzip says whether a client takes a compressed answer: q=0 is no.
func acceptsGzip(h http.Header) bool {
	for item := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(item, ";")
		if coding = strings.TrimSpace(coding); coding != "*" && !strings.EqualFold(coding, "gzip") {
			continue
		}
		_, q, weighted := strings.Cut(weight, "=")
		n, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return !weighted || err != nil || n > 0
	}
	return false
}

// maxBuffer is the size from which a buffer is not used again, in bytes.
const maxBuffer = 1 << 20

// buffer is an empty buffer for an answer, to be given to release when it was sent.
func (s *Server) buffer() *[]byte {
	if b, used := s.buffers.Get().(*[]byte); used {
		*b = (*b)[:0]
		return b
	}
	return new([]byte)
}

func (s *Server) release(b *[]byte) {
	if cap(*b) <= maxBuffer {
		s.buffers.Put(b)
	}
}

// slowClient is how long a client may take for one bit of an answer that is sent in
// bits, and for the next bytes of a body.
const slowClient = 30 * time.Second

// steadyBit is the bit of an answer that is there as a whole, in bytes.
const steadyBit = 64 << 10

// A steadyWriter sends such an answer in bits: a client that does not read is cut off,
// and keeps none in memory for longer. The http.Server takes the deadline away for the
// next request. It belongs to its goroutine.
type steadyWriter struct {
	w       io.Writer
	control *http.ResponseController
	left    int // of the bit that is being sent
}

func steady(w http.ResponseWriter) *steadyWriter {
	return &steadyWriter{w: w, control: http.NewResponseController(w)}
}

// Write implements io.Writer.
func (s *steadyWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		if s.left <= 0 {
			s.control.SetWriteDeadline(time.Now().Add(slowClient)) // a test's writer has none
			s.left = steadyBit
		}
		var wrote int
		wrote, err = s.w.Write(b[n:min(n+s.left, len(b))])
		n, s.left = n+wrote, s.left-wrote
	}
	return n, err
}

// begin begins an answer in JSON that is sent in bits. Send says whether the client
// still wants it; nil is the end.
func (r *request) begin(status int) (send func(bit []byte) bool) {
	h := r.w.Header()
	setJSON(h)
	var to io.Writer = r.w
	var z *gzip.Writer
	if r.takesGzip() {
		h.Set("Content-Encoding", "gzip")
		z = r.s.gzip(r.w)
		to = z
	}
	r.w.WriteHeader(status)
	control := http.NewResponseController(r.w)
	return func(bit []byte) bool {
		if r.http.Method == http.MethodHead {
			return false
		}
		control.SetWriteDeadline(time.Now().Add(slowClient)) // a test's writer has none
		if bit != nil {
			_, err := to.Write(bit)
			return err == nil
		}
		if z != nil {
			z.Close() // the client has gone if this fails
			r.s.gzips.Put(z)
		}
		control.SetWriteDeadline(time.Time{}) // of the connection, for the next request
		return true
	}
}
