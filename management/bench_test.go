package management

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leveretmq/leveret/auth"
	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/classic"
	"github.com/leveretmq/leveret/vhost"
)

// newBenchServer is a server over a broker with 10,000 queues.
func newBenchServer(b testing.TB) *Server {
	store := persistence.NewMemory()
	authority, err := auth.New(auth.Config{}, store)
	if err != nil {
		b.Fatal(err)
	}
	vhosts, err := vhost.Open(vhost.Config{Store: store, Memory: queue.NewBudget(1 << 20), Factories: map[string]queue.Factory{"classic": classic.New}})
	if err != nil {
		b.Fatal(err)
	}
	v, _ := vhosts.Get("/")
	for i := range 10_000 {
		if _, err := v.DeclareQueue(vhost.System, vhost.QueueDeclare{Name: fmt.Sprintf("queue-%05d", i)}); err != nil {
			b.Fatal(err)
		}
	}
	s := New(Config{VHosts: vhosts, Auth: authority, Store: store, Node: "rabbit@test"})
	b.Cleanup(func() { _ = s.Shutdown(context.Background()) }) // nothing is under way
	return s
}

// BenchmarkRequests calls what tools poll, with 10,000 queues.
func BenchmarkRequests(b *testing.B) {
	s := newBenchServer(b)
	for _, path := range []string{"overview", "nodes", "queues?page=1&page_size=100", "queues?page=1&sort=messages", "queues", "queues/%2F/queue-05000"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest("GET", "/api/"+path, nil)
				r.RemoteAddr = "127.0.0.1:1"
				r.SetBasicAuth("guest", "guest")
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
	sampler := newSampler(&s.cfg)
	b.Run("sample", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sampler.sample()
		}
	})
}
