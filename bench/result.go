package bench

import (
	"fmt"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Result is what a run measured. Rates are of the measured time; the totals
// are of the whole run, so that they show what is missing.
type Result struct {
	Scenario    string            `json:"scenario"`
	Broker      string            `json:"broker"`
	Product     string            `json:"product"` // what the broker calls itself
	Round       int               `json:"round,omitempty"`
	Settings    map[string]string `json:"settings"` // those that are not the default
	Started     time.Time         `json:"started"`
	Interrupted bool              `json:"interrupted,omitempty"`
	NotRun      bool              `json:"not_run,omitempty"`  // it could not take place; Failures says why
	Failures    []string          `json:"failures,omitempty"` // why the run is not a success
	Errors      []string          `json:"errors,omitempty"`   // what connections ended with
	Notes       []string          `json:"notes,omitempty"`    // what to know when reading the figures

	Seconds     float64 `json:"seconds"`      // measured
	PublishRate float64 `json:"publish_rate"` // messages a second
	ConfirmRate float64 `json:"confirm_rate,omitempty"`
	ConsumeRate float64 `json:"consume_rate"`
	OpRate      float64 `json:"op_rate,omitempty"`    // operations a second, of churn
	PublishMBs  float64 `json:"publish_mb_s"`         // megabytes of bodies a second
	ConsumeMBs  float64 `json:"consume_mb_s"`         //
	FillRate    float64 `json:"fill_rate,omitempty"`  // of a backlog
	DrainRate   float64 `json:"drain_rate,omitempty"` // of a backlog

	Published      int64   `json:"published"`
	Confirmed      int64   `json:"confirmed"`
	Consumed       int64   `json:"consumed"`
	Foreign        int64   `json:"foreign,omitempty"`  // deliveries of messages that the run has not published
	Repeated       int64   `json:"repeated,omitempty"` // deliveries that the broker has marked as redelivered
	Ops            int64   `json:"ops,omitempty"`
	Nacked         int64   `json:"nacked"`
	Returned       int64   `json:"returned"`
	Unconfirmed    int64   `json:"unconfirmed"`     // neither confirmed nor nacked at the end
	Missing        int64   `json:"missing"`         // deliveries that never came, where they can be known
	Blocked        int64   `json:"blocked"`         // how often a connection was blocked
	BlockedSeconds float64 `json:"blocked_seconds"` // over all connections
	ChannelCloses  int64   `json:"channel_closes"`  // by the broker
	ConnCloses     int64   `json:"connection_closes"`

	Delivery *Percentiles `json:"delivery_us,omitempty"` // publish to deliver
	Confirm  *Percentiles `json:"confirm_us,omitempty"`  // publish to confirm
	Open     *Percentiles `json:"open_us,omitempty"`     // opening or declaring
	Close    *Percentiles `json:"close_us,omitempty"`    // closing or deleting

	DeliveryCurve []CurvePoint `json:"delivery_curve,omitempty"`
	ConfirmCurve  []CurvePoint `json:"confirm_curve,omitempty"`
	OpenCurve     []CurvePoint `json:"open_curve,omitempty"`

	ClientCPU   float64  `json:"client_cpu_us"`                // of this program, in microseconds a message or operation
	BrokerCPU   *float64 `json:"broker_cpu_us,omitempty"`      // of the broker, likewise
	BrokerCores *float64 `json:"broker_cores,omitempty"`       // processors in use on average
	FillCPU     *float64 `json:"fill_cpu_us,omitempty"`        // of a backlog's messages
	DrainCPU    *float64 `json:"drain_cpu_us,omitempty"`       // of a backlog's messages
	IdleCores   *float64 `json:"idle_cores,omitempty"`         // of idle connections
	RSSMiB      *float64 `json:"rss_mib,omitempty"`            // of the broker at the end of measuring
	PeakMiB     *float64 `json:"peak_mib,omitempty"`           // largest seen in a sample
	KiBPerConn  *float64 `json:"kib_per_connection,omitempty"` // of idle connections

	Samples []Sample `json:"samples"`
}

// A Sample is one interval of a run.
type Sample struct {
	Second  float64 `json:"t"`     // end of the interval, since the run began
	Phase   string  `json:"phase"` // warm-up, measure, fill, drain, open, idle, end
	Publish float64 `json:"publish_rate"`
	Confirm float64 `json:"confirm_rate"`
	Consume float64 `json:"consume_rate"`
	Ops     float64 `json:"op_rate,omitempty"`
	Waiting int64   `json:"waiting"` // deliveries due that have not come
	Nacked  int64   `json:"nacked"`  // in the interval
	Returns int64   `json:"returned"`
	Blocked int64   `json:"blocked"` // connections that are blocked now

	Delivery *Percentiles `json:"delivery_us,omitempty"`
	Confirms *Percentiles `json:"confirm_us,omitempty"`
	Open     *Percentiles `json:"open_us,omitempty"`

	BrokerCores *float64 `json:"broker_cores,omitempty"`
	RSSMiB      *float64 `json:"rss_mib,omitempty"`
}

// Latency is the latency that matters for the scenario: of deliveries, else of
// confirms, else of opening; nil if there is none.
func (r *Result) Latency() *Percentiles {
	for _, p := range []*Percentiles{r.Delivery, r.Confirm, r.Open} {
		if p != nil {
			return p
		}
	}
	return nil
}

// Rate is the rate that matters for the scenario.
func (r *Result) Rate() float64 {
	switch {
	case r.OpRate > 0:
		return r.OpRate
	case r.DrainRate > 0:
		return r.DrainRate
	case r.ConsumeRate > 0:
		return r.ConsumeRate
	}
	return r.PublishRate
}

// judge says in Failures why the run is not a success, and in Notes what else
// is worth knowing.
func (r *Result) judge(sc *Scenario) {
	fail := func(format string, args ...any) { r.Failures = append(r.Failures, fmt.Sprintf(format, args...)) }
	if r.Unconfirmed > 0 && !r.Interrupted {
		fail("%d publishes were never confirmed", r.Unconfirmed)
	}
	if r.Nacked > 0 && sc.keepsAll() {
		fail("the broker refused %d publishes (nack)", r.Nacked)
	}
	if r.Missing > 0 && sc.keepsAll() && !r.Interrupted {
		fail("%d deliveries never came", r.Missing)
	}
	if sc.Kind == KindFlow && sc.Publishers == 0 && r.Consumed < sc.Messages && !sc.Lossy && !r.Interrupted {
		fail("%s of %s messages came", formatCount(float64(r.Consumed)), formatCount(float64(sc.Messages)))
	}
	for _, e := range r.Errors {
		fail("%s", e)
	}
	if r.Foreign > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s messages were in the queues that this run has not published; they do not count", formatCount(float64(r.Foreign))))
	}
	if r.Repeated > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s messages were delivered again; they count once", formatCount(float64(r.Repeated))))
	}
	if done := max(r.Published, r.Ops); sc.Messages > done && sc.Publishers > 0 && !r.Interrupted {
		r.Notes = append(r.Notes, fmt.Sprintf("%s of %s were done within the timeout of %v", formatCount(float64(done)), formatCount(float64(sc.Messages)), sc.Timeout))
	}
	if rate := r.Rate(); sc.MinRate > 0 && rate < sc.MinRate {
		fail("%.0f a second are less than the %.0f expected by min-rate", rate, sc.MinRate)
	}
	if sc.MaxP99 == 0 {
		return
	}
	switch p := r.Latency(); {
	case p == nil:
		fail("max-p99 is given, but no latency was measured")
	case p.P99 > float64(sc.MaxP99.Microseconds()):
		fail("the 99th percentile is %s, more than the %v expected by max-p99", formatMicros(p.P99), sc.MaxP99)
	}
}

// settle copies the histograms into the result.
func (r *Result) settle(totals [latencyKinds]*hdrhistogram.Histogram) {
	r.Delivery = percentilesOf(totals[latencyDelivery])
	r.Confirm = percentilesOf(totals[latencyConfirm])
	r.Open = percentilesOf(totals[latencyOpen])
	r.Close = percentilesOf(totals[latencyClose])
	r.DeliveryCurve = curveOf(totals[latencyDelivery])
	r.ConfirmCurve = curveOf(totals[latencyConfirm])
	r.OpenCurve = curveOf(totals[latencyOpen])
}

// round rounds to so many decimals.
func round(v float64, decimals int) float64 {
	p := math.Pow10(decimals)
	return math.Round(v*p) / p
}
