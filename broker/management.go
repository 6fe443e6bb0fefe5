package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/amqp"
	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/config"
	"github.com/leveretmq/leveret/management"
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

// buildManagement makes the HTTP API and opens its listener. The default
// address may be taken, by a second broker on the machine for instance: then
// there is no API. One that was asked for must be free.
func (b *Broker) buildManagement(authority *auth.Authority) error {
	address := b.cfg.ManagementListen
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
	case address == config.DefaultManagementListen && errors.Is(err, syscall.EADDRINUSE):
		b.log.Warn("no HTTP API: its address is taken; choose another with --management-listen (LEVERET_MANAGEMENT_LISTEN)",
			zap.String("address", address))
		return nil
	default:
		return fmt.Errorf("cannot serve the HTTP API on %s: %w; choose another address with --management-listen (LEVERET_MANAGEMENT_LISTEN)", address, err)
	}
	b.api = management.New(management.Config{
		Log: b.log, VHosts: b.vhosts, Auth: authority, Store: b.store, Connections: connections{b.server}, Alarms: b.server.Alarms,
		Node: nodeName(), Product: "Leveret", ProductVersion: Version(), CompatibleVersion: compatibleVersion,
		DataDir: b.cfg.DataDir, MemoryLimit: b.cfg.MemoryLimit,
	})
	b.api.AddListener("amqp", b.listener.Addr())
	b.apiListener = l
	return nil
}

// serveManagement answers HTTP requests until Stop.
func (b *Broker) serveManagement(ctx context.Context, api *management.Server, l net.Listener) {
	if err := api.Serve(ctx, l); err != nil && !b.stopping.Load() {
		b.log.Error("the HTTP API has stopped", zap.Error(err))
	}
}
