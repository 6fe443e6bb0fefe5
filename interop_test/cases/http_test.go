package cases_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// An httpAdmin uses RabbitMQ's HTTP API.
type httpAdmin struct{ base string }

// newHTTPAdmin finds the API: 10000 ports above AMQP unless it is given.
func newHTTPAdmin(amqpURL, api string) (*httpAdmin, error) {
	if api != "" {
		return &httpAdmin{strings.TrimSuffix(api, "/")}, nil
	}
	u, err := url.Parse(amqpURL)
	if err != nil {
		return nil, err
	}
	port := 5672
	if u.Port() != "" {
		if port, err = strconv.Atoi(u.Port()); err != nil {
			return nil, err
		}
	}
	return &httpAdmin{"http://" + u.User.String() + "@" + net.JoinHostPort(u.Hostname(), strconv.Itoa(port+10000))}, nil
}

// do sends a request; segments are escaped one by one.
func (a *httpAdmin) do(verb string, body any, segments ...string) error {
	path := "/api"
	for _, s := range segments {
		path += "/" + url.PathEscape(s)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(verb, a.base+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode >= 300 { // the text only explains
		return fmt.Errorf("%s %s: %s %s", verb, path, resp.Status, text)
	}
	return nil
}

func (a *httpAdmin) putVHost(name, defaultQueueType string) error {
	body := map[string]any{}
	if defaultQueueType != "" {
		body["default_queue_type"] = defaultQueueType
	}
	if err := a.do("PUT", body, "vhosts", name); err != nil {
		return err
	}
	return a.permit("guest", name, ".*", ".*", ".*")
}

func (a *httpAdmin) deleteVHost(name string) error { return a.do("DELETE", nil, "vhosts", name) }

func (a *httpAdmin) limitVHost(name, limit string, n int) error {
	return a.do("PUT", map[string]any{"value": n}, "vhost-limits", name, limit)
}

func (a *httpAdmin) putUser(name, password string, tags ...string) error {
	return a.do("PUT", map[string]any{"password": password, "tags": strings.Join(tags, ",")}, "users", name)
}

func (a *httpAdmin) deleteUser(name string) error { return a.do("DELETE", nil, "users", name) }

func (a *httpAdmin) limitUser(name, limit string, n int) error {
	return a.do("PUT", map[string]any{"value": n}, "user-limits", name, limit)
}

func (a *httpAdmin) permit(user, vhost, configure, write, read string) error {
	return a.do("PUT", map[string]any{"configure": configure, "write": write, "read": read}, "permissions", vhost, user)
}

func (a *httpAdmin) permitTopic(user, vhost, exchange, write, read string) error {
	return a.do("PUT", map[string]any{"exchange": exchange, "write": write, "read": read}, "topic-permissions", vhost, user)
}

func policiesPath(operator bool) string {
	if operator {
		return "operator-policies"
	}
	return "policies"
}

func (a *httpAdmin) putPolicy(vhost, name string, p policy) error {
	return a.do("PUT", map[string]any{"pattern": p.pattern, "apply-to": p.applyTo, "priority": p.priority, "definition": p.definition},
		policiesPath(p.operator), vhost, name)
}

func (a *httpAdmin) deletePolicy(vhost, name string, operator bool) error {
	return a.do("DELETE", nil, policiesPath(operator), vhost, name)
}
