package main

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func connectionListings() []listing {
	return []listing{
		{
			name: "list_connections", short: "List the connections", title: "Listing connections ...",
			path: everywhere("connections"), defaults: "user peer_host peer_port state",
			columns: slices.Concat([]column{{"pid", "name"}},
				same("name user_provided_name port host peer_port peer_host ssl ssl_protocol ssl_key_exchange ssl_cipher ssl_hash"),
				same("peer_cert_subject peer_cert_issuer peer_cert_validity state channels protocol auth_mechanism user vhost timeout"),
				same("frame_max channel_max client_properties recv_oct recv_cnt send_oct send_cnt send_pend connected_at node type")),
		},
		{
			name: "list_channels", short: "List the channels", title: "Listing channels ...",
			path: everywhere("channels"), defaults: "pid user consumer_count messages_unacknowledged",
			columns: slices.Concat([]column{{"pid", "name"}, {"connection", "connection_details.name"}},
				same("name number user vhost transactional confirm consumer_count messages_unacknowledged messages_uncommitted"),
				same("acks_uncommitted messages_unconfirmed prefetch_count global_prefetch_count state node")),
		},
	}
}

func connectionCommands() []command {
	return []command{
		{use: "close_connection CONNECTION [REASON]", short: "Close a connection; list_connections name shows what to give", args: cobra.RangeArgs(1, 2), run: closeConnection},
		{use: "close_all_connections REASON", short: "Close the connections of a virtual host, or all with --global", args: cobra.ExactArgs(1), run: closeAllConnections,
			flags: func(f *pflag.FlagSet) {
				f.Bool("global", false, "in all virtual hosts")
				f.Int("limit", 0, "close at most so many; 0 is all")
				f.Int("per-connection-delay", 0, "how many `milliseconds` to wait after each")
			}},
		{use: "close_all_user_connections USER REASON", short: "Close all connections of a user", args: cobra.ExactArgs(2), run: closeUserConnections},
	}
}

// reason is what the client is told: the argument, if there is one.
func reason(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return "CONNECTION_FORCED - closed by an operator"
}

func closeConnection(ctx context.Context, s *session, args []string) error {
	why := reason(args, 1)
	s.say("Closing connection %s, reason: %s...", args[0], why)
	err := s.closing(ctx, apiPath("connections", args[0]), why)
	if isStatus(err, http.StatusNotFound) && isConnection(args[0]) {
		return nil // it has ended by itself (RabbitMQ 4.0)
	}
	return orMissing(err, exitUnavailable, "there is no connection %q; `list_connections name` shows the names", args[0])
}

// isConnection says whether a name may be that of a connection, or the process of one
// in RabbitMQ.
func isConnection(name string) bool {
	return strings.Contains(name, " -> ") || strings.HasPrefix(name, "<") && strings.Contains(name, "@") && strings.HasSuffix(name, ">")
}

// closing deletes what is below a path of connections, for a reason.
func (s *session) closing(ctx context.Context, path, why string) error {
	r, err := s.api.request(ctx, http.MethodDelete, path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-Reason", why)
	return s.api.send(r, nil)
}

func closeAllConnections(ctx context.Context, s *session, args []string) error {
	path := apiPath("vhosts", s.opts.vhost, "connections")
	if s.on("global") {
		path = apiPath("connections")
		s.say("Closing all connections (across all vhosts), reason: %s...", reason(args, 0))
	} else {
		s.say("Closing all connections in vhost %s, reason: %s...", s.opts.vhost, reason(args, 0))
	}
	limit, _ := strconv.Atoi(s.flag("limit")) // pflag has checked both
	delay, _ := strconv.Atoi(s.flag("per-connection-delay"))
	var list []object
	if err := s.api.get(ctx, path, &list); err != nil && !isStatus(err, http.StatusNotFound) { // no vhost, no connections (RabbitMQ 4.0)
		return err
	}
	if limit > 0 {
		list = list[:min(limit, len(list))]
	}
	closed := 0
	for _, c := range list {
		err := s.closing(ctx, apiPath("connections", c.text("name")), reason(args, 0))
		if isStatus(err, http.StatusNotFound) {
			continue // it has ended by itself
		}
		if err != nil {
			return err
		}
		closed++
		if err := pause(ctx, time.Duration(delay)*time.Millisecond); err != nil {
			return err
		}
	}
	return s.result("Closed %d connections", closed)
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func closeUserConnections(ctx context.Context, s *session, args []string) error {
	s.say("Closing connections of user %s, reason: %s...", args[0], reason(args, 1))
	return s.closing(ctx, apiPath("connections", "username", args[0]), reason(args, 1))
}
