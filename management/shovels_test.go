package management

import "testing"

func TestShovelsAreKeptAndNotRun(t *testing.T) {
	a := newAPI(t, nil)
	a.is("/shovels", `[]`)
	a.do("PUT", "/parameters/shovel/%2F/s", `{"value":{"src-uri":["amqp://u:p@host/%2f"],"src-queue":"q","dest-uri":"amqp://","dest-exchange":"x"}}`, 201)
	got := a.do("GET", "/shovels/%2F", "", 200).([]any)[0]
	has(t, got, J{"name": "s", "vhost": "/", "type": "dynamic", "state": "terminated", "src_uri": "amqp://host/%2f", "src_queue": "q",
		"dest_exchange": "x", "reason": "this broker keeps shovels but does not run them"})
	has(t, a.do("GET", "/shovels/vhost/%2F/s", "", 200), J{"component": "shovel", "name": "s"})
	a.do("DELETE", "/shovels/vhost/%2F/s", "", 204)
	a.do("GET", "/shovels/vhost/%2F/s", "", 404)
}

// Their status is for who monitors (RabbitMQ 4.0), and the parameter for policymakers.
func TestWhoSeesShovels(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/parameters/shovel/%2F/s", `{"value":{"src-uri":"amqp://","src-queue":"q","dest-uri":"amqp://","dest-queue":"r"}}`, 201)
	for tag, code := range map[string]int{"management": 401, "policymaker": 401, "monitoring": 200, "administrator": 200} {
		a.user(tag, tag)
		a.do("PUT", "/permissions/%2F/"+tag, `{"configure":".*","write":".*","read":".*"}`, 201)
		if w := a.request("GET", "/shovels/vhost/%2F/s", "", as(tag)); w.Code != code {
			t.Errorf("a shovel by %s = %d, want %d", tag, w.Code, code)
		}
	}
}

// What plug-ins that are not there would answer is not found (RabbitMQ 4.0).
func TestPathsOfOtherPlugins(t *testing.T) {
	a := newAPI(t, nil)
	for _, path := range []string{"/federation-links", "/federation-links/%2F", "/traces", "/traces/%2F", "/trace-files", "/trace-files/x",
		"/stream/connections", "/stream/connections/%2F", "/stream/publishers", "/stream/consumers"} {
		has(t, a.do("GET", path, "", 404), J{"error": "Object Not Found", "reason": "Not Found"})
	}
}

func TestFederation(t *testing.T) {
	a := newAPI(t, nil)
	has(t, a.do("PUT", "/parameters/federation-upstream/%2F/f", `{"value":{}}`, 400), J{"reason": "Validation failed\n\nKey \"uri\" not present\n"})
	a.do("PUT", "/parameters/federation-upstream/%2F/f", `{"value":{"uri":"amqp://x"}}`, 201)
}

func TestShovelsThatCannotBe(t *testing.T) {
	a := newAPI(t, nil)
	for value, reason := range map[string]string{
		`{}`: "Must specify 'src-exchange' or 'src-queue'\nKey \"dest-uri\" not found in s\nKey \"src-uri\" not found in s",
		`{"src-uri":"amqp://","dest-uri":"amqp://","src-queue":"a","src-exchange":"x"}`:                   "Cannot specify 'src-exchange' and 'src-queue'",
		`{"src-uri":"amqp://","dest-uri":"amqp://","src-queue":"a","dest-queue":"b","dest-exchange":"x"}`: "Cannot specify 'dest-exchange' and 'dest-queue'",
		`{"src-uri":1,"dest-uri":["amqp://"],"src-queue":"a"}`:                                            "src-uri should be list, actually was 1",
		`"x"`: "value must be an object",
	} {
		has(t, a.do("PUT", "/parameters/shovel/%2F/s", `{"value":`+value+`}`, 400), J{"reason": "Validation failed\n\n" + reason + "\n"})
	}
	a.do("PUT", "/parameters/shovel/%2F/s", `{"value":{"src-protocol":"amqp10","src-address":"a","src-uri":"amqp://","dest-uri":"amqp://"}}`, 201)
}
