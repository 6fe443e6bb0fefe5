package vhost

import (
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

func TestRelaxedChecksOfQuorumQueues(t *testing.T) {
	typed := func(kind string, more ...any) frames.Table {
		return args(append([]any{"x-queue-type", kind}, more...)...)
	}
	for _, relaxed := range []bool{false, true} {
		s, err := Open(Config{Store: newFakeStore(), RelaxedQuorumQueues: relaxed,
			Factories: map[string]queue.Factory{queue.Classic: fakeFactory, queue.Quorum: fakeFactory, queue.Stream: fakeFactory}})
		if err != nil {
			t.Fatal(err)
		}
		v, _ := s.Get("/")
		declareQueue(t, v, QueueDeclare{Name: "q", Durable: true, Arguments: typed("quorum")})
		declareQueue(t, v, QueueDeclare{Name: "c", Durable: true, Arguments: typed("classic")})
		for _, tt := range []struct {
			d       QueueDeclare
			always  bool
			relaxed bool
		}{
			{QueueDeclare{Name: "q", Durable: true, Arguments: typed("quorum")}, true, true},
			{QueueDeclare{Name: "q", Durable: true, Arguments: typed("classic")}, false, true},
			{QueueDeclare{Name: "q", Durable: true}, false, true},
			{QueueDeclare{Name: "q", AutoDelete: true, Arguments: typed("classic")}, false, true},
			{QueueDeclare{Name: "q", Exclusive: true, Arguments: typed("classic")}, false, true},
			{QueueDeclare{Name: "q", Durable: true, Arguments: typed("classic", "x-max-length", int32(5))}, false, false},
			{QueueDeclare{Name: "q", Durable: true, Arguments: typed("stream")}, false, false},
			{QueueDeclare{Name: "c", Durable: true, Arguments: typed("quorum")}, false, false},
		} {
			_, err := v.DeclareQueue(System, tt.d)
			if want := tt.always || relaxed && tt.relaxed; (err == nil) != want {
				t.Errorf("relaxed %v: declare %+v: %v, want it to be equal: %v", relaxed, tt.d, err, want)
			}
		}
	}
}
