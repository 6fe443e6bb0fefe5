package management

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leveretmq/leveret/persistence"
)

// alarmed are the resources whose alarm is up.
type alarmed []string

func (a alarmed) has(resource string) bool { return slices.Contains(a, resource) }

func (s *Server) alarms() alarmed {
	if s.cfg.Alarms != nil {
		return s.cfg.Alarms()
	}
	if s.cfg.Store.Health().DiskLow {
		return alarmed{"disk"}
	}
	return nil
}

// hasWord says whether a list separated by blanks has the word.
func hasWord(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

func healthy(*request) (reply, error) { return ok(object{{"status", "ok"}}) }

// unhealthy is the answer of a check that failed: 503.
func unhealthy(reason string, more ...member) (reply, error) {
	return reply{status: http.StatusServiceUnavailable,
		body: append(object{{"status", "failed"}, {"reason", reason}}, more...)}, nil
}

// checkAlarms fails while an alarm is up, and once the store has failed: then
// publishers are blocked as well.
func checkAlarms(r *request) (reply, error) {
	alarms := r.s.alarms()
	if len(alarms) == 0 {
		return checkService(r)
	}
	list := []object{}
	for _, resource := range alarms {
		list = append(list, object{{"node", r.s.cfg.Node}, {"resource", resource}})
	}
	return unhealthy("There are alarms in effect in the cluster", member{"alarms", list})
}

func checkPort(r *request) (reply, error) {
	port, err := strconv.Atoi(r.arg("port"))
	if err != nil {
		return reply{}, badRequest("Invalid port")
	}
	ports := []any{}
	for _, l := range r.s.listening() {
		if int(l.addr.Port()) == port {
			return ok(object{{"status", "ok"}, {"port", port}})
		}
		ports = append(ports, int(l.addr.Port()))
	}
	return unhealthy("No active listener", member{"missing", port}, member{"ports", ports})
}

// protocolName is the name of a protocol that is asked for by another one
// (RabbitMQ 4.0).
func protocolName(s string) string {
	switch s = strings.ToLower(s); s {
	case "amqp091", "amqp0-9-1", "amqp-0-9-1", "amqp0.9.1", "amqp10", "amqp1.0", "amqp-1.0":
		return "amqp"
	case "amqps", "amqp091s", "amqp-ssl", "amqp/tls":
		return "amqp/ssl"
	case "prometheus":
		return "http/prometheus"
	}
	return s
}

func checkProtocols(r *request) (reply, error) {
	active := []string{}
	for _, l := range r.s.listening() {
		if !slices.Contains(active, l.protocol) {
			active = append(active, l.protocol)
		}
	}
	asked := r.arg("protocols")
	var missing []string
	for p := range strings.SplitSeq(asked, ",") {
		if !slices.Contains(active, protocolName(p)) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return unhealthy("No active listener", member{"missing", strings.Join(missing, ",")}, member{"protocols", active})
	}
	return ok(object{{"status", "ok"}, {"protocol", protocolName(asked)}})
}

// A Certificate is one that a listener uses: its own, one of the chain that it
// shows, or an authority's.
type Certificate struct {
	File                string // where it was read from
	Subject             string
	NotBefore, NotAfter time.Time
}

// day and month are what units of expirations are made of, in RabbitMQ's measure.
const (
	day   = 24 * time.Hour
	month = 365 * day / 12
)

// checkCertificates fails if a certificate expires soon or is not valid yet.
// Without TLS there is none.
func checkCertificates(r *request) (reply, error) {
	n, err := strconv.Atoi(r.arg("within"))
	if err != nil && !errors.Is(err, strconv.ErrRange) || n < 0 { // beyond the range it is the largest integer
		return reply{}, badRequest("Invalid expiration value.")
	}
	unit, known := map[string]time.Duration{"days": day, "weeks": 7 * day, "months": month, "years": 365 * day}[strings.ToLower(r.arg("unit"))]
	if !known {
		return reply{}, badRequest("Time unit not recognised. Supported units: days, weeks, months, years.")
	}
	n = min(n, int(math.MaxInt64/unit))
	if r.s.cfg.Certificates == nil {
		return healthy(r)
	}
	now := time.Now()
	expired, deadline := []object{}, now.Add(time.Duration(n)*unit)
	for _, c := range r.s.cfg.Certificates() {
		if c.NotAfter.Before(deadline) || c.NotBefore.After(now) {
			expired = append(expired, object{{"node", r.s.cfg.Node}, {"certfile", c.File}, {"subject", c.Subject},
				{"certfile_valid_from", c.NotBefore.UTC().Format(time.RFC3339)},
				{"certfile_expires_on", c.NotAfter.UTC().Format(time.RFC3339)}})
		}
	}
	if len(expired) > 0 {
		return unhealthy("Certificates expiring", member{"expired", expired})
	}
	return healthy(r)
}

func checkQuorumCritical(*request) (reply, error) {
	return ok(object{{"status", "ok"}, {"reason", "single node cluster"}})
}

// checkService fails once the store has stopped taking messages for good.
func checkService(r *request) (reply, error) {
	if r.s.cfg.Store.Health().Err != nil {
		return unhealthy("the store has failed: nothing is confirmed any more and publishers are blocked; " +
			"free or repair the disk and restart the broker, whose log has the reason")
	}
	return healthy(r)
}

// nodeHealth handles GET /healthchecks/node and /healthchecks/node/NODE.
func nodeHealth(r *request) (reply, error) {
	if !r.namesThisNode() {
		return reply{}, errNotFound
	}
	return checkService(r)
}

// storeObject is what operators have to know of the store. RabbitMQ has no such
// member. Sizes are in bytes.
func storeObject(h *persistence.Health) object {
	o := object{{"durability", durability(h)}, {"failed", h.Err != nil}, {"error", nil},
		{"disk_used", h.DiskUsed}, {"live_bytes", h.Live}, {"uncommitted", h.Uncommitted}, {"commits", h.Commits}, {"records", h.Records}}
	if h.Err != nil {
		o[2].value = h.Err.Error()
	}
	return o
}

// durability is the level as the configuration has it.
func durability(h *persistence.Health) string {
	if h.Synced {
		return "synced"
	}
	return "relaxed"
}
