package management

import (
	"bufio"
	"compress/gzip"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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

func TestTheQueryDoesNotMakeAnotherAnswer(t *testing.T) {
	a := newAPI(t, nil)
	h := a.s.Metrics()
	for _, path := range []string{
		"/metrics?x=1", "/metrics?x=2", "/metrics/per-object?x=1", "/metrics/per-object?x=2", "/metrics/memory-breakdown?x=1", "/metrics/memory-breakdown",
		"/metrics/detailed?family=a&family=b&x=1", "/metrics/detailed?family=b&family=a&family=a&queue=",
		"/metrics/detailed?family=a", "/metrics/detailed?family=a&vhost=v", "/metrics/detailed?family=a&queue=q",
	} {
		if w := ask(t, h, "GET", path, nil); w.Code != 200 {
			t.Errorf("%s = %d", path, w.Code)
		}
	}
	if n := len(a.s.scrapes.byKey); n != 7 {
		t.Errorf("%d different answers %q, want 7", n, slices.Sorted(maps.Keys(a.s.scrapes.byKey)))
	}
}

// What is sent in one piece is held while it is sent: who does not read may not hold it
// for long.
func TestAClientThatDoesNotReadIsCutOff(t *testing.T) {
	for _, coding := range []string{"", "gzip"} {
		for _, path := range []string{"/metrics/per-object", "/api/definitions"} {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(t, nil)
				a.user("admin", "administrator")
				for range 300 { // more than fits into the server's buffer, compressed, too
					a.do("PUT", "/queues/%2F/"+rand.Text()+rand.Text(), "", 201)
				}
				serve := a.s.Serve
				if strings.HasPrefix(path, "/metrics") {
					serve = a.s.ServeMetrics
				}
				client, server := net.Pipe()
				l := one{conns: make(chan net.Conn, 1)}
				l.conns <- server
				var serving sync.WaitGroup
				serving.Go(func() { serve(t.Context(), l) })
				get := func(path string) {
					fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YWRtaW46c2VjcmV0\r\nAccept-Encoding: %s\r\n\r\n", path, coding)
				}
				answers := bufio.NewReader(client)
				for _, path := range []string{path, "/", path} {
					get(path)
					w, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, w.Body); err != nil || path != "/" && w.StatusCode != 200 {
						t.Errorf("%s: status %d, %d bytes, error %v", path, w.StatusCode, n, err)
					}
					time.Sleep(2 * slowClient) // between two requests
				}
				get(path)
				time.Sleep(slowClient + 1)
				if n, err := client.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("%s %q: %d bytes and error %v for who has not read for %s, want the end", path, coding, n, err, slowClient)
				}
				client.Close()
				close(l.conns)
				a.s.Shutdown(t.Context())
				serving.Wait()
			})
		}
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
