package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// csvHeader names the columns of CSV. Latencies are microseconds.
func csvHeader() []string {
	head := []string{"scenario", "broker", "round", "seconds", "phase", "published_per_s", "confirmed_per_s", "consumed_per_s", "operations_per_s",
		"waiting", "nacked", "returned", "blocked_connections"}
	for _, what := range []string{"delivery", "confirm", "open"} {
		for _, p := range []string{"p50", "p75", "p95", "p99", "p999", "max"} {
			head = append(head, what+"_"+p+"_us")
		}
	}
	return append(head, "broker_cores", "broker_rss_mib")
}

// WriteCSV writes a line for each sample of all results, after a header. What
// was not measured is empty.
func WriteCSV(w io.Writer, results []*Result) error {
	c := csv.NewWriter(w)
	if err := c.Write(csvHeader()); err != nil {
		return err
	}
	for _, r := range results {
		for _, s := range r.Samples {
			if err := c.Write(s.record(r)); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

func (s *Sample) record(r *Result) []string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	line := []string{r.Scenario, r.Broker, strconv.Itoa(max(r.Round, 1)), number(s.Second), s.Phase, number(s.Publish), number(s.Confirm), number(s.Consume),
		number(s.Ops), fmt.Sprint(s.Waiting), fmt.Sprint(s.Nacked), fmt.Sprint(s.Returns), fmt.Sprint(s.Blocked)}
	for _, p := range []*Percentiles{s.Delivery, s.Confirms, s.Open} {
		if p == nil {
			line = append(line, make([]string, len(latencyHeads))...)
			continue
		}
		for _, v := range p.list() {
			line = append(line, number(v))
		}
	}
	for _, v := range []*float64{s.BrokerCores, s.RSSMiB} {
		if v == nil {
			line = append(line, "")
			continue
		}
		line = append(line, number(*v))
	}
	return line
}
