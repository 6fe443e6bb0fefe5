package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// An API is the HTTP API of a broker. All fields are immutable.
type API struct {
	Base           string       // as in http://host:15672, without /api
	User, Password string       // "" is no login, as over a socket
	Client         *http.Client // nil is the usual one
}

// An apiError is an answer that is an error.
type apiError struct {
	status int
	reason string
}

func (e *apiError) Error() string { return fmt.Sprintf("%s (HTTP %d)", e.reason, e.status) }

// An unreachableError says that there is no answer.
type unreachableError struct {
	base string
	err  error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("cannot reach the HTTP API at %s: %v", e.base, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// advised adds what to do about an HTTP API that gives no answer, or none to this
// login. The option names the address of that API.
func advised(err error, option string) error {
	_, unreachable := errors.AsType[*unreachableError](err)
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case unreachable && option == sourceOption:
		return fmt.Errorf("%w; RabbitMQ has one with its management plug-in (rabbitmq-plugins enable rabbitmq_management); name its address with %s if it is elsewhere", err, option)
	case unreachable:
		return fmt.Errorf("%w; start the broker, or name the address of its HTTP API with %s", err, option)
	case hasStatus(err, http.StatusUnauthorized) || hasStatus(err, http.StatusForbidden):
		return fmt.Errorf("%w; the login in the URI has to be right, and that of an administrator", err)
	}
	return err
}

// The options that name the addresses of the HTTP APIs.
const (
	sourceOption = "--management"
	targetOption = "--to-management"
)

func hasStatus(err error, status int) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.status == status
}

// apiPath joins the parts of a path below /api; a part may have any bytes.
func apiPath(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// do makes a request with a body of JSON, if it is not nil, and decodes the
// answer, if into is not nil.
func (a *API) do(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.Base+"/api"+path, content)
	if err != nil {
		return fmt.Errorf("the address %q of the HTTP API is wrong: %w; it looks like http://host:15672", a.Base, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.User != "" {
		r.SetBasicAuth(a.User, a.Password)
	}
	client := a.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the method and the URL
		}
		return &unreachableError{a.Base, err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer of the HTTP API at %s: %w", a.Base, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return answeredError(resp.StatusCode, raw)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s answers something else than the HTTP API would: %w; check the address", a.Base, err)
	}
	return nil
}

func answeredError(status int, raw []byte) error {
	var answer struct{ Reason any }
	e := &apiError{status: status, reason: http.StatusText(status)}
	if json.Unmarshal(raw, &answer) == nil && answer.Reason != nil {
		e.reason = strings.TrimSpace(fmt.Sprint(answer.Reason))
	}
	return e
}
