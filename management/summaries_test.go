package management

import "testing"

func TestEveryRouteHasASummary(t *testing.T) {
	texts := summaries()
	for _, row := range routes() {
		name := row.method + " " + row.path
		if texts[name] == "" {
			t.Errorf("%s has no summary", name)
		}
		delete(texts, name)
	}
	for name := range texts {
		t.Errorf("there is a summary of %s, which is no route", name)
	}
}

func TestOpenAPIHasTheSummaries(t *testing.T) {
	a := newAPI(t, nil)
	paths := a.do("GET", "/openapi.json", "", 200).(J)["paths"].(J)
	has(t, paths["/queues/{vhost}/{queue}/contents"].(J)["delete"], J{"summary": "Drop the ready messages of a queue"})
	if n := len(paths); n < 100 {
		t.Errorf("%d paths, want all", n)
	}
}
