package bench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// formatMicros writes microseconds with the unit that reads best.
func formatMicros(us float64) string {
	switch {
	case us >= 1e7:
		return fmt.Sprintf("%.1f s", us/1e6)
	case us >= 1e6:
		return fmt.Sprintf("%.2f s", us/1e6)
	case us >= 1e5:
		return fmt.Sprintf("%.0f ms", us/1e3)
	case us >= 1e4:
		return fmt.Sprintf("%.1f ms", us/1e3)
	case us >= 1e3:
		return fmt.Sprintf("%.2f ms", us/1e3)
	case us >= 100:
		return fmt.Sprintf("%.0f µs", us)
	}
	return fmt.Sprintf("%.1f µs", us)
}

// formatCount writes a number with thousands apart: 1,234,567.
func formatCount(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Line is a sample as one line of text.
func (s Sample) Line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6.1fs %-8s", s.Second, s.Phase)
	switch {
	case s.Ops > 0:
		fmt.Fprintf(&b, " %s operations/s", formatCount(s.Ops))
	default:
		fmt.Fprintf(&b, " published %s/s", formatCount(s.Publish))
		if s.Confirm > 0 || s.Confirms != nil {
			fmt.Fprintf(&b, ", confirmed %s/s", formatCount(s.Confirm))
		}
		fmt.Fprintf(&b, ", consumed %s/s", formatCount(s.Consume))
	}
	for _, l := range []struct {
		name string
		p    *Percentiles
	}{{"latency", s.Delivery}, {"confirm", s.Confirms}, {"open", s.Open}} {
		if l.p != nil {
			fmt.Fprintf(&b, ", %s p50 %s p99 %s", l.name, formatMicros(l.p.P50), formatMicros(l.p.P99))
		}
	}
	for _, n := range []struct {
		name string
		n    int64
	}{{"nacked", s.Nacked}, {"returned", s.Returns}, {"connections blocked", s.Blocked}} {
		if n.n > 0 {
			fmt.Fprintf(&b, ", %s %d", n.name, n.n)
		}
	}
	return b.String()
}

// WriteSummary writes a result as tables for people.
func (r *Result) WriteSummary(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s", r.Scenario, r.Broker)
	if r.Seconds > 0 {
		fmt.Fprintf(&b, " (%s), %.1f s measured", r.Product, r.Seconds)
	}
	b.WriteByte('\n')
	if r.Seconds > 0 {
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, row := range r.rows() {
			fmt.Fprintf(t, "  %s\t%s\n", row.name, row.value)
		}
		_ = t.Flush() // a strings.Builder does not fail
	}
	r.writeLatencies(&b)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  %s\n", n)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "  FAILED: %s\n", f)
	}
	if r.Interrupted {
		b.WriteString("  interrupted: what was measured until then\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// A row is one figure of a summary.
type row struct{ name, value string }

// rows are the figures of a result that mean something for its scenario.
func (r *Result) rows() []row {
	var rows []row
	add := func(when bool, name, format string, args ...any) {
		if when {
			rows = append(rows, row{name, fmt.Sprintf(format, args...)})
		}
	}
	flow := r.FillRate == 0 && r.Ops == 0
	add(r.FillRate > 0, "fill", "%s messages/s", formatCount(r.FillRate))
	add(r.DrainRate > 0, "drain", "%s messages/s", formatCount(r.DrainRate))
	add(flow, "published", "%s messages/s, %.2f MB/s, %s in all", formatCount(r.PublishRate), r.PublishMBs, formatCount(float64(r.Published)))
	add(flow && r.Confirmed > 0, "confirmed", "%s messages/s, %s in all", formatCount(r.ConfirmRate), formatCount(float64(r.Confirmed)))
	add(flow, "consumed", "%s messages/s, %.2f MB/s, %s in all", formatCount(r.ConsumeRate), r.ConsumeMBs, formatCount(float64(r.Consumed)))
	add(r.Ops > 0, "operations", "%s a second, %s in all", formatCount(r.OpRate), formatCount(float64(r.Ops)))
	add(r.Nacked > 0, "nacked", "%s", formatCount(float64(r.Nacked)))
	add(r.Returned > 0, "returned", "%s", formatCount(float64(r.Returned)))
	add(r.Unconfirmed > 0, "unconfirmed", "%s", formatCount(float64(r.Unconfirmed)))
	add(r.Missing > 0, "missing", "%s deliveries", formatCount(float64(r.Missing)))
	add(r.Blocked > 0, "blocked", "%d times, %.2f s over all connections", r.Blocked, r.BlockedSeconds)
	add(r.ChannelCloses > 0, "channels closed", "%d by the broker", r.ChannelCloses)
	add(r.ConnCloses > 0, "connections closed", "%d by the broker", r.ConnCloses)
	return append(rows, r.costRows()...)
}

// costRows are what broker and client spent.
func (r *Result) costRows() []row {
	var rows []row
	unit := "message"
	if r.Ops > 0 {
		unit = "operation"
	}
	add := func(v *float64, name, format string, args ...any) {
		if v != nil {
			rows = append(rows, row{name, fmt.Sprintf(format, append([]any{*v}, args...)...)})
		}
	}
	if r.FillCPU != nil {
		add(r.FillCPU, "broker, fill", "%.2f µs of processor a %s", unit)
		add(r.DrainCPU, "broker, drain", "%.2f µs of processor a %s", unit)
	} else {
		add(r.BrokerCPU, "broker", "%.2f µs of processor a %s, %.2f cores", unit, value(r.BrokerCores))
	}
	add(r.RSSMiB, "broker memory", "%.1f MiB, %.1f MiB at most", value(r.PeakMiB))
	add(r.KiBPerConn, "broker memory", "%.1f KiB a connection")
	add(r.IdleCores, "broker idle", "%.3f cores")
	if r.ClientCPU > 0 {
		rows = append(rows, row{"this client", fmt.Sprintf("%.2f µs of processor a %s", r.ClientCPU, unit)})
	}
	return rows
}

func value(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// latencies are the latencies that were measured, with their names.
func (r *Result) latencies() []namedPercentiles {
	var list []namedPercentiles
	for _, l := range []namedPercentiles{{"publish to deliver", r.Delivery}, {"publish to confirm", r.Confirm}, {"open", r.Open}, {"close", r.Close}} {
		if l.p != nil {
			list = append(list, l)
		}
	}
	return list
}

type namedPercentiles struct {
	name string
	p    *Percentiles
}

func (r *Result) writeLatencies(b *strings.Builder) {
	list := r.latencies()
	if len(list) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "  latency\t")
	for _, h := range latencyHeads {
		fmt.Fprintf(t, "%s\t", h)
	}
	fmt.Fprintln(t)
	for _, l := range list {
		fmt.Fprintf(t, "  %s\t", l.name)
		for _, v := range l.p.list() {
			fmt.Fprintf(t, "%s\t", formatMicros(v))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // a strings.Builder does not fail
}

var latencyHeads = []string{"p50", "p75", "p95", "p99", "p99.9", "max"}

// list is the percentiles in the order of latencyHeads.
func (p *Percentiles) list() []float64 {
	return []float64{p.P50, p.P75, p.P95, p.P99, p.P999, p.Max}
}

// Short is the result as one line.
func (r *Result) Short() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s: %s/s", r.Scenario, r.Broker, formatCount(r.Rate()))
	if r.FillRate > 0 {
		fmt.Fprintf(&b, ", filled at %s/s", formatCount(r.FillRate))
	}
	if p := r.Latency(); p != nil {
		fmt.Fprintf(&b, ", p50 %s p99 %s", formatMicros(p.P50), formatMicros(p.P99))
	}
	if r.BrokerCPU != nil {
		fmt.Fprintf(&b, ", broker %.2f µs each", *r.BrokerCPU)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "; %s", n)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "; FAILED: %s", f)
	}
	return b.String()
}
