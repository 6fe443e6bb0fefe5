package bench

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

// golden compares output with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; -update rewrites it. Got:\n%s", name, got)
	}
}

// exampleResults are two brokers in two scenarios, and a third run that failed.
func exampleResults() []*Result {
	fire := func(broker string, rate, p50 float64, cpu float64) *Result {
		p := &Percentiles{Count: 1000, Mean: p50, P50: p50, P75: p50 * 1.5, P95: p50 * 3, P99: p50 * 10, P999: p50 * 50, Max: p50 * 80}
		r := &Result{Scenario: "fire-1K", Broker: broker, Product: "Product<1>", Settings: map[string]string{"size": "1024", "auto-ack": "true"},
			Started: time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC), Seconds: 2, PublishRate: rate, ConsumeRate: rate, PublishMBs: rate / 1000, ConsumeMBs: rate / 1000,
			Published: int64(rate) * 2, Consumed: int64(rate) * 2, Delivery: p, ClientCPU: 0.9, BrokerCPU: ptr(cpu), BrokerCores: ptr(0.5), RSSMiB: ptr(90), PeakMiB: ptr(100),
			DeliveryCurve: []CurvePoint{{0, 10}, {50, p50}, {90, p50 * 2}, {99, p50 * 10}, {99.9, p50 * 50}, {100, p50 * 80}},
			Samples: []Sample{
				{Second: 1, Phase: "warm-up", Publish: rate / 2, Consume: rate / 2},
				{Second: 2, Phase: "measure", Publish: rate, Consume: rate - 1, Waiting: 3, Delivery: p, BrokerCores: ptr(0.5), RSSMiB: ptr(90)},
				{Second: 3, Phase: "measure", Publish: rate, Consume: rate, Nacked: 1, Blocked: 2, Delivery: p, BrokerCores: ptr(0.6), RSSMiB: ptr(100)},
			}}
		return r
	}
	churn := &Result{Scenario: "connchurn", Broker: "a", Product: "A 1", Started: time.Date(2001, 2, 3, 4, 6, 0, 0, time.UTC), Seconds: 2, Ops: 4000, OpRate: 2000,
		Open: &Percentiles{Count: 4000, P50: 100, P75: 110, P95: 120, P99: 130, P999: 140, Max: 150}, Close: &Percentiles{Count: 4000, P50: 50, P75: 51, P95: 52, P99: 53, P999: 54, Max: 55}}
	failed := &Result{Scenario: "connchurn", Broker: "b", Failures: []string{"no broker can be reached: connection refused"}}
	return []*Result{fire("a", 100000, 200, 2), fire("b", 25000, 900, 30), churn, failed}
}

func TestReports(t *testing.T) {
	results := exampleResults()
	var text, csv, page, markdown bytes.Buffer
	for _, r := range results {
		if err := r.WriteSummary(&text); err != nil {
			t.Fatal(err)
		}
		text.WriteString("  " + r.Short() + "\n\n")
	}
	for _, s := range results[0].Samples {
		text.WriteString(s.Line() + "\n")
	}
	text.WriteByte('\n')
	c := Compare(results)
	if err := errors.Join(c.WriteText(&text), c.WriteMarkdown(&markdown), WriteCSV(&csv, results), WriteHTML(&page, results)); err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.txt", text.Bytes())
	golden(t, "table.md", markdown.Bytes())
	golden(t, "samples.csv", csv.Bytes())
	golden(t, "report.html", page.Bytes())
	wellFormed(t, page.String())
	for _, outside := range []string{"<script", "http://", "https://", "url(", "@import", "src="} {
		if strings.Contains(page.String(), outside) {
			t.Errorf("the report is not self-contained: it has %s", outside)
		}
	}
	if strings.Contains(page.String(), "Product<1>") {
		t.Error("text is not escaped")
	}
}

// wellFormed checks that all elements of a page are closed.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!DOCTYPE html>")))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestJSONIsOfTheResult(t *testing.T) {
	b, err := json.Marshal(exampleResults()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"publish_rate":100000`, `"delivery_us":{"count":1000,"mean":200,"p50":200,"p75":300,"p95":600,"p99":2000,"p999":10000,"max":16000}`,
		`"broker_cpu_us":2`, `"settings":{"auto-ack":"true","size":"1024"}`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is missing in %s", want, b)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestJudge(t *testing.T) {
	p := &Percentiles{P99: 5000}
	for _, tt := range []struct {
		name  string
		r     Result
		lines []string
		want  []string
	}{
		{"fine", Result{ConsumeRate: 10, Delivery: p}, []string{"min-rate: 10", "max-p99: 5ms"}, nil},
		{"slow", Result{ConsumeRate: 9, Delivery: p}, []string{"min-rate: 10", "max-p99: 4ms"},
			[]string{"9 a second are less than the 10 expected by min-rate", "the 99th percentile is 5.00 ms, more than the 4ms expected by max-p99"}},
		{"nothing measured", Result{}, []string{"max-p99: 4ms"}, []string{"max-p99 is given, but no latency was measured"}},
		{"lost", Result{Unconfirmed: 1, Nacked: 2, Missing: 3, Errors: []string{"e"}}, nil,
			[]string{"1 publishes were never confirmed", "the broker refused 2 publishes (nack)", "3 deliveries never came", "e"}},
		{"lossy", Result{Nacked: 2, Missing: 3}, []string{"lossy: true"}, nil},
		{"limited queue", Result{Nacked: 2, Missing: 3}, []string{"queue-args: {x-max-length: 5}"}, nil},
		{"interrupted", Result{Unconfirmed: 1, Missing: 3, Interrupted: true}, nil, nil},
	} {
		tt.r.judge(scenario(t, append(tt.lines, "description: d")...))
		if strings.Join(tt.r.Failures, "|") != strings.Join(tt.want, "|") {
			t.Errorf("%s: %q, want %q", tt.name, tt.r.Failures, tt.want)
		}
	}
}
