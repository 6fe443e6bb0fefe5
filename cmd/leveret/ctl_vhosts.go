package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func vhostCommands() []command {
	metadata := func(f *pflag.FlagSet) {
		f.String("description", "", "a `text` for people")
		f.String("tags", "", "a comma-separated `list`")
		f.String("default-queue-type", "", "the `type` of queues that are declared without one")
	}
	list := listCommands([]listing{{
		name: "list_vhosts", short: "List the virtual hosts", title: "Listing vhosts ...",
		path: everywhere("vhosts"), defaults: "name",
		columns: same("name tracing cluster_state description tags default_queue_type metadata protected_from_deletion"),
	}})
	return append(list, []command{
		{use: "add_vhost VHOST", short: "Add a virtual host", args: cobra.ExactArgs(1), run: addVHost, flags: metadata},
		{use: "update_vhost_metadata VHOST", short: "Change a virtual host's description, tags or default queue type", args: cobra.ExactArgs(1), run: updateVHost, flags: metadata},
		{use: "delete_vhost VHOST", short: "Delete a virtual host with everything in it", args: cobra.ExactArgs(1), run: deleteVHost},
		{use: "trace_on [VHOST]", short: "Copy all messages of a virtual host to the exchange amq.rabbitmq.trace", args: cobra.MaximumNArgs(1), run: traceOn},
		{use: "trace_off [VHOST]", short: "Stop copying the messages of a virtual host", args: cobra.MaximumNArgs(1), run: traceOff},
	}...)
}

// metadata are the options of a vhost that are given.
func (s *session) metadata() map[string]any {
	m := map[string]any{}
	for _, name := range []string{"description", "tags", "default-queue-type"} {
		if s.flags.Changed(name) {
			m[strings.ReplaceAll(name, "-", "_")] = s.flag(name)
		}
	}
	return m
}

// addVHost is content with a vhost that there is (RabbitMQ 4.0).
func addVHost(ctx context.Context, s *session, args []string) error {
	s.say("Adding vhost %q ...", args[0])
	return s.api.put(ctx, apiPath("vhosts", args[0]), s.metadata())
}

func updateVHost(ctx context.Context, s *session, args []string) error {
	m := s.metadata()
	if len(m) == 0 {
		return exitf(exitUsage, "nothing to change: give --description, --tags or --default-queue-type")
	}
	s.say("Updating metadata of vhost %q ...", args[0])
	return s.change(ctx, args[0], m)
}

// change changes a vhost that there has to be: a PUT alone would make it.
func (s *session) change(ctx context.Context, vhost string, body map[string]any) error {
	if err := s.api.get(ctx, apiPath("vhosts", vhost), nil); err != nil {
		return orMissing(err, exitData, "Virtual host '%s' does not exist", vhost)
	}
	return s.api.put(ctx, apiPath("vhosts", vhost), body)
}

func deleteVHost(ctx context.Context, s *session, args []string) error {
	s.say("Deleting vhost %q ...", args[0])
	return orMissing(s.api.delete(ctx, apiPath("vhosts", args[0])), exitData, "Virtual host '%s' does not exist", args[0])
}

func traceOn(ctx context.Context, s *session, args []string) error { return s.trace(ctx, args, true) }

func traceOff(ctx context.Context, s *session, args []string) error { return s.trace(ctx, args, false) }

func (s *session) trace(ctx context.Context, args []string, on bool) error {
	vhost := s.opts.vhost
	if len(args) > 0 {
		vhost = args[0]
	}
	s.say("%s tracing for vhost %q ...", or(on, "Starting", "Stopping"), vhost)
	err := s.change(ctx, vhost, map[string]any{"tracing": on})
	if e, ok := errors.AsType[*exitError](err); err != nil && (!ok || e.code != exitData || len(args) > 0) {
		return err // RabbitMQ 4.0 is content with a virtual host that there is not
	}
	s.say("Trace %s for vhost %s", or(on, "enabled", "disabled"), vhost)
	return nil
}
