package queue

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/leveretmq/leveret/frames"
)

// None stands for an integer argument or policy key that is not set. A
// delivery limit may be negative by itself, which is no limit, so its None
// (and no other's) is NoDeliveryLimit.
const None = -1

// NoDeliveryLimit stands for a delivery limit that is not set.
const NoDeliveryLimit = -1 << 63

// The queue types.
const (
	Classic = "classic"
	Quorum  = "quorum"
	Stream  = "stream"
)

// Overflow says what a full queue does.
type Overflow uint8

// The overflow behaviours; OverflowUnset is drop-head by default.
const (
	OverflowUnset Overflow = iota
	DropHead
	RejectPublish
	RejectPublishDLX
)

// parseOverflow returns the behaviour of that name, or OverflowUnset.
func parseOverflow(s string) Overflow {
	switch s {
	case "drop-head":
		return DropHead
	case "reject-publish":
		return RejectPublish
	case "reject-publish-dlx":
		return RejectPublishDLX
	}
	return OverflowUnset
}

// Arguments are a queue's declared arguments, validated. Make them with
// ParseArguments or NewArguments; if Expires is 0, which cannot be declared,
// every 0 means that the argument is not set.
type Arguments struct {
	// Table is what the client sent, with x-queue-type added.
	Table frames.Table
	// Type is classic, quorum or stream.
	Type string

	Expires         int64 // milliseconds; None
	MessageTTL      int64 // milliseconds; None
	MaxLength       int64 // messages; None
	MaxLengthBytes  int64 // bytes of bodies; None
	MaxPriority     int   // 1 to 255; 0 is no priorities
	DeliveryLimit   int64 // negative is unlimited; NoDeliveryLimit
	ConsumerTimeout int64 // milliseconds; None
	TimeoutAction   TimeoutAction

	RedeliveryDelay      int64   // milliseconds; None
	RedeliveryMultiplier float64 // at least 1; 0 if it is not set
	RedeliveryDelayMax   int64   // milliseconds; None
	RedeliveryJitter     float64 // 0 to 1; negative if it is not set

	// Deduplication names the header whose value tells messages apart of which
	// the queue is to hold one only; "" is none.
	Deduplication string

	// alone is what holds without a policy, for all queues declared alike; nil for
	// arguments that were not parsed.
	alone *Settings

	Overflow     Overflow
	SingleActive bool
	DeadLetter   *Target // nil if none; the exchange may be ""
}

// NewArguments returns the arguments of a queue declared without any.
func NewArguments() Arguments {
	return Arguments{
		Table: frames.Table{{Name: "x-queue-type", Value: Classic}}, Type: Classic,
		Expires: None, MessageTTL: None, MaxLength: None, MaxLengthBytes: None,
		DeliveryLimit: NoDeliveryLimit, ConsumerTimeout: None,
		RedeliveryDelay: None, RedeliveryDelayMax: None, RedeliveryJitter: None,
	}
}

// OfType returns the arguments of a queue of this type: a itself if it has the
// type, else a copy; nil is none.
func (a *Arguments) OfType(queueType string) *Arguments {
	if a != nil && a.Type == queueType {
		return a
	}
	own := NewArguments()
	if a != nil {
		own = *a
	}
	own.Type, own.alone = queueType, nil
	return &own
}

// normal makes the zero of literals what is not set.
func (a Arguments) normal() Arguments {
	if a.Expires != 0 {
		return a
	}
	unsetZeros(&a.DeliveryLimit, &a.RedeliveryJitter,
		&a.Expires, &a.MessageTTL, &a.MaxLength, &a.MaxLengthBytes, &a.ConsumerTimeout, &a.RedeliveryDelay, &a.RedeliveryDelayMax)
	return a
}

// unsetZeros marks as not set what a literal has left out.
func unsetZeros(deliveryLimit *int64, jitter *float64, numbers ...*int64) {
	for _, n := range numbers {
		if *n == 0 {
			*n = None
		}
	}
	if *deliveryLimit == 0 {
		*deliveryLimit = NoDeliveryLimit
	}
	if *jitter == 0 {
		*jitter = None
	}
}

// ResourceText is how RabbitMQ's texts name a queue.
func ResourceText(vhost, name string) string {
	return "queue '" + name + "' in vhost '" + vhost + "'"
}

// QueueType returns the x-queue-type of a declaration, or "" if it has none:
// "undefined" is none, too (RabbitMQ 4.0).
func QueueType(t frames.Table) string {
	v, ok := t.Lookup("x-queue-type")
	if s, isString := v.(string); ok && isString && s != "undefined" {
		return s
	}
	return ""
}

// WithQueueType returns the arguments with x-queue-type: the client's own, or
// this one, to add which RabbitMQ 4.0 sorts the table.
func WithQueueType(t frames.Table, queueType string) frames.Table {
	if v, ok := t.Lookup("x-queue-type"); ok && v != "undefined" {
		return t
	}
	return append(t.Without("x-queue-type"), frames.Field{Name: "x-queue-type", Value: queueType}).Sorted()
}

// ParseArguments validates the arguments of a declaration and makes a missing
// x-queue-type explicit. An error is for the client, with RabbitMQ 4.0's text.
// A vhost with a default queue type puts that into t before.
func ParseArguments(t frames.Table, vhost, name string, durable, exclusive, autoDelete bool) (Arguments, error) {
	return parseArguments(t, vhost, name, durable, exclusive, autoDelete, false)
}

// RecoverArguments is ParseArguments for a queue that is there already: an older
// version may have taken arguments that this one refuses for the type.
func RecoverArguments(t frames.Table, vhost, name string, durable, exclusive, autoDelete bool) (Arguments, error) {
	return parseArguments(t, vhost, name, durable, exclusive, autoDelete, true)
}

func parseArguments(t frames.Table, vhost, name string, durable, exclusive, autoDelete, there bool) (Arguments, error) {
	t = WithQueueType(t, Classic)
	p := parser{table: t, resource: ResourceText(vhost, name), there: there, Arguments: NewArguments()}
	if v, ok := t.Lookup("x-dead-letter-exchange"); ok {
		if _, ok := v.(string); !ok {
			return Arguments{}, frames.Errorf(frames.PreconditionFailed, "invalid type '%s' for arg 'x-dead-letter-exchange' in %s",
				frames.TypeName(v), p.resource)
		}
	}
	// The type, then the values of its own arguments, then those that are not its
	// own (RabbitMQ 4.0).
	if err := p.value("x-queue-type", parseType); err != nil {
		return Arguments{}, err
	}
	if err := p.values(); err != nil {
		return Arguments{}, err
	}
	if err := p.foreign(); err != nil && !there {
		return Arguments{}, err
	}
	if err := p.properties(durable, exclusive, autoDelete); err != nil {
		return Arguments{}, err
	}
	p.Deduplication = deduplication(t, p.Type)
	p.Table = t
	p.alone = p.Settings(Policy{})
	return p.Arguments, nil
}

// parser is one run of ParseArguments.
type parser struct {
	Arguments
	table    frames.Table
	resource string
	there    bool // the queue is there already
}

// An argument is what is known of one declared argument: which types of queue
// have it, and how a value is checked and taken over. The check returns an
// Erlang term that says what is wrong, or "".
type argument struct {
	name                    string
	classic, quorum, stream bool
	parse                   func(p *parser, v any) string
}

// arguments are all that are known but x-queue-type, in the order in which
// RabbitMQ 4.0 checks their values.
func arguments() []argument {
	const yes, no = true, false
	return []argument{
		{"x-expires", yes, yes, no, func(p *parser, v any) string { return positive(v, maxExpiry, &p.Expires) }},
		{"x-message-ttl", yes, yes, no, func(p *parser, v any) string { return nonNegative(v, maxExpiry, &p.MessageTTL) }},
		{"x-dead-letter-exchange", yes, yes, no, parseDeadLetterExchange},
		{"x-dead-letter-routing-key", yes, yes, no, parseDeadLetterKey},
		{"x-dead-letter-strategy", no, yes, no, oneOf("invalid_dlx_strategy", "at-most-once", "at-least-once")},
		{"x-max-length", yes, yes, no, func(p *parser, v any) string { return nonNegative(v, 0, &p.MaxLength) }},
		{"x-max-length-bytes", yes, yes, yes, func(p *parser, v any) string { return nonNegative(v, 0, &p.MaxLengthBytes) }},
		{"x-max-in-memory-length", no, yes, no, ignoredSize},
		{"x-max-in-memory-bytes", no, yes, no, ignoredSize},
		{"x-max-priority", yes, no, no, parseMaxPriority},
		{"x-overflow", yes, yes, no, parseOverflowArgument},
		{"x-queue-mode", yes, no, no, oneOf("unsupported queue mode '%s'", "default", "lazy")},
		{"x-queue-version", yes, no, no, parseQueueVersion},
		{"x-single-active-consumer", yes, yes, no, parseSingleActive},
		{"x-quorum-initial-group-size", no, yes, no, ignoredCount},
		{"x-max-age", no, no, yes, parseMaxAge},
		{"x-stream-max-segment-size-bytes", no, no, yes, ignoredSize},
		{"x-initial-cluster-size", no, no, yes, ignoredCount},
		{"x-queue-leader-locator", yes, yes, yes, oneOf("invalid_queue_locator_arg", "client-local", "balanced", "random", "least-leaders", "min-masters")},
		// Not validated: RabbitMQ 4.0 takes any value.
		{"x-queue-master-locator", yes, no, no, anything},
		{deliveryLimitArgument, yes, yes, no, func(p *parser, v any) string { return limitIfAny(v, &p.DeliveryLimit) }},
		{"x-consumer-timeout", yes, yes, yes, func(p *parser, v any) string { return timeIfAny(v, &p.ConsumerTimeout) }},
		// Not RabbitMQ's.
		{"x-consumer-timeout-action", yes, yes, no, parseTimeoutActionArgument},
		{"x-redelivery-delay", yes, yes, no, func(p *parser, v any) string { return nonNegative(v, maxExpiry, &p.RedeliveryDelay) }},
		{"x-redelivery-delay-multiplier", yes, yes, no, func(p *parser, v any) string { return number(v, 1, maxMultiplier, &p.RedeliveryMultiplier) }},
		{"x-redelivery-delay-max", yes, yes, no, func(p *parser, v any) string { return positive(v, maxExpiry, &p.RedeliveryDelayMax) }},
		{"x-redelivery-jitter", yes, yes, no, func(p *parser, v any) string { return number(v, 0, 1, &p.RedeliveryJitter) }},
		{"x-message-deduplication", yes, yes, no, parseDeduplication},
		{"x-deduplication-header", yes, yes, no, parseDeduplicationHeader},
		{"x-cache-size", yes, yes, no, func(p *parser, v any) string { return parseCacheNumber(p, v, 0) }},
		{"x-cache-ttl", yes, yes, no, func(p *parser, v any) string { return parseCacheNumber(p, v, maxExpiry) }},
		{"x-cache-persistence", yes, yes, no, parseCachePersistence},
	}
}

// of says whether queues of this type have the argument.
func (a argument) of(queueType string) bool {
	switch queueType {
	case Quorum:
		return a.quorum
	case Stream:
		return a.stream
	}
	return a.classic
}

// values checks the arguments that the type of the queue has.
func (p *parser) values() error {
	for _, a := range arguments() {
		if !a.of(p.Type) {
			continue
		}
		if err := p.value(a.name, a.parse); err != nil {
			return err
		}
	}
	return nil
}

// value checks one argument, if it is there.
func (p *parser) value(name string, parse func(p *parser, v any) string) error {
	v, ok := p.table.Lookup(name)
	if !ok {
		return nil
	}
	if term := parse(p, v); term != "" {
		return frames.Errorf(frames.PreconditionFailed, "invalid arg '%s' for %s: %s", name, p.resource, term)
	}
	return nil
}

// foreign refuses arguments that belong to other types of queue, the first one
// in the order of the table.
func (p *parser) foreign() error {
	known := arguments()
	for _, f := range p.table {
		i := slices.IndexFunc(known, func(a argument) bool { return a.name == f.Name })
		if i >= 0 && (!known[i].of(p.Type) || f.Name == deliveryLimitArgument && p.Type == Classic && !hasOwnRetries(p.table)) {
			return frames.Errorf(frames.PreconditionFailed, "invalid arg '%s' for %s of queue type rabbit_%s_queue", f.Name, p.resource, p.Type)
		}
	}
	return nil
}

// deliveryLimitArgument is an argument of quorum queues, and of classic ones with hasOwnRetries.
const deliveryLimitArgument = "x-delivery-limit"

// hasOwnRetries says whether an argument is there that only Leveret has: a classic
// queue with one may have a delivery limit too, which RabbitMQ 4.0 refuses.
func hasOwnRetries(t frames.Table) bool {
	return slices.ContainsFunc(t, func(f frames.Field) bool { return isOwnRetryKey(strings.TrimPrefix(f.Name, "x-")) })
}

// isOwnRetryKey says whether a policy key, or an argument without its x-, is one of
// those about retries that RabbitMQ does not have.
func isOwnRetryKey(key string) bool {
	return strings.HasPrefix(key, "redelivery-") || key == "consumer-timeout-action"
}

// maxSegmentSize is the largest segment of a stream, in bytes (RabbitMQ 4.0).
const maxSegmentSize = 3_000_000_000

// properties refuses what quorum queues and streams cannot be.
func (p *parser) properties(durable, exclusive, autoDelete bool) error {
	if p.Type == Classic {
		return p.classicLimit()
	}
	property := ""
	switch {
	case autoDelete:
		property = "auto-delete"
	case exclusive:
		property = "exclusive-owner"
	case !durable:
		property = "non-durable"
	}
	if property != "" {
		return frames.Errorf(frames.PreconditionFailed, "invalid property '%s' for %s", property, p.resource)
	}
	if p.Type == Quorum {
		return nil
	}
	if v, ok := p.table.Lookup("x-stream-max-segment-size-bytes"); ok {
		if n, _ := frames.Integer(v); n > maxSegmentSize {
			return frames.Errorf(frames.PreconditionFailed, "Exceeded max value for x-stream-max-segment-size-bytes")
		}
	}
	if v, ok := p.table.Lookup("x-stream-filter-size-bytes"); ok {
		if n, _ := frames.Integer(v); n < 16 || n > 255 {
			return frames.Errorf(frames.PreconditionFailed, "Invalid value for  x-stream-filter-size-bytes")
		}
	}
	return nil
}

// classicLimit refuses a delivery limit that is no integer: RabbitMQ 4.0, whose
// classic queues have none, takes it for quorum queues.
func (p *parser) classicLimit() error {
	if v, ok := p.table.Lookup(deliveryLimitArgument); ok {
		if _, ok := frames.Integer(v); !ok {
			return frames.Errorf(frames.PreconditionFailed, `invalid arg 'x-delivery-limit' for %s: "expected integer, got %s"`,
				p.resource, frames.TypeName(v))
		}
	}
	return nil
}

// maxExpiry is the longest TTL or expiry in milliseconds: ten years of 365
// days (RabbitMQ 4.0).
const maxExpiry = 315_360_000_000

// nonNegative takes an integer of 0 to limit; a limit of 0 is none.
func nonNegative(v any, limit int64, to *int64) string {
	n, ok := frames.Integer(v)
	switch {
	case !ok:
		return `"expected integer, got ` + frames.TypeName(v) + `"`
	case n < 0:
		return fmt.Sprintf("{value_negative,%d}", n)
	case limit > 0 && n > limit:
		return fmt.Sprintf("{value_too_large,%d}", n)
	}
	*to = n
	return ""
}

// positive takes an integer of 1 to limit; a limit of 0 is none.
func positive(v any, limit int64, to *int64) string {
	if n, ok := frames.Integer(v); ok && n == 0 {
		return "{value_zero,0}"
	}
	return nonNegative(v, limit, to)
}

// maxMultiplier bounds by how much a wait may grow each time.
const maxMultiplier = 1e6

// number takes an integer or a float of low to high.
func number(v any, low, high float64, to *float64) string {
	var f float64
	switch v := v.(type) {
	case float32:
		f = float64(v)
	case float64:
		f = v
	default:
		n, ok := frames.Integer(v)
		if !ok {
			return `"expected number, got ` + frames.TypeName(v) + `"`
		}
		f = float64(n)
	}
	switch {
	case f != f: // not a number
		return `"expected number, got nan"`
	case f < 0:
		return "{value_negative," + frames.Term(v) + "}"
	case f < low:
		return "{value_too_small," + frames.Term(v) + "}"
	case f > high:
		return "{value_too_large," + frames.Term(v) + "}"
	}
	*to = f
	return ""
}

func ignoredSize(_ *parser, v any) string {
	var n int64
	return nonNegative(v, 0, &n)
}

func ignoredCount(_ *parser, v any) string {
	var n int64
	return positive(v, 0, &n)
}

func anything(*parser, any) string { return "" }

// limitIfAny takes a delivery limit of any type: a number limits by what is no
// larger, a void is no argument, and anything else does not limit (RabbitMQ 4.0).
func limitIfAny(v any, to *int64) string {
	switch v := v.(type) {
	case nil:
	case float32:
		return limitIfAny(float64(v), to)
	case float64:
		*to = int64(math.Floor(max(min(v, 1<<62), -1<<62)))
	case frames.Timestamp:
		*to = int64(min(v, math.MaxInt64))
	default:
		n, ok := frames.Integer(v)
		if !ok {
			n = -1
		}
		*to = n
	}
	return ""
}

// timeIfAny takes an integer, a time in milliseconds without a bound (see
// Definition.time), and lets everything else pass.
func timeIfAny(v any, to *int64) string {
	if n, ok := frames.Integer(v); ok {
		*to = min(n, maxExpiry)
	}
	return ""
}

func unacceptable(v any) string { return "{unacceptable_type," + frames.TypeName(v) + "}" }

// oneOf accepts some strings; the term for others is a text if it shows them with %s.
func oneOf(term string, values ...string) func(*parser, any) string {
	return func(_ *parser, v any) string {
		s, ok := v.(string)
		if !ok {
			return unacceptable(v)
		}
		for _, known := range values {
			if s == known {
				return ""
			}
		}
		return expand(term, s)
	}
}

// expand is the term, or, if that has %s, a string with s in its place.
func expand(term, s string) string {
	before, after, ok := strings.Cut(term, "%s")
	if !ok {
		return term
	}
	return frames.StringTerm(before + s + after)
}

func parseDeadLetterExchange(p *parser, v any) string {
	s, _ := v.(string) // checked before all others
	p.DeadLetter = &Target{Exchange: s}
	return ""
}

func parseDeadLetterKey(p *parser, v any) string {
	s, ok := v.(string)
	switch {
	case !ok:
		return unacceptable(v)
	case p.DeadLetter == nil:
		return "routing_key_but_no_dlx_defined"
	case !isShort(s) && !p.there:
		return fmt.Sprintf("{value_too_long,%d}", len(s))
	}
	p.DeadLetter.Key, p.DeadLetter.HasKey = s, true
	return ""
}

func parseMaxPriority(p *parser, v any) string {
	var n int64
	if term := nonNegative(v, 0, &n); term != "" {
		return term
	}
	if n > 255 {
		return fmt.Sprintf("{max_value_exceeded,%d}", n)
	}
	p.MaxPriority = max(1, int(n)) // 0 is two priorities, too (RabbitMQ 4.0)
	return ""
}

func parseOverflowArgument(p *parser, v any) string {
	s, ok := v.(string)
	if !ok {
		return unacceptable(v)
	}
	p.Overflow = parseOverflow(s)
	if p.Overflow == OverflowUnset {
		return "invalid_overflow"
	}
	return ""
}

func parseTimeoutActionArgument(p *parser, v any) string {
	s, ok := v.(string)
	if !ok {
		return unacceptable(v)
	}
	p.TimeoutAction = parseTimeoutAction(s)
	if p.TimeoutAction == TimeoutUnset {
		return "invalid_consumer_timeout_action"
	}
	return ""
}

func parseQueueVersion(_ *parser, v any) string {
	var n int64
	if term := nonNegative(v, 0, &n); term != "" {
		return term
	}
	if n != 1 && n != 2 {
		return fmt.Sprintf(`"unsupported queue version '%d'"`, n)
	}
	return ""
}

func parseSingleActive(p *parser, v any) string {
	on, ok := v.(bool)
	if !ok {
		return unacceptable(v)
	}
	p.SingleActive = on
	return ""
}

func parseType(p *parser, v any) string {
	s, ok := v.(string)
	if !ok {
		return unacceptable(v)
	}
	switch s {
	case Classic, Quorum, Stream:
		p.Type = s
	default:
		return frames.StringTerm("unsupported queue type '" + s + "'")
	}
	return ""
}

func parseMaxAge(_ *parser, v any) string {
	s, ok := v.(string)
	if !ok {
		return unacceptable(v)
	}
	if !validMaxAge(s) {
		return "invalid_max_age"
	}
	return ""
}

// validMaxAge says whether s is a count of at least 1 and a unit.
func validMaxAge(s string) bool {
	if len(s) < 2 {
		return false
	}
	switch s[len(s)-1] {
	case 'Y', 'M', 'D', 'h', 'm', 's':
	default:
		return false
	}
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 63)
	return err == nil && n > 0
}
