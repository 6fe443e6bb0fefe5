package management

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
)

// Metrics answers Prometheus as RabbitMQ 4.0's plugin does: /metrics has totals,
// /metrics/per-object the same by object, /metrics/detailed the families that
// the query asks for, /metrics/memory-breakdown where the memory is. There is no login. Nothing is done between two scrapes.
func (s *Server) Metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.aggregated())
	mux.HandleFunc("GET /metrics/per-object", func(w http.ResponseWriter, r *http.Request) {
		s.serveObjects(w, r, r.URL.Path, selection{prefix: "rabbitmq_", ours: "leveret_"})
	})
	mux.HandleFunc("GET /metrics/detailed", s.serveDetailed)
	mux.Handle("GET /metrics/memory-breakdown", s.gathered(memoryCollector{s}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { mux.ServeHTTP(w, withoutSlash(r)) })
}

// withoutSlash is the request without a slash at the end of its path (RabbitMQ 4.0).
func withoutSlash(r *http.Request) *http.Request {
	if len(r.URL.Path) < 2 || !strings.HasSuffix(r.URL.Path, "/") {
		return r
	}
	u := *r.URL
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), ""
	clone := *r
	clone.URL = &u
	return &clone
}

// aggregated is the handler of the totals.
func (s *Server) aggregated() http.Handler {
	return s.gathered(s.totals, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// gathered is the handler of what collectors have.
func (s *Server) gathered(from ...prometheus.Collector) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(from...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serveScrape(w, r, r.URL.Path, func(x *exposition) { x.gather(registry, s.metricsOptions()) })
	})
}

// metricsOptions show what could be collected even if one metric is wrong; the
// log then says which.
func (s *Server) metricsOptions() promhttp.HandlerOpts {
	return promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: metricsLog{s.log}}
}

// metricsLog is the log as promhttp wants it.
type metricsLog struct{ log *zap.Logger }

func (l metricsLog) Println(v ...any) { l.log.Sugar().Warnln(v...) }

// A selection is which metrics of which objects a scrape wants, and how their
// names begin.
type selection struct {
	prefix, ours string // of RabbitMQ's metrics, and of ours
	detailed     bool   // only the families, not all of them
	families     []string
	vhosts       []string       // nil is all
	queue        *regexp.Regexp // nil is all
}

func (c *selection) wants(family string) bool {
	return !c.detailed || slices.Contains(c.families, family)
}

func (c *selection) wantsVHost(name string) bool {
	return c.vhosts == nil || slices.Contains(c.vhosts, name)
}

// serveDetailed answers /metrics/detailed. Families that there are not have no
// metrics (RabbitMQ 4.0).
func (s *Server) serveDetailed(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	pick := selection{prefix: "rabbitmq_detailed_", ours: "leveret_detailed_", detailed: true, families: q["family"], vhosts: q["vhost"]}
	var err error
	if pick.queue, err = queuePattern(q); err != nil {
		http.Error(w, "queue is not a regular expression: "+err.Error(), http.StatusBadRequest)
		return
	}
	s.serveObjects(w, r, r.URL.Path+"?"+detailedKey(q), pick)
}

// detailedKey is what serveDetailed looks at of a query, in one order.
func detailedKey(q url.Values) string {
	names := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	return url.Values{"family": names(q["family"]), "vhost": names(q["vhost"]), "queue": {q.Get("queue")}}.Encode()
}

// queuePattern is one of Go, whose time is bounded: nobody need log in to send it.
func queuePattern(q url.Values) (*regexp.Regexp, error) {
	if q.Get("queue") == "" {
		return nil, nil
	}
	return regexp.Compile(q.Get("queue"))
}

// serveObjects answers with metrics by object. Making them waits for its turn, as
// lists of that length do.
func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request, key string, pick selection) {
	s.serveScrape(w, r, key, func(x *exposition) {
		s.heavy <- struct{}{}
		defer func() { <-s.heavy }()
		(&objects{x, s, pick}).write()
	})
}

// ServeMetrics answers scrapes on l until Shutdown, until ctx ends, or until l
// fails. It closes l.
func (s *Server) ServeMetrics(ctx context.Context, l net.Listener) error {
	s.AddListener("http/prometheus", l.Addr())
	stop := context.AfterFunc(ctx, func() { s.metrics.Close() })
	defer stop()
	err := s.metrics.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
