package management

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leveretmq/leveret/message"
)

// distributions emits the histograms: sizes of messages, and how long confirms and
// group commits take.
func (e *emitter) distributions(s *Server) {
	e.histogram("message_size_bytes", "Sizes of the bodies of published messages in bytes", s.cfg.VHosts.Sizes(), 1,
		with("protocol", "amqp091"))
	ours := emitter{ch: e.ch, prefix: "leveret_"}
	const second = 1e9
	ours.histogram("confirm_latency_seconds", "Time from reading a batch of publishes until it was confirmed or refused",
		s.cfg.Connections.ConfirmLatency(), second)
	if d := s.cfg.Store.Health().Latency; d.Counts != nil {
		ours.histogram("store_commit_latency_seconds", "Time that group commits took, with their sync", d, second)
	}
}

// histogram emits a distribution. Its values are divided by unit.
func (e *emitter) histogram(name, help string, d message.Distribution, unit float64, l ...labels) {
	var names, values []string
	for _, l := range l {
		names, values = append(names, l.names...), append(values, l.values...)
	}
	buckets, count := make(map[float64]uint64, len(d.Bounds)), uint64(0)
	for i, n := range d.Counts {
		count += n
		if i < len(d.Bounds) {
			buckets[float64(d.Bounds[i])/unit] = count
		}
	}
	e.ch <- prometheus.MustNewConstHistogram(prometheus.NewDesc(e.prefix+name, help, names, nil), count, float64(d.Sum)/unit, buckets, values...)
}

// authAttempts emits how many logins there were, since the last reset if there was one:
// these counters fall then (RabbitMQ 4.0), which Prometheus takes for a restart.
func (e *emitter) authAttempts(s *Server) {
	protocol, http := s.cfg.Auth.Attempts()
	falling := emitter{ch: e.ch, prefix: e.prefix}
	for _, m := range []struct {
		name, help   string
		amqp, byHTTP uint64
	}{
		{"auth_attempts_total", "Logins", protocol.Succeeded + protocol.Failed, http.Succeeded + http.Failed},
		{"auth_attempts_succeeded_total", "Logins that succeeded", protocol.Succeeded, http.Succeeded},
		{"auth_attempts_failed_total", "Logins that failed", protocol.Failed, http.Failed},
	} {
		falling.counter(m.name, m.help, float64(m.amqp), with("protocol", "amqp091"))
		falling.counter(m.name, m.help, float64(m.byHTTP), with("protocol", "http"))
	}
}
