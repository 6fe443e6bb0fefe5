package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Comparison is the medians of several runs: for each scenario and broker.
type Comparison struct {
	Scenarios []string
	Brokers   []string
	cells     map[[2]string]*comparisonCell
}

// A comparisonCell is one broker in one scenario.
type comparisonCell struct {
	runs, failed            int
	rate, fill, cpu         []float64
	p50, p99, peak, perConn []float64
	why                     string // of the first failure
}

// Compare collects results.
func Compare(results []*Result) *Comparison {
	c := &Comparison{cells: map[[2]string]*comparisonCell{}}
	for _, r := range results {
		if !slices.Contains(c.Scenarios, r.Scenario) {
			c.Scenarios = append(c.Scenarios, r.Scenario)
		}
		if !slices.Contains(c.Brokers, r.Broker) {
			c.Brokers = append(c.Brokers, r.Broker)
		}
		key := [2]string{r.Scenario, r.Broker}
		if c.cells[key] == nil {
			c.cells[key] = &comparisonCell{}
		}
		c.cells[key].add(r)
	}
	return c
}

// add takes a run. One that failed before it measured anything counts for the
// failures only.
func (c *comparisonCell) add(r *Result) {
	c.runs++
	if len(r.Failures) > 0 {
		c.failed++
		if c.why == "" {
			c.why = r.Failures[0]
		}
	}
	if r.Rate() == 0 {
		return
	}
	c.rate = append(c.rate, r.Rate())
	if r.FillRate > 0 {
		c.fill = append(c.fill, r.FillRate)
	}
	if p := r.Latency(); p != nil {
		c.p50 = append(c.p50, p.P50)
		c.p99 = append(c.p99, p.P99)
	}
	for _, v := range []struct {
		from *float64
		to   *[]float64
	}{{r.BrokerCPU, &c.cpu}, {r.PeakMiB, &c.peak}, {r.KiBPerConn, &c.perConn}} {
		if v.from != nil {
			*v.to = append(*v.to, *v.from)
		}
	}
}

// median is the middle of values, of an even number the mean of the two.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return (v[n/2-1] + v[n/2]) / 2
}

// comparisonHeads are the figures of a row; the last is completed by the name of
// the first broker.
var comparisonHeads = []string{"rate/s", "fill/s", "broker µs each", "p50", "p99", "peak MiB", "KiB/conn", "against "}

// rows are the lines of the table: scenario, broker, runs, and a figure for each
// of comparisonHeads, "" where there is none.
func (c *Comparison) rows() [][]string {
	var rows [][]string
	for _, sc := range c.Scenarios {
		first := c.cells[[2]string{sc, c.Brokers[0]}]
		for i, b := range c.Brokers {
			cell := c.cells[[2]string{sc, b}]
			if cell == nil {
				continue
			}
			row := append([]string{sc, b, cell.count()}, cell.figures()...)
			against := ""
			if i > 0 && first != nil && len(first.rate) > 0 && len(cell.rate) > 0 {
				against = fmt.Sprintf("%.2f×", median(cell.rate)/median(first.rate))
			}
			rows = append(rows, append(row, against))
		}
	}
	return rows
}

func (c *comparisonCell) count() string {
	if c.failed > 0 {
		return fmt.Sprintf("%d, %d failed", c.runs, c.failed)
	}
	return fmt.Sprint(c.runs)
}

func (c *comparisonCell) figures() []string {
	figure := func(values []float64, format func(float64) string) string {
		if len(values) == 0 {
			return ""
		}
		return format(median(values))
	}
	decimal := func(digits int) func(float64) string {
		return func(v float64) string { return fmt.Sprintf("%.*f", digits, v) }
	}
	return []string{
		figure(c.rate, formatCount), figure(c.fill, formatCount), figure(c.cpu, decimal(2)),
		figure(c.p50, formatMicros), figure(c.p99, formatMicros), figure(c.peak, decimal(0)), figure(c.perConn, decimal(1)),
	}
}

// table is heads and rows without the columns that are empty everywhere.
func (c *Comparison) table() (heads []string, rows [][]string) {
	all := c.rows()
	names := append([]string{"scenario", "broker", "runs"}, comparisonHeads...)
	if len(c.Brokers) > 0 {
		names[len(names)-1] += c.Brokers[0]
	}
	rows = make([][]string, len(all))
	for col, name := range names {
		if !slices.ContainsFunc(all, func(r []string) bool { return r[col] != "" }) {
			continue
		}
		heads = append(heads, name)
		for i := range all {
			rows[i] = append(rows[i], all[i][col])
		}
	}
	return heads, rows
}

// WriteText writes the table of medians for people, and what failed.
func (c *Comparison) WriteText(w io.Writer) error {
	heads, rows := c.table()
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(heads, "\t"))
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, sc := range c.Scenarios {
		for _, b := range c.Brokers {
			if cell := c.cells[[2]string{sc, b}]; cell != nil && cell.why != "" {
				if _, err := fmt.Fprintf(w, "FAILED: %s on %s: %s\n", sc, b, cell.why); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// WriteMarkdown writes the table of medians as Markdown.
func (c *Comparison) WriteMarkdown(w io.Writer) error {
	heads, rows := c.table()
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
