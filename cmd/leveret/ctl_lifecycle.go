package main

import (
	"context"
	"errors"

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
				f.Bool("no-wait", false, "do not wait for it")
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

// reset leaves the broker as one that was started for the first time: with what its
// own configuration says.
func reset(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	if n.text("being_drained") != "true" { // RabbitMQ 4.0: text and exit code
		return exitf(exitUsage, "Error: this command requires the 'rabbit' app to be stopped on the target node. Stop it with '%s stop_app'.", s.cmd.Root().Name())
	}
	if !s.api.local {
		return exitf(exitUnavailable, "users are deleted, too: run this on the broker's machine with its --data-dir (LEVERET_DATA_DIR)")
	}
	if !s.flags.Changed("timeout") { // many vhosts take their time, and the broker would go on
		s.api.http.Timeout = 0
	}
	s.say("Resetting node %s ...", n.text("name"))
	return s.api.post(ctx, apiPath("nodes", n.text("name"), "reset"), nil, nil)
}
