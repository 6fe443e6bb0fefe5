package vhost

import (
	"fmt"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// Queues declared alike share their arguments; others must not.
func TestArgumentsAreShared(t *testing.T) {
	var known arguments
	spec := queue.Spec{VHost: "/", Name: "q", Durable: true}
	parse := func(s queue.Spec, table frames.Table) *queue.Arguments {
		t.Helper()
		a, err := known.parse(table, s, false)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first := parse(spec, args("x-queue-type", "classic", "x-max-length", int32(5)))
	if again := parse(spec, args("x-queue-type", "classic", "x-max-length", int32(5))); again != first {
		t.Error("the same arguments again are in memory twice")
	}
	if other := parse(spec, args("x-queue-type", "classic", "x-max-length", int32(6))); other.MaxLength != 6 || first.MaxLength != 5 {
		t.Errorf("lengths are %d and %d, want 6 and 5", other.MaxLength, first.MaxLength)
	}
	if typed := parse(spec, args("x-queue-type", "classic", "x-max-length", int64(5))); typed == first {
		t.Error("a value of another type is shown as the one declared before")
	}
}

// Arguments that are fine for a durable queue may not be for another one.
func TestKnownArgumentsAreCheckedAgain(t *testing.T) {
	var known arguments
	table := args("x-queue-type", "quorum")
	if _, err := known.parse(table, queue.Spec{VHost: "/", Name: "q", Durable: true}, false); err != nil {
		t.Fatal(err)
	}
	_, err := known.parse(table, queue.Spec{VHost: "/", Name: "q"}, false)
	if want := "invalid property 'non-durable' for queue 'q' in vhost '/'"; err == nil || err.(*frames.Error).Text != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// A queue that an older version took is there again, with what its arguments say,
// but cannot be declared like that any more.
func TestRefusedArgumentsAreRecovered(t *testing.T) {
	spec := queue.Spec{VHost: "/", Name: "q", Durable: true}
	table := args("x-queue-type", "classic", "x-delivery-limit", int32(3), "x-max-age", "1h")
	for _, order := range [][2]bool{{true, false}, {false, true}} {
		var known arguments
		for _, there := range order {
			a, err := known.parse(table, spec, there)
			switch {
			case there && (err != nil || a.DeliveryLimit != 3):
				t.Errorf("a queue that is there: %v, %v", a, err)
			case !there && (err == nil || err.(*frames.Error).Code != frames.PreconditionFailed):
				t.Errorf("a declaration: %v, want it refused", err)
			}
		}
	}
}

func TestKnownArgumentsAreFew(t *testing.T) {
	var known arguments
	spec := queue.Spec{VHost: "/", Name: "q", Durable: true}
	for i := range 3 * maxKnownArguments {
		if _, err := known.parse(args("x-queue-type", "classic", "x-own", fmt.Sprint(i)), spec, false); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(known.known); n > maxKnownArguments {
		t.Errorf("%d arguments are kept, want at most %d", n, maxKnownArguments)
	}
	long := make([]byte, maxKnownTable)
	clear(known.known)
	if _, err := known.parse(args("x-own", string(long)), spec, false); err != nil || len(known.known) != 0 {
		t.Errorf("%v; %d arguments are kept, want none as large as that", err, len(known.known))
	}
}
