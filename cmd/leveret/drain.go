package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maintenanceCommands put a node into maintenance before it is stopped, and back.
func maintenanceCommands() []command {
	return []command{
		{use: "drain", short: "Put the broker into maintenance: refuse clients, close the connections, fail the health checks", args: cobra.NoArgs, run: drain,
			flags: func(f *pflag.FlagSet) {
				f.Int("grace", 0, "how many `seconds` the connections stay open at first")
				f.Bool("revive", false, "end the maintenance")
			}},
		{use: "revive", short: "End the maintenance: accept clients again", args: cobra.NoArgs, run: revive},
	}
}

// drainPoll is how long to wait between two looks at the connections that are
// left: nothing announces the last one's end.
const drainPoll = 200 * time.Millisecond

// drain waits until the connections are closed, as what stops the broker next
// relies on it.
func drain(ctx context.Context, s *session, args []string) error {
	if s.on("revive") {
		return revive(ctx, s, args)
	}
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	grace, err := strconv.Atoi(s.flag("grace"))
	if err != nil {
		return exitf(exitUsage, "--grace must be a number of seconds")
	}
	s.say("Will put node %s into maintenance mode. The node will no longer serve any client traffic!", n.text("name"))
	return s.maintain(ctx, n, grace)
}

// maintain begins the maintenance, and waits until no connection is left.
func (s *session) maintain(ctx context.Context, n node, grace int) error {
	if err := s.api.put(ctx, apiPath("nodes", n.text("name"), "maintenance"), map[string]int{"grace": grace}); err != nil {
		return err
	}
	if s.opts.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(grace+s.opts.timeout)*time.Second)
		defer cancel()
	}
	return s.awaitNoConnections(ctx)
}

func (s *session) awaitNoConnections(ctx context.Context) error {
	for {
		var o struct {
			Totals struct{ Connections int } `json:"object_totals"`
		}
		err := s.api.get(ctx, apiPath("overview"), &o)
		switch {
		case ctx.Err() != nil:
			return exitf(exitTimeout, "the broker is in maintenance, but some connections are still open; look at them with list_connections")
		case err != nil:
			return err
		case o.Totals.Connections == 0:
			return nil
		}
		_ = pause(ctx, drainPoll) // the next round says why it ended
	}
}

func revive(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	s.say("Will put node %s back into regular operating mode. The node will again serve client traffic.", n.text("name"))
	return s.api.do(ctx, http.MethodDelete, apiPath("nodes", n.text("name"), "maintenance"), nil, nil)
}

// maintenance is RabbitMQ's text about a node.
func (n node) maintenance() string {
	if n.text("being_drained") == "true" {
		return "marked for maintenance"
	}
	return "not under maintenance"
}
