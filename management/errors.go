package management

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
)

// A failure is an answer that is an error. The reason is always a string:
// clients decode it as one.
type failure struct {
	status       int
	kind, reason string
}

func (f *failure) Error() string { return fmt.Sprintf("%d %s: %s", f.status, f.kind, f.reason) }

// The failures that every path can have (RabbitMQ 4.0, which knows no 403).
var (
	errNotFound      = &failure{http.StatusNotFound, "Object Not Found", "Not Found"}
	errNoCredentials = &failure{status: http.StatusUnauthorized}
	errBadLogin      = &failure{http.StatusUnauthorized, "not_authorized", "Not_Authorized"}
	errNotYourObject = notAuthorised("User not authorised to access object")
	errNotJSON       = badRequest("not_json")
	errTwiceJSON     = badRequest("invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?")
	// errTooManyLogins goes beyond RabbitMQ.
	errTooManyLogins = &failure{http.StatusTooManyRequests, "too_many_requests",
		"too many failed logins of this user from this address; wait a minute and try again"}
	// errOtherSite goes beyond it, too.
	errOtherSite = &failure{http.StatusForbidden, "forbidden",
		"a page of another site may change nothing here; to let it, add its origin as management.cors.allow_origins.N"}
	// errNotDefinitions has no body in RabbitMQ.
	errNotDefinitions = &failure{http.StatusUnsupportedMediaType, "unsupported_media_type",
		"definitions are application/json or multipart/form-data; say so in the header Content-Type (curl: -H 'Content-Type: application/json')"}
)

func badRequest(format string, args ...any) *failure {
	return &failure{http.StatusBadRequest, "bad_request", fmt.Sprintf(format, args...)}
}

// missing makes a plain 404 say what is missing, as RabbitMQ does where a
// request has a body.
func missing(err error, reason string) error {
	if err == error(errNotFound) {
		return &failure{http.StatusNotFound, "not_found", reason}
	}
	return err
}

// notAuthorised is for a known user who may not.
func notAuthorised(reason string) *failure {
	return &failure{http.StatusUnauthorized, "not_authorised", reason}
}

// refused makes the refusal of a get or of the aliveness test say what was
// refused, as RabbitMQ does where the user has permissions in the vhost at all.
func (r *request) refused(err error) error {
	e, isProtocol := errors.AsType[*frames.Error](err)
	if !isProtocol || e.Code != frames.AccessRefused || !r.hasPermissions() {
		return err
	}
	return notAuthorised(e.ReplyText())
}

// hasPermissions says whether the user has permissions in the vhost of the path,
// be they for nothing.
func (r *request) hasPermissions() bool {
	for range r.s.cfg.Auth.Permissions(r.user.Name, r.vhost.Name()) {
		return true
	}
	return false
}

// failureOf turns the error of a layer below into an answer; nil is for what is
// no business of the client's.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	e, ok := errors.AsType[*frames.Error](err)
	if !ok {
		return nil
	}
	switch e.Code {
	case frames.NotFound:
		return &failure{http.StatusNotFound, "not_found", e.Text}
	case frames.AccessRefused:
		return notAuthorised("Access refused.")
	case frames.InternalError:
		return nil
	}
	if strings.HasPrefix(e.Text, "Validation failed") {
		return badRequest("%s\n", e.Text)
	}
	return badRequest("%s", e.Text)
}

// fail answers with an error.
func (r *request) fail(err error) {
	f := failureOf(err)
	if f == nil && errors.Is(err, context.Canceled) && r.http.Context().Err() != nil {
		return // the client has gone, and that is all that has failed
	}
	if f == nil {
		r.s.log.Error("a request failed, and its client got an internal error: if the disk is all right, report it with this line", zap.String("method", r.http.Method), zap.String("path", loggedPath(r.http.URL)), zap.Error(err))
		f = &failure{http.StatusInternalServerError, "internal_error", "the request failed; the broker's log has the reason"}
	}
	if f == errNoCredentials {
		r.w.Header().Set("Www-Authenticate", `Basic realm="RabbitMQ Management"`)
		r.w.WriteHeader(f.status)
		return
	}
	r.w.Header().Set("Content-Type", "application/json")
	r.send(f.status, appendJSON(nil, object{{"error", f.kind}, {"reason", f.reason}}))
}

// orNotFound makes any 404 of a layer below the plain one that reads give.
func orNotFound(err error) error {
	if e, ok := errors.AsType[*frames.Error](err); ok && e.Code == frames.NotFound {
		return errNotFound
	}
	return err
}
