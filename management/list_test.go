package management

import (
	"slices"
	"testing"
)

func TestPaging(t *testing.T) {
	a := newAPI(t, nil)
	for _, n := range []string{"a1", "a2", "a3", "b1", "b2"} {
		a.do("PUT", "/queues/%2F/"+n, "", 201)
	}
	for _, tt := range []struct {
		query  string
		items  []string
		counts J
	}{
		{"page=1", []string{"a1", "a2", "a3", "b1", "b2"}, J{"page_size": 100.0, "page_count": 1.0}},
		{"page=2&page_size=2&sort=name", []string{"a3", "b1"}, J{"filtered_count": 5.0, "item_count": 2.0, "page": 2.0, "page_count": 3.0, "page_size": 2.0, "total_count": 5.0}},
		{"page=1&page_size=10&name=A", []string{"a1", "a2", "a3"}, J{"filtered_count": 3.0, "total_count": 5.0}},
		{"page=1&use_regex=true&name=%5BaB%5D2%24", []string{"a2", "b2"}, nil},
		{"page=1&use_regex=true&name=%28%3F%3C%21A%292", []string{"b2"}, nil}, // (?<!A)2
		{"page=1&page_size=1&sort=name&sort_reverse=true", []string{"b2"}, nil},
		{"page=1&sort=durable&sort_reverse=true", []string{"b2", "b1", "a3", "a2", "a1"}, nil}, // all are alike
		{"page=1&name=none", []string{}, J{"item_count": 0.0, "page_count": 0.0, "filtered_count": 0.0}},
		{"page=1&pagination=false&page_size=1", []string{"a1"}, nil},
	} {
		got := a.do("GET", "/queues/%2F?"+tt.query, "", 200).(J)
		has(t, got, tt.counts)
		if items := names(t, got["items"], "name"); !slices.Equal(items, tt.items) {
			t.Errorf("%s: items %v, want %v", tt.query, items, tt.items)
		}
	}
}

func TestPagingErrors(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	for query, want := range map[string]string{
		"page=9":                                 `{"error":"page_out_of_range","reason":"Page out of range, page: 9 page size: 100, len: 1"}`,
		"page=9223372036854775807&page_size=200": `{"error":"page_out_of_range","reason":"Page out of range, page: 9223372036854775807 page size: 200, len: 1"}`,
		"page=0":                                 `{"error":"invalid_pagination_parameters","reason":"Invalid pagination parameters: page number 0, page size undefined"}`,
		"page=1&page_size=501":                   `{"error":"invalid_pagination_parameters","reason":"Invalid pagination parameters: page number 1, page size 501"}`,
		"page_size=x":                            `{"error":"bad_request","reason":"Pagination parameters are invalid"}`,
		"page=x":                                 `{"error":"bad_request","reason":"Pagination parameters are invalid"}`,
		"page=1&use_regex=true&name=%28":         `{"error":"bad_request","reason":"Pagination parameters are invalid"}`,
	} {
		equal(t, query, a.do("GET", "/queues?"+query, "", 400), want)
	}
	a.do("GET", "/queues?page_size=501", "", 200) // without a page it counts for nothing
}

func TestSortByFigureMissingIsZero(t *testing.T) {
	a := newAPI(t, nil)
	for name, args := range map[string]string{"a": `{"x-max-length":5}`, "b": `{}`, "c": `{"x-max-length":2}`} {
		a.do("PUT", "/queues/%2F/"+name, `{"arguments":`+args+`}`, 201)
	}
	got := names(t, a.do("GET", "/queues?sort=arguments.x-max-length", "", 200), "name")
	if want := []string{"b", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("sorted: %v, want %v", got, want)
	}
}

func TestColumns(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", `{"arguments":{"x-max-length":5}}`, 201)
	a.is("/queues?columns=name,arguments.x-max-length,none", `[{"name":"q","arguments":{"x-max-length":5}}]`)
	a.is("/queues/%2F/q?columns=messages_details.rate", `{"messages_details":{"rate":0}}`)
	a.is("/queues/%2F/q?columns=none", `[]`)
	a.is("/queues?page=1&columns=name", `{"filtered_count":1,"item_count":1,"items":[{"name":"q"}],"page":1,"page_count":1,"page_size":100,"total_count":1}`)
}

func TestDisableStats(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/q", "", 201)
	a.is("/queues?disable_stats=true&enable_queue_totals=true&columns=name,messages,consumers,online", `[{"name":"q","messages":0,"online":["rabbit@test"]}]`)
	a.is("/queues?disable_stats=true", `[{"name":"q","vhost":"/","durable":false,"auto_delete":false,"exclusive":false,
		"arguments":{"x-queue-type":"classic"},"node":"rabbit@test","state":"running","type":"classic"}]`)
}

// Without figures a queue still says where its replicas are, and only policies that it has.
func TestQueueWithoutStats(t *testing.T) {
	a := newAPI(t, nil)
	a.do("PUT", "/queues/%2F/c", `{"durable":true}`, 201)
	a.do("PUT", "/queues/%2F/q", `{"durable":true,"arguments":{"x-queue-type":"quorum"}}`, 201)
	a.do("PUT", "/policies/%2F/p", `{"pattern":"^q$","definition":{"max-length":5}}`, 201)
	classic := `{"name":"c","vhost":"/","durable":true,"auto_delete":false,"exclusive":false,"arguments":{"x-queue-type":"classic"},
		"node":"rabbit@test","state":"running","type":"classic"}`
	quorum := `{"name":"q","vhost":"/","durable":true,"auto_delete":false,"exclusive":false,"arguments":{"x-queue-type":"quorum"},
		"node":"rabbit@test","state":"running","type":"quorum","policy":"p","leader":"rabbit@test","members":["rabbit@test"],"online":["rabbit@test"]}`
	a.is("/queues/%2F/c?disable_stats=true", classic)
	a.is("/queues/%2F/q?disable_stats=true", quorum)
	for _, list := range []string{"/queues", "/queues/%2F", "/queues/detailed"} {
		a.is(list+"?disable_stats=true", "["+classic+","+quorum+"]")
	}
}

// The lists of what a vhost or a connection has open are never paged, others are.
func TestPagesOfConnections(t *testing.T) {
	a := newAPI(t, nil)
	for _, name := range []string{"a", "b", "c"} {
		a.aConn(name, "guest", "/", "q")
	}
	for path, want := range map[string]int{"/vhosts/%2F/connections": 3, "/vhosts/%2F/channels": 3, "/connections/a/channels": 1} {
		if got := names(t, a.do("GET", path+"?page=2&page_size=2", "", 200), "name"); len(got) != want {
			t.Errorf("%s: %v, want %d", path, got, want)
		}
	}
	for _, path := range []string{"/connections", "/channels", "/connections/username/guest"} {
		has(t, a.do("GET", path+"?page=2&page_size=2", "", 200), J{"filtered_count": 3.0, "item_count": 1.0, "page_count": 2.0})
		has(t, a.do("GET", path+"?page=1&name=b", "", 200), J{"filtered_count": 1.0, "total_count": 3.0})
	}
}
