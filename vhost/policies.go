package vhost

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/pattern"
	"github.com/leveretmq/leveret/queue"
)

// The components of policies among the parameters (RabbitMQ 4.0).
const (
	policyComponent   = "policy"
	operatorComponent = "operator_policy"
)

// A Policy sets options of the exchanges and queues whose names match its
// pattern. It is not changed after it was set.
type Policy struct {
	Name    string
	Pattern string // a regular expression, searched for in the name
	// ApplyTo is all, exchanges, queues, classic_queues, quorum_queues or
	// streams; "" is all.
	ApplyTo    string
	Priority   int
	Definition queue.Definition

	match *pattern.Pattern
}

// policies are the policies of a vhost by name. Guarded by VHost.mu.
type policies struct{ user, operator map[string]*Policy }

func (p *policies) of(operator bool) map[string]*Policy {
	if operator {
		return p.operator
	}
	return p.user
}

// storedPolicy is a policy's value as a parameter, as RabbitMQ has it.
type storedPolicy struct {
	Pattern    string           `json:"pattern"`
	ApplyTo    string           `json:"apply-to"`
	Priority   int              `json:"priority"`
	Definition queue.Definition `json:"definition"`
}

func (p *Policy) encode() []byte {
	return encode(&storedPolicy{p.Pattern, p.ApplyTo, p.Priority, p.Definition})
}

func decodePolicy(name string, value []byte) (*Policy, error) {
	var d storedPolicy
	if err := json.Unmarshal(value, &d); err != nil {
		return nil, err
	}
	p := &Policy{Name: name, Pattern: d.Pattern, ApplyTo: d.ApplyTo, Priority: d.Priority, Definition: d.Definition}
	var err error
	p.match, err = pattern.Compile(d.Pattern)
	return p, err
}

// SetPolicy sets a policy or an operator policy; it takes effect on what is
// there before it returns.
func (v *VHost) SetPolicy(by Actor, p Policy, operator bool) error {
	if err := p.validate(operator); err != nil {
		return err
	}
	if err := checkStored("a policy", len(p.encode())); err != nil {
		return err
	}
	component := componentOf(operator)
	if err := checkKey("a policy", v.parameterKey(component, p.Name)); err != nil {
		return err
	}
	if _, there := p.Definition["queue-master-locator"]; there && v.set.config.RefuseMasterLocator {
		return frames.Errorf(frames.PreconditionFailed, "Validation failed\n\nuse of deprecated queue-master-locator argument is not permitted")
	}
	v.set.noteFederation(v, p.Name, p.Definition)
	return v.changePolicies(by, func(c *change) error {
		v.policies.of(operator)[p.Name] = &p
		c.putParameter(component, p.Name, p.encode())
		c.policyEvent(policyEventKey(operator, "set"), p.Name, &p, by.User())
		return nil
	})
}

// ClearPolicy removes a policy or an operator policy: 404 if there is none.
func (v *VHost) ClearPolicy(by Actor, name string, operator bool) error {
	component := componentOf(operator)
	return v.changePolicies(by, func(c *change) error {
		list := v.policies.of(operator)
		if list[name] == nil {
			return frames.Errorf(frames.NotFound, "no %s '%s' in vhost '%s'", strings.ReplaceAll(component, "_", " "), name, v.name)
		}
		delete(list, name)
		c.deleteParameter(component, name)
		c.policyEvent(policyEventKey(operator, "cleared"), name, nil, by.User())
		return nil
	})
}

// noteFederation tells the log, once, of a policy that asks for federation.
func (s *Set) noteFederation(v *VHost, policy string, d queue.Definition) {
	if queue.Federates(d) && !s.federationNoted.Swap(true) {
		v.log.Warn("a policy asks for federation, which this broker does not run: its federation keys are kept and shown, and have no effect",
			zap.String("policy", policy))
	}
}

func componentOf(operator bool) string {
	if operator {
		return operatorComponent
	}
	return policyComponent
}

func policyEventKey(operator bool, what string) string {
	if operator {
		return "operator.policy." + what
	}
	return "policy." + what
}

// Policies lists the policies, or the operator policies, in order of name.
func (v *VHost) Policies(operator bool) []Policy {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var list []Policy
	for _, p := range v.policies.of(operator) {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Policy) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// validate checks a policy and prepares its pattern. The texts are RabbitMQ's, of
// all that is wrong.
func (p *Policy) validate(operator bool) error {
	if p.ApplyTo == "" {
		p.ApplyTo = "all"
	}
	var wrong []string
	if err := queue.ValidateDefinition(p.Definition, operator); err != nil {
		wrong = append(wrong, err.Error())
	}
	switch p.ApplyTo {
	case "all", "exchanges", "queues", "classic_queues", "quorum_queues", "streams":
	default:
		wrong = append(wrong, "apply-to '"+p.ApplyTo+"' unrecognised; should be one of: "+
			"'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'")
	}
	var err error
	if p.match, err = pattern.Compile(p.Pattern); err != nil {
		wrong = append(wrong, "pattern should be regular expression but is invalid: "+patternError(err))
	}
	if len(wrong) > 0 {
		return invalidf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// changePolicies changes the policies and applies them.
func (v *VHost) changePolicies(by Actor, apply func(c *change) error) error {
	v.policyMu.Lock()
	defer v.policyMu.Unlock()
	c, err := v.changeLive()
	if err != nil {
		return err
	}
	if err := apply(c); err != nil {
		c.unlock()
		return err
	}
	affected := v.reapplyLocked(c, by.User())
	c.unlock()
	affected.apply()
	return c.finish(by)
}

// affected are queues whose policy has changed. They are told without VHost.mu:
// a queue over its new limit publishes dead letters at once.
type affected []setting

type setting struct {
	q queue.Queue
	p *queue.Policy
}

func (a affected) apply() {
	for _, e := range a {
		e.q.SetPolicy(*e.p)
	}
}

// reapplyLocked finds for everything the policies that apply now.
func (v *VHost) reapplyLocked(c *change, user string) affected {
	for _, e := range v.exchanges {
		if v.applyExchangePolicyLocked(e) {
			c.rerouted = true
		}
	}
	var list affected
	merged := make(merges)
	for _, e := range v.queues {
		if v.findPolicyLocked(e) {
			list = append(list, setting{e.q, merged.of(e)})
			c.queuePolicyEvent(e, user)
		}
	}
	return list
}

// merges are what policies make together, by those, so that many queues share it.
type merges map[[2]*Policy]*queue.Policy

// of is what applies to a queue. VHost.mu must be held.
func (m merges) of(e *queueEntry) *queue.Policy {
	key := [2]*Policy{e.policy, e.operator}
	p := m[key]
	if p == nil {
		merged := e.mergedPolicy()
		p = &merged
		m[key] = p
	}
	return p
}

// applyNewQueuePolicyLocked gives a new queue, which is empty, its policy.
func (v *VHost) applyNewQueuePolicyLocked(e *queueEntry) {
	if v.findPolicyLocked(e) {
		e.q.SetPolicy(e.mergedPolicy())
	}
}

// findPolicyLocked finds the policies that apply to a queue.
func (v *VHost) findPolicyLocked(e *queueEntry) (changed bool) {
	user := best(v.policies.user, func(p *Policy) bool { return p.fitsQueue(e) })
	operator := best(v.policies.operator, func(p *Policy) bool { return p.fitsQueue(e) })
	if user == e.policy && operator == e.operator {
		return false
	}
	e.policy, e.operator = user, operator
	return true
}

// mergedPolicy is what the policies that apply make together. VHost.mu must be
// held.
func (e *queueEntry) mergedPolicy() queue.Policy {
	return queue.Merge(e.policy.named(), e.operator.named())
}

// named is the policy as queues know it; nil for nil.
func (p *Policy) named() *queue.NamedDefinition {
	if p == nil {
		return nil
	}
	return &queue.NamedDefinition{Name: p.Name, Definition: p.Definition}
}

// applyExchangePolicyLocked finds the policy that applies to an exchange and
// sets its alternate exchange; the argument wins (RabbitMQ 4.0).
func (v *VHost) applyExchangePolicyLocked(e *exchangeEntry) (changed bool) {
	p := best(v.policies.user, func(p *Policy) bool { return p.fitsExchange(e) })
	if p == e.policy {
		return false
	}
	e.policy = p
	if _, ok := e.x.Arguments.Lookup(alternateArgument); ok {
		return false
	}
	var name string
	var ok bool
	if p != nil {
		name, ok = p.Definition[alternateArgument].(string)
	}
	e.x.SetAlternate(name, ok)
	return true
}

// best is the policy of the highest priority among those that fit, of equals
// the first by name; nil if none fits.
func best(list map[string]*Policy, fits func(*Policy) bool) *Policy {
	var top *Policy
	for _, p := range list {
		if top != nil && (p.Priority < top.Priority || p.Priority == top.Priority && p.Name > top.Name) {
			continue
		}
		if fits(p) {
			top = p
		}
	}
	return top
}

// QueuePolicies lists the policies that fit a queue, the one in force first: 404 if
// there is no such queue.
func (v *VHost) QueuePolicies(name string) ([]Policy, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.queues[name]
	if e == nil {
		return nil, v.errNoQueue(name)
	}
	return ranked(v.policies.user, func(p *Policy) bool { return p.fitsQueue(e) }), nil
}

// ExchangePolicies is QueuePolicies for an exchange.
func (v *VHost) ExchangePolicies(name string) ([]Policy, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	e := v.exchanges[name]
	if e == nil {
		return nil, v.errNoExchange(name)
	}
	return ranked(v.policies.user, func(p *Policy) bool { return p.fitsExchange(e) }), nil
}

// ranked are the policies that fit, in the order of best.
func ranked(list map[string]*Policy, fits func(*Policy) bool) []Policy {
	var fitting []Policy
	for _, p := range list {
		if fits(p) {
			fitting = append(fitting, *p)
		}
	}
	slices.SortFunc(fitting, func(a, b Policy) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return fitting
}

// fitsQueue: a policy with a key that the queue's type does not support is not
// applied at all (RabbitMQ 4.0).
func (p *Policy) fitsQueue(e *queueEntry) bool {
	t := e.spec.Arguments.Type
	switch p.ApplyTo {
	case "all", "queues":
	case "classic_queues":
		if t != queue.Classic {
			return false
		}
	case "quorum_queues":
		if t != queue.Quorum {
			return false
		}
	case "streams":
		if t != queue.Stream {
			return false
		}
	default:
		return false
	}
	return p.match.MatchString(e.spec.Name) && queue.Supports(t, p.Definition)
}

func (p *Policy) fitsExchange(e *exchangeEntry) bool {
	return (p.ApplyTo == "all" || p.ApplyTo == "exchanges") && p.match.MatchString(e.x.Name)
}

// patternError prints what is wrong with a pattern as RabbitMQ does: an Erlang
// tuple of reason and place.
func patternError(err error) string {
	e, ok := errors.AsType[*pattern.Error](err)
	if !ok {
		return err.Error()
	}
	return `{` + strconv.Quote(e.Reason) + `,` + strconv.Itoa(e.At) + `}`
}
