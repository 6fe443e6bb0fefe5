package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func policyCommands() []command {
	var list []command
	for _, k := range []policyKind{{"", "policies", "policy", "a "}, {"operator_", "operator-policies", "operator policy", "an "}} {
		plural := k.prefix + "policies"
		list = append(list,
			command{use: "list_" + plural, short: "List each " + k.noun + " of a virtual host", args: cobra.NoArgs, run: k.list},
			command{use: "set_" + k.prefix + "policy " + strings.ToUpper(k.prefix) + "POLICY PATTERN DEFINITION", short: "Set " + k.article + k.noun + "; the definition is JSON", args: cobra.ExactArgs(3), run: k.set,
				flags: func(f *pflag.FlagSet) {
					f.Int("priority", 0, "the highest of those that match counts")
					f.String("apply-to", "all", "`kind` of what it is for: all, queues, classic_queues, quorum_queues, streams or exchanges")
				}},
			command{use: "clear_" + k.prefix + "policy " + strings.ToUpper(k.prefix) + "POLICY", short: "Remove " + k.article + k.noun, args: cobra.ExactArgs(1), run: k.clear},
		)
	}
	return list
}

// A policyKind is policies of users or of operators.
type policyKind struct{ prefix, path, noun, article string }

// list prints definitions as JSON in all formats (RabbitMQ 4.0).
func (k policyKind) list(ctx context.Context, s *session, _ []string) error {
	s.say("Listing %s for vhost %q ...", or(k.prefix == "", "policies", "operator policy overrides"), s.opts.vhost)
	var list []object
	if err := s.api.get(ctx, apiPath(k.path, s.opts.vhost), &list); err != nil {
		return orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost)
	}
	for _, o := range list {
		o["definition"] = quoted(string(o["definition"]))
	}
	return s.print(tableOf(same("vhost name pattern apply-to definition priority"), list))
}

func (k policyKind) set(ctx context.Context, s *session, args []string) error {
	priority, _ := strconv.Atoi(s.flag("priority")) // pflag has checked it
	s.say("Setting %s %q for pattern %q to \"%s\" with priority \"%d\" for vhost %q ...", or(k.prefix == "", k.noun, k.noun+" override"), args[0], args[1], args[2], priority, s.opts.vhost)
	definition, err := parsed("definition", args[2])
	if err != nil {
		return err
	}
	err = s.api.put(ctx, apiPath(k.path, s.opts.vhost, args[0]), map[string]any{
		"pattern": args[1], "definition": definition, "priority": priority, "apply-to": s.flag("apply-to"),
	})
	return orInvalid(orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost))
}

func (k policyKind) clear(ctx context.Context, s *session, args []string) error {
	s.say("Clearing %s %q on vhost %q ...", k.noun, args[0], s.opts.vhost)
	err := s.api.delete(ctx, apiPath(k.path, s.opts.vhost, args[0]))
	return orMissing(err, exitUnavailable, "Parameter does not exist: there is no %s %q in vhost '%s'", k.noun, args[0], s.opts.vhost)
}
