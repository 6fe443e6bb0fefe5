package management

import (
	"net/http"
	"slices"
	"testing"
)

func TestUserLife(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/users/u", `{"password":"secret","tags":"management, x"}`, 201)
	has(t, a.do("GET", "/users/u", "", 200), J{"name": "u", "tags": []any{"management", "x"}, "limits": J{}, "hashing_algorithm": "rabbit_password_hashing_sha256"})
	if w := a.request("GET", "/whoami", "", as("u")); w.Code != 200 {
		t.Fatalf("login: %d", w.Code)
	}
	a.do("PUT", "/users/u", `{"password":"other","tags":["management"]}`, 204)
	if w := a.request("GET", "/whoami", "", as("u")); w.Code != 401 {
		t.Errorf("login with the old password: %d, want 401", w.Code)
	}
	if got := names(t, a.do("GET", "/users/without-permissions", "", 200), "name"); !slices.Equal(got, []string{"u"}) {
		t.Errorf("without permissions: %v, want [u]", got)
	}
	a.do("POST", "/users/bulk-delete", `{"users":["u","nobody"]}`, 204)
	a.do("GET", "/users/u", "", 404)
	a.do("DELETE", "/users/u", "", 404)
}

func TestUserRefusals(t *testing.T) {
	a := newAPI(t, nil)
	for body, reason := range map[string]string{
		`{"password":"p"}`: "tags_not_present",
		`{"password":"p","password_hash":"","tags":""}`:                  "both_password_and_password_hash_are_provided",
		`{"password":null,"tags":""}`:                                    "password must be a string",
		`{"password_hash":null,"tags":""}`:                               "password_hash must be a string",
		`{"password_hash":"!!","tags":""}`:                               "password_hash is not base64",
		`{"password_hash":"AAAA","hashing_algorithm":"rot13","tags":""}`: "unknown hashing_algorithm 'rot13': use rabbit_password_hashing_sha256, rabbit_password_hashing_sha512 or rabbit_password_hashing_md5",
	} {
		has(t, a.do("PUT", "/users/u", body, 400), J{"error": "bad_request", "reason": reason})
	}
	a.do("GET", "/users/u", "", 404)
}

func TestPermissions(t *testing.T) {
	a := newAPI(t, nil)
	a.user("u", "")
	a.do("GET", "/permissions/%2F/u", "", 404)
	a.do("PUT", "/permissions/%2F/u", `{"configure":"^a","write":"","read":".*"}`, 201)
	a.do("PUT", "/permissions/%2F/u", `{"configure":"^a","write":"","read":".*"}`, 204)
	one := `{"user":"u","vhost":"/","configure":"^a","write":"","read":".*"}`
	a.is("/permissions/%2F/u", one)
	a.is("/users/u/permissions", `[`+one+`]`)
	for path, reason := range map[string]string{"/permissions/none/u": "vhost_or_user_not_found", "/permissions/%2F/nobody": "vhost_or_user_not_found"} {
		has(t, a.do("PUT", path, `{"configure":"","write":"","read":""}`, 400), J{"reason": reason})
	}
	has(t, a.do("PUT", "/permissions/%2F/u", `{"configure":""}`, 400), J{"reason": "[{key_missing,write},{key_missing,read}]"})
	a.do("PUT", "/permissions/%2F/u", `{"configure":"(","write":"","read":""}`, 400)
	has(t, a.do("PUT", "/permissions/%2F/u", `{"configure":null,"write":"","read":""}`, 400), J{"reason": "configure must be a string"})
	a.is("/permissions/%2F/u", one) // as it was
	a.do("GET", "/users/nobody/permissions", "", 404)
	a.do("DELETE", "/permissions/%2F/u", "", 204)
	a.do("DELETE", "/permissions/%2F/u", "", 404)
}

func TestTopicPermissions(t *testing.T) {
	a := newAPI(t, nil)
	a.user("u", "")
	a.do("PUT", "/topic-permissions/%2F/u", `{"exchange":"amq.topic","write":"^a","read":"^b"}`, 201)
	one := `{"user":"u","vhost":"/","exchange":"amq.topic","write":"^a","read":"^b"}`
	a.is("/topic-permissions/%2F/u", `[`+one+`]`)
	a.is("/vhosts/%2F/topic-permissions", `[`+one+`]`)
	a.do("PUT", "/topic-permissions/%2F/u/amq.direct", `{"exchange":"amq.topic","write":"^a","read":"^b"}`, 204)
	a.is("/topic-permissions/%2F/u/amq.direct", `[`+one+`]`)                                  // RabbitMQ 4.0 looks at the exchange in the body only
	a.do("DELETE", "/topic-permissions/%2F/u/amq.direct", "", 204)                            // there are some, if for another exchange
	a.do("PUT", "/topic-permissions/%2F/u", `{"exchange":"t","write":"^a","read":"^b"}`, 204) // likewise
	a.do("DELETE", "/topic-permissions/%2F/u/t", "", 204)
	a.do("DELETE", "/topic-permissions/%2F/u/amq.topic", "", 204)
	a.do("GET", "/topic-permissions/%2F/u", "", 404)
	a.do("DELETE", "/topic-permissions/%2F/u/amq.direct", "", 404)
}

// A policymaker is told the same of another vhost's objects as who is none of any.
func TestPolicymakerElsewhere(t *testing.T) {
	a := newAPI(t, nil)
	a.user("maker", "policymaker")
	a.user("plain", "management")
	for _, path := range []string{"/policies/%2F/p", "/parameters/shovel/%2F", "/parameters/shovel/%2F/p"} {
		for _, user := range []string{"maker", "plain"} {
			w := a.request("GET", path, "", as(user))
			equal(t, user+" "+path, decode(t, w.Body), `{"error":"not_authorised","reason":"User not authorised to access object"}`)
		}
	}
}

// TestAccessByTag is RabbitMQ 4.0's matrix: who may call what. Users with a name
// in the table have a permission in the vhost "mine" only.
func TestAccessByTag(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/mine", "", 201)
	a.do("PUT", "/vhosts/other", "", 201)
	tags := []string{"management", "policymaker", "monitoring", "administrator"}
	for _, tag := range tags {
		a.user(tag, tag)
		a.do("PUT", "/permissions/mine/"+tag, `{"configure":".*","write":".*","read":".*"}`, 201)
	}
	policy := `{"pattern":"x","definition":{"max-length":1}}`
	for _, tt := range []struct {
		method, path, body string
		codes              [4]int // by tag
	}{
		{"GET", "/overview", "", [4]int{200, 200, 200, 200}},
		{"GET", "/health/checks/alarms", "", [4]int{200, 200, 200, 200}},
		{"GET", "/connections", "", [4]int{200, 200, 200, 200}},
		{"GET", "/nodes", "", [4]int{401, 401, 200, 200}},
		{"GET", "/queues/mine", "", [4]int{200, 200, 200, 200}},
		{"GET", "/queues/other", "", [4]int{401, 401, 401, 200}},
		{"PUT", "/queues/mine/q", "{}", [4]int{201, 204, 204, 204}},
		{"PUT", "/queues/other/q", "{}", [4]int{401, 401, 401, 401}}, // the administrator has no permission there
		{"GET", "/vhosts/mine", "", [4]int{401, 401, 401, 200}},
		{"GET", "/vhosts/mine/connections", "", [4]int{200, 200, 200, 200}},
		{"GET", "/vhosts/other/connections", "", [4]int{401, 401, 401, 200}},
		{"GET", "/vhosts/other/channels", "", [4]int{401, 401, 401, 200}},
		{"GET", "/vhost-limits/other", "", [4]int{401, 401, 200, 200}},
		{"GET", "/connections/username/guest", "", [4]int{401, 401, 200, 200}},
		{"PUT", "/policies/mine/p", policy, [4]int{401, 201, 401, 204}},
		{"GET", "/policies/mine/p", "", [4]int{401, 200, 401, 200}},
		{"GET", "/policies/nowhere/p", "", [4]int{401, 404, 401, 404}},
		{"PUT", "/policies/other/p", policy, [4]int{401, 401, 401, 201}},
		{"PUT", "/operator-policies/mine/p", policy, [4]int{401, 401, 401, 201}},
		{"GET", "/operator-policies/mine/p", "", [4]int{401, 401, 401, 200}},
		{"GET", "/parameters", "", [4]int{401, 200, 401, 200}},
		{"GET", "/global-parameters", "", [4]int{401, 200, 401, 200}},
		{"GET", "/users", "", [4]int{401, 401, 401, 200}},
		{"GET", "/permissions", "", [4]int{401, 401, 401, 200}},
		{"GET", "/definitions", "", [4]int{401, 401, 401, 200}},
		{"PUT", "/vhosts/mine", "", [4]int{401, 401, 401, 204}},
		{"PUT", "/cluster-name", `{"name":"n"}`, [4]int{401, 401, 401, 204}},
		{"DELETE", "/reset", "", [4]int{401, 401, 401, 204}},
		{"DELETE", "/auth/attempts/rabbit@test", "", [4]int{401, 401, 204, 204}},
	} {
		for i, tag := range tags {
			if w := a.request(tt.method, tt.path, tt.body, as(tag)); w.Code != tt.codes[i] {
				t.Errorf("%s %s as %s = %d %s, want %d", tt.method, tt.path, tag, w.Code, w.Body, tt.codes[i])
			}
		}
	}
}

// What is missing is said before what is wrong with the body.
func TestRefusalsAreRabbitMQs(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "null", 201)
	const missingKeys = "[{key_missing,configure},{key_missing,write},{key_missing,read}]"
	for _, tt := range []struct {
		method, path, body string
		code               int
		kind, reason       string
	}{
		{"POST", "/queues/%2F/none/get", "", 404, "not_found", "queue_not_found"},
		{"POST", "/queues/%2F/none/actions", "{", 404, "not_found", "queue_not_found"},
		{"POST", "/exchanges/%2F/none/publish", "[]", 404, "not_found", "exchange_not_found"},
		{"PUT", "/permissions/none/guest", "", 400, "bad_request", "vhost_or_user_not_found"},
		{"PUT", "/permissions/%2F/none", "", 400, "bad_request", "vhost_or_user_not_found"},
		{"PUT", "/permissions/%2F/guest", "", 400, "bad_request", missingKeys},
		{"PUT", "/topic-permissions/%2F/none", "", 400, "bad_request", "vhost_or_user_not_found"},
		{"PUT", "/cluster-name", `{"name":null}`, 400, "bad_request", "name must be a string"},
		{"PUT", "/queues/%2F/q", `"{}"`, 400, "bad_request", "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"},
		{"POST", "/users/bulk-delete", `{"users":"guest"}`, 400, "bad_request", "users must be a list of strings"},
		{"GET", "/definitions/none", "", 400, "bad_request", "vhost_not_found"},
		{"GET", "/queues?page=", "", 400, "bad_request", "Pagination parameters are invalid"},
		{"GET", "/queues?page=1&page_size=", "", 400, "bad_request", "Pagination parameters are invalid"},
	} {
		has(t, a.do(tt.method, tt.path, tt.body, tt.code), J{"error": tt.kind, "reason": tt.reason})
	}
	a.do("POST", "/definitions", "", 204)
	w := a.request("GET", "/nowhere", "", func(r *http.Request) { r.Header.Del("Authorization") })
	if w.Code != http.StatusNotFound {
		t.Errorf("a path that there is not, without a login = %d, want 404", w.Code)
	}
}

func TestListsShowWhatTheUserSees(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/vhosts/mine", "", 201)
	a.do("PUT", "/queues/mine/q", "", 201)
	a.do("PUT", "/queues/%2F/r", "", 201)
	for _, vhost := range []string{"%2F", "mine"} {
		a.do("PUT", "/vhost-limits/"+vhost+"/max-queues", `{"value":9}`, 204)
	}
	a.aConn("c1", "u", "mine", "q")
	a.aConn("c2", "guest", "/", "r")
	a.user("u", "management")
	a.user("m", "monitoring")
	a.do("PUT", "/permissions/mine/u", `{"configure":"","write":"","read":""}`, 201)
	for _, tt := range []struct {
		user, path, member string
		want               []string
	}{
		{"u", "/queues", "name", []string{"q"}},
		{"m", "/queues", "name", []string{}},
		{"u", "/vhosts", "name", []string{"mine"}},
		{"m", "/vhosts", "name", []string{"/", "mine"}},
		{"u", "/vhost-limits", "vhost", []string{"mine"}},
		{"m", "/vhost-limits", "vhost", []string{"/", "mine"}},
		{"u", "/connections", "name", []string{"c1"}},
		{"m", "/connections", "name", []string{"c1", "c2"}},
		{"u", "/channels", "name", []string{"c1 (1)"}},
		{"u", "/consumers", "consumer_tag", []string{"tag-c1"}},
		{"m", "/consumers", "consumer_tag", []string{"tag-c2", "tag-c1"}},
	} {
		w := a.request("GET", tt.path, "", as(tt.user))
		if got := names(t, decode(t, w.Body), tt.member); !slices.Equal(got, tt.want) {
			t.Errorf("%s as %s: %v, want %v", tt.path, tt.user, got, tt.want)
		}
	}
	w := a.request("GET", "/overview", "", as("u"))
	got := decode(t, w.Body)
	has(t, got, J{"object_totals": J{"channels": 1.0, "connections": 1.0, "exchanges": 7.0, "queues": 1.0}})
	for _, absent := range []string{"node", "listeners", "contexts"} {
		if _, there := got.(J)[absent]; there {
			t.Errorf("overview shows %s to who does not monitor", absent)
		}
	}
}

func TestClosingConnections(t *testing.T) {
	a := newAPI(t, nil)
	a.user("u", "management")
	a.aConn("10.0.0.7:1 -> 10.0.0.1:5672", "u", "/", "q")
	a.aConn("c2", "guest", "/", "q")
	if w := a.request("DELETE", "/connections/c2", "", as("u")); w.Code != 401 {
		t.Errorf("closing another user's: %d, want 401", w.Code)
	}
	a.do("DELETE", "/connections/10.0.0.7%3A1%20-%3E%2010.0.0.1%3A5672", "", 204)
	a.do("DELETE", "/connections/none", "", 404)
	a.do("DELETE", "/connections/username/guest", "", 204)
	a.do("DELETE", "/connections/username/nobody", "", 204)
	want := []string{"10.0.0.7:1 -> 10.0.0.1:5672: Closed via management plugin", "c2: Closed via management plugin"}
	if !slices.Equal(a.conns.closed, want) {
		t.Errorf("closed %q, want %q", a.conns.closed, want)
	}
}

// Who may not read a queue still hears that there is none.
func TestPurgeOfAMissingQueue(t *testing.T) {
	a := newAPI(t, nil)
	a.user("u", "management")
	a.do("PUT", "/permissions/%2F/u", `{"configure":"","write":"","read":"^$"}`, 201)
	a.do("PUT", "/queues/%2F/q", "", 201)
	for path, want := range map[string]int{"/queues/%2F/q/contents": 401, "/queues/%2F/none/contents": 404} {
		if w := a.request("DELETE", path, "", as("u")); w.Code != want {
			t.Errorf("%s: %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}
