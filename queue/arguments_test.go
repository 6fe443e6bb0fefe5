package queue

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
)

// table makes a table of names and values in turn.
func table(pairs ...any) frames.Table {
	var t frames.Table
	for i := 0; i < len(pairs); i += 2 {
		t = append(t, frames.Field{Name: pairs[i].(string), Value: pairs[i+1]})
	}
	return t
}

// text is the explanation of a protocol error with code 406.
func text(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	e, ok := errors.AsType[*frames.Error](err)
	if !ok || e.Code != frames.PreconditionFailed {
		t.Errorf("%v is not a 406", err)
		return err.Error()
	}
	return e.Text
}

func TestParseArguments(t *testing.T) {
	const q = " for queue 'q' in vhost '/': "
	for _, tt := range []struct {
		args frames.Table
		want string // the error's text; "" if accepted
	}{
		{table("x-expires", int32(1)), ""},
		{table("x-expires", int32(0)), "invalid arg 'x-expires'" + q + "{value_zero,0}"},
		{table("x-expires", int32(-5)), "invalid arg 'x-expires'" + q + "{value_negative,-5}"},
		{table("x-expires", "1"), "invalid arg 'x-expires'" + q + `"expected integer, got longstr"`},
		{table("x-expires", int64(315_360_000_000)), ""},
		{table("x-expires", int64(315_360_000_001)), "invalid arg 'x-expires'" + q + "{value_too_large,315360000001}"},
		{table("x-message-ttl", int32(0)), ""},
		{table("x-message-ttl", int64(1)<<33), ""},
		{table("x-message-ttl", int32(-1)), "invalid arg 'x-message-ttl'" + q + "{value_negative,-1}"},
		{table("x-message-ttl", int64(1)<<40), "invalid arg 'x-message-ttl'" + q + "{value_too_large,1099511627776}"},
		{table("x-message-ttl", 1.5), "invalid arg 'x-message-ttl'" + q + `"expected integer, got double"`},
		{table("x-message-ttl", nil), "invalid arg 'x-message-ttl'" + q + `"expected integer, got void"`},
		{table("x-max-length", int32(0)), ""},
		{table("x-max-length", int64(1)<<60), ""},
		{table("x-max-length", int8(-1)), "invalid arg 'x-max-length'" + q + "{value_negative,-1}"},
		{table("x-max-length-bytes", frames.Timestamp(1)), "invalid arg 'x-max-length-bytes'" + q + `"expected integer, got timestamp"`},
		{table("x-max-priority", uint8(255)), ""},
		{table("x-max-priority", int32(255)), ""},
		{table("x-max-priority", int32(0)), ""},
		{table("x-max-priority", int8(-1)), "invalid arg 'x-max-priority'" + q + "{value_negative,-1}"},
		{table("x-max-priority", int32(256)), "invalid arg 'x-max-priority'" + q + "{max_value_exceeded,256}"},
		{table("x-overflow", "reject-publish-dlx"), ""},
		{table("x-overflow", "drop-tail"), "invalid arg 'x-overflow'" + q + "invalid_overflow"},
		{table("x-overflow", int32(1)), "invalid arg 'x-overflow'" + q + "{unacceptable_type,signedint}"},
		{table("x-dead-letter-exchange", ""), ""},
		{table("x-dead-letter-exchange", int32(1)), "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"},
		{table("x-expires", int32(0), "x-dead-letter-exchange", true), "invalid type 'bool' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"},
		{table("x-dead-letter-routing-key", "k", "x-dead-letter-exchange", "x"), ""},
		{table("x-dead-letter-routing-key", "k"), "invalid arg 'x-dead-letter-routing-key'" + q + "routing_key_but_no_dlx_defined"},
		{table("x-dead-letter-routing-key", strings.Repeat("k", 255), "x-dead-letter-exchange", "x"), ""},
		{table("x-dead-letter-routing-key", strings.Repeat("k", 256), "x-dead-letter-exchange", "x"), "invalid arg 'x-dead-letter-routing-key'" + q + "{value_too_long,256}"},
		{table("x-dead-letter-exchange", "", "x-dead-letter-routing-key", int32(1)), "invalid arg 'x-dead-letter-routing-key'" + q + "{unacceptable_type,signedint}"},
		{table("x-single-active-consumer", false), ""},
		{table("x-single-active-consumer", "true"), "invalid arg 'x-single-active-consumer'" + q + "{unacceptable_type,longstr}"},
		{table("x-queue-mode", "lazy"), ""},
		{table("x-queue-mode", "hasty"), "invalid arg 'x-queue-mode'" + q + `"unsupported queue mode 'hasty'"`},
		{table("x-queue-version", int32(2)), ""},
		{table("x-queue-version", int32(3)), "invalid arg 'x-queue-version'" + q + `"unsupported queue version '3'"`},
		{table("x-queue-type", "turbo"), "invalid arg 'x-queue-type'" + q + `"unsupported queue type 'turbo'"`},
		{table("x-queue-type", `a"b\`), "invalid arg 'x-queue-type'" + q + `"unsupported queue type 'a\"b\\'"`},
		{table("x-queue-mode", "\xe9\n"), "invalid arg 'x-queue-mode'" + q + `"unsupported queue mode 'é\n'"`},
		{table("x-queue-type", "undefined"), ""},
		{table("x-queue-leader-locator", "balanced"), ""},
		{table("x-queue-leader-locator", "min-masters"), ""}, // of the older argument
		{table("x-queue-leader-locator", "here"), "invalid arg 'x-queue-leader-locator'" + q + "invalid_queue_locator_arg"},
		{table("x-queue-master-locator", int32(1)), ""},
		{table("x-consumer-timeout", "soon"), ""},
		{table("x-nonsense", "1", "other", int32(2), "x-ha-policy", "all"), ""},
		{table("x-stream-filter-size-bytes", int32(1)), ""},
		{table("x-delivery-limit", int32(3)), "invalid arg 'x-delivery-limit' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{table("x-delivery-limit", int32(3), "x-redelivery-delay", int32(0)), ""},
		{table("x-redelivery-jitter", int32(1), "x-delivery-limit", "3"), "invalid arg 'x-delivery-limit'" + q + `"expected integer, got longstr"`},
		{table("x-consumer-timeout-action", "requeue"), ""},
		{table("x-consumer-timeout-action", "shrug"), "invalid arg 'x-consumer-timeout-action'" + q + "invalid_consumer_timeout_action"},
		{table("x-consumer-timeout-action", true), "invalid arg 'x-consumer-timeout-action'" + q + "{unacceptable_type,bool}"},
		{table("x-redelivery-delay", int32(0)), ""},
		{table("x-redelivery-delay", int32(-1)), "invalid arg 'x-redelivery-delay'" + q + "{value_negative,-1}"},
		{table("x-redelivery-delay", int64(315_360_000_001)), "invalid arg 'x-redelivery-delay'" + q + "{value_too_large,315360000001}"},
		{table("x-redelivery-delay", 1.5), "invalid arg 'x-redelivery-delay'" + q + `"expected integer, got double"`},
		{table("x-redelivery-delay-multiplier", 1.5), ""},
		{table("x-redelivery-delay-multiplier", int32(2)), ""},
		{table("x-redelivery-delay-multiplier", float32(0.5)), "invalid arg 'x-redelivery-delay-multiplier'" + q + "{value_too_small,0.5}"},
		{table("x-redelivery-delay-multiplier", "2"), "invalid arg 'x-redelivery-delay-multiplier'" + q + `"expected number, got longstr"`},
		{table("x-redelivery-delay-multiplier", math.NaN()), "invalid arg 'x-redelivery-delay-multiplier'" + q + `"expected number, got nan"`},
		{table("x-redelivery-delay-multiplier", math.Inf(1)), "invalid arg 'x-redelivery-delay-multiplier'" + q + "{value_too_large,+Inf}"},
		{table("x-redelivery-delay-max", int32(1)), ""},
		{table("x-redelivery-delay-max", int32(0)), "invalid arg 'x-redelivery-delay-max'" + q + "{value_zero,0}"},
		{table("x-redelivery-jitter", int32(1)), ""},
		{table("x-redelivery-jitter", -0.5), "invalid arg 'x-redelivery-jitter'" + q + "{value_negative,-0.5}"},
		{table("x-redelivery-jitter", 1.5), "invalid arg 'x-redelivery-jitter'" + q + "{value_too_large,1.5}"},
		{table("x-message-deduplication", true, "x-deduplication-header", "id", "x-cache-size", "5", "x-cache-ttl", int32(5)), ""},
		{table("x-message-deduplication", false), ""},
		{table("x-message-deduplication", "true"), "invalid arg 'x-message-deduplication'" + q + "{unacceptable_type,longstr}"},
		{table("x-message-deduplication", true, "x-deduplication-header", ""), "invalid arg 'x-deduplication-header'" + q + "invalid_deduplication_header"},
		{table("x-message-deduplication", true, "x-deduplication-header", int32(1)), "invalid arg 'x-deduplication-header'" + q + "{unacceptable_type,signedint}"},
		{table("x-message-deduplication", true, "x-cache-size", int32(0)), "invalid arg 'x-cache-size'" + q + "{value_zero,0}"},
		{table("x-message-deduplication", true, "x-cache-size", "5k"), "invalid arg 'x-cache-size'" + q + `"expected integer, got longstr"`},
		{table("x-message-deduplication", true, "x-cache-ttl", "-5"), "invalid arg 'x-cache-ttl'" + q + "{value_negative,-5}"},
		{table("x-message-deduplication", true, "x-cache-persistence", "memory"), ""},
		{table("x-message-deduplication", true, "x-cache-persistence", "disk"), "invalid arg 'x-cache-persistence'" + q + `"unsupported cache persistence 'disk'"`},
		{table("x-cache-size", int32(5)), "invalid arg 'x-cache-size'" + q + `"only with x-message-deduplication"`},
		{table("x-message-deduplication", false, "x-deduplication-header", "id"), "invalid arg 'x-deduplication-header'" + q + `"only with x-message-deduplication"`},
		{table("x-dead-letter-strategy", "at-least-once"), "invalid arg 'x-dead-letter-strategy' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{table("x-dead-letter-strategy", "sometimes"), "invalid arg 'x-dead-letter-strategy' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{table("x-quorum-initial-group-size", int32(0)), "invalid arg 'x-quorum-initial-group-size' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{table("x-quorum-initial-group-size", int32(0), "x-expires", int32(0)), "invalid arg 'x-expires'" + q + "{value_zero,0}"},
		{table("x-expires", int32(0), "x-queue-type", true), "invalid arg 'x-queue-type'" + q + "{unacceptable_type,bool}"},
		{table("x-quorum-initial-group-size", int32(1), "x-max-age", "1h"), "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{table("x-quorum-initial-group-size", int32(1), "x-max-age", "1h", "x-queue-type", "classic"), "invalid arg 'x-quorum-initial-group-size' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{table("x-max-age", "1h"), "invalid arg 'x-max-age' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
	} {
		_, err := ParseArguments(tt.args, "/", "q", true, false, false)
		if got := text(t, err); got != tt.want {
			t.Errorf("%v:\n got %q\nwant %q", tt.args, got, tt.want)
		}
	}
}

func TestParseArgumentsOfOtherTypes(t *testing.T) {
	for _, tt := range []struct {
		args                           frames.Table
		durable, exclusive, autoDelete bool
		want                           string
	}{
		{table("x-queue-type", "quorum"), true, false, false, ""},
		{table("x-queue-type", "quorum"), false, false, false, "invalid property 'non-durable' for queue 'q' in vhost '/'"},
		{table("x-queue-type", "quorum"), true, true, false, "invalid property 'exclusive-owner' for queue 'q' in vhost '/'"},
		{table("x-queue-type", "stream"), true, false, true, "invalid property 'auto-delete' for queue 'q' in vhost '/'"},
		{table("x-queue-type", "quorum", "x-delivery-limit", "a string"), true, false, false, ""},
		{table("x-queue-type", "quorum", "x-redelivery-delay", int32(5), "x-consumer-timeout-action", "close"), true, false, false, ""},
		{table("x-queue-type", "stream", "x-redelivery-delay", int32(5)), true, false, false, "invalid arg 'x-redelivery-delay' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"},
		{table("x-queue-type", "stream", "x-consumer-timeout-action", "close"), true, false, false, "invalid arg 'x-consumer-timeout-action' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"},
		{table("x-queue-type", "quorum", "x-message-deduplication", int32(1)), true, false, false, "invalid arg 'x-message-deduplication' for queue 'q' in vhost '/': {unacceptable_type,signedint}"},
		{table("x-queue-type", "stream", "x-message-deduplication", true), true, false, false, "invalid arg 'x-message-deduplication' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"},
		{table("x-queue-type", "stream", "x-cache-size", int32(5)), true, false, false, "invalid arg 'x-cache-size' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"},
		{table("x-queue-type", "stream", "x-consumer-timeout", "any"), true, false, false, ""},
		{table("x-queue-type", "quorum", "x-max-priority", int32(3)), true, false, false, "invalid arg 'x-max-priority' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue"},
		{table("x-queue-type", "quorum", "x-queue-mode", "lazy"), false, false, false, "invalid arg 'x-queue-mode' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue"},
		{table("x-queue-type", "quorum", "x-overflow", "reject-publish-dlx"), true, false, false, ""},
		{table("x-queue-type", "stream", "x-message-ttl", int32(1)), true, false, false, "invalid arg 'x-message-ttl' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"},
		{table("x-queue-type", "stream", "x-max-length-bytes", int32(1), "x-max-age", "30D"), true, false, false, ""},
		{table("x-queue-type", "stream", "x-stream-max-segment-size-bytes", int64(3_000_000_001)), true, false, false, "Exceeded max value for x-stream-max-segment-size-bytes"},
		{table("x-queue-type", "stream", "x-stream-filter-size-bytes", int32(15)), true, false, false, "Invalid value for  x-stream-filter-size-bytes"},
		{table("x-queue-type", "stream", "x-stream-filter-size-bytes", int32(255)), true, false, false, ""},
		{table("x-queue-type", "quorum", "x-dead-letter-strategy", "sometimes"), true, false, false, "invalid arg 'x-dead-letter-strategy' for queue 'q' in vhost '/': invalid_dlx_strategy"},
		{table("x-queue-type", "stream", "x-max-age", "1w"), true, false, false, "invalid arg 'x-max-age' for queue 'q' in vhost '/': invalid_max_age"},
		{table("x-queue-type", "stream", "x-max-age", "0h"), true, false, false, "invalid arg 'x-max-age' for queue 'q' in vhost '/': invalid_max_age"},
		{table("x-queue-type", "stream", "x-max-age", "D"), true, false, false, "invalid arg 'x-max-age' for queue 'q' in vhost '/': invalid_max_age"},
		{table("x-queue-type", "stream", "x-max-age", ""), true, false, false, "invalid arg 'x-max-age' for queue 'q' in vhost '/': invalid_max_age"},
		{table("x-queue-type", "stream", "x-initial-cluster-size", int32(0)), true, false, false, "invalid arg 'x-initial-cluster-size' for queue 'q' in vhost '/': {value_zero,0}"},
	} {
		_, err := ParseArguments(tt.args, "/", "q", tt.durable, tt.exclusive, tt.autoDelete)
		if got := text(t, err); got != tt.want {
			t.Errorf("%v:\n got %q\nwant %q", tt.args, got, tt.want)
		}
	}
}

// RabbitMQ 4.0 takes delivery limits of any type for quorum queues.
func TestDeliveryLimitsThatAreNoIntegers(t *testing.T) {
	for _, tt := range []struct {
		limit any
		want  int64
	}{
		{int8(3), 3}, {-2.0, -2}, {2.0, 2}, {1.5, 1}, {float32(0.5), 0}, {-0.5, -1}, {frames.Timestamp(4), 4}, {nil, NoDeliveryLimit},
		{"3", -1}, {"", -1}, {[]byte("3"), -1}, {true, -1}, {false, -1}, {table("a", int32(1)), -1}, {[]any{int32(1)}, -1},
	} {
		a, err := ParseArguments(table("x-queue-type", "quorum", "x-delivery-limit", tt.limit), "/", "q", true, false, false)
		if err != nil || a.DeliveryLimit != tt.want {
			t.Errorf("x-delivery-limit %T(%v): limit %d, error %v; want %d", tt.limit, tt.limit, a.DeliveryLimit, err, tt.want)
		}
	}
}

func TestQueuesThatAreThereKeepTheirArguments(t *testing.T) {
	for _, args := range []frames.Table{
		table("x-message-deduplication", "true"),
		table("x-message-deduplication", int32(1), "x-cache-size", "many"),
		table("x-deduplication-header", int32(1), "x-cache-ttl", int32(-1), "x-cache-persistence", "disk"),
		table("x-queue-type", "stream", "x-message-deduplication", false),
		table("x-dead-letter-exchange", "x", "x-dead-letter-routing-key", strings.Repeat("k", 256)),
	} {
		if _, err := ParseArguments(args, "/", "q", true, false, false); err == nil {
			t.Errorf("%v: a new queue may have them", args)
		}
		if a, err := RecoverArguments(args, "/", "q", true, false, false); err != nil || a.Deduplication != "" {
			t.Errorf("%v: error %v, duplicates by %q", args, err, a.Deduplication)
		}
	}
}

func TestParsedArguments(t *testing.T) {
	a, err := ParseArguments(table("x-expires", int16(5), "x-message-ttl", int32(0), "x-max-length", int64(7), "x-max-length-bytes", uint32(8),
		"x-max-priority", uint8(9), "x-overflow", "reject-publish", "x-single-active-consumer", true, "x-consumer-timeout", int32(10),
		"x-dead-letter-exchange", "x", "x-dead-letter-routing-key", "k"), "/", "q", true, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if a.Type != Classic || a.Expires != 5 || a.MessageTTL != 0 || a.MaxLength != 7 || a.MaxLengthBytes != 8 || a.MaxPriority != 9 ||
		a.Overflow != RejectPublish || !a.SingleActive || a.ConsumerTimeout != 10 || *a.DeadLetter != (Target{"x", "k", true}) ||
		a.DeliveryLimit != NoDeliveryLimit {
		t.Errorf("parsed %+v", a)
	}
	if v, _ := a.Table.Lookup("x-queue-type"); v != "classic" {
		t.Errorf("x-queue-type is %v, want classic", v)
	}
}

func TestQueueTypeIsMadeExplicit(t *testing.T) {
	for _, args := range []frames.Table{nil, table("x-queue-type", "undefined"), table("x-queue-type", "classic")} {
		a, err := ParseArguments(args, "/", "q", false, false, false)
		if err != nil || len(a.Table) != 1 || a.Table[0] != (frames.Field{Name: "x-queue-type", Value: "classic"}) {
			t.Errorf("%v became %v, %v", args, a.Table, err)
		}
	}
}

func TestEquivalent(t *testing.T) {
	for _, tt := range []struct {
		have, got frames.Table
		arg, want string
	}{
		{nil, nil, "", ""},
		{nil, table("x-queue-type", "classic"), "", ""},
		{table("x-message-ttl", int64(60000), "x-max-length", int16(5)), table("x-message-ttl", int32(60000), "x-max-length", int64(5)), "", ""},
		{table("x-nonsense", "1"), table("x-nonsense", "2"), "", ""},
		{table("x-consumer-timeout", int32(60000)), table("x-consumer-timeout", int32(70000)), "", ""},
		{table("x-max-length", int32(5)), table("x-max-length", int32(6)), "x-max-length", "received '6' but current is '5'"},
		{table("x-max-priority", int32(10)), nil, "x-max-priority", "received none but current is the value '10' of type 'signedint'"},
		{table("x-queue-type", "stream", "x-stream-filter-size-bytes", int32(16)), table("x-queue-type", "stream", "x-stream-filter-size-bytes", int32(17)), "", ""},
		{nil, table("x-expires", int64(5)), "x-expires", "received the value '5' of type 'long' but current is none"},
		{nil, table("x-single-active-consumer", true), "x-single-active-consumer", "received the value 'true' of type 'bool' but current is none"},
		{table("x-dead-letter-exchange", "d"), table("x-dead-letter-exchange", "e"), "x-dead-letter-exchange", "received 'e' but current is 'd'"},
		{table("x-queue-master-locator", int32(5)), table("x-queue-master-locator", "5"), "x-queue-master-locator", "received '5' but current is '5'"},
		{table("x-overflow", "drop-head", "x-max-length", int32(1)), table("x-overflow", "reject-publish", "x-max-length", int32(2)),
			"x-max-length", "received '2' but current is '1'"},
		{table("x-queue-type", "stream"), table("x-queue-type", "stream", "x-message-deduplication", true),
			"x-message-deduplication", "received the value 'true' of type 'bool' but current is none"},
		{table("x-queue-type", "stream"), table("x-queue-type", "stream", "x-consumer-timeout", int32(5), "x-redelivery-delay", int32(5)),
			"x-redelivery-delay", "received the value '5' of type 'signedint' but current is none"},
		{table("x-overflow", "drop-head"), table("x-overflow", "\xe9"), "x-overflow", "received 'é' but current is 'drop-head'"},
		{table("x-overflow", "drop-head"), table("x-overflow", nil), "x-overflow", "received none but current is 'drop-head'"},
		{nil, table("x-overflow", nil), "x-overflow", "received the value 'undefined' of type 'void' but current is none"},
		{nil, table("x-delivery-limit", int32(5)), "", ""}, // classic queues have none
		{table("x-redelivery-jitter", int32(1)), table("x-redelivery-jitter", int32(1), "x-delivery-limit", int32(5)),
			"x-delivery-limit", "received the value '5' of type 'signedint' but current is none"},
		{nil, table("x-message-deduplication", true), "x-message-deduplication", "received the value 'true' of type 'bool' but current is none"},
		{table("x-queue-type", "quorum", "x-message-deduplication", true), table("x-queue-type", "quorum"),
			"x-message-deduplication", "received none but current is the value 'true' of type 'bool'"},
		{table("x-message-deduplication", true, "x-deduplication-header", "a"), table("x-message-deduplication", true, "x-deduplication-header", "b"),
			"x-deduplication-header", "received 'b' but current is 'a'"},
		{table("x-message-deduplication", true, "x-cache-size", int32(5)), table("x-message-deduplication", true, "x-cache-size", int32(6)),
			"x-cache-size", "received '6' but current is '5'"},
		{table("x-queue-type", "quorum", "x-message-deduplication", true, "x-cache-ttl", int32(5)), table("x-queue-type", "quorum", "x-message-deduplication", true),
			"x-cache-ttl", "received none but current is the value '5' of type 'signedint'"},
		{nil, table("x-queue-type", "quorum", "x-quorum-initial-group-size", int32(1)), "x-queue-type", "received 'quorum' but current is 'classic'"},
		{table("x-queue-type", "quorum"), nil, "x-queue-type", "received 'classic' but current is 'quorum'"},
	} {
		a, err := ParseArguments(tt.have, "/", "q", true, false, false)
		if err != nil {
			t.Fatal(err)
		}
		b := NewArguments() // a redeclaration is compared first
		b.Table = WithQueueType(tt.got, Classic)
		want := ""
		if tt.want != "" {
			want = "inequivalent arg '" + tt.arg + "' for queue 'q' in vhost '/': " + tt.want
		}
		if got := text(t, a.Equivalent(b, "/", "q")); got != want {
			t.Errorf("%v against %v:\n got %q\nwant %q", tt.got, tt.have, got, want)
		}
	}
}

func TestEquivalentFlags(t *testing.T) {
	have := Spec{VHost: "/", Name: "q", Durable: true, Arguments: new(NewArguments())}
	other := have
	other.AutoDelete = true
	if got, want := text(t, have.Equivalent(other)), "inequivalent arg 'auto_delete' for queue 'q' in vhost '/': received 'true' but current is 'false'"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	other.Durable = false
	if got, want := text(t, have.Equivalent(other)), "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := have.Equivalent(have); err != nil {
		t.Errorf("a queue is not equivalent to itself: %v", err)
	}
}

func TestParseConsumerArguments(t *testing.T) {
	for _, tt := range []struct {
		args      frames.Table
		queueType string
		priority  int
		want      string
	}{
		{nil, Classic, 0, ""},
		{table("x-priority", int8(-1)), Classic, -1, ""},
		{table("x-priority", int64(10), "x-cancel-on-ha-failover", true), Quorum, 10, ""},
		{table("x-priority", "1"), Classic, 0, `invalid arg 'x-priority' for queue 'q' in vhost '/': "expected integer, got longstr"`},
		{table("x-priority", int32(1)), Stream, 0, "invalid arg 'x-priority' for queue 'q' in vhost '/' of queue type rabbit_stream_queue"},
		{table("x-stream-offset", "first"), Stream, 0, ""},
		{table("x-priority", int32(1), "x-stream-offset", "5 parsecs"), Stream, 0, `invalid arg 'x-stream-offset' for queue 'q' in vhost '/': {invalid_stream_offset_arg,{longstr,<<"5 parsecs">>}}`},
		{table("x-stream-offset", "5m"), Stream, 0, ""},
		{table("x-stream-offset", frames.Timestamp(5)), Stream, 0, ""},
		{table("x-stream-offset", int64(-1)), Stream, 0, ""},
		{table("x-stream-offset", 1.5), Stream, 0, "invalid arg 'x-stream-offset' for queue 'q' in vhost '/': {invalid_stream_offset_arg,{double,1.5}}"},
		{table("x-stream-offset", "first", "x-priority", true), Quorum, 0, `invalid arg 'x-priority' for queue 'q' in vhost '/': "expected integer, got bool"`},
		{table("x-stream-offset", "first"), Classic, 0, "invalid arg 'x-stream-offset' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"},
		{table("x-stream-filter", "a"), Quorum, 0, "invalid arg 'x-stream-filter' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue"},
	} {
		n, err := ParseConsumerArguments(tt.args, "/", "q", tt.queueType)
		if got := text(t, err); got != tt.want || n != tt.priority {
			t.Errorf("%v: %d, %q, want %d, %q", tt.args, n, got, tt.priority, tt.want)
		}
	}
}

func TestTerm(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want string
	}{
		{int16(-3), "-3"},
		{1.0, "1.0"},
		{float32(2.5), "2.5"},
		{true, "true"},
		{nil, "undefined"},
		{"a\"b", `<<"a\"b">>`},
		{"é", `<<"é"/utf8>>`},
		{"\xff", `<<"ÿ">>`},
		{"\x80", "<<128>>"},
		{table("k", "v"), `[{<<"k">>,longstr,<<"v">>}]`},
		{[]any{int32(1), "a"}, `[{signedint,1},{longstr,<<"a">>}]`},
	} {
		if got := frames.Term(tt.v); got != tt.want {
			t.Errorf("term(%v) = %s, want %s", tt.v, got, tt.want)
		}
	}
}
