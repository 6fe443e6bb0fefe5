package main

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// lifecycleCommands stop the broker, and empty it.
func lifecycleCommands() []command {
	return []command{
		{use: "stop [PIDFILE]", short: "Stop the broker of this machine, and wait for its end", args: cobra.MaximumNArgs(1), run: stopBroker,
			flags: func(f *pflag.FlagSet) { f.Bool("idempotent", false, "succeed if none runs") }},
		{use: "shutdown", short: "As stop", args: cobra.NoArgs, run: stopBroker,
			flags: func(f *pflag.FlagSet) {
				f.Bool("wait", true, "wait for the end of the process")
				f.Bool("no-wait", false, "do not")
			}},
		{use: "stop_app", short: "As drain: refuse clients and close the connections; the process stays", args: cobra.NoArgs, run: stopApp},
		{use: "start_app", short: "As revive: accept clients again", args: cobra.NoArgs, run: startApp},
		{use: "reset", short: "Delete all virtual hosts and users, and make the first ones anew; after stop_app", args: cobra.NoArgs, run: reset},
		{use: "force_reset", short: "As reset", args: cobra.NoArgs, run: reset},
	}
}

// stopBroker sends the broker's process SIGTERM. Only one on this machine can be
// told so: who may use its socket may do that, too.
func stopBroker(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if e, ok := errors.AsType[*exitError](err); ok && e.code == exitUnavailable && s.flags.Lookup("idempotent") != nil && s.on("idempotent") {
		return nil
	}
	if err != nil {
		return err
	}
	s.say("Stopping and halting node %s ...", n.text("name"))
	pid := int(n.number("os_pid"))
	if !s.api.local || pid <= 0 {
		return exitf(exitUnavailable, "the HTTP API cannot end the broker: run this on its machine with its --data-dir (LEVERET_DATA_DIR), or send its process SIGTERM")
	}
	if err := terminate(pid); err != nil {
		return exitf(exitUnavailable, "send process %d SIGTERM: %v", pid, err)
	}
	if f := s.flags.Lookup("no-wait"); f != nil && (s.on("no-wait") || !s.on("wait")) { // stop has neither
		return nil
	}
	ctx, cancel := s.limited(ctx)
	defer cancel()
	for processRuns(pid) {
		if pause(ctx, startupPoll) != nil {
			return exitf(exitTimeout, "process %d has not ended after %d s; look into its log", pid, s.opts.timeout)
		}
	}
	return nil
}

func stopApp(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	s.say("Stopping rabbit application on node %s ...", n.text("name"))
	return s.maintain(ctx, n, 0)
}

func startApp(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	s.say("Starting node %s ...", n.text("name"))
	return s.api.delete(ctx, apiPath("nodes", n.text("name"), "maintenance"))
}

// reset leaves the broker as one that was started for the first time: with one
// virtual host and one administrator, of the names that the variables of a
// container give them.
func reset(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	if n.text("being_drained") != "true" { // RabbitMQ 4.0: text and exit code
		return exitf(exitUsage, "Error: this command requires the 'rabbit' app to be stopped on the target node. Stop it with '%s stop_app'.", s.cmd.Root().Name())
	}
	if !s.api.local || s.api.user != "" {
		return exitf(exitUnavailable, "users are deleted, too: run this on the broker's machine with its --data-dir (LEVERET_DATA_DIR) and without a login")
	}
	s.say("Resetting node %s ...", n.text("name"))
	for _, kind := range []string{"vhosts", "users", "global-parameters"} {
		if err := s.deleteAll(ctx, kind); err != nil {
			return err
		}
	}
	return s.plant(ctx)
}

// deleteAll deletes everything of one kind, but for what tells brokers apart.
func (s *session) deleteAll(ctx context.Context, kind string) error {
	var list []object
	if err := s.api.get(ctx, apiPath(kind), &list); err != nil {
		return err
	}
	for _, o := range list {
		if kind == "global-parameters" && o.text("name") == "cluster_name" {
			continue
		}
		// Some global parameters are the broker's own, and cannot be deleted.
		if err := s.api.delete(ctx, apiPath(kind, o.text("name"))); err != nil && !isStatus(err, http.StatusNotFound) {
			return err
		}
	}
	return nil
}

// plant makes the first virtual host and user.
func (s *session) plant(ctx context.Context) error {
	first := func(what, otherwise string) string {
		ours, _ := s.env("LEVERET_DEFAULT_" + what)
		theirs, _ := s.env("RABBITMQ_DEFAULT_" + what)
		return cmp.Or(ours, theirs, otherwise)
	}
	vhost, user := first("VHOST", "/"), first("USER", "guest")
	if err := s.api.put(ctx, apiPath("vhosts", vhost), map[string]any{}); err != nil {
		return err
	}
	if err := s.api.put(ctx, apiPath("users", user), userBody{Password: first("PASS", "guest"), Tags: []string{"administrator"}}); err != nil {
		return err
	}
	return s.api.put(ctx, apiPath("permissions", vhost, user), map[string]string{"configure": ".*", "write": ".*", "read": ".*"})
}
