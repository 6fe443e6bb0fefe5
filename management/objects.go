package management

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leveretmq/leveret/vhost"
)

// objects writes the metrics of /metrics/per-object and /metrics/detailed:
// figures object by object.
type objects struct {
	*exposition
	s *Server
	selection
}

// write writes all that is asked for.
func (o *objects) write() {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&nodeCollector{o.s, &o.selection})
	o.gather(registry, o.s.metricsOptions())
	o.queues()
	o.exchanges()
	o.connections()
	o.channels()
	if o.detailed {
		o.cluster()
	}
}

// A nodeCollector is the prometheus.Collector of what has no objects.
type nodeCollector struct {
	s *Server
	*selection
}

// Describe describes nothing: the metrics are checked when they are collected.
func (c *nodeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *nodeCollector) Collect(ch chan<- prometheus.Metric) {
	e := &emitter{ch: ch, prefix: c.prefix}
	e.identity(c.s)
	if c.wants(nodeCoarse) {
		e.nodeCoarse(c.s)
	}
	if c.wants(nodeFamily) {
		e.nodeLimits(c.s)
	}
	if !c.detailed {
		c.s.totals.collectBroker(ch)
		return
	}
	if c.wants(authFamily) {
		e.authAttempts(c.s)
	}
	if c.wants(nodePersister) {
		e.persister(c.s)
	}
	if c.wants(churnFamily) {
		churn := churnCounters(&c.s.cfg)
		e.churned(&churn)
	}
}

// wanted are the figures of the families that are asked for.
func wanted[T any](c *selection, all []figure[T]) []figure[T] {
	return slices.DeleteFunc(all, func(f figure[T]) bool { return !c.wants(f.family) && (f.also == "" || !c.wants(f.also)) })
}

// A sampled is an object with its labels as text.
type sampled[T any] struct {
	labels string
	sample T
}

// writeFigures writes one metric after the other, each of all objects.
func writeFigures[T any](x *exposition, prefix string, figures []figure[T], all []sampled[T]) {
	if len(all) == 0 {
		return
	}
	for i := range figures {
		f := &figures[i]
		name := prefix + f.name
		x.head(name, f.help, f.typ())
		for j := range all {
			x.sample(name, all[j].labels, f.value(&all[j].sample))
		}
	}
}

// eachVHost calls do with the vhosts that the scrape wants.
func (o *objects) eachVHost(do func(*vhost.VHost)) {
	for _, name := range o.s.cfg.VHosts.Names() {
		if v, ok := o.s.cfg.VHosts.Get(name); ok && o.wantsVHost(name) {
			do(v)
		}
	}
}

func (o *objects) queues() {
	figures, ours := wanted(&o.selection, queueMetrics()), wanted(&o.selection, ownQueueMetrics())
	if len(figures)+len(ours) == 0 {
		return
	}
	var all []sampled[queueSample]
	now := time.Now()
	o.eachVHost(func(v *vhost.VHost) {
		refs := slices.Clone(v.QueueRefs())
		slices.SortFunc(refs, func(a, b vhost.QueueRef) int { return cmp.Compare(a.Spec.Name, b.Spec.Name) })
		all = slices.Grow(all, len(refs))
		for _, q := range refs {
			if name := q.Spec.Name; o.queue == nil || o.queue.MatchString(name) {
				all = append(all, sampled[queueSample]{labels: labelText("queue", name, "vhost", v.Name())})
				st := q.Queue.Status()
				all[len(all)-1].sample.fill(&st, now, o.s.sampler.drain(v.Name(), name, st.Ready))
			}
		}
	})
	writeFigures(o.exposition, o.prefix, figures, all)
	writeFigures(o.exposition, o.ours, ours, all)
}

func (o *objects) exchanges() {
	figures := wanted(&o.selection, exchangeMetrics())
	if len(figures) == 0 {
		return
	}
	var all []sampled[exchangeSample]
	o.eachVHost(func(v *vhost.VHost) {
		for info := range v.Exchanges() {
			if !hidden(v, &info) {
				all = append(all, sampled[exchangeSample]{labelText("exchange", info.X.Name, "vhost", v.Name()),
					exchangeSample{published: info.Published, routed: info.Routed}})
			}
		}
	})
	writeFigures(o.exposition, o.prefix, figures, all)
}

// connections writes connections by name (RabbitMQ 4.1: the label connection).
func (o *objects) connections() {
	figures := wanted(&o.selection, connectionMetrics())
	if len(figures) == 0 {
		return
	}
	var all []sampled[Connection]
	for _, i := range o.s.cfg.Connections.Connections() {
		if o.wantsVHost(i.VHost) {
			all = append(all, sampled[Connection]{labelText("connection", i.Name, "vhost", i.VHost), i})
		}
	}
	writeFigures(o.exposition, o.prefix, figures, all)
}

// channels writes channels. RabbitMQ tells what a channel did by exchange and
// queue as well; that is not known here.
func (o *objects) channels() {
	figures := wanted(&o.selection, channelMetrics())
	if len(figures) == 0 {
		return
	}
	var all []sampled[Channel]
	for _, i := range o.s.cfg.Connections.Channels() {
		if o.wantsVHost(i.VHost) {
			all = append(all, sampled[Channel]{labelText("channel", channelName(i.Connection, i.Number), "vhost", i.VHost), i})
		}
	}
	writeFigures(o.exposition, o.prefix, figures, all)
}

// cluster writes the families that RabbitMQ has of the whole cluster.
func (o *objects) cluster() {
	if o.wants("vhost_status") {
		o.head("rabbitmq_cluster_vhost_status", "Whether the vhost is running", "gauge")
		o.eachVHost(func(v *vhost.VHost) {
			o.sample("rabbitmq_cluster_vhost_status", labelText("vhost", v.Name()), 1)
		})
	}
	if o.wants("exchange_names") {
		o.exchangeTypes("rabbitmq_cluster_exchange_name", "Exchanges; the value means nothing",
			func(*vhost.VHost, string) float64 { return 1 })
	}
	if o.wants("exchange_bindings") {
		o.exchangeTypes("rabbitmq_cluster_exchange_bindings", "Bindings of an exchange", func(v *vhost.VHost, name string) float64 {
			return float64(countOfBindings(v, name))
		})
	}
}

// exchangeTypes writes a metric whose labels tell the type of an exchange, too.
func (o *objects) exchangeTypes(name, help string, value func(v *vhost.VHost, exchange string) float64) {
	o.head(name, help, "gauge")
	o.eachVHost(func(v *vhost.VHost) {
		for info := range v.Exchanges() {
			if !hidden(v, &info) {
				o.sample(name, labelText("exchange", info.X.Name, "type", info.X.Type, "vhost", v.Name()), value(v, info.X.Name))
			}
		}
	})
}

func countOfBindings(v *vhost.VHost, exchange string) (n int) {
	for range v.BindingsFrom(exchange) {
		n++
	}
	return n
}
