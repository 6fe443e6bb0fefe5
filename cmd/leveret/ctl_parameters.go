package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"
)

func parameterCommands() []command {
	return []command{
		{use: "list_parameters", short: "List the parameters of a virtual host", args: cobra.NoArgs, run: listParameters},
		{use: "set_parameter COMPONENT NAME VALUE", short: "Set a parameter; the value is JSON", args: cobra.ExactArgs(3), run: setParameter},
		{use: "clear_parameter COMPONENT NAME", short: "Remove a parameter", args: cobra.ExactArgs(2), run: clearParameter},
		{use: "list_global_parameters", short: "List the global parameters", args: cobra.NoArgs, run: listGlobalParameters},
		{use: "set_global_parameter NAME VALUE", short: "Set a global parameter; the value is JSON", args: cobra.ExactArgs(2), run: setGlobalParameter},
		{use: "clear_global_parameter NAME", short: "Remove a global parameter", args: cobra.ExactArgs(1), run: clearGlobalParameter},
		{use: "set_cluster_name NAME", short: "Give the broker a name for people", args: cobra.ExactArgs(1), run: setClusterName},
	}
}

func listParameters(ctx context.Context, s *session, _ []string) error {
	s.say("Listing runtime parameters for vhost %q ...", s.opts.vhost)
	var all, list []object
	if err := s.api.get(ctx, apiPath("parameters"), &all); err != nil {
		return err
	}
	if isStatus(s.api.get(ctx, apiPath("vhosts", s.opts.vhost), nil), http.StatusNotFound) {
		return missingVHost(s.opts.vhost)
	}
	for _, o := range all {
		if o.text("vhost") == s.opts.vhost {
			list = append(list, o)
		}
	}
	return s.printValues("component name value", list)
}

// printValues prints objects with a value, which is JSON in all formats
// (RabbitMQ 4.0).
func (s *session) printValues(columns string, list []object) error {
	for _, o := range list {
		o["value"] = quoted(string(o["value"]))
	}
	return s.print(tableOf(same(columns), list))
}

func setParameter(ctx context.Context, s *session, args []string) error {
	s.say("Setting runtime parameter %q for component %q to \"%s\" in vhost %q ...", args[1], args[0], args[2], s.opts.vhost)
	value, err := parsed("value", args[2])
	if err != nil {
		return err
	}
	err = s.api.put(ctx, apiPath("parameters", args[0], s.opts.vhost, args[1]), map[string]any{"value": value})
	return orInvalid(orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost))
}

func clearParameter(ctx context.Context, s *session, args []string) error {
	s.say("Clearing runtime parameter %q for component %q on vhost %q ...", args[1], args[0], s.opts.vhost)
	err := s.api.delete(ctx, apiPath("parameters", args[0], s.opts.vhost, args[1]))
	return orMissing(err, exitUnavailable, "Parameter does not exist: there is no %q of component %q in vhost '%s'", args[1], args[0], s.opts.vhost)
}

func listGlobalParameters(ctx context.Context, s *session, _ []string) error {
	s.say("Listing global runtime parameters ...")
	var list []object
	if err := s.api.get(ctx, apiPath("global-parameters"), &list); err != nil {
		return err
	}
	return s.printValues("name value", list)
}

func setGlobalParameter(ctx context.Context, s *session, args []string) error {
	s.say("Setting global runtime parameter %q to \"%s\" ...", args[0], args[1])
	value, err := parsed("value", args[1])
	if err != nil {
		return err
	}
	return orInvalid(s.api.put(ctx, apiPath("global-parameters", args[0]), map[string]any{"value": value}))
}

func clearGlobalParameter(ctx context.Context, s *session, args []string) error {
	s.say("Clearing global runtime parameter %q ...", args[0])
	return orMissing(s.api.delete(ctx, apiPath("global-parameters", args[0])), exitUnavailable, "Parameter does not exist: there is no global parameter %q", args[0])
}

func setClusterName(ctx context.Context, s *session, args []string) error {
	s.say("Setting cluster name to %s ...", args[0])
	return s.api.put(ctx, apiPath("cluster-name"), map[string]string{"name": args[0]})
}
