package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func policyCommands() []command {
	var list []command
	for _, k := range []policyKind{{"", "policies", "policy"}, {"operator_", "operator-policies", "operator policy"}} {
		plural := k.prefix + "policies"
		list = append(list,
			command{use: "list_" + plural, short: "List each " + k.noun + " of a virtual host", args: cobra.NoArgs, run: k.list},
			command{use: "set_" + k.prefix + "policy NAME PATTERN DEFINITION", short: "Set a " + k.noun + "; the definition is JSON", args: cobra.ExactArgs(3), run: k.set,
				flags: func(f *pflag.FlagSet) {
					f.Int("priority", 0, "the highest of those that match counts")
					f.String("apply-to", "all", "`kind` of what it is for: all, queues, classic_queues, quorum_queues, streams or exchanges")
				}},
			command{use: "clear_" + k.prefix + "policy NAME", short: "Remove a " + k.noun, args: cobra.ExactArgs(1), run: k.clear},
		)
	}
	return list
}

// A policyKind is policies of users or of operators.
type policyKind struct{ prefix, path, noun string }

// list prints definitions as JSON in all formats (RabbitMQ 4.0).
func (k policyKind) list(ctx context.Context, s *session, _ []string) error {
	s.say("Listing %s for vhost %q ...", strings.ReplaceAll(k.prefix, "_", " ")+"policies", s.opts.vhost)
	var list []object
	err := s.api.get(ctx, apiPath(k.path, s.opts.vhost), &list)
	if err != nil && !isStatus(err, http.StatusNotFound) {
		return err
	}
	for _, o := range list {
		o["definition"] = quoted(string(o["definition"]))
	}
	return s.print(tableOf(same("vhost name pattern apply-to definition priority"), list))
}

func (k policyKind) set(ctx context.Context, s *session, args []string) error {
	definition, err := parsed("definition", args[2])
	if err != nil {
		return err
	}
	priority, _ := strconv.Atoi(s.flag("priority")) // pflag has checked it
	s.say("Setting %s %q for pattern %q to %q with priority \"%d\" for vhost %q ...", k.noun, args[0], args[1], args[2], priority, s.opts.vhost)
	err = s.api.put(ctx, apiPath(k.path, s.opts.vhost, args[0]), map[string]any{
		"pattern": args[1], "definition": definition, "priority": priority, "apply-to": s.flag("apply-to"),
	})
	return orInvalid(orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost))
}

func (k policyKind) clear(ctx context.Context, s *session, args []string) error {
	s.say("Clearing %s %q on vhost %q ...", k.noun, args[0], s.opts.vhost)
	err := s.api.delete(ctx, apiPath(k.path, s.opts.vhost, args[0]))
	return orMissing(err, exitSoftware, "there is no %s %q in vhost '%s'", k.noun, args[0], s.opts.vhost)
}

func limitCommands() []command {
	return []command{
		{use: "list_vhost_limits", short: "List the limits of a virtual host", args: cobra.NoArgs, run: listVHostLimits,
			flags: func(f *pflag.FlagSet) { f.Bool("global", false, "of all virtual hosts") }},
		{use: "set_vhost_limits LIMITS", short: `Set limits of a virtual host, as in '{"max-connections": 100, "max-queues": 50}'`, args: cobra.ExactArgs(1), run: setVHostLimits},
		{use: "clear_vhost_limits", short: "Remove all limits of a virtual host", args: cobra.NoArgs, run: clearVHostLimits},
		{use: "list_user_limits [USER]", short: "List the limits of a user or of all users", args: cobra.MaximumNArgs(1), run: listUserLimits,
			flags: func(f *pflag.FlagSet) {
				f.String("user", "", "the user; the login is LEVERET_USER then")
				f.Bool("global", false, "of all users")
			}},
		{use: "set_user_limits USER LIMITS", short: `Set limits of a user, as in '{"max-connections": 10, "max-channels": 100}'`, args: cobra.ExactArgs(2), run: setUserLimits},
		{use: "clear_user_limits USER LIMIT", short: "Remove a limit of a user, or all", args: cobra.ExactArgs(2), run: clearUserLimits},
	}
}

func listVHostLimits(ctx context.Context, s *session, _ []string) error {
	path := apiPath("vhost-limits", s.opts.vhost)
	if s.on("global") {
		path = apiPath("vhost-limits")
		s.say("Listing limits for all vhosts ...")
	} else {
		s.say("Listing limits for vhost %q ...", s.opts.vhost)
	}
	return s.limits(ctx, path, "vhost", missingVHost(s.opts.vhost))
}

// limits prints limits as JSON in all formats (RabbitMQ 4.0).
func (s *session) limits(ctx context.Context, path, of string, missing *exitError) error {
	var list []object
	err := s.api.get(ctx, path, &list)
	if isStatus(err, http.StatusNotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	for _, o := range list {
		if s.opts.formatter != "json" {
			o["value"] = quoted(string(o["value"]))
		}
	}
	return s.print(tableOf([]column{{of, of}, {"limits", "value"}}, list))
}

// limitsOf reads an argument with limits.
func limitsOf(text string) (map[string]json.RawMessage, error) {
	var limits map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &limits); err != nil {
		return nil, exitf(exitData, `the limits are no JSON object: %s; they look like '{"max-connections": 100}'`, text)
	}
	return limits, nil
}

// setLimits sets each limit below a path.
func (s *session) setLimits(ctx context.Context, path, text string, missing *exitError) error {
	limits, err := limitsOf(text)
	if err != nil {
		return err
	}
	for name, value := range limits {
		err := s.api.put(ctx, path+apiPath(name), map[string]any{"value": value})
		if isStatus(err, http.StatusNotFound) {
			return missing
		}
		if err != nil {
			return orInvalid(err)
		}
	}
	return nil
}

func setVHostLimits(ctx context.Context, s *session, args []string) error {
	s.say("Setting vhost limits to %q for vhost %q ...", args[0], s.opts.vhost)
	return s.setLimits(ctx, apiPath("vhost-limits", s.opts.vhost), args[0], missingVHost(s.opts.vhost))
}

func clearVHostLimits(ctx context.Context, s *session, _ []string) error {
	s.say("Clearing vhost %q limits ...", s.opts.vhost)
	return s.clearLimits(ctx, apiPath("vhost-limits", s.opts.vhost), missingVHost(s.opts.vhost))
}

// clearLimits removes all limits that there are below a path.
func (s *session) clearLimits(ctx context.Context, path string, missing *exitError) error {
	var list []struct{ Value map[string]json.RawMessage }
	err := s.api.get(ctx, path, &list)
	if isStatus(err, http.StatusNotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	for _, one := range list {
		for name := range one.Value {
			if err := s.api.delete(ctx, path+apiPath(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func listUserLimits(ctx context.Context, s *session, args []string) error {
	name := s.flag("user")
	if len(args) > 0 {
		name = args[0]
	}
	if name == "" {
		s.say("Listing limits for all users ...")
		return s.limits(ctx, apiPath("user-limits"), "user", nil)
	}
	s.say("Listing limits for user %q ...", name)
	return s.limits(ctx, apiPath("user-limits", name), "user", missingUser(name))
}

func setUserLimits(ctx context.Context, s *session, args []string) error {
	if _, err := s.user(ctx, args[0]); err != nil {
		return err
	}
	s.say("Setting user limits to %q for user %q ...", args[1], args[0])
	return s.setLimits(ctx, apiPath("user-limits", args[0]), args[1], missingUser(args[0]))
}

func clearUserLimits(ctx context.Context, s *session, args []string) error {
	s.say("Clearing limit %q for user %q ...", args[1], args[0])
	path := apiPath("user-limits", args[0])
	if args[1] == "all" {
		return s.clearLimits(ctx, path, missingUser(args[0]))
	}
	return noSuchUser(s.api.delete(ctx, path+apiPath(args[1])), args[0])
}

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
	value, err := parsed("value", args[2])
	if err != nil {
		return err
	}
	s.say("Setting runtime parameter %q for component %q to %q in vhost %q ...", args[1], args[0], args[2], s.opts.vhost)
	err = s.api.put(ctx, apiPath("parameters", args[0], s.opts.vhost, args[1]), map[string]any{"value": value})
	return orInvalid(orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost))
}

func clearParameter(ctx context.Context, s *session, args []string) error {
	s.say("Clearing runtime parameter %q for component %q on vhost %q ...", args[1], args[0], s.opts.vhost)
	err := s.api.delete(ctx, apiPath("parameters", args[0], s.opts.vhost, args[1]))
	return orMissing(err, exitSoftware, "there is no parameter %q of component %q in vhost '%s'", args[1], args[0], s.opts.vhost)
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
	value, err := parsed("value", args[1])
	if err != nil {
		return err
	}
	s.say("Setting global runtime parameter %q to %q ...", args[0], args[1])
	return orInvalid(s.api.put(ctx, apiPath("global-parameters", args[0]), map[string]any{"value": value}))
}

func clearGlobalParameter(ctx context.Context, s *session, args []string) error {
	s.say("Clearing global runtime parameter %q ...", args[0])
	return orMissing(s.api.delete(ctx, apiPath("global-parameters", args[0])), exitSoftware, "there is no global parameter %q", args[0])
}

func setClusterName(ctx context.Context, s *session, args []string) error {
	s.say("Setting cluster name to %s ...", args[0])
	return s.api.put(ctx, apiPath("cluster-name"), map[string]string{"name": args[0]})
}
