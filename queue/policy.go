package queue

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/leveretmq/leveret/frames"
)

// A Definition is the definition of a policy or an operator policy, as decoded
// from JSON: keys like "max-length" and numbers, strings and so on.
type Definition map[string]any

// A NamedDefinition is a policy as far as a queue is concerned.
type NamedDefinition struct {
	Name       string
	Definition Definition
}

// A Policy is what policies and operator policies say of one queue, merged.
// Make one with Merge; if Expires is 0, which no policy can say, every 0 means
// that the key is not set.
type Policy struct {
	// Name and Operator are the names of the policy and the operator policy
	// that apply; "" if none.
	Name, Operator string
	// Definition is the merged definition, for listings; empty if there is none.
	Definition Definition

	Expires              int64 // milliseconds; None
	MessageTTL           int64 // milliseconds; None
	MaxLength            int64 // messages; None
	MaxLengthBytes       int64 // bytes of bodies; None
	DeliveryLimit        int64 // negative is unlimited; NoDeliveryLimit
	ConsumerTimeout      int64 // milliseconds; None
	TimeoutAction        TimeoutAction
	RedeliveryDelay      int64   // milliseconds; None
	RedeliveryMultiplier float64 // at least 1; 0 if it is not set
	RedeliveryDelayMax   int64   // milliseconds; None
	RedeliveryJitter     float64 // 0 to 1; negative if it is not set
	Overflow             Overflow
	DeadLetterExchange   *string
	DeadLetterRoutingKey *string
}

// A policyKey is what is known of one key of definitions. noun is what
// RabbitMQ calls its value in "... is not a valid <noun>".
type policyKey struct {
	valid                   func(v any) bool
	noun                    string
	operator                bool // may be in an operator policy
	classic, quorum, stream bool // which queues support it
}

// policyKeys are all keys that a definition may have: those of RabbitMQ 4.0, and
// some of our own.
func policyKeys() map[string]policyKey {
	const yes, no = true, false
	return map[string]policyKey{
		"alternate-exchange":      {isString, "alternate exchange name", no, yes, yes, yes},
		"dead-letter-exchange":    {isString, "dead letter exchange name", no, yes, yes, no},
		"dead-letter-routing-key": {isShort, "dead letter routing key", no, yes, yes, no},
		"dead-letter-strategy":    {isOneOf("at-most-once", "at-least-once"), "dead letter strategy", no, no, yes, no},
		"message-ttl":             {isAtLeast(0), "message TTL", yes, yes, yes, no},
		"expires":                 {isAtLeast(1), "queue expiry", yes, yes, yes, no},
		"max-length":              {isAtLeast(0), "maximum length", yes, yes, yes, no},
		"max-length-bytes":        {isAtLeast(0), "maximum length in bytes", yes, yes, yes, yes},
		"max-in-memory-length":    {isAtLeast(0), "maximum memory in bytes", yes, no, yes, no},
		"max-in-memory-bytes":     {isAtLeast(0), "maximum memory in bytes", yes, no, yes, no},
		"overflow":                {isOneOf("drop-head", "reject-publish", "reject-publish-dlx"), "overflow value", yes, yes, yes, no},
		"delivery-limit":          {isAtLeast(math.MinInt64), "delivery limit", yes, yes, yes, no},
		"queue-mode":              {isOneOf("default", "lazy"), "queue-mode value", no, yes, no, no},
		"queue-version":           {isBetween(1, 2), "queue-version value", yes, yes, yes, yes},
		"consumer-timeout":        {isAtLeast(0), "consumer timeout", no, yes, yes, yes},
		"max-age":                 {isMaxAge, "max age", no, no, no, yes},
		"queue-leader-locator": {isOneOf("client-local", "balanced", "random", "least-leaders"),
			"queue leader locator value", no, yes, yes, yes},
		// RabbitMQ 4.0: the older name, for classic queues.
		"queue-master-locator":          {isOneOf("min-masters", "client-local", "random", "balanced", "least-leaders"), "master locator", no, yes, no, no},
		"initial-cluster-size":          {isAtLeast(0), "cluster size", no, no, no, yes},
		"stream-max-segment-size-bytes": {isBetween(0, maxSegmentSize), "segment size", no, no, no, yes},
		"stream-filter-size-bytes":      {isBetween(16, 255), "filter size. Valid range is 16-255", no, yes, yes, yes},
		"target-group-size":             {isAtLeast(1), "qq target count value", yes, no, yes, no},
		// Not RabbitMQ's.
		"consumer-timeout-action":     {isOneOf("close", "requeue"), "consumer timeout action", no, yes, yes, no},
		"redelivery-delay":            {isBetween(0, maxExpiry), "redelivery delay", no, yes, yes, no},
		"redelivery-delay-multiplier": {isNumber(1, maxMultiplier), "redelivery delay multiplier", no, yes, yes, no},
		"redelivery-delay-max":        {isBetween(1, maxExpiry), "maximum redelivery delay", no, yes, yes, no},
		"redelivery-jitter":           {isNumber(0, 1), "redelivery jitter", no, yes, yes, no},
		// Of the federation plugin, see Federates.
		"federation-upstream":         {isString, "federation upstream", no, yes, yes, yes},
		"federation-upstream-set":     {isString, "federation upstream set", no, yes, yes, yes},
		"federation-upstream-pattern": {isString, "federation upstream pattern", no, yes, yes, yes},
	}
}

// Federates says whether the definition has a key of RabbitMQ's federation
// plugin. Such keys are accepted and shown, and have no effect.
func Federates(def Definition) bool {
	for key := range def {
		if strings.HasPrefix(key, "federation-upstream") {
			return true
		}
	}
	return false
}

// ValidateDefinition checks a definition before it becomes a policy, or an
// operator policy. The error's text is RabbitMQ's, without the line
// "Validation failed" that the front doors put before it.
func ValidateDefinition(def Definition, operator bool) error {
	if len(def) == 0 {
		return fmt.Errorf("no policy provided")
	}
	known := policyKeys()
	var unknown []string
	for _, key := range slices.Sorted(maps.Keys(def)) {
		k, ok := known[key]
		switch {
		case !ok || operator && !k.operator:
			unknown = append(unknown, key)
		case !k.valid(def[key]):
			return fmt.Errorf("%s is not a valid %s", jsonTerm(def[key]), k.noun)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%s are not recognised policy settings", frames.ListTerm(len(unknown), func(i int) string {
			return "{" + frames.BinaryTerm(unknown[i]) + "," + jsonTerm(def[unknown[i]]) + "}"
		}))
	}
	return nil
}

// Supports says whether queues of this type know every key of the definition:
// a policy with one key that the type does not support is not applied at all
// (RabbitMQ 4.0). Classic queues know a delivery limit next to a key about retries
// that RabbitMQ does not have.
func Supports(queueType string, def Definition) bool {
	known := policyKeys()
	for key := range def {
		k, ok := known[key]
		if !ok {
			return false
		}
		if a := (argument{classic: k.classic, quorum: k.quorum, stream: k.stream}); !a.of(queueType) {
			return false
		}
		if key == "delivery-limit" && queueType == Classic && !ownRetries(def) {
			return false
		}
	}
	return true
}

// ownRetries says whether the definition has a key about retries that RabbitMQ does
// not have.
func ownRetries(def Definition) bool {
	for key := range def {
		if isOwnRetryKey(key) {
			return true
		}
	}
	return false
}

// MergeDefinitions is the effective definition of a policy and an operator
// policy, either of which may be nil: the smaller value of sizes and times, and
// the operator's of everything else (RabbitMQ 4.0).
func MergeDefinitions(policy, operator Definition) Definition {
	merged := maps.Clone(policy)
	if merged == nil {
		merged = Definition{}
	}
	for key, theirs := range operator {
		ours, ok := policy[key]
		if !ok || !smaller(key, ours, theirs) {
			merged[key] = theirs
		}
	}
	return merged
}

// smaller says whether ours stays although the operator has a value, too.
func smaller(key string, ours, theirs any) bool {
	a, _ := jsonInteger(ours)
	b, _ := jsonInteger(theirs)
	switch key {
	case "message-ttl", "expires", "max-length", "max-length-bytes", "max-in-memory-length", "max-in-memory-bytes", "target-group-size":
		return a < b
	case "delivery-limit":
		return deliveryLimit(a, b) == a
	}
	return false
}

// deliveryLimit joins two limits: the smaller one, but the larger one if either
// is negative, which is unlimited (RabbitMQ 4.0).
func deliveryLimit(a, b int64) int64 {
	switch {
	case a == NoDeliveryLimit:
		return b
	case b == NoDeliveryLimit:
		return a
	case a < 0 || b < 0:
		return max(a, b)
	}
	return min(a, b)
}

// Merge makes the policy of a queue of the policy and the operator policy that
// apply to it; either may be nil. Values that are not valid count as not set.
func Merge(policy, operator *NamedDefinition) Policy {
	if policy == nil && operator == nil {
		return Policy{}.normal()
	}
	var p Policy
	var ours, theirs Definition
	if policy != nil {
		p.Name, ours = policy.Name, policy.Definition
	}
	if operator != nil {
		p.Operator, theirs = operator.Name, operator.Definition
	}
	d := MergeDefinitions(ours, theirs)
	p.Definition = d
	p.Expires = d.time("expires")
	p.MessageTTL = d.time("message-ttl")
	p.MaxLength = d.integer("max-length", None)
	p.MaxLengthBytes = d.integer("max-length-bytes", None)
	p.DeliveryLimit = d.integer("delivery-limit", NoDeliveryLimit)
	p.ConsumerTimeout = d.time("consumer-timeout")
	if s, ok := d["overflow"].(string); ok {
		p.Overflow = parseOverflow(s)
	}
	if s, ok := d["consumer-timeout-action"].(string); ok {
		p.TimeoutAction = parseTimeoutAction(s)
	}
	p.RedeliveryDelay = d.integer("redelivery-delay", None)
	p.RedeliveryMultiplier = d.number("redelivery-delay-multiplier", 0)
	p.RedeliveryDelayMax = d.integer("redelivery-delay-max", None)
	p.RedeliveryJitter = d.number("redelivery-jitter", None)
	p.DeadLetterExchange = d.text("dead-letter-exchange")
	p.DeadLetterRoutingKey = d.text("dead-letter-routing-key")
	return p
}

func (d Definition) integer(key string, unset int64) int64 {
	if n, ok := jsonInteger(d[key]); ok {
		return n
	}
	return unset
}

// time is a time in milliseconds that may be as long as one likes (RabbitMQ 4.0).
// Here none is longer than maxExpiry, so that nothing overflows.
func (d Definition) time(key string) int64 { return min(d.integer(key, None), maxExpiry) }

func (d Definition) number(key string, unset float64) float64 {
	if f, ok := jsonNumber(d[key]); ok {
		return f
	}
	return unset
}

func (d Definition) text(key string) *string {
	if s, ok := d[key].(string); ok {
		return &s
	}
	return nil
}

// Settings are what is in force for a queue: its arguments and its policy.
type Settings struct {
	Expires         int64 // milliseconds; None
	MessageTTL      int64 // milliseconds; None
	MaxLength       int64 // messages; None
	MaxLengthBytes  int64 // bytes of bodies; None
	DeliveryLimit   int64 // negative is unlimited; NoDeliveryLimit
	ConsumerTimeout int64 // milliseconds; None
	TimeoutAction   TimeoutAction
	Backoff         Backoff
	Overflow        Overflow
	DeadLetter      *Target // nil if none
}

// Settings is Effective in memory that queues declared alike share while no policy
// applies to them. It is not to be changed.
func (a *Arguments) Settings(p Policy) *Settings {
	if a.alone != nil && p.Name == "" && p.Operator == "" {
		return a.alone
	}
	s := Effective(*a, p)
	return &s
}

// Effective joins arguments and policy: the smaller one of sizes and times; of
// overflow the argument's for a classic queue, even against the operator's, but
// the policy's for a quorum queue; of the dead-letter target the argument's
// (RabbitMQ 4.0), as of everything that RabbitMQ does not have. Overflow and
// TimeoutAction are never unset.
func Effective(a Arguments, p Policy) Settings {
	a, p = a.normal(), p.normal()
	s := Settings{
		Expires:         smallest(a.Expires, p.Expires),
		MessageTTL:      smallest(a.MessageTTL, p.MessageTTL),
		MaxLength:       smallest(a.MaxLength, p.MaxLength),
		MaxLengthBytes:  smallest(a.MaxLengthBytes, p.MaxLengthBytes),
		DeliveryLimit:   deliveryLimit(a.DeliveryLimit, p.DeliveryLimit),
		ConsumerTimeout: smallest(a.ConsumerTimeout, p.ConsumerTimeout),
		TimeoutAction:   CloseChannel,
		Backoff:         backoff(a, p),
		Overflow:        DropHead,
		DeadLetter:      deadLetterTarget(a, p),
	}
	if action := cmp.Or(a.TimeoutAction, p.TimeoutAction); action != TimeoutUnset {
		s.TimeoutAction = action
	}
	first, second := a.Overflow, p.Overflow
	if a.Type == Quorum {
		first, second = second, first
	}
	switch {
	case first != OverflowUnset:
		s.Overflow = first
	case second != OverflowUnset:
		s.Overflow = second
	}
	return s
}

// normal makes the zero of literals what is not set.
func (p Policy) normal() Policy {
	if p.Expires != 0 {
		return p
	}
	unsetZeros(&p.DeliveryLimit, &p.RedeliveryJitter,
		&p.Expires, &p.MessageTTL, &p.MaxLength, &p.MaxLengthBytes, &p.ConsumerTimeout, &p.RedeliveryDelay, &p.RedeliveryDelayMax)
	return p
}

func smallest(a, b int64) int64 {
	switch {
	case a == None:
		return b
	case b == None:
		return a
	}
	return min(a, b)
}

// deadLetterTarget takes exchange and key each from the arguments if they have
// it, else from the policy.
func deadLetterTarget(a Arguments, p Policy) *Target {
	var t Target
	switch {
	case a.DeadLetter != nil:
		t = *a.DeadLetter
	case p.DeadLetterExchange != nil:
		t.Exchange = *p.DeadLetterExchange
	default:
		return nil
	}
	if !t.HasKey && p.DeadLetterRoutingKey != nil {
		t.Key, t.HasKey = *p.DeadLetterRoutingKey, true
	}
	return &t
}

// jsonInteger returns the value of a JSON number without a fraction. What is beyond
// the bounds of int64, which RabbitMQ 4.0 takes, is as near as can be, and not
// NoDeliveryLimit.
func jsonInteger(v any) (int64, bool) {
	if n, ok := exactInteger(v); ok {
		return max(n, -math.MaxInt64), true
	}
	switch v := v.(type) {
	case float64: // so large a number has no fraction
		switch {
		case v >= 1<<63:
			return math.MaxInt64, true
		case v <= -1<<63:
			return -math.MaxInt64, true
		}
	case json.Number:
		n, err := v.Int64()
		return max(n, -math.MaxInt64), errors.Is(err, strconv.ErrRange)
	}
	return 0, false
}

// exactInteger is jsonInteger for what int64 can hold.
func exactInteger(v any) (int64, bool) {
	switch v := v.(type) {
	case float64:
		if v != math.Trunc(v) || math.Abs(v) >= 1<<63 {
			return 0, false
		}
		return int64(v), true
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	case int:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// jsonNumber returns the value of a JSON number.
func jsonNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case json.Number:
		f, err := v.Float64()
		return f, err == nil
	}
	n, ok := jsonInteger(v)
	return float64(n), ok
}

func isString(v any) bool {
	_, ok := v.(string)
	return ok
}

// isShort accepts what fits where a delivery shows it. RabbitMQ 4.0 takes more, and
// closes the connection of every consumer that such a message reaches.
func isShort(v any) bool {
	s, ok := v.(string)
	return ok && len(s) <= frames.MaxShort
}

func isOneOf(values ...string) func(any) bool {
	return func(v any) bool {
		s, ok := v.(string)
		return ok && slices.Contains(values, s)
	}
}

func isAtLeast(low int64) func(any) bool { return isBetween(low, math.MaxInt64) }

func isBetween(low, high int64) func(any) bool {
	return func(v any) bool {
		n, ok := jsonInteger(v)
		return ok && n >= low && n <= high
	}
}

func isNumber(low, high float64) func(any) bool {
	return func(v any) bool {
		f, ok := jsonNumber(v)
		return ok && f >= low && f <= high
	}
}

func isMaxAge(v any) bool {
	s, ok := v.(string)
	return ok && validMaxAge(s)
}

// jsonTerm prints a JSON value as an Erlang term.
func jsonTerm(v any) string {
	if n, ok := exactInteger(v); ok {
		return strconv.FormatInt(n, 10)
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return frames.BinaryTerm(v)
	case float64:
		return frames.FloatTerm(v)
	case json.Number:
		return v.String()
	case []any:
		return frames.ListTerm(len(v), func(i int) string { return jsonTerm(v[i]) })
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		list := frames.ListTerm(len(keys), func(i int) string { return frames.BinaryTerm(keys[i]) + " => " + jsonTerm(v[keys[i]]) })
		return "#{" + list[1:len(list)-1] + "}"
	}
	return fmt.Sprint(v) // true and false
}
