package management

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leveretmq/leveret/vhost"
)

// An objectsCollector is the prometheus.Collector of /metrics/per-object and
// /metrics/detailed: it emits figures object by object.
type objectsCollector struct {
	s *Server
	selection
}

// Describe describes nothing: the metrics are checked when they are collected.
func (c *objectsCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *objectsCollector) Collect(ch chan<- prometheus.Metric) {
	e := &emitter{ch: ch, prefix: c.prefix}
	e.identity(c.s)
	c.queues(ch)
	c.exchanges(ch)
	c.connections(ch)
	c.channels(ch)
	c.nodeFamilies(e)
	if c.detailed {
		c.cluster(&emitter{ch: ch, prefix: "rabbitmq_cluster_"})
	} else {
		c.s.totals.collectBroker(ch)
	}
}

// wanted are the figures of the families that are asked for.
func wanted[T any](c *selection, all []figure[T]) []figure[T] {
	return slices.DeleteFunc(all, func(f figure[T]) bool { return !c.wants(f.family) })
}

// A column is a figure with its description, for many objects.
type column[T any] struct {
	*figure[T]
	desc *prometheus.Desc
}

func describe[T any](prefix string, figures []figure[T], labels ...string) []column[T] {
	list := make([]column[T], len(figures))
	for i := range figures {
		f := &figures[i]
		list[i] = column[T]{f, prometheus.NewDesc(prefix+f.name, f.help, labels, nil)}
	}
	return list
}

func emitColumns[T any](ch chan<- prometheus.Metric, list []column[T], o *T, values ...string) {
	for i, v := range values {
		values[i] = strings.ToValidUTF8(v, "\uFFFD")
	}
	for i := range list {
		ch <- prometheus.MustNewConstMetric(list[i].desc, list[i].kind(), list[i].value(o), values...)
	}
}

// eachVHost calls do with the vhosts that the scrape wants.
func (c *objectsCollector) eachVHost(do func(*vhost.VHost)) {
	for _, name := range c.s.cfg.VHosts.Names() {
		if v, ok := c.s.cfg.VHosts.Get(name); ok && c.wantsVHost(name) {
			do(v)
		}
	}
}

func (c *objectsCollector) queues(ch chan<- prometheus.Metric) {
	list := describe(c.prefix, wanted(&c.selection, queueMetrics()), "vhost", "queue")
	list = append(list, describe(c.ours, wanted(&c.selection, ownQueueMetrics()), "vhost", "queue")...)
	if len(list) == 0 {
		return
	}
	now := time.Now()
	c.eachVHost(func(v *vhost.VHost) {
		for info := range v.Queues() {
			if name := info.Spec.Name; c.queue == nil || c.queue.MatchString(name) {
				emitColumns(ch, list, &queueSample{at: now, st: info.Queue.Status()}, v.Name(), name)
			}
		}
	})
}

func (c *objectsCollector) exchanges(ch chan<- prometheus.Metric) {
	list := describe(c.prefix, wanted(&c.selection, exchangeMetrics()), "vhost", "exchange")
	if len(list) == 0 {
		return
	}
	c.eachVHost(func(v *vhost.VHost) {
		for info := range v.Exchanges() {
			if !hidden(v, &info) {
				emitColumns(ch, list, &exchangeSample{published: info.Published, routed: info.Routed}, v.Name(), info.X.Name)
			}
		}
	})
}

// connections emits connections by name (RabbitMQ 4.1: the label connection).
func (c *objectsCollector) connections(ch chan<- prometheus.Metric) {
	list := describe(c.prefix, wanted(&c.selection, connectionMetrics()), "connection", "vhost")
	if len(list) == 0 {
		return
	}
	for _, i := range c.s.cfg.Connections.Connections() {
		if c.wantsVHost(i.VHost) {
			emitColumns(ch, list, &i, i.Name, i.VHost)
		}
	}
}

// channels emits channels. RabbitMQ tells what a channel did by exchange and
// queue as well; that is not known here.
func (c *objectsCollector) channels(ch chan<- prometheus.Metric) {
	list := describe(c.prefix, wanted(&c.selection, channelMetrics()), "channel", "vhost")
	if len(list) == 0 {
		return
	}
	for _, i := range c.s.cfg.Connections.Channels() {
		if c.wantsVHost(i.VHost) {
			emitColumns(ch, list, &i, channelName(i.Connection, i.Number), i.VHost)
		}
	}
}

// nodeFamilies emits what has no objects.
func (c *objectsCollector) nodeFamilies(e *emitter) {
	if c.wants(nodeCoarse) {
		e.nodeCoarse(c.s)
	}
	if c.wants(nodeFamily) {
		e.nodeLimits(c.s)
	}
	if c.detailed && c.wants(churnFamily) {
		_, churn := c.s.sampler.pastCounts()
		e.churned(&churn)
	}
}

// cluster emits the families that RabbitMQ has of the whole cluster.
func (c *objectsCollector) cluster(e *emitter) {
	c.eachVHost(func(v *vhost.VHost) {
		if c.wants("vhost_status") {
			e.gauge("vhost_status", "Whether the vhost is running", 1, with("vhost", v.Name()))
		}
		names, bindings := c.wants("exchange_names"), c.wants("exchange_bindings")
		if !names && !bindings {
			return
		}
		for info := range v.Exchanges() {
			if hidden(v, &info) {
				continue
			}
			l := with("vhost", v.Name(), "exchange", info.X.Name, "type", info.X.Type)
			if names {
				e.gauge("exchange_name", "Exchanges; the value means nothing", 1, l)
			}
			if bindings {
				e.gauge("exchange_bindings", "Bindings of an exchange", float64(countOfBindings(v, info.X.Name)), l)
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
