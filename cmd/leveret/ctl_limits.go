package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
		{use: "clear_user_limits USER LIMIT", short: "Remove a limit of a user, as max-channels, or all of them: all", args: cobra.ExactArgs(2), run: clearUserLimits},
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
	if !s.on("global") && s.opts.formatter == "table" {
		return s.bareLimits(ctx, path, missingVHost(s.opts.vhost))
	}
	return s.limits(ctx, path, "vhost", missingVHost(s.opts.vhost))
}

// bareLimits prints the limits of one virtual host or user, and nothing but those
// (RabbitMQ 4.0).
func (s *session) bareLimits(ctx context.Context, path string, missing *exitError) error {
	var list []object
	err := s.api.get(ctx, path, &list)
	if isStatus(err, http.StatusNotFound) {
		return missing
	}
	for _, o := range list {
		s.printf("%s\n", o["value"])
	}
	return err
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
		return nil, exitf(exitUnavailable, `Could not parse JSON document: the limits are no JSON object: %s; they look like '{"max-connections": 100}'`, text)
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
	s.say("Setting vhost limits to \"%s\" for vhost %q ...", args[0], s.opts.vhost)
	return s.setLimits(ctx, apiPath("vhost-limits", s.opts.vhost), args[0], missingVHost(s.opts.vhost))
}

// clearVHostLimits takes it for an error that there are none (RabbitMQ 4.0).
func clearVHostLimits(ctx context.Context, s *session, _ []string) error {
	s.say("Clearing vhost %q limits ...", s.opts.vhost)
	path, none := apiPath("vhost-limits", s.opts.vhost), exitf(exitUnavailable, "Parameter does not exist: vhost '%s' has no limits", s.opts.vhost)
	var list []object
	if err := s.api.get(ctx, path, &list); err == nil && len(list) == 0 {
		return none
	}
	return s.clearLimits(ctx, path, none)
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
	if s.opts.formatter == "table" {
		return s.bareLimits(ctx, apiPath("user-limits", name), missingUser(name))
	}
	return s.limits(ctx, apiPath("user-limits", name), "user", missingUser(name))
}

func setUserLimits(ctx context.Context, s *session, args []string) error {
	s.say("Setting user limits to \"%s\" for user %q ...", args[1], args[0])
	if _, err := s.user(ctx, args[0]); err != nil {
		return orMissingUser(err, args[0])
	}
	return s.setLimits(ctx, apiPath("user-limits", args[0]), args[1], missingUser(args[0]))
}

func clearUserLimits(ctx context.Context, s *session, args []string) error {
	path := apiPath("user-limits", args[0])
	if args[1] != "all" {
		s.say("Clearing %q limit for user %q ...", args[1], args[0])
	} else {
		s.say("Clearing all limits for user %q ...", args[0])
		return s.clearLimits(ctx, path, missingUser(args[0]))
	}
	return orMissingUser(s.api.delete(ctx, path+apiPath(args[1])), args[0])
}
