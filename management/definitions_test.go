package management

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

// fill makes one of everything in a vhost.
func (a *api) fill(vhost string) {
	a.do("PUT", "/vhosts/"+vhost, `{"description":"d","tags":"a"}`, 201)
	a.do("PUT", "/queues/"+vhost+"/q", `{"durable":true,"arguments":{"x-max-length":7}}`, 201)
	a.do("PUT", "/queues/"+vhost+"/passing", `{"auto_delete":true}`, 201)
	a.do("PUT", "/exchanges/"+vhost+"/x", `{"type":"topic","durable":true,"arguments":{"alternate-exchange":"amq.fanout"}}`, 201)
	a.do("POST", "/bindings/"+vhost+"/e/x/q/q", `{"routing_key":"a.#","arguments":{"n":1}}`, 201)
	a.do("POST", "/bindings/"+vhost+"/e/x/e/amq.fanout", `{}`, 201)
	a.do("PUT", "/policies/"+vhost+"/p", `{"pattern":"^q","definition":{"message-ttl":60000},"apply-to":"queues","priority":4}`, 201)
	a.do("PUT", "/operator-policies/"+vhost+"/o", `{"pattern":"","definition":{"max-length":9}}`, 201)
	a.do("PUT", "/vhost-limits/"+vhost+"/max-queues", `{"value":10}`, 204)
	a.do("PUT", "/parameters/shovel/"+vhost+"/s", `{"value":{"src-uri":"amqp://","src-queue":"a","dest-uri":"amqp://"}}`, 201)
}

func TestDefinitionsRoundTrip(t *testing.T) {
	from, to := newAPI(t, nil), newAPI(t, nil)
	from.fill("v")
	from.user("u", "management")
	from.do("PUT", "/permissions/v/u", `{"configure":"^a","write":"","read":".*"}`, 201)
	from.do("PUT", "/topic-permissions/v/u", `{"exchange":"x","write":"^a","read":"^b"}`, 201)
	from.do("PUT", "/user-limits/u/max-channels", `{"value":3}`, 204)
	from.do("PUT", "/global-parameters/g", `{"value":[1]}`, 201)
	exported := from.request("GET", "/definitions", "", nil).Body.String()
	for range 2 { // again changes nothing
		to.do("POST", "/definitions", exported, 204)
		var want, got any
		if err := json.Unmarshal([]byte(exported), &want); err != nil {
			t.Fatal(err)
		}
		got = to.do("GET", "/definitions", "", 200)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("imported %v\nwant %v", got, want)
		}
	}
	if w := to.request("GET", "/whoami", "", as("u")); w.Code != 200 {
		t.Errorf("login of an imported user: %d", w.Code)
	}
}

// A headers binding tells integers from doubles.
func TestDefinitionsKeepTypesOfNumbers(t *testing.T) {
	from, to := newAPI(t, nil), newAPI(t, nil)
	from.do("PUT", "/queues/%2F/q", "", 201)
	from.do("POST", "/bindings/%2F/e/amq.headers/q/q", `{"arguments":{"f":3.0,"l":[1e20,7],"n":9007199254740993}}`, 201)
	to.do("POST", "/definitions", from.request("GET", "/definitions", "", nil).Body.String(), 204)
	v, _ := to.vhosts.Get("/")
	want := frames.Table{{Name: "f", Value: 3.0}, {Name: "l", Value: []any{1e20, int64(7)}}, {Name: "n", Value: int64(9007199254740993)}}
	for b := range v.Bindings() {
		if !reflect.DeepEqual(b.Arguments, want) {
			t.Errorf("imported %#v\nwant %#v", b.Arguments, want)
		}
		return
	}
	t.Error("the binding is not there")
}

// Clients may bind so to a headers exchange, for messages that have the field at all.
func TestDefinitionsWithAVoidArgument(t *testing.T) {
	from, to := newAPI(t, nil), newAPI(t, nil)
	from.do("PUT", "/queues/%2F/q", "", 201)
	from.do("POST", "/bindings/%2F/e/amq.headers/q/q", `{"arguments":{"x":null}}`, 400)
	v, _ := from.vhosts.Get("/")
	if err := v.BindQueue(vhost.System, "q", "amq.headers", "", frames.Table{{Name: "x", Value: nil}}); err != nil {
		t.Fatal(err)
	}
	exported := from.do("GET", "/definitions", "", 200)
	raw, err := json.Marshal(exported)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again changes nothing
		to.do("POST", "/definitions", string(raw), 204)
		if got := to.do("GET", "/definitions", "", 200); !reflect.DeepEqual(got, exported) {
			t.Errorf("imported %v\nwant %v", got, exported)
		}
	}
}

func TestDefinitionsOrderOfMembers(t *testing.T) {
	raw := newAPI(t, nil).request("GET", "/definitions", "", nil).Body.Bytes()
	var got []string
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.Token() // {
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, name.(string))
		var skipped any
		if err := dec.Decode(&skipped); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"rabbit_version", "rabbitmq_version", "product_name", "product_version", "rabbitmq_definition_format", "original_cluster_name",
		"explanation", "users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues", "exchanges", "bindings"}
	if !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
}

func TestDefinitionsOfOneVHostGoIntoAnother(t *testing.T) {
	a := newAPI(t, nil)
	a.fill("v")
	a.do("PUT", "/vhosts/w", "", 201)
	w := a.request("GET", "/definitions/v?download=v.json", "", nil)
	if got := w.Header().Get("Content-Disposition"); got != "attachment; filename=v.json" {
		t.Errorf("Content-Disposition: %s", got)
	}
	a.do("POST", "/definitions/w", w.Body.String(), 204)
	has(t, a.do("GET", "/queues/w/q", "", 200), J{"durable": true, "arguments": J{"x-max-length": 7.0, "x-queue-type": "classic"}, "policy": "p", "operator_policy": "o"})
	has(t, a.do("GET", "/bindings/w/e/x/q/q", "", 200).([]any)[0], J{"routing_key": "a.#", "arguments": J{"n": 1.0}})
	a.is("/vhost-limits/w", `[{"vhost":"w","value":{"max-queues":10}}]`)
}

func TestImportKeepsWhatIsThere(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", `{"durable":true}`, 201)
	a.do("POST", "/definitions/%2F", `{"queues":[{"name":"q","durable":false,"auto_delete":false,"arguments":{"x-max-length":3}},{"name":"r","durable":true,"auto_delete":false,"arguments":{}}],
		"users":[{"name":"ignored","password":"p","tags":""}],"unknown":1}`, 204)
	has(t, a.do("GET", "/queues/%2F/q", "", 200), J{"durable": true, "arguments": J{"x-queue-type": "classic"}})
	has(t, a.do("GET", "/queues/%2F/r", "", 200), J{"durable": true})
	a.do("GET", "/users/ignored", "", 404)
	a.do("POST", "/definitions", `{}`, 204)
	a.do("POST", "/definitions", "", 204)
}

func TestImportOfOldVHosts(t *testing.T) {
	a := newAPI(t, nil)
	a.do("POST", "/definitions", `{"vhosts":[{"name":"a","default_queue_type":"undefined","metadata":{"description":"m","tags":["t"],"default_queue_type":null}},{"name":"b"}]}`, 204)
	has(t, a.do("GET", "/vhosts/a", "", 200), J{"description": "m", "tags": []any{"t"}, "default_queue_type": "classic"})
	a.do("PUT", "/queues/a/q", `{"durable":true}`, 201)
}

func TestImportRefusals(t *testing.T) {
	a := newAPI(t, nil)
	for body, reason := range map[string]string{
		`{bad`: "failed_to_parse_json: line 1: invalid character 'b' looking for beginning of object key string",
		`{"queues":[{"name":"q","vhost":"nope","durable":true,"arguments":{}}]}`: `Please create virtual host "nope" prior to importing definitions. (item 0 of queues, name 'q')`,
		`{"queues":[{"name":"q"}]}`:                                                      "[{key_missing,vhost}] (item 0 of queues, name 'q')",
		`{"users":[{"name":"u","password":"p"}]}`:                                        "tags_not_present (item 0 of users, name 'u')",
		`{"policies":[{"vhost":"/","name":"p","pattern":"","definition":{"nosuch":1}}]}`: "Validation failed\n\n[{<<\"nosuch\">>,1}] are not recognised policy settings (//p) (item 0 of policies, name 'p')",
		" ":                 "failed_to_parse_json: nothing in it",
		`{"queues":{}}`:     "queues must be a list",
		`{"exchanges":[7]}`: "item 0 of exchanges must be an object",
		`{"bindings":[{"vhost":"/","source":"none","destination":"q","destination_type":"queue","routing_key":"","arguments":{}}]}`: "no exchange 'none' in vhost '/' (item 0 of bindings, source 'none')",
		`{"bindings":[{"vhost":"/","source":"amq.direct","destination":"q","destination_type":"queues","routing_key":""}]}`:         "destination_type must be 'queue' or 'exchange' (item 0 of bindings, source 'amq.direct')",
		`{"vhosts":[{"name":"v"},{}]}`: "[{key_missing,name}] (item 1 of vhosts); imported: 1 of vhosts",
	} {
		has(t, a.do("POST", "/definitions", body, 400), J{"error": "bad_request", "reason": reason})
	}
}

// Queues are imported all or none, as the vhost's limit allows.
func TestImportWithinTheLimitOfQueues(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/v", "", 201)
	a.do("PUT", "/vhost-limits/v/max-queues", `{"value":2}`, 204)
	a.do("PUT", "/queues/v/a", "", 201)
	const queues = `{"queues":[{"vhost":"v","name":"a"},{"vhost":"v","name":"b"},{"vhost":"v","name":"c"},{"vhost":"/","name":"c"}]}`
	has(t, a.do("POST", "/definitions", queues, 400), J{"reason": "Adding 2 queue(s) to virtual host \"v\" would exceed the limit of 2 queue(s).\n\n" +
		"This virtual host currently has 1 queue(s) defined.\n\nImport aborted!"})
	if got := names(t, a.do("GET", "/queues", "", 200), "name"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("queues %v, want a", got)
	}
	a.do("POST", "/definitions/v", `{"queues":[{"name":"a"},{"name":"b"}]}`, 204)
	a.do("POST", "/definitions/v", `{"queues":[{"name":"c"}]}`, 400)
}

// A vhost's tracing goes as the definition says, and stays if that says nothing.
func TestImportedTracing(t *testing.T) {
	a := newAPI(t, nil)
	for _, tt := range []struct {
		tracing string
		want    bool
	}{{`,"tracing":true`, true}, {``, true}, {`,"tracing":false`, false}} {
		a.do("POST", "/definitions", `{"vhosts":[{"name":"v"`+tt.tracing+`}]}`, 204)
		has(t, a.do("GET", "/vhosts/v", "", 200), J{"tracing": tt.want})
	}
}

// What does not say whether it is durable is, as in RabbitMQ 4.0.
func TestImportedQueuesAreDurable(t *testing.T) {
	a := newAPI(t, nil)
	a.do("POST", "/definitions", `{"queues":[{"name":"q","vhost":"/"},{"name":"t","vhost":"/","durable":false}],"exchanges":[{"name":"x","vhost":"/","type":"topic"}]}`, 204)
	for path, want := range map[string]bool{"/queues/%2F/q": true, "/queues/%2F/t": false, "/exchanges/%2F/x": true} {
		has(t, a.do("GET", path, "", 200), J{"durable": want})
	}
}

// The rest of the section with wrong items is imported, the sections after it are not
// (RabbitMQ 4.0), and the answer says so.
func TestImportWithWrongItems(t *testing.T) {
	a := newAPI(t, nil)
	queue := func(name, args string) string {
		return `{"vhost":"/","name":"` + name + `","durable":true,"auto_delete":false,"arguments":{` + args + `}}`
	}
	body := `{"vhosts":[{"name":"v"}],"exchanges":[],"policies":[{"vhost":"/","name":"p","pattern":"","definition":{"max-length":1}}],
		"queues":[` + queue("a", "") + "," + queue("b", `"x-max-length":-1`) + "," + queue("c", "") + "," + queue("d", `"x-expires":0`) + "," + queue("e", "") + `],
		"bindings":[{"vhost":"/","source":"amq.direct","destination":"a","destination_type":"queue","routing_key":"k","arguments":{}}]}`
	const reason = "invalid arg 'x-max-length' for queue 'b' in vhost '/': {value_negative,-1} (item 1 of queues, name 'b'); " +
		"wrong, too: 1 of queues; imported: vhosts, policies, 3 of queues; not imported: bindings"
	has(t, a.do("POST", "/definitions", body, 400), J{"error": "bad_request", "reason": reason})
	for _, name := range []string{"a", "c", "e"} {
		has(t, a.do("GET", "/queues/%2F/"+name, "", 200), J{"policy": "p"})
	}
	a.is("/bindings/%2F/e/amq.direct/q/a", `[]`)
}

// Of what RabbitMQ 4.0 imports one after the other nothing behind a wrong item is
// imported, of that section neither.
func TestImportStopsAtAWrongItem(t *testing.T) {
	a := newAPI(t, nil)
	policy := func(name, length string) string {
		return `{"vhost":"/","name":"` + name + `","pattern":"","definition":{"max-length":` + length + `}}`
	}
	limits := func(value string) string {
		return `{"vhost":"/","component":"vhost-limits","name":"limits","value":{` + value + `}}`
	}
	const wrongLength = "Validation failed\n\n-1 is not a valid maximum length (//p2) (item 1 of policies, name 'p2')"
	for body, reason := range map[string]string{
		`{"policies":[` + policy("p1", "1") + "," + policy("p2", "-1") + "," + policy("p3", "3") + "," + policy("p4", "-4") + `],"queues":[{"name":"q","vhost":"/"}]}`: wrongLength + "; imported: 1 of policies; not imported: 2 of policies, queues",
		`{"global_parameters":[{"name":"g1","value":1},{"value":2},{"name":"g3","value":3}],"policies":[]}`:                                                            "[{key_missing,name}] (item 1 of global_parameters); imported: 1 of global_parameters; not imported: 1 of global_parameters",
		`{"parameters":[` + limits(`"max-foo":1`) + "," + limits(`"max-queues":3`) + `]}`:                                                                              "Validation failed\n\nUnrecognised terms [{<<\"max-foo\">>,1}] in limits (item 0 of parameters, name 'limits'); not imported: 1 of parameters",
	} {
		has(t, a.do("POST", "/definitions", body, 400), J{"reason": reason})
	}
	if got := names(t, a.do("GET", "/policies", "", 200), "name"); !slices.Equal(got, []string{"p1"}) {
		t.Errorf("policies %v, want p1", got)
	}
	a.do("GET", "/global-parameters/g1", "", 200)
	a.do("GET", "/global-parameters/g3", "", 404)
	a.is("/vhost-limits", `[]`)
}

// A user whose limits are wrong is not made, and one that there is keeps what it has.
func TestImportOfUsersWithWrongLimits(t *testing.T) {
	a := newAPI(t, nil)
	a.user("old", "management")
	for limits, reason := range map[string]string{
		`{"foo":1}`: `Unrecognised terms [{<<"foo">>,1}] in user-limits`,
		`{"max-channels":3,"max-connections":null}`: "max-connections should be a number, actually was null",
	} {
		for _, name := range []string{"new", "old"} {
			has(t, a.do("POST", "/definitions", `{"users":[{"name":"`+name+`","password":"p","tags":"","limits":`+limits+`}]}`, 400),
				J{"reason": reason + " (item 0 of users, name '" + name + "')"})
		}
	}
	a.do("GET", "/users/new", "", 404)
	has(t, a.do("GET", "/users/old", "", 200), J{"tags": []any{"management"}, "limits": J{}})
}

// RabbitMQ 4.0 exports like this what was cleared, or never had a value.
func TestImportOfWhatWasCleared(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhost-limits/%2F/max-connections", `{"value":7}`, 204)
	a.do("POST", "/definitions", `{"parameters":[{"component":"vhost-limits","vhost":"/","name":"limits","value":[]}],"global_parameters":[{"name":"g"}]}`, 204)
	a.is("/vhost-limits/%2F", `[]`)
	a.do("GET", "/global-parameters/g", "", 404)
}

func TestLimitsAsAParameterReplaceAll(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhost-limits/%2F/max-connections", `{"value":7}`, 204)
	a.do("PUT", "/parameters/vhost-limits/%2F/limits", `{"value":{"max-queues":5}}`, 204)
	a.is("/vhost-limits/%2F", `[{"vhost":"/","value":{"max-queues":5}}]`)
	a.do("PUT", "/vhost-limits/%2F/max-queues", `{"value":-5}`, 204)
	a.is("/vhost-limits/%2F", `[{"vhost":"/","value":{"max-queues":-5}}]`) // no limit, and yet there
	a.do("DELETE", "/vhost-limits/%2F/max-queues", "", 204)
	a.is("/vhost-limits/%2F", `[]`)
	a.do("PUT", "/vhost-limits/%2F/max-queues", `{"value":5}`, 204)
	for path, reason := range map[string]string{
		"/parameters/vhost-limits/%2F/limits?max-foo":    "Validation failed\n\nUnrecognised terms [{<<\"max-foo\">>,5}] in limits\n",
		"/parameters/vhost-limits/%2F/limits?max-queues": "Validation failed\n\nmax-queues should be a number, actually was <<\"5\">>\n",
		"/vhost-limits/%2F/max-foo":                      "Validation failed\n\nUnrecognised terms [{<<\"max-foo\">>,5}] in limits\n",
		"/vhost-limits/%2F/max-queues":                   "Validation failed\n\nmax-queues should be a number, actually was <<\"5\">>\n",
		"/parameters/policy/%2F/p":                       "policies may not be set using this method",
	} {
		value := `5`
		if strings.HasSuffix(path, "max-queues") {
			value = `"5"`
		}
		if path, name, whole := strings.Cut(path, "?"); whole {
			has(t, a.do("PUT", path, `{"value":{"`+name+`":`+value+`}}`, 400), J{"reason": reason})
		} else {
			has(t, a.do("PUT", path, `{"value":`+value+`}`, 400), J{"reason": reason})
		}
	}
	a.is("/vhost-limits/%2F", `[{"vhost":"/","value":{"max-queues":5}}]`) // as they were
	// A queue that a broker named is among the definitions of that broker.
	a.do("POST", "/definitions", `{"queues":[{"vhost":"/","name":"amq.gen-x","durable":true,"auto_delete":false,"arguments":{}}]}`, 204)
	has(t, a.do("GET", "/queues/%2F/amq.gen-x", "", 200), J{"durable": true})
	a.do("PUT", "/queues/%2F/amq.gen-y", `{"durable":true}`, 401)
	has(t, a.do("PUT", "/parameters/vhost-limits/%2F/other", `{"value":{"max-queues":6}}`, 400),
		J{"reason": "the parameter of component vhost-limits must have the name 'limits', not 'other'"})
}

// Hashes of a RabbitMQ before 3.6 are MD5 and do not say so.
func TestImportOfOldUsers(t *testing.T) {
	a := newAPI(t, nil)
	const hash = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
	for version, want := range map[string]string{
		`"3.5.7"`: "rabbit_password_hashing_md5", `"3.6.0"`: "rabbit_password_hashing_sha256", `"4.0.5"`: "rabbit_password_hashing_sha256", `7`: "rabbit_password_hashing_sha256",
	} {
		a.do("POST", "/definitions", `{"rabbit_version":`+version+`,"users":[{"name":"old","tags":"","password_hash":"`+hash+`"}]}`, 204)
		has(t, a.do("GET", "/users/old", "", 200), J{"hashing_algorithm": want})
	}
}

func TestImportOfAForm(t *testing.T) {
	a := newAPI(t, nil)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "definitions.json")
	if err != nil {
		t.Fatal(err)
	}
	part.Write([]byte(`{"vhosts":[{"name":"v"}]}`))
	form.Close()
	w := a.request("POST", "/definitions", body.String(), func(r *http.Request) { r.Header.Set("Content-Type", form.FormDataContentType()) })
	if w.Code != 204 {
		t.Fatalf("import = %d %s", w.Code, w.Body)
	}
	a.do("GET", "/vhosts/v", "", 200)
}

func TestDefinitionsSayWhatTheyAre(t *testing.T) {
	a := newAPI(t, nil)
	for kind, want := range map[string]int{
		"application/json": 204, "Application/JSON; charset=utf-8": 204,
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "application/octet-stream": 415,
	} {
		for _, path := range []string{"/definitions", "/definitions/%2F"} {
			if w := a.request("POST", path, `{}`, func(r *http.Request) { r.Header.Set("Content-Type", kind) }); w.Code != want {
				t.Errorf("POST %s of type %q = %d %s, want %d", path, kind, w.Code, w.Body, want)
			}
		}
	}
}

// What is wrong with a file is told with its line.
func TestFilesThatAreNoDefinitions(t *testing.T) {
	a := newAPI(t, nil)
	const advice = "; want one JSON object, as GET /api/definitions and leveret export_definitions give it"
	for text, want := range map[string]string{
		"{\n\"queues\": [\n{},]}":   "line 3: invalid character ']' looking for beginning of value",
		"{\n\"queues\": [\n{}\n\n ": "line 3: it ends in the middle",
		"[]":                        "no JSON object but array",
		"{}\n{}":                    "no single JSON object",
		"":                          "nothing in it",
	} {
		if err := a.s.ImportDefinitions([]byte(text)); err == nil || err.Error() != want+advice {
			t.Errorf("%q: error %v\nwant %s", text, err, want+advice)
		}
	}
}
