package management

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// builds counts how often an answer is made, which takes some time.
type builds struct {
	n    int
	took time.Duration
}

func (b *builds) build(x *exposition) {
	time.Sleep(b.took)
	b.n++
	x.text = fmt.Appendf(x.text, "answer %d\n", b.n)
}

func (b *builds) want(t *testing.T, n int) {
	t.Helper()
	if b.n != n {
		t.Errorf("%d answers were made, want %d", b.n, n)
	}
}

func TestAStormOfScrapesSharesOneAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s scrapes
		b := &builds{took: 100 * time.Millisecond}
		for range 50 {
			if text, _ := s.of("/metrics?").answer(b.build, nil); string(text) != "answer 1\n" {
				t.Errorf("answer %q", text)
			}
		}
		b.want(t, 1)
		time.Sleep(maxShared)
		synctest.Wait()
		if kept := s.of("/metrics?").text; kept != nil {
			t.Errorf("%q is kept for longer than %s", kept, maxShared)
		}
		s.of("/metrics?").answer(b.build, nil)
		s.of("/metrics?family=x").answer(b.build, nil)
		b.want(t, 3)
	})
}

func TestAQuickAnswerIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s scrapes
		b := &builds{}
		compress := func(text []byte) []byte { return append([]byte("z"), text...) }
		for i := range 3 {
			text, gz := s.of("k").answer(b.build, compress)
			if want := fmt.Sprintf("answer %d\n", i+1); string(text) != want || string(gz) != "z"+want {
				t.Errorf("answer %q, compressed %q, want %q", text, gz, want)
			}
		}
	})
}

func TestScrapesOfManyQueriesKeepFew(t *testing.T) {
	var s scrapes
	for i := range 10 * maxScrapes {
		s.of(fmt.Sprint(i))
	}
	if n := len(s.byKey); n > maxScrapes {
		t.Errorf("%d are kept, want at most %d", n, maxScrapes)
	}
}

func TestLabelsAreEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"plain":        `{queue="plain"}`,
		`a"b\c` + "\n": `{queue="a\"b\\c\n"}`,
		"a\xffb":       "{queue=\"a\uFFFDb\"}",
		"ü":            `{queue="ü"}`,
	} {
		if got := labelText("queue", in); got != want {
			t.Errorf("labelText(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestCompressedScrape(t *testing.T) {
	a := aBusyAPI(t)
	h := a.s.Metrics()
	if got := gunzip(t, h, "/metrics/per-object"); !strings.Contains(got, "rabbitmq_queue_messages_ready{queue=\"q\",vhost=\"/\"} 3\n") {
		t.Errorf("the answer has no line for the queue:\n%s", got)
	}
}

// gunzip gets a path of a handler compressed, and returns it as it was.
func gunzip(t *testing.T, h http.Handler, path string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
