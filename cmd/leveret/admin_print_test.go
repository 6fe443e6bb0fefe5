package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What the formats make of answers of the API is what rabbitmqadmin of RabbitMQ 4.0
// makes of them.
func TestAdminFormats(t *testing.T) {
	queues := `[{"arguments":{"x":{"y":1}},"durable":true,"name":"a","tags":["s","t"],"vhost":"/","z":[1,{"k":"a, b"}],"n":null,"type":"q\"é","rate":0.0}]`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{
			"/api/queues":                                    queues,
			"/api/queues?columns=durable,name":               `[{"durable":true,"name":"a"}]`,
			"/api/queues?columns=name,messages":              `[{"messages":0,"name":"a"}]`,
			"/api/queues?columns=arguments.x.y,none":         `[{"arguments":{"x":{"y":1}}}]`,
			"/api/users?sort=a%26b&sort_reverse=true":        `[]`,
			"/api/policies":                                  `[{"vhost":"/","name":"p","definition":{"max-length":5}}]`,
			"/api/overview":                                  `{"node":"n","a":{}}`,
			"/api/overview?columns=node":                     `{"node":"n"}`,
			"/api/queues/%2F?columns=name&sort_reverse=true": `[]`,
		}[r.URL.String()]
		if answer == "" {
			http.Error(w, r.URL.String(), http.StatusNotFound)
			return
		}
		fmt.Fprint(w, answer)
	}))
	defer s.Close()
	ask(t, s.URL)
	for _, tt := range []struct{ line, want string }{
		{"-f raw_json list queues", queues + "\n"},
		{"-f raw_json list queues durable name", `[{"durable":true,"name":"a"}]` + "\n"},
		{"-f raw_json list queues durable,name", `[{"durable":true,"name":"a"}]` + "\n"},
		{"-f raw_json show overview", `[{"node":"n","a":{}}]` + "\n"},
		{"-f raw_json -R -S a&b list users", "[]\n"},
		{"-f pretty_json show overview", "[\n  {\n    \"a\": {},\n    \"node\": \"n\"\n  }\n]\n"},
		{"-f pretty_json -d 2 show overview node", "[\n  {\n    \"node\": \"n\"\n  }\n]\n"},
		{"-f tsv list queues", "name\tmessages\na\t0\n"},
		{"-q -f tsv list queues", "a\t0\n"},
		{"-f tsv -d 1 list queues", "vhost\tname\ttype\tdurable\tn\trate\ttags\tz\n/\ta\tq\"é\tTrue\tNone\t0.0\ts t\t[1, {\"k\": \"a, b\"}]\n"},
		{"-f kvp list queues arguments.x.y none", "arguments.x.y=\"1\" none=\"\"\n"},
		{"-f kvp list policies", "vhost=\"/\" name=\"p\" definition=\"{\"max-length\": 5}\"\n"},
		{"-f bash -d 3 list queues", "a\n"},
		{"-f long show overview node", "\n" + strings.Repeat("-", 80) + "\n\nnode: n\n\n" + strings.Repeat("-", 80) + "\n\n"},
		{"-f bash -S a&b -R list users", "No items\n"},
		{"-q -f long -S a&b -R list users", ""},
		{"-V / -R list queues name", "No items\n"},
	} {
		code, out, errs := call(t, "", append([]string{"rabbitmqadmin"}, words(tt.line)...)...)
		if code != 0 || out != tt.want {
			t.Errorf("%s: exit %d, %s\n%q, want\n%q", tt.line, code, errs, out, tt.want)
		}
	}
}
