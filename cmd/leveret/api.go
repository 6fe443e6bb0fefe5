package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// An api is the HTTP API of a broker. All fields are immutable once the session is open.
type api struct {
	base           string  // without a slash at the end and without /api
	shown          string  // where the broker is, for people
	user, password string  // without a user there is no login, over the socket
	local          bool    // over the socket of a broker on this machine
	service        service // the package's, if nothing named a broker and it answers there
	guessed        bool    // it is at the usual address, as nothing names a broker and no socket answers
	changing       func()  // called before a request that changes something; nil is nothing to do
	http           *http.Client
}

// An apiError is an answer that is an error.
type apiError struct {
	status       int
	kind, reason string
}

func (e *apiError) Error() string { return fmt.Sprintf("%d %s", e.status, e.reason) }

// apiPath joins the parts of a path below /api; a part may have any bytes.
func apiPath(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(p))
	}
	return b.String()
}

// get decodes the answer to a GET into what into points to.
func (a *api) get(ctx context.Context, path string, into any) error {
	return a.do(ctx, http.MethodGet, path, nil, into)
}

func (a *api) put(ctx context.Context, path string, body any) error {
	return a.do(ctx, http.MethodPut, path, body, nil)
}

func (a *api) post(ctx context.Context, path string, body, into any) error {
	return a.do(ctx, http.MethodPost, path, body, into)
}

func (a *api) delete(ctx context.Context, path string) error {
	return a.do(ctx, http.MethodDelete, path, nil, nil)
}

// do makes one request. A body that is []byte is sent as it is, any other as
// JSON; nil is no body. So is the answer decoded, unless into is nil.
func (a *api) do(ctx context.Context, method, path string, body, into any) error {
	r, err := a.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	return a.send(r, into)
}

func (a *api) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	if a.changing != nil && method != http.MethodGet && !strings.HasSuffix(path, "/peek") { // which only looks
		a.changing()
	}
	raw, isRaw := body.([]byte)
	if !isRaw && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, a.base+"/api"+path, bytes.NewReader(raw))
	if err != nil {
		return nil, exitf(exitUsage, "the URL %q of the HTTP API is wrong: %v; it looks like http://127.0.0.1:15672", a.base, err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.user != "" {
		r.SetBasicAuth(a.user, a.password)
	}
	return r, nil
}

// send sends a request and reads the answer.
func (a *api) send(r *http.Request, into any) error {
	resp, err := a.http.Do(r)
	if err != nil {
		return a.unreachable(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return a.unreachable(err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return failure(resp, raw)
	}
	if into == nil {
		return nil
	}
	if b, wantsBytes := into.(*[]byte); wantsBytes {
		*b = raw
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return exitf(exitSoftware, "%s answers something else than the HTTP API would: %v; check --url (LEVERET_URL)", r.URL.Redacted(), err)
	}
	return nil
}

// failure reads an answer that is an error. Those of proxies are no JSON.
func failure(resp *http.Response, raw []byte) error {
	var answer struct{ Error, Reason string }
	e := &apiError{status: resp.StatusCode}
	if json.Unmarshal(raw, &answer) == nil {
		e.kind, e.reason = answer.Error, strings.TrimSpace(answer.Reason)
	}
	if e.reason == "" {
		e.reason = fmt.Sprintf("%s %s: %s", resp.Request.Method, resp.Request.URL.Path, resp.Status)
	}
	return e
}

// unreachable says that there is no answer.
func (a *api) unreachable(err error) error {
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return exitf(exitTimeout, "no answer from %s in time; give it longer with --timeout, in seconds", a.shown)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // without the method and the URL
	}
	if e, ok := errors.AsType[*exitError](err); ok { // it says it already
		return e
	}
	return exitf(exitUnavailable, "cannot reach the HTTP API at %s: %v; start the broker, or name the address of another with --url (LEVERET_URL)", a.shown, err)
}
