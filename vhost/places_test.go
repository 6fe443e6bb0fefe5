package vhost

import (
	"testing"

	"github.com/leveretmq/leveret/persistence"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/queue/queuetest"
	"github.com/leveretmq/leveret/queue/stream"
)

// TestPlacesOfAnEmptyStreamSurviveARestart: nothing but the stream's definition leads to
// them.
func TestPlacesOfAnEmptyStreamSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	var store *persistence.Disk
	var s *Set
	open := func() *VHost {
		store = openDisk(t, dir)
		var err error
		s, err = Open(Config{Store: store, Factories: map[string]queue.Factory{queue.Stream: stream.New}})
		if err != nil {
			t.Fatal(err)
		}
		v, _ := s.Get("/")
		return v
	}
	stop := func() {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	worker := func(v *VHost) *queuetest.Consumer {
		q, err := v.Queue(System, "s")
		if err != nil {
			t.Fatal(err)
		}
		c := queuetest.NewConsumer()
		c.Sub.Tag, c.Sub.Prefetch, c.Sub.Arguments = "worker", 5, args("x-stream-automatic-offset-tracking", true)
		if err := q.Subscribe(c.Sub); err != nil {
			t.Fatal(err)
		}
		return c
	}
	v := open()
	declareClassic(t, v, "s", true, args("x-queue-type", "stream"))
	worker(v)
	stop()
	v = open()
	publishConfirmed(t, v, "", "s", "meanwhile", nil)
	queuetest.Equal(t, "bodies", worker(v).Bodies(), []string{"meanwhile"})
	stop()
}
