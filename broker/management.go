package broker

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/management"
	"github.com/leveretmq/leveret/message"
	"github.com/leveretmq/leveret/queue"
)

// connections shows the AMQP server's connections to the HTTP API. The two
// sides have the same structs, as front doors do not import one another.
type connections struct{ server *amqp.Server }

var _ management.Connections = connections{}

func (c connections) Connections() []management.Connection {
	list := c.server.Connections()
	out := make([]management.Connection, len(list))
	for i := range list {
		out[i] = management.Connection(list[i])
	}
	return out
}

func (c connections) Channels() []management.Channel {
	list := c.server.Channels()
	out := make([]management.Channel, len(list))
	for i := range list {
		out[i] = management.Channel(list[i])
	}
	return out
}

func (c connections) Consumers() []management.Consumer {
	list := c.server.Consumers()
	out := make([]management.Consumer, len(list))
	for i := range list {
		out[i] = management.Consumer(list[i])
	}
	return out
}

func (c connections) CloseConnection(name, reason string) bool {
	return c.server.CloseConnection(name, reason)
}

func (c connections) Unacked(vhost, queue string, offset, limit int) ([]management.Unacked, int) {
	page, total := c.server.Unacked(vhost, queue, offset, limit)
	out := make([]management.Unacked, len(page))
	for i := range page {
		out[i] = management.Unacked(page[i])
	}
	return out, total
}

func (c connections) Past() map[string]management.Past {
	past := c.server.Past()
	out := make(map[string]management.Past, len(past))
	for vhost, n := range past {
		out[vhost] = management.Past(n)
	}
	return out
}

func (c connections) Churn() management.Churn { return management.Churn(c.server.Churn()) }

func (c connections) ConfirmLatency() message.Distribution { return c.server.ConfirmLatency() }

// buildManagement opens the listeners of the HTTP API and of the metrics, and
// the socket for administration, and makes what answers there. It imports
// definitions as well, so it may be there without a listener.
func (b *Broker) buildManagement(memory *queue.Budget) error {
	if err := b.openManagement(); err != nil {
		return err
	}
	if err := b.openManagementTLS(); err != nil {
		return err
	}
	if err := errors.Join(b.openMetrics(), b.openMetricsTLS()); err != nil {
		return err
	}
	if err := b.openAdminSocket(); err != nil {
		return err
	}
	if b.apiListener == nil && b.apiTLSListener == nil && b.metricsListener == nil && b.metricsTLSListener == nil && b.adminListener == nil && b.cfg.LoadDefinitions == "" {
		return nil
	}
	b.api = management.New(b.managementConfig(memory))
	for _, l := range b.listeners {
		protocol := "amqp"
		if l.tls {
			protocol = "amqp/ssl"
		}
		b.api.AddListener(protocol, l.Addr())
	}
	return nil
}

// managementConfig is what the HTTP API gets; memory is the budget of all queues.
func (b *Broker) managementConfig(memory *queue.Budget) management.Config {
	return management.Config{
		Log: b.log, VHosts: b.vhosts, Auth: b.authority, Store: b.store, Connections: connections{b.server},
		Certificates: b.expiries, Alarms: b.server.Alarms, Maintenance: b.server, Operator: operator{b},

		Node: b.nodeName(), ClusterName: b.cfg.ClusterName,
		Product: "Leveret", ProductVersion: cmp.Or(b.cfg.ProductVersion, Version()), CompatibleVersion: compatibleVersion,
		DataDir: dataDir(b.cfg), ConfigFiles: b.cfg.Files, Settings: b.Settings, LogFiles: logFiles(b.cfg),
		MemoryLimit: b.cfg.MemoryLimit, QueueMemory: memory,
		DefaultQueueType: b.cfg.DefaultQueueType, ConsumerTimeout: consumerTimeout(b.cfg.Limits),

		PathPrefix: b.cfg.HTTP.PathPrefix, MaxBodySize: b.cfg.HTTP.MaxBodySize,
		AllowOrigins: b.cfg.HTTP.AllowOrigins, CORSMaxAge: b.cfg.HTTP.CORSMaxAge,
		Options:      httpOptions(b.cfg),
		DisableStats: b.cfg.HTTP.DisableStats, EnableQueueTotals: b.cfg.HTTP.EnableQueueTotals,
	}
}

// dataDir is where the broker keeps its data, "" if it keeps none.
func dataDir(cfg config.Config) string {
	if cfg.InMemory {
		return "" // the folder may be another broker's
	}
	return cfg.DataDir
}

// openManagement opens the HTTP API's listener. The default address may be
// taken, by a second broker on the machine for instance: then there is none.
// One that was asked for must be free.
func (b *Broker) openManagement() error {
	address := b.cfg.ManagementListen
	if address == "" {
		return nil
	}
	l, err := net.Listen(network(address, nil), address)
	switch {
	case err == nil:
		b.apiListener = l
		return nil
	case address == config.DefaultManagementListen && errors.Is(err, syscall.EADDRINUSE):
		b.log.Warn("no HTTP API: its address is taken; choose another with --management-listen (LEVERET_MANAGEMENT_LISTEN)",
			zap.String("address", address))
		return nil
	}
	return fmt.Errorf("cannot serve the HTTP API on %s: %w; choose another address with --management-listen (LEVERET_MANAGEMENT_LISTEN)", address, err)
}

// openManagementTLS opens the HTTP API's listener with TLS.
func (b *Broker) openManagementTLS() error {
	address := b.cfg.ManagementTLSListen
	if address == "" {
		return nil
	}
	cert, err := b.loadCertificate(b.cfg.ManagementTLS)
	if err != nil {
		return fmt.Errorf("TLS for the HTTP API: %w", err)
	}
	l, err := net.Listen(network(address, nil), address)
	if err != nil {
		return fmt.Errorf("cannot serve the HTTP API with TLS on %s: %w; choose another address with --management-tls-listen (LEVERET_MANAGEMENT_TLS_LISTEN)", address, err)
	}
	b.apiTLSListener = tls.NewListener(l, cert.config())
	return nil
}

// openMetrics opens the metrics' listener. A default address that is taken is
// given up, as the HTTP API's is.
func (b *Broker) openMetrics() error {
	address := b.cfg.PrometheusListen
	if address == "" {
		return nil
	}
	l, err := net.Listen(network(address, nil), address)
	switch {
	case err == nil:
		b.metricsListener = l
		return nil
	case address == config.DefaultPrometheusListen && errors.Is(err, syscall.EADDRINUSE):
		b.log.Warn("no metrics: their address is taken; choose another with --prometheus-listen (LEVERET_PROMETHEUS_LISTEN)",
			zap.String("address", address))
		return nil
	}
	return fmt.Errorf("cannot serve the metrics on %s: %w; choose another address with --prometheus-listen (LEVERET_PROMETHEUS_LISTEN)", address, err)
}

// startManagement answers HTTP requests until Stop.
func (b *Broker) startManagement(ctx context.Context) {
	api := b.api // Stop takes it away
	if l := b.apiListener; l != nil {
		b.running.Go(func() { b.serveManagement(ctx, api, l) })
		b.log.Info("HTTP API on http://" + l.Addr().String())
	}
	if l := b.apiTLSListener; l != nil {
		api.AddListener("https", l.Addr())
		b.running.Go(func() { b.serveManagement(ctx, api, httpsListener{l}) })
		b.log.Info("HTTP API on https://" + l.Addr().String())
	}
	b.serveAdmin(ctx)
	if l := b.metricsListener; l != nil {
		b.running.Go(func() { b.serveMetrics(ctx, api, l) })
		b.log.Info("metrics on http://" + l.Addr().String() + cmp.Or(b.cfg.Metrics.Path, "/metrics"))
	}
	if l := b.metricsTLSListener; l != nil {
		api.AddListener("https/prometheus", l.Addr())
		b.running.Go(func() { b.serveMetrics(ctx, api, httpsListener{l}) })
		b.log.Info("metrics on https://" + l.Addr().String() + cmp.Or(b.cfg.Metrics.Path, "/metrics"))
	}
}

func (b *Broker) serveManagement(ctx context.Context, api *management.Server, l net.Listener) {
	if err := api.Serve(ctx, l); err != nil && !b.stopping.Load() {
		b.log.Error("the HTTP API has stopped: restart the broker to have it again", zap.String("address", l.Addr().String()), zap.Error(err))
	}
}

func (b *Broker) serveMetrics(ctx context.Context, api *management.Server, l net.Listener) {
	if err := api.ServeMetrics(ctx, l); err != nil && !b.stopping.Load() {
		b.log.Error("the metrics have stopped: restart the broker to have them again", zap.String("address", l.Addr().String()), zap.Error(err))
	}
}

// stopManagement ends the HTTP API. Afterwards there is none.
func (b *Broker) stopManagement(ctx context.Context) error {
	if b.api == nil {
		return nil
	}
	err := b.api.Shutdown(ctx)
	b.api = nil
	return err
}

// An httpsListener is known to the HTTP API as one with TLS already. Its address is
// of a kind of its own, so that it is not listed as http as well.
type httpsListener struct{ net.Listener }

type httpsAddr struct{ net.Addr }

// Addr implements net.Listener.
func (l httpsListener) Addr() net.Addr { return httpsAddr{l.Listener.Addr()} }
