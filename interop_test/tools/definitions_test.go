//go:build tools

package tools_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

type object = map[string]any

// topology has one of everything that definitions can hold.
func topology() object {
	queue := func(vhost, name string, durable bool, args object) object {
		return object{"vhost": vhost, "name": name, "durable": durable, "auto_delete": false, "arguments": args}
	}
	exchange := func(name, kind string, args object) object {
		return object{"vhost": "shop", "name": name, "type": kind, "durable": true, "auto_delete": false, "internal": name == "inner", "arguments": args}
	}
	bind := func(source, kind, destination, key string, args object) object {
		return object{"vhost": "shop", "source": source, "destination": destination, "destination_type": kind, "routing_key": key, "arguments": args}
	}
	return object{
		"users": []object{
			{"name": "alice", "password": "s3cret", "tags": "administrator"},
			{"name": "bob", "password_hash": "", "tags": "monitoring,policymaker"},
		},
		"vhosts": []object{{"name": "shop"}, {"name": "a/b c"}},
		"permissions": []object{
			{"user": "alice", "vhost": "shop", "configure": ".*", "write": ".*", "read": ".*"},
			{"user": "bob", "vhost": "a/b c", "configure": "^$", "write": "^(x|y)$", "read": ".*"},
		},
		"topic_permissions": []object{{"user": "bob", "vhost": "shop", "exchange": "amq.topic", "write": "^a\\.", "read": ".*"}},
		"parameters":        []object{{"vhost": "shop", "component": "vhost-limits", "name": "limits", "value": object{"max-queues": 100, "max-connections": 50}}},
		"global_parameters": []object{{"name": "site", "value": object{"region": "north", "tier": 2}}},
		"policies": []object{
			{"vhost": "shop", "name": "ttl", "pattern": "^orders", "apply-to": "queues", "priority": 3, "definition": object{"message-ttl": 60000, "max-length": 1000, "overflow": "reject-publish"}},
			{"vhost": "shop", "name": "alternate", "pattern": "^events$", "apply-to": "exchanges", "priority": 0, "definition": object{"alternate-exchange": "inner"}},
			{"vhost": "a/b c", "name": "dead ü", "pattern": ".*", "apply-to": "all", "priority": 0, "definition": object{"dead-letter-exchange": "amq.direct", "dead-letter-routing-key": "x"}},
		},
		"queues": []object{
			queue("shop", "orders", true, object{"x-max-priority": 5, "x-dead-letter-exchange": "inner"}),
			queue("shop", "orders.eu", true, object{"x-queue-type": "quorum", "x-delivery-limit": 7}),
			queue("shop", "log", true, object{"x-queue-type": "stream", "x-max-age": "7D", "x-max-length-bytes": 1000000}),
			queue("shop", "lazy", true, object{"x-queue-mode": "lazy", "x-expires": 3600000}),
			queue("a/b c", "ünïcode / name", true, object{}),
		},
		"exchanges": []object{
			exchange("events", "topic", object{}),
			exchange("inner", "fanout", object{}),
			exchange("match", "headers", object{"alternate-exchange": "inner"}),
		},
		"bindings": []object{
			bind("events", "queue", "orders", "order.*", object{}),
			bind("events", "exchange", "inner", "#", object{}),
			bind("match", "queue", "lazy", "", object{"x-match": "any", "kind": "a", "n": 1}),
			bind("inner", "queue", "log", "", object{}),
		},
	}
}

// ownNames are in definitions that every broker has of its own.
var ownNames = []string{`"name":"cluster_name"`, `"name":"internal_cluster_id"`, `"name":"cluster_tags"`, `"name":"guest"`}

// normalized makes definitions comparable: what names the broker is left out, lists
// are sorted by their JSON.
func normalized(t *testing.T, raw []byte) map[string][]string {
	t.Helper()
	var all object
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	sections := make(map[string][]string)
	for name, value := range all {
		list, ok := value.([]any)
		if !ok {
			continue // rabbit_version and the like
		}
		lines := []string{}
		for _, item := range list {
			if limits, isList := item.(object)["value"].([]any); isList && len(limits) == 0 {
				continue // limits that were cleared
			}
			b, err := json.Marshal(withoutDefaults(item.(object))) // maps come out sorted
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(ownNames, func(own string) bool { return strings.Contains(string(b), own) }) {
				lines = append(lines, string(b))
			}
		}
		slices.Sort(lines)
		sections[name] = lines
	}
	return sections
}

// withoutDefaults leaves out what RabbitMQ adds in some versions and not in others.
func withoutDefaults(item object) object {
	item = maps.Clone(item)
	if limits, ok := item["limits"].([]any); ok && len(limits) == 0 {
		delete(item, "limits")
	}
	if limits, ok := item["limits"].(object); ok && len(limits) == 0 {
		delete(item, "limits")
	}
	if _, isUser := item["password_hash"]; !isUser {
		for _, key := range []string{"metadata", "description", "tags", "default_queue_type"} {
			delete(item, key)
		}
	}
	if args, ok := item["arguments"].(object); ok && args["x-queue-type"] == "classic" {
		args = maps.Clone(args)
		delete(args, "x-queue-type")
		item["arguments"] = args
	}
	return item
}

// withoutVHost is for the definitions of one vhost: RabbitMQ 3.10 names it in some of
// them, 4.0 does not.
func withoutVHost(sections map[string][]string) map[string][]string {
	for name, lines := range sections {
		for i, line := range lines {
			before, after, found := strings.Cut(line, `,"vhost":"`)
			if found {
				_, after, _ = strings.Cut(after, `"`)
				lines[i] = before + after
			}
		}
		sections[name] = lines
	}
	return sections
}

func compare(t *testing.T, got, want map[string][]string) {
	t.Helper()
	for name, lines := range want {
		for _, line := range lines {
			if !slices.Contains(got[name], line) {
				t.Errorf("%s: missing %s", name, line)
			}
		}
		for _, line := range got[name] {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: too much: %s", name, line)
			}
		}
	}
}

// TestDefinitionsRoundTrip takes what a real RabbitMQ exports, imports it here,
// exports it, and has RabbitMQ import that again.
func TestDefinitionsRoundTrip(t *testing.T) {
	rabbit, ours := apiAt(t, "RABBITMQ_API"), apiAt(t, "API_URL")
	rabbit.do("POST", "definitions", topology(), 204)
	rabbit.do("PUT", "vhost-limits/a%2Fb%20c/max-queues", object{"value": 9}, 204)
	rabbit.do("DELETE", "vhost-limits/a%2Fb%20c/max-queues", nil, 204) // which leaves a trace
	exported := rabbit.do("GET", "definitions", nil, 200)
	want := normalized(t, exported)
	for _, section := range []string{"users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues", "exchanges", "bindings"} {
		if len(want[section]) == 0 {
			t.Errorf("RabbitMQ exported no %s: %s", section, exported)
		}
	}
	ours.do("POST", "definitions", json.RawMessage(exported), 204)
	back := ours.do("GET", "definitions", nil, 200)
	compare(t, normalized(t, back), want)

	for _, vhost := range []string{"shop", "a%2Fb%20c"} {
		wantOf, gotOf := rabbit.do("GET", "definitions/"+vhost, nil, 200), ours.do("GET", "definitions/"+vhost, nil, 200)
		compare(t, withoutVHost(normalized(t, gotOf)), withoutVHost(normalized(t, wantOf)))
	}

	rabbit.do("DELETE", "vhosts/shop", nil, 204)
	rabbit.do("DELETE", "vhosts/a%2Fb%20c", nil, 204)
	rabbit.do("POST", "definitions", json.RawMessage(back), 204)
	compare(t, normalized(t, rabbit.do("GET", "definitions", nil, 200)), want)

	ours.as("alice", "s3cret", "GET", "whoami", nil, 200)
	ours.as("alice", "wrong", "GET", "whoami", nil, 401)
}
