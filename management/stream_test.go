package management

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/leveretmq/leveret/vhost"
)

// aLongList is an API with more queues than an answer is made of at once.
func aLongList(t *testing.T) *api {
	t.Helper()
	a := newAPI(t, nil)
	v, _ := a.vhosts.Get("/")
	for i := range heavyFrom + streamed + 1 {
		if _, err := v.DeclareQueue(vhost.System, vhost.QueueDeclare{Name: fmt.Sprintf("q%05d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func TestLongListIsWhole(t *testing.T) {
	a := aLongList(t)
	for _, path := range []string{"/queues", "/queues/%2F", "/queues?columns=name", "/queues?sort=name&columns=name", "/queues?disable_stats=true"} {
		got := names(t, a.do("GET", path, "", 200), "name")
		if len(got) != heavyFrom+streamed+1 || !slices.IsSorted(got) || len(slices.Compact(got)) != len(got) {
			t.Errorf("GET %s has %d names, want %d in order", path, len(got), heavyFrom+streamed+1)
		}
	}
	w := a.request("GET", "/queues", "", func(r *http.Request) { r.Header.Set("Accept-Encoding", "gzip") })
	if e := w.Header().Get("Content-Encoding"); e != "gzip" {
		t.Errorf("Content-Encoding %q, want gzip", e)
	}
	if w := a.request("HEAD", "/queues", "", nil); w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("HEAD = %d with %d bytes, want 200 with none", w.Code, w.Body.Len())
	}
}

// brokenPipe is a client that has gone after its first bytes.
type brokenPipe struct {
	http.ResponseWriter
	writes int
}

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.writes++; b.writes > 1 {
		return 0, http.ErrHandlerTimeout
	}
	return b.ResponseWriter.Write(p)
}

// Nothing is made for a client that has gone, and others get their turn.
func TestLongListEndsWithItsClient(t *testing.T) {
	a := aLongList(t)
	pipe := &brokenPipe{}
	a.request("GET", "/whoami", "", nil)
	a.through(pipe, "/queues")
	if pipe.writes != 2 {
		t.Errorf("%d writes, want 2: the second has failed", pipe.writes)
	}
	if n := len(names(t, a.do("GET", "/queues", "", 200), "name")); n != heavyFrom+streamed+1 {
		t.Errorf("%d queues, want %d", n, heavyFrom+streamed+1)
	}
}

// A queue that is deleted while its list is shown is left out.
func TestListWithoutAQueueThatHasGone(t *testing.T) {
	a := newAPI(t, nil)
	for _, q := range []string{"a", "b", "c"} {
		a.do("PUT", "/queues/%2F/"+q, "", 201)
	}
	v, _ := a.vhosts.Get("/")
	rows := a.s.queues.of(v, a.vhosts)
	a.do("DELETE", "/queues/%2F/a", "", 204)
	r := &request{s: a.s, http: &http.Request{}}
	d, _ := r.details()
	b, n := (&list{details: d}).append(nil, r, rows)
	var got []J
	if err := json.Unmarshal(b, &got); err != nil || n != 2 || len(got) != 2 || got[0]["name"] != "b" {
		t.Errorf("%d rows in %s (%v), want b and c", n, b, err)
	}
}

// A page of queues costs what is on it, however many there are.
func TestPageAllocatesForItsRows(t *testing.T) {
	s := newBenchServer(t)
	a := &api{t: t, s: s}
	const budget = 2500 // 100 rows
	n := testing.AllocsPerRun(3, func() {
		if w := a.request("GET", "/queues?page=50&page_size=100", "", nil); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
	})
	if n > budget {
		t.Errorf("a page of 100 out of 10,000 queues allocates %v times, want at most %d", n, budget)
	}
}
