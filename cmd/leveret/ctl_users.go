package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func userCommands() []command {
	return []command{
		{use: "list_users", short: "List the users and their tags", args: cobra.NoArgs, run: listUsers},
		{use: "add_user USER [PASSWORD]", short: "Add a user; without an argument the password is read from standard input", args: cobra.RangeArgs(1, 2), run: addUser,
			flags: func(f *pflag.FlagSet) {
				f.Bool("pre-hashed-password", false, "the password is a hash, as hash_password prints and definitions have it")
			}},
		{use: "delete_user USER", short: "Delete a user", args: cobra.ExactArgs(1), run: deleteUser},
		{use: "change_password USER [PASSWORD]", short: "Give a user another password", args: cobra.RangeArgs(1, 2), run: changePassword},
		{use: "clear_password USER", short: "Take a user's password, so that it cannot log in with one", args: cobra.ExactArgs(1), run: clearPassword},
		{use: "authenticate_user USER [PASSWORD]", short: "Check a user's password", args: cobra.RangeArgs(1, 2), run: authenticateUser},
		{use: "set_user_tags USER [TAG...]", short: "Replace a user's tags: administrator, monitoring, policymaker, management or others", args: cobra.MinimumNArgs(1), run: setUserTags},
		{use: "hash_password [PASSWORD]", short: "Print the hash that definitions have of a password", args: cobra.MaximumNArgs(1), run: hashPassword},
	}
}

func listUsers(ctx context.Context, s *session, _ []string) error {
	s.say("Listing users ...")
	var users []object
	if err := s.api.get(ctx, apiPath("users"), &users); err != nil {
		return err
	}
	return s.print(tableOf([]column{{"user", "name"}, {"tags", "tags"}}, users))
}

func noSuchUser(err error, name string) error {
	return orMissing(err, exitNoUser, "User %q does not exist", name)
}

// orMissingUser is noSuchUser with the exit code of missingUser.
func orMissingUser(err error, name string) error {
	e, ok := errors.AsType[*exitError](err)
	if isStatus(err, http.StatusNotFound) || ok && e.code == exitNoUser {
		return missingUser(name)
	}
	return err
}

// A userBody is a user as the API takes it. What is left out is taken away.
type userBody struct {
	Password  string   `json:"password,omitempty"`
	Hash      string   `json:"password_hash,omitempty"`
	Algorithm string   `json:"hashing_algorithm,omitempty"`
	Tags      []string `json:"tags"`
}

// user is a user as it is.
func (s *session) user(ctx context.Context, name string) (userBody, error) {
	var u userBody
	err := s.api.get(ctx, apiPath("users", name), &u)
	return u, noSuchUser(err, name)
}

// shortestHash is a salt and an MD5, in bytes.
const shortestHash = 4 + 16

func addUser(ctx context.Context, s *session, args []string) error {
	name := args[0]
	s.say("Adding user %q ...", name)
	err := s.api.get(ctx, apiPath("users", name), nil)
	if err == nil {
		return exitf(exitSoftware, "User %q already exists", name)
	}
	if !isStatus(err, http.StatusNotFound) {
		return err
	}
	password, err := s.secret(args, 1)
	if err != nil {
		return err
	}
	u := userBody{Password: password, Tags: []string{}}
	if s.on("pre-hashed-password") {
		if raw, err := base64.StdEncoding.DecodeString(password); err != nil || len(raw) < shortestHash {
			return exitf(exitData, "that is no hash of a password: `hash_password` prints one")
		}
		u.Password, u.Hash = "", password
	}
	if err := s.api.put(ctx, apiPath("users", name), u); err != nil {
		return err
	}
	s.say("Done. Don't forget to grant the user permissions to some virtual hosts! See '%s help set_permissions' to learn more.", s.cmd.Root().Name())
	return nil
}

// deleteUser is content if there is no such user (RabbitMQ 4.0).
func deleteUser(ctx context.Context, s *session, args []string) error {
	s.say("Deleting user %q ...", args[0])
	err := s.api.delete(ctx, apiPath("users", args[0]))
	if isStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func changePassword(ctx context.Context, s *session, args []string) error {
	s.say("Changing password for user %q ...", args[0])
	u, err := s.user(ctx, args[0])
	if err != nil {
		return err
	}
	password, err := s.secret(args, 1)
	if e, ok := errors.AsType[*exitError](err); ok { // RabbitMQ 4.0: exit code
		return exitf(exitSoftware, "%s", e.text)
	}
	if err != nil {
		return err
	}
	return s.api.put(ctx, apiPath("users", args[0]), userBody{Password: password, Tags: u.Tags})
}

func clearPassword(ctx context.Context, s *session, args []string) error {
	s.say("Clearing password for user %q ...", args[0])
	u, err := s.user(ctx, args[0])
	if err != nil {
		return orMissingUser(err, args[0])
	}
	return s.api.do(ctx, http.MethodPut, apiPath("users", args[0]), map[string]any{"password_hash": "", "tags": u.Tags}, nil)
}

func setUserTags(ctx context.Context, s *session, args []string) error {
	s.say("Setting tags for user %q to [%s] ...", args[0], strings.Join(args[1:], ", "))
	u, err := s.user(ctx, args[0])
	if err != nil {
		return err
	}
	u.Tags = args[1:]
	return s.api.put(ctx, apiPath("users", args[0]), u)
}

// authenticateUser asks the API as the user. One without tags may not ask
// anything, but is told so only after its password was found to be right.
func authenticateUser(ctx context.Context, s *session, args []string) error {
	password, err := s.secret(args, 1)
	if err != nil {
		return err
	}
	s.say("Authenticating user %q ...", args[0])
	as := *s.api
	as.user, as.password = args[0], password
	err = as.get(ctx, apiPath("whoami"), nil)
	e, refused := errors.AsType[*apiError](err)
	if refused && e.status == http.StatusUnauthorized && e.kind != "not_authorised" {
		return exitf(exitData, "failed to authenticate user %q\nuser '%s' - invalid credentials", args[0], args[0])
	}
	if err != nil && !(refused && e.status == http.StatusUnauthorized) {
		return err
	}
	return s.result("Success")
}

func hashPassword(ctx context.Context, s *session, args []string) error {
	password, err := s.secret(args, 0)
	if err != nil {
		return err
	}
	if password == "" {
		return exitf(exitData, "Bad argument: password cannot be an empty string")
	}
	s.say("Will hash password with the broker's algorithm")
	var answer struct{ OK json.RawMessage }
	if err := s.api.get(ctx, apiPath("auth", "hash_password", password), &answer); err != nil {
		return err
	}
	return s.result("%s", cellText(answer.OK))
}
