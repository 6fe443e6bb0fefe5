package management

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/leveretmq/leveret/vhost"
)

// Shovels and federation upstreams are parameters that are kept, so that
// definitions can be imported and exported, but nothing runs them. Their lists
// say so.

const (
	shovelComponent   = "shovel"
	upstreamComponent = "federation-upstream"
)

// notRun is the reason why a shovel is terminated.
const notRun = "this broker keeps shovels but does not run them"

// shovels handles GET /shovels and /shovels/V.
func shovels(r *request) (reply, error) {
	list := []object{}
	for _, v := range r.vhosts() {
		for _, p := range parametersOf(v) {
			if p.Component == shovelComponent {
				list = append(list, r.s.shovelObject(v, p))
			}
		}
	}
	return plain(list)
}

func (s *Server) shovelObject(v *vhost.VHost, p vhost.Parameter) object {
	o := object{
		{"node", s.cfg.Node}, {"timestamp", time.Now().UTC().Format(time.DateTime)}, {"name", p.Name}, {"vhost", v.Name()},
		{"type", "dynamic"}, {"state", "terminated"}, {"reason", notRun},
	}
	var d body
	if json.Unmarshal(p.Value, &d) != nil {
		return o // it is no object; it was kept all the same
	}
	for _, end := range []string{"src", "dest"} {
		o.add(end+"_uri", withoutPassword(d[end+"-uri"]))
		for _, name := range []string{"protocol", "queue", "exchange", "exchange-key"} {
			if s, isText := d[end+"-"+name].(string); isText {
				o.add(end+"_"+name, s)
			}
		}
	}
	return o
}

// withoutPassword shows a URI, the first of a list, without user and password.
func withoutPassword(v any) string {
	if list, isList := v.([]any); isList && len(list) > 0 {
		v = list[0]
	}
	text, _ := v.(string)
	u, err := url.Parse(text)
	if err != nil {
		return "" // better nothing than a password
	}
	u.User = nil
	return u.String()
}

// oneShovel handles GET /shovels/vhost/V/N: the parameter (RabbitMQ 4.0).
func oneShovel(r *request) (reply, error) {
	for _, p := range parametersOf(r.vhost) {
		if p.Component == shovelComponent && p.Name == r.arg("name") {
			return ok(parameterObject(r.vhost.Name(), p))
		}
	}
	return reply{}, errNotFound
}

func deleteShovel(r *request) (reply, error) {
	return done(orNotFound(r.vhost.ClearParameter(r.actor(), shovelComponent, r.arg("name"))))
}

// checkPlugin refuses a shovel or an upstream that RabbitMQ 4.0 would refuse.
func checkPlugin(component, name string, value any) error {
	d, isObject := value.(map[string]any)
	switch {
	case component == upstreamComponent && (!isObject || d["uri"] == nil):
		return badRequest("Validation failed\n\nKey \"uri\" not present\n")
	case component == shovelComponent && !isObject:
		return badRequest("Validation failed\n\nvalue must be an object\n")
	case component == shovelComponent:
		return checkShovel(name, d)
	}
	return nil
}

// checkShovel says all that is wrong with the ends of a shovel.
func checkShovel(name string, d map[string]any) error {
	var wrong []string
	for _, end := range []string{"src", "dest"} {
		queue, exchange := d[end+"-queue"] != nil, d[end+"-exchange"] != nil
		older := d[end+"-protocol"] == nil || d[end+"-protocol"] == "amqp091"
		if queue && exchange {
			wrong = append(wrong, fmt.Sprintf("Cannot specify '%[1]s-exchange' and '%[1]s-queue'", end))
		}
		if end == "src" && older && !queue && !exchange {
			wrong = append(wrong, "Must specify 'src-exchange' or 'src-queue'")
		}
	}
	for _, key := range []string{"dest-uri", "src-uri"} {
		switch v := d[key].(type) {
		case nil:
			wrong = append(wrong, fmt.Sprintf("Key %q not found in %s", key, name))
		case string, []any:
		default:
			wrong = append(wrong, fmt.Sprintf("%s should be list, actually was %v", key, v))
		}
	}
	if wrong == nil {
		return nil
	}
	return badRequest("Validation failed\n\n%s\n", strings.Join(wrong, "\n"))
}
