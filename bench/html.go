package bench

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

//go:embed report.css
var reportStyle string

// WriteHTML writes a report that needs nothing but itself: tables, and plots as
// SVG. It has no script and loads nothing.
func WriteHTML(w io.Writer, results []*Result) error {
	var b strings.Builder
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta name=\"viewport\" content=\"width=device-width\"/>\n")
	fmt.Fprintf(&b, "<title>leveret bench</title><style>\n%s</style></head><body>\n<h1>leveret bench</h1>\n", reportStyle)
	if len(results) > 1 {
		writeOverview(&b, results)
	}
	for i, r := range results {
		r.section(&b, i)
	}
	b.WriteString("</body></html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// writeOverview writes the table of medians, and the latencies of each
// scenario's brokers in one plot.
func writeOverview(b *strings.Builder, results []*Result) {
	c := Compare(results)
	heads, rows := c.table()
	b.WriteString("<h2>Medians</h2>\n")
	writeTable(b, heads, rows)
	if len(c.Brokers) < 2 {
		return
	}
	for _, name := range c.Scenarios {
		ch := chart{title: name + ": latency distribution", y: formatMicros, x: percentileAxis(), log: true}
		for _, r := range results {
			if r.Scenario == name && r.Round <= 1 {
				ch.series = append(ch.series, series{r.Broker, curvePoints(r.curve())})
			}
		}
		if slices.ContainsFunc(ch.series, func(s series) bool { return len(s.points) > 0 }) {
			ch.svg(b)
		}
	}
}

func writeTable(b *strings.Builder, heads []string, rows [][]string) {
	b.WriteString("<table><tr>")
	for _, h := range heads {
		fmt.Fprintf(b, "<th>%s</th>", html.EscapeString(h))
	}
	b.WriteString("</tr>\n")
	for _, r := range rows {
		b.WriteString("<tr>")
		for _, cell := range r {
			fmt.Fprintf(b, "<td>%s</td>", html.EscapeString(cell))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</table>\n")
}

// section writes one result.
func (r *Result) section(b *strings.Builder, i int) {
	title := fmt.Sprintf("%s on %s", r.Scenario, r.Broker)
	if r.Round > 0 {
		title += fmt.Sprintf(", round %d", r.Round)
	}
	fmt.Fprintf(b, "<h2 id=\"r%d\">%s</h2>\n", i, html.EscapeString(title))
	if r.Seconds > 0 {
		fmt.Fprintf(b, "<p>%s, begun %s, %.1f s measured</p>\n", html.EscapeString(r.Product), r.Started.Format("2006-01-02 15:04:05 MST"), r.Seconds)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(b, "<p class=\"failed\">%s</p>\n", html.EscapeString(f))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(b, "<p>%s</p>\n", html.EscapeString(n))
	}
	var figures [][]string
	for _, row := range r.rows() {
		figures = append(figures, []string{row.name, row.value})
	}
	if r.Seconds > 0 {
		writeTable(b, []string{"what", "figure"}, figures)
	}
	var latencies [][]string
	for _, l := range r.latencies() {
		line := []string{l.name}
		for _, v := range l.p.list() {
			line = append(line, formatMicros(v))
		}
		latencies = append(latencies, line)
	}
	if len(latencies) > 0 {
		writeTable(b, append([]string{"latency"}, latencyHeads...), latencies)
	}
	r.plots(b)
	b.WriteString("<details><summary>Settings</summary><pre>")
	for _, name := range slices.Sorted(maps.Keys(r.Settings)) {
		fmt.Fprintf(b, "%s: %s\n", name, html.EscapeString(r.Settings[name]))
	}
	b.WriteString("</pre></details>\n")
}

// plots draws rates and latencies over time, and the distribution.
func (r *Result) plots(b *strings.Builder) {
	if len(r.Samples) > 1 {
		x := timeAxis(0, r.Samples[len(r.Samples)-1].Second)
		rates := chart{title: "per second", y: formatCount, x: x}
		for _, l := range []struct {
			name string
			of   func(*Sample) float64
		}{
			{"published", func(s *Sample) float64 { return s.Publish }}, {"confirmed", func(s *Sample) float64 { return s.Confirm }},
			{"consumed", func(s *Sample) float64 { return s.Consume }}, {"operations", func(s *Sample) float64 { return s.Ops }},
		} {
			rates.add(l.name, r.Samples, l.of)
		}
		rates.svg(b)
		times := chart{title: r.latencyName() + " over time", y: formatMicros, x: x, log: true}
		for i, name := range latencyHeads {
			times.add(name, r.Samples, func(s *Sample) float64 {
				if p := s.latency(r); p != nil {
					return p.list()[i]
				}
				return math.NaN()
			})
		}
		times.svg(b)
	}
	if curve := r.curve(); len(curve) > 0 {
		ch := chart{title: r.latencyName() + ": distribution", y: formatMicros, x: percentileAxis(), log: true}
		for _, l := range []struct {
			name  string
			curve []CurvePoint
		}{{"deliver", r.DeliveryCurve}, {"confirm", r.ConfirmCurve}, {"open", r.OpenCurve}} {
			if len(l.curve) > 0 {
				ch.series = append(ch.series, series{l.name, curvePoints(l.curve)})
			}
		}
		ch.svg(b)
	}
}

// add adds a line over time, unless it is zero or missing throughout.
func (c *chart) add(name string, samples []Sample, of func(*Sample) float64) {
	s := series{name: name}
	shown := false
	for i := range samples {
		v := of(&samples[i])
		s.points = append(s.points, point{samples[i].Second, v})
		shown = shown || v > 0
	}
	if shown {
		c.series = append(c.series, s)
	}
}

func (r *Result) latencyName() string {
	if list := r.latencies(); len(list) > 0 {
		return list[0].name
	}
	return "latency"
}

// latency is that of a sample which the result's main latency is made of.
func (s *Sample) latency(r *Result) *Percentiles {
	switch {
	case r.Delivery != nil:
		return s.Delivery
	case r.Confirm != nil:
		return s.Confirms
	}
	return s.Open
}

// curve is the distribution of the main latency.
func (r *Result) curve() []CurvePoint {
	for _, c := range [][]CurvePoint{r.DeliveryCurve, r.ConfirmCurve, r.OpenCurve} {
		if len(c) > 0 {
			return c
		}
	}
	return nil
}

func curvePoints(curve []CurvePoint) []point {
	points := make([]point, len(curve))
	for i, p := range curve {
		points[i] = point{p.Percentile, p.Micros}
	}
	return points
}
