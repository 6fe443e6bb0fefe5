package amqp

import (
	"fmt"
	"testing"
)

func TestPastAddsUpByVHost(t *testing.T) {
	s := &Server{}
	var n channelCounts
	n.published.Store(3)
	n.confirmable.Store(2)
	n.acked.Store(1)
	s.users.past.channel("a", &n)
	s.users.past.channel("a", &n)
	s.users.past.connection("b", 10, 20)
	got := s.Past()
	if want := (Past{Published: 6, Confirmable: 4, Acked: 2}); got["a"] != want {
		t.Errorf("past of a: %+v, want %+v", got["a"], want)
	}
	if want := (Past{Received: 10, Sent: 20}); got["b"] != want {
		t.Errorf("past of b: %+v, want %+v", got["b"], want)
	}
}

// Vhosts that come and go do not fill the memory.
func TestPastIsBounded(t *testing.T) {
	s := &Server{}
	for i := range maxPastVHosts + 2 {
		s.users.past.connection(fmt.Sprint(i), 1, 0)
	}
	got := s.Past()
	if len(got) != maxPastVHosts+1 || got[""].Received != 2 {
		t.Errorf("%d vhosts, %d bytes in no vhost, want %d and 2", len(got), got[""].Received, maxPastVHosts+1)
	}
}
