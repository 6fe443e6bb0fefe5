package management

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/leveretmq/leveret/pattern"
)

// Options are how the HTTP front door behaves; the zero value is RabbitMQ 4.0's
// defaults.
type Options struct {
	// AccessLog is a folder for a log of requests; "" is none.
	AccessLog string
	// Headers replace those of answers; an empty one is left out.
	Headers map[string]string
	// FixedOperatorPolicies refuses to change operator policies.
	FixedOperatorPolicies bool
	// NodeTags and ClusterTags are shown in the overview.
	NodeTags, ClusterTags map[string]string

	// SampleInterval is how often figures are sampled; 0 is 5 s.
	SampleInterval time.Duration
	// NoRates leaves counts of messages, and their rates, out of answers (RabbitMQ
	// 4.0: management.rates_mode).
	NoRates bool
	// UnaggregatedQueues matches the names of queues, anywhere in them, whose
	// messages are left out of the totals of the broker and of vhosts; what is
	// published and delivered counts (RabbitMQ 4.0:
	// management_agent.filter_aggregated_queue_metrics_pattern). Nil matches none.
	UnaggregatedQueues *pattern.Pattern

	// MetricsPath is where the metrics are; "" is /metrics. Below it are those
	// by object and in detail.
	MetricsPath string
	// MetricsPerObject has the metrics by object at MetricsPath, too.
	MetricsPerObject bool
	// MetricsLogin shows the metrics only to users with the tag monitoring or
	// administrator.
	MetricsLogin bool
}

// sampleInterval is how often figures are sampled.
func (o *Options) sampleInterval() time.Duration { return cmp.Or(o.SampleInterval, sampleInterval) }

// aggregates says whether a queue's messages are in the totals.
func (o *Options) aggregates(queue string) bool {
	return o.UnaggregatedQueues == nil || !o.UnaggregatedQueues.MatchString(queue)
}

// ratesMode is what the API calls it.
func (o *Options) ratesMode() string {
	if o.NoRates {
		return "none"
	}
	return "basic"
}

// handler is the API with what the options add to it.
func (s *Server) handler() http.Handler {
	h := s.refuseOtherSites(s)
	if s.cfg.Options.FixedOperatorPolicies {
		h = fixedOperatorPolicies(s.router.prefix, h)
	}
	if len(s.cfg.Options.Headers) > 0 {
		h = replaceHeaders(s.cfg.Options.Headers, h)
	}
	if s.cfg.Options.AccessLog != "" {
		h = newAccessLog(s.cfg.Options.AccessLog, s.log).wrap(h)
	}
	return h
}

// fixedOperatorPolicies lets operator policies be read only (RabbitMQ 4.0:
// management.restrictions.operator_policy_changes.disabled).
func fixedOperatorPolicies(prefix string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		read := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
		operator := strings.HasPrefix(r.URL.Path, prefix+"/api/operator-policies") || strings.HasPrefix(r.URL.Path, prefix+"/api/parameters/"+operatorComponent+"/")
		if !read && operator {
			w.Header().Set("Allow", "HEAD, GET, OPTIONS")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// An answerWriter is a writer that does something before the answer begins.
type answerWriter struct {
	http.ResponseWriter
	before func(status int)
	begun  bool
	bytes  int64
}

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) {
	if !w.begun && status >= http.StatusOK {
		w.begun = true
		w.before(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController flush.
func (w *answerWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// replaceHeaders sets headers whatever the handler has set.
func replaceHeaders(headers map[string]string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&answerWriter{ResponseWriter: w, before: func(int) {
			for name, value := range headers {
				if value == "" {
					w.Header().Del(name)
				} else {
					w.Header().Set(name, value)
				}
			}
		}}, r)
	})
}

// metricsHandler is the metrics with what the options change.
func (s *Server) metricsHandler() http.Handler {
	h := s.Metrics()
	o := &s.cfg.Options
	if o.MetricsPath != "" && o.MetricsPath != "/metrics" || o.MetricsPerObject {
		h = movedMetrics(strings.TrimSuffix(o.MetricsPath, "/"), o.MetricsPerObject, h)
	}
	if o.MetricsLogin {
		h = s.withLogin(h)
	}
	return h
}

// movedMetrics has the metrics below another path.
func movedMetrics(path string, perObject bool, h http.Handler) http.Handler {
	if path == "" {
		path = "/metrics"
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below, ok := strings.CutPrefix(strings.TrimSuffix(r.URL.Path, "/"), path)
		if !ok || below != "" && below[0] != '/' {
			http.NotFound(w, r)
			return
		}
		if below == "" && perObject {
			below = "/per-object"
		}
		moved := *r.URL
		moved.Path, moved.RawPath = "/metrics"+below, ""
		clone := *r
		clone.URL = &moved
		h.ServeHTTP(w, &clone)
	})
}

// withLogin asks for a user that may see the whole broker.
func (s *Server) withLogin(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		r := &request{s: s, w: w, http: hr}
		err := r.enter()
		if err == nil && !r.monitors() {
			err = notAuthorised("Not monitor user")
		}
		if err != nil {
			r.fail(err)
			return
		}
		h.ServeHTTP(w, hr)
	})
}

// tagsObject is tags as JSON.
func tagsObject(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return tags
}
