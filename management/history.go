package management

// A history is the samples of one object.
type history struct{}

// A details function makes the _details member of a figure.
type details func(w view, m metric, now int64) object

// details is what the query asks for.
func (r *request) details() (details, error) {
	return func(w view, m metric, _ int64) object { return object{{"rate", w.rate(m)}} }, nil
}

// addFigures appends the figures with their rates.
func addFigures(o *object, metrics []metric, c *counters, w view, d details) {
	for _, m := range metrics {
		o.add(metricNames[m], c[m])
		o.add(detailNames[m], d(w, m, c[m]))
	}
}

// messageStats is the member message_stats of a queue or a channel: each group
// is there once it was used. It is nil if none was.
func messageStats(c *counters, w view, d details) object {
	var o object
	if c.any(consumerMetrics) {
		addFigures(&o, consumerMetrics, c, w, d)
	}
	for _, m := range []metric{mPublish, mConfirm, mReturnUnroutable, mDropUnroutable, mPublishIn, mPublishOut} {
		if c[m] != 0 {
			addFigures(&o, []metric{m}, c, w, d)
		}
	}
	return o
}
