package management

import (
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// openAPI handles GET /openapi.json: the API as OpenAPI 3.1, made from the
// table of routes. It needs no credentials.
func openAPI(r *request) (reply, error) {
	paths, texts := object{}, summaries()
	for i, rows := 0, routes(); i < len(rows); {
		n := i + 1
		for n < len(rows) && rows[n].path == rows[i].path {
			n++
		}
		paths.add(rows[i].path, pathItem(rows[i:n], texts))
		i = n
	}
	return ok(object{
		{"openapi", "3.1.0"},
		{"info", object{{"title", r.s.cfg.Product + " management API"}, {"version", r.s.cfg.ProductVersion}}},
		{"servers", []object{{{"url", r.s.router.prefix + "/api"}}}},
		{"security", []object{{{"basic", []any{}}}}},
		{"components", object{{"securitySchemes", object{{"basic", object{{"type", "http"}, {"scheme", "basic"}}}}}}},
		{"paths", paths},
	})
}

// pathItem describes the methods of one path.
func pathItem(rows []route, texts map[string]string) object {
	o := object{}
	if parameters := pathParameters(rows[0].path); len(parameters) > 0 {
		o.add("parameters", parameters)
	}
	for i := range rows {
		o.add(strings.ToLower(rows[i].method), operation(&rows[i], texts[rows[i].method+" "+rows[i].path]))
	}
	return o
}

func operation(row *route, summary string) object {
	tag, _, _ := strings.Cut(row.path[1:], "/")
	o := object{{"tags", []string{tag}}, {"summary", summary}}
	if row.method == http.MethodPut || row.method == http.MethodPost {
		o.add("requestBody", object{{"content", object{{"application/json", object{{"schema", object{{"type", "object"}}}}}}}})
	}
	return append(o, member{"responses", responses(row.method)})
}

// responses are the statuses that a method can have.
func responses(method string) object {
	o := object{}
	add := func(status int) {
		o.add(strconv.Itoa(status), object{{"description", http.StatusText(status)}})
	}
	switch method {
	case http.MethodGet:
		add(http.StatusOK)
	case http.MethodPost:
		add(http.StatusOK)
		add(http.StatusCreated)
		add(http.StatusNoContent)
	case http.MethodPut:
		add(http.StatusCreated)
		add(http.StatusNoContent)
	default:
		add(http.StatusNoContent)
	}
	for _, status := range []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusNotFound} {
		add(status)
	}
	return o
}

// pathVariable finds the variables of a route's path.
var pathVariable = regexp.MustCompile(`\{(\w+)\}`)

func pathParameters(path string) []object {
	var list []object
	for _, m := range pathVariable.FindAllStringSubmatch(path, -1) {
		list = append(list, object{{"name", m[1]}, {"in", "path"}, {"required", true}, {"schema", object{{"type", "string"}}}})
	}
	return list
}

// reference handles GET /index.html: the list of paths for people.
func reference(r *request) (reply, error) {
	var b strings.Builder
	title := html.EscapeString(r.s.cfg.Product + " management API")
	b.WriteString("<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>" + title + "</title></head>\n<body>\n<h1>" + title +
		"</h1>\n<p>The paths and bodies are those of RabbitMQ's management API. <a href=\"openapi.json\">openapi.json</a> describes them for programs.</p>\n<table>\n")
	texts := summaries()
	for _, row := range routes() {
		b.WriteString("<tr><td>" + row.method + "</td><td><code>/api" + html.EscapeString(row.path) + "</code></td><td>" +
			html.EscapeString(texts[row.method+" "+row.path]) + "</td></tr>\n")
	}
	b.WriteString("</table>\n</body>\n</html>\n")
	return reply{status: http.StatusOK, page: b.String()}, nil
}
