package queue

import (
	"math"
	"testing"
)

func TestBackoff(t *testing.T) {
	for _, tt := range []struct {
		b      Backoff
		n      uint32
		random float64
		want   int64
	}{
		{Backoff{}, 3, 0, 0},
		{Backoff{Delay: None, Multiplier: 2, Jitter: 1}, 3, 0.5, 0},
		{Backoff{Delay: 100}, 0, 0, 0}, // never came back
		{Backoff{Delay: 100}, 1, 0, 100},
		{Backoff{Delay: 100}, 9, 0, 100},
		{Backoff{Delay: 100, Multiplier: 2, Max: None}, 1, 0, 100},
		{Backoff{Delay: 100, Multiplier: 2, Max: None}, 5, 0, 1600},
		{Backoff{Delay: 100, Multiplier: 1.5}, 3, 0, 225},
		{Backoff{Delay: 100, Multiplier: 2, Max: 1000}, 5, 0, 1000},
		{Backoff{Delay: 100, Max: 50}, 1, 0, 50},
		{Backoff{Delay: 100, Multiplier: 10}, math.MaxUint32, 0, maxExpiry}, // the power is infinite
		{Backoff{Delay: 100, Jitter: 0.5}, 1, 0, 100},
		{Backoff{Delay: 100, Jitter: 0.5}, 1, 0.5, 75},
		{Backoff{Delay: 100, Jitter: 1}, 1, 0.99, 1},
		{Backoff{Delay: 100, Multiplier: 2, Max: 150, Jitter: 0.5}, 2, 0.5, 113}, // off what Max leaves
	} {
		if got := tt.b.Wait(tt.n, tt.random); got != tt.want {
			t.Errorf("%+v.Wait(%d, %g) = %d, want %d", tt.b, tt.n, tt.random, got, tt.want)
		}
	}
}

// Each part is the argument's if that is set, a 0 too, else the policy's.
func TestEffectiveBackoff(t *testing.T) {
	policy := Merge(&NamedDefinition{"p", definition(t, `{"redelivery-delay": 200, "redelivery-delay-multiplier": 3,
		"redelivery-delay-max": 900, "redelivery-jitter": 0.5, "consumer-timeout-action": "requeue"}`)}, nil)
	for _, tt := range []struct {
		args   Arguments
		policy Policy
		want   Backoff
		action TimeoutAction
	}{
		{NewArguments(), Policy{}, Backoff{Delay: None, Max: None}, CloseChannel},
		{Arguments{}, policy, Backoff{200, 3, 900, 0.5}, RequeueDelivery},
		{Arguments{RedeliveryDelay: 100, TimeoutAction: CloseChannel}, policy, Backoff{100, 3, 900, 0.5}, CloseChannel},
		{parsed(t, "x-redelivery-delay", int32(0), "x-redelivery-jitter", int32(0), "x-redelivery-delay-multiplier", 1.5), policy,
			Backoff{0, 1.5, 900, 0}, RequeueDelivery},
	} {
		s := Effective(tt.args, tt.policy)
		if s.Backoff != tt.want || s.TimeoutAction != tt.action {
			t.Errorf("%+v: backoff %+v, action %d, want %+v, %d", tt.args, s.Backoff, s.TimeoutAction, tt.want, tt.action)
		}
	}
}

func TestDeduplicationArgument(t *testing.T) {
	for _, tt := range []struct {
		args []any
		want string
	}{
		{nil, ""},
		{[]any{"x-message-deduplication", true}, "x-deduplication-header"},
		{[]any{"x-message-deduplication", false}, ""},
		{[]any{"x-message-deduplication", true, "x-deduplication-header", "id"}, "id"},
		{[]any{"x-message-deduplication", true, "x-cache-size", int32(5)}, ""},
		{[]any{"x-message-deduplication", true, "x-cache-ttl", int32(5)}, ""},
		{[]any{"x-message-deduplication", true, "x-queue-type", "quorum"}, "x-deduplication-header"},
	} {
		if got := parsed(t, tt.args...).Deduplication; got != tt.want {
			t.Errorf("%v: %q, want %q", tt.args, got, tt.want)
		}
	}
}

func parsed(t *testing.T, args ...any) Arguments {
	t.Helper()
	a, err := ParseArguments(table(args...), "/", "q", true, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
