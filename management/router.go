package management

import (
	"net/url"
	"slices"
	"strings"
)

// A handler answers a request.
type handler func(r *request) (reply, error)

// A route is one method of one path. A segment in braces is a variable.
type route struct {
	method, path string
	access       access
	handle       handler
}

// A resource is all routes of one path.
type resource struct {
	segments []string
	methods  map[string]*route
	allow    string // the Allow header
}

// A router finds resources by path, the first that fits in the order of the
// table.
type router struct {
	prefix  string
	byFirst map[string][]*resource // by the first segment after /api
}

func newRouter(prefix string, table []route) *router {
	rt := &router{prefix: strings.TrimSuffix(prefix, "/"), byFirst: make(map[string][]*resource)}
	byPath := make(map[string]*resource)
	for i := range table {
		row := &table[i]
		res := byPath[row.path]
		if res == nil {
			res = &resource{segments: strings.Split(row.path[1:], "/"), methods: make(map[string]*route)}
			byPath[row.path] = res
			first := res.segments[0]
			rt.byFirst[first] = append(rt.byFirst[first], res)
		}
		res.methods[row.method] = row
	}
	for _, res := range byPath {
		res.allow = res.allowed()
	}
	return rt
}

// allowed lists the methods as RabbitMQ does.
func (res *resource) allowed() string {
	var list []string
	for _, m := range []string{"HEAD", "GET", "POST", "PUT", "DELETE", "OPTIONS"} {
		if _, ok := res.methods[m]; ok || m == "OPTIONS" || m == "HEAD" && res.methods["GET"] != nil {
			list = append(list, m)
		}
	}
	return strings.Join(list, ", ")
}

// split cuts an escaped path into its decoded segments after /api. One trailing
// slash is ignored (RabbitMQ 4.0).
func (rt *router) split(escaped string) (segments []string, ok bool) {
	rest, ok := strings.CutPrefix(escaped, rt.prefix+"/api/")
	if !ok {
		return nil, false
	}
	segments = strings.Split(strings.TrimSuffix(rest, "/"), "/")
	for i, s := range segments {
		decoded, err := url.PathUnescape(s)
		if err != nil {
			return nil, false
		}
		segments[i] = decoded
	}
	return segments, true
}

// find returns the resource of a path, nil if there is none.
func (rt *router) find(segments []string) *resource {
	for _, res := range rt.byFirst[segments[0]] {
		if res.fits(segments) {
			return res
		}
	}
	return nil
}

func (res *resource) fits(segments []string) bool {
	return slices.EqualFunc(res.segments, segments, func(want, got string) bool {
		return want == got || strings.HasPrefix(want, "{")
	})
}

// other says that the answer is something else than JSON.
func (res *resource) other() bool {
	return res.segments[0] == "index.html" || res.segments[0] == "events" || res.segments[0] == "config"
}

// variable returns the segment that a variable stands for, "" if the path has
// no such variable.
func (res *resource) variable(name string, segments []string) (value string, ok bool) {
	for i, s := range res.segments {
		if len(s) == len(name)+2 && s[0] == '{' && s[1:len(s)-1] == name {
			return segments[i], true
		}
	}
	return "", false
}
