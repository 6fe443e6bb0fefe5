package management

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/leveretmq/leveret/auth"
)

func whoami(r *request) (reply, error) {
	return ok(object{{"name", r.user.Name}, {"tags", append([]string{}, r.user.Tags...)}, {"is_internal_user", true}})
}

func authSettings(*request) (reply, error) { return ok(object{{"oauth_enabled", false}}) }

func version(r *request) (reply, error) { return ok(r.s.cfg.CompatibleVersion) }

func extensions(*request) (reply, error) {
	return ok([]object{{{"javascript", "dispatcher.js"}}})
}

// maxLogin is the largest login form, in bytes: anybody may send one (RabbitMQ 4.0).
const maxLogin = 64_000

// loginForm handles the form of RabbitMQ's login page.
func loginForm(r *request) (reply, error) {
	raw, err := r.readBody(maxLogin)
	if errors.Is(err, errTooLarge) {
		err = &failure{http.StatusRequestEntityTooLarge, "bad_request", fmt.Sprintf("a login must not have more than %d bytes", maxLogin)}
	}
	if err != nil {
		return reply{}, err
	}
	r.http.Body = io.NopCloser(bytes.NewReader(raw))
	name, password := r.http.PostFormValue("username"), r.http.PostFormValue("password")
	if _, err := r.login(name, password); err != nil {
		return reply{}, err
	}
	http.SetCookie(r.w, &http.Cookie{
		Name: "auth", Value: base64.StdEncoding.EncodeToString([]byte(name + ":" + password)),
		Path: "/", SameSite: http.SameSiteStrictMode, Secure: r.http.TLS != nil,
	})
	return ok("ok")
}

// authAttempts has the counts of logins by protocol.
func authAttempts(r *request) (reply, error) {
	if r.arg("node") != r.s.cfg.Node {
		return reply{}, errNotFound
	}
	protocol, http := r.s.cfg.Auth.Attempts()
	row := func(name string, n auth.Attempts) object {
		return object{{"protocol", name}, {"auth_attempts", n.Succeeded + n.Failed},
			{"auth_attempts_failed", n.Failed}, {"auth_attempts_succeeded", n.Succeeded}}
	}
	return plain([]object{row("amqp091", protocol), row("http", http)})
}

// authAttemptsBySource would have the counts by address and user, which are not
// kept: as in RabbitMQ 4.0 unless it is told to.
func authAttemptsBySource(r *request) (reply, error) {
	if r.arg("node") != r.s.cfg.Node {
		return reply{}, errNotFound
	}
	return ok([]object{})
}

func resetAuthAttempts(r *request) (reply, error) {
	if r.arg("node") != r.s.cfg.Node {
		return reply{}, errNotFound
	}
	r.s.cfg.Auth.ResetAttempts()
	return noContent, nil
}

// settings shows the configuration in force. RabbitMQ 4.0 answers with Erlang terms.
func settings(r *request) (reply, error) {
	text := r.s.cfg.Settings
	if text == "" {
		text = "# what started this broker has not told its settings\n"
	}
	return reply{status: http.StatusOK, plain: text}, nil
}

func hashPassword(r *request) (reply, error) {
	return ok(object{{"ok", r.s.cfg.Auth.HashPassword(r.arg("password"))}})
}
