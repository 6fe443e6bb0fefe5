package management

import (
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// An exposition is the answer to a scrape, in version 0.0.4 of Prometheus' text
// format. Figures of objects are written to it as they are: a metric object for
// each of some hundred thousand would cost ten times as much.
type exposition struct{ text []byte }

// expositionType is the answer's Content-Type.
const expositionType = "text/plain; version=0.0.4; charset=utf-8"

// head begins a metric.
func (x *exposition) head(name, help, typ string) {
	x.text = append(append(append(append(x.text, "# HELP "...), name...), ' '), help...)
	x.text = append(append(append(append(x.text, "\n# TYPE "...), name...), ' '), typ...)
	x.text = append(x.text, '\n')
}

// sample writes one value; labels are what labelText returns, or "".
func (x *exposition) sample(name, labels string, v float64) {
	x.text = append(append(x.text, name...), labels...)
	x.text = appendValue(append(x.text, ' '), v)
	x.text = append(x.text, '\n')
}

// appendValue appends a number. Most are integers, which are written fastest as
// such.
func appendValue(dst []byte, v float64) []byte {
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendInt(dst, int64(v), 10)
	case math.IsInf(v, 1):
		return append(dst, "+Inf"...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64) // NaN and -Inf as the format has them
}

// labelText is a set of labels, given as names and values in turn.
func labelText(pairs ...string) string {
	b := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, pairs[i]...), '=', '"')
		b = append(appendLabel(b, pairs[i+1]), '"')
	}
	return string(append(b, '}'))
}

// appendLabel appends a label's value: names of queues are bytes, labels UTF-8.
func appendLabel(dst []byte, s string) []byte {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i := range len(s) {
		switch c := s[i]; c {
		case '\\', '"':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// gather writes what collectors have.
func (x *exposition) gather(from prometheus.Gatherer, o promhttp.HandlerOpts) {
	o.DisableCompression = true // it is done once for all who share the answer
	w := &gathered{header: make(http.Header), text: x.text}
	promhttp.HandlerFor(from, o).ServeHTTP(w, &http.Request{Method: http.MethodGet, Header: make(http.Header)})
	x.text = w.text
}

// gathered is a promhttp handler's answer.
type gathered struct {
	header http.Header
	text   []byte
}

var _ http.ResponseWriter = (*gathered)(nil)

// Header implements http.ResponseWriter.
func (g *gathered) Header() http.Header { return g.header }

// WriteHeader implements http.ResponseWriter.
func (g *gathered) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (g *gathered) Write(b []byte) (int, error) {
	g.text = append(g.text, b...)
	return len(b), nil
}
