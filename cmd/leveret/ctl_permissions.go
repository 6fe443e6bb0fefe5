package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func permissionCommands() []command {
	global := func(f *pflag.FlagSet) { f.Bool("global", false, "in all virtual hosts") }
	return []command{
		{use: "list_permissions", short: "List the permissions in a virtual host", args: cobra.NoArgs, run: listPermissions, flags: global},
		{use: "list_user_permissions USER", short: "List the permissions of a user", args: cobra.ExactArgs(1), run: listUserPermissions},
		{use: "set_permissions USER CONFIGURE WRITE READ", short: "Let a user configure, write and read what matches the regular expressions", args: cobra.ExactArgs(4), run: setPermissions},
		{use: "clear_permissions USER", short: "Take a user's permissions in a virtual host", args: cobra.ExactArgs(1), run: clearPermissions},
		{use: "list_topic_permissions", short: "List the topic permissions in a virtual host", args: cobra.NoArgs, run: listTopicPermissions},
		{use: "list_user_topic_permissions USER", short: "List the topic permissions of a user", args: cobra.ExactArgs(1), run: listUserTopicPermissions},
		{use: "set_topic_permissions USER EXCHANGE WRITE READ", short: "Let a user publish and bind with routing keys that match", args: cobra.ExactArgs(4), run: setTopicPermissions},
		{use: "clear_topic_permissions USER [EXCHANGE]", short: "Take a user's topic permissions in a virtual host", args: cobra.RangeArgs(1, 2), run: clearTopicPermissions},
	}
}

// listOf prints the objects at a path; a 404 becomes the error missing.
func (s *session) listOf(ctx context.Context, path, columns string, missing *exitError) error {
	var list []object
	err := s.api.get(ctx, path, &list)
	if isStatus(err, http.StatusNotFound) && missing != nil {
		return missing
	}
	if err != nil {
		return err
	}
	return s.print(tableOf(same(columns), list))
}

func missingVHost(name string) *exitError {
	return exitf(exitData, "Virtual host '%s' does not exist", name)
}

// missingUser is of the commands that list a user's permissions or are about its limits
// or clear its password: RabbitMQ 4.0 has another exit code there than where it changes
// the user, see noSuchUser.
func missingUser(name string) *exitError {
	return exitf(exitUnavailable, "User %q does not exist", name)
}

func listPermissions(ctx context.Context, s *session, _ []string) error {
	if s.on("global") {
		s.say("Listing permissions ...")
		return s.listOf(ctx, apiPath("permissions"), "vhost user configure write read", nil)
	}
	s.say("Listing permissions for vhost %q ...", s.opts.vhost)
	return s.listOf(ctx, apiPath("vhosts", s.opts.vhost, "permissions"), "user configure write read", missingVHost(s.opts.vhost))
}

func listUserPermissions(ctx context.Context, s *session, args []string) error {
	s.say("Listing permissions for user %q ...", args[0])
	return s.listOf(ctx, apiPath("users", args[0], "permissions"), "vhost configure write read", missingUser(args[0]))
}

// vhostOrUser finds out which of the two is missing after a call has failed.
func (s *session) vhostOrUser(ctx context.Context, user string, err error) error {
	if !isStatus(err, http.StatusNotFound) && !isStatus(err, http.StatusBadRequest) {
		return err
	}
	if _, missing := s.user(ctx, user); missing != nil {
		return missing
	}
	if isStatus(s.api.get(ctx, apiPath("vhosts", s.opts.vhost), nil), http.StatusNotFound) {
		return missingVHost(s.opts.vhost)
	}
	return err
}

func setPermissions(ctx context.Context, s *session, args []string) error {
	s.say("Setting permissions for user %q in vhost %q ...", args[0], s.opts.vhost)
	err := s.api.put(ctx, apiPath("permissions", s.opts.vhost, args[0]),
		map[string]string{"configure": args[1], "write": args[2], "read": args[3]})
	return unavailable(s.vhostOrUser(ctx, args[0], err))
}

// unavailable gives what is wrong with permissions RabbitMQ 4.0's exit code for it:
// there, only a missing user has one of its own.
func unavailable(err error) error {
	e, ok := errors.AsType[*exitError](err)
	if ok && e.code == exitData {
		return exitf(exitUnavailable, "%s", e.text)
	}
	return orInvalid(err)
}

func clearPermissions(ctx context.Context, s *session, args []string) error {
	s.say("Clearing permissions for user %q in vhost %q ...", args[0], s.opts.vhost)
	return s.cleared(ctx, args[0], apiPath("permissions", s.opts.vhost, args[0]))
}

// cleared deletes a user's permissions. It is no error that there are none, nor
// that there is no such user or no such vhost (RabbitMQ 4.0).
func (s *session) cleared(ctx context.Context, user, path string) error {
	err := s.api.delete(ctx, path)
	found := s.vhostOrUser(ctx, user, err)
	if e, ok := errors.AsType[*exitError](found); ok && (e.code == exitNoUser || e.code == exitData) || isStatus(found, http.StatusNotFound) {
		return nil
	}
	return found
}

func listTopicPermissions(ctx context.Context, s *session, _ []string) error {
	s.say("Listing topic permissions for vhost %q ...", s.opts.vhost)
	return s.listOf(ctx, apiPath("vhosts", s.opts.vhost, "topic-permissions"), "user exchange write read", missingVHost(s.opts.vhost))
}

func listUserTopicPermissions(ctx context.Context, s *session, args []string) error {
	s.say("Listing topic permissions for user %q ...", args[0])
	return s.listOf(ctx, apiPath("users", args[0], "topic-permissions"), "vhost exchange write read", missingUser(args[0]))
}

func setTopicPermissions(ctx context.Context, s *session, args []string) error {
	s.say("Setting topic permissions on %q for user %q in vhost %q ...", args[1], args[0], s.opts.vhost)
	err := s.api.put(ctx, apiPath("topic-permissions", s.opts.vhost, args[0]),
		map[string]string{"exchange": args[1], "write": args[2], "read": args[3]})
	return unavailable(s.vhostOrUser(ctx, args[0], err))
}

func clearTopicPermissions(ctx context.Context, s *session, args []string) error {
	s.say("Clearing topic permissions for user %q in vhost %q ...", args[0], s.opts.vhost)
	return s.cleared(ctx, args[0], apiPath(append([]string{"topic-permissions", s.opts.vhost}, args...)...))
}
