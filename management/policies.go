package management

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
	"github.com/leveretmq/leveret/vhost"
)

func policyObject(vhost string, p *vhost.Policy) object {
	o := object{}
	if vhost != "" {
		o.add("vhost", vhost)
	}
	return append(o, member{"name", p.Name}, member{"pattern", p.Pattern}, member{"apply-to", p.ApplyTo},
		member{"definition", map[string]any(p.Definition)}, member{"priority", p.Priority})
}

// policies lists the policies of one vhost or of all, in order of priority (RabbitMQ
// 4.0): the one that wins comes last.
func policies(operator bool) handler {
	return func(r *request) (reply, error) {
		type policy struct {
			vhost string
			vhost.Policy
		}
		var all []policy
		for _, v := range r.vhosts() {
			for _, p := range v.Policies(operator) {
				all = append(all, policy{v.Name(), p})
			}
		}
		slices.SortStableFunc(all, func(a, b policy) int { return cmp.Compare(a.Priority, b.Priority) })
		list := []object{}
		for _, p := range all {
			list = append(list, policyObject(p.vhost, &p.Policy))
		}
		return plain(list)
	}
}

// queuePolicies handles GET /queues/V/N/policies, which RabbitMQ does not have: the
// policies that fit a queue, the one in force first.
func queuePolicies(r *request) (reply, error) {
	return r.fittingPolicies(r.vhost.QueuePolicies(r.arg("queue")))
}

// exchangePolicies handles GET /exchanges/V/N/policies; see queuePolicies.
func exchangePolicies(r *request) (reply, error) {
	return r.fittingPolicies(r.vhost.ExchangePolicies(r.exchangeArg("exchange")))
}

func (r *request) fittingPolicies(fitting []vhost.Policy, err error) (reply, error) {
	if err != nil {
		return reply{}, orNotFound(err)
	}
	list := []object{}
	for i := range fitting {
		list = append(list, policyObject(r.vhost.Name(), &fitting[i]))
	}
	return plain(list)
}

func findPolicy(v *vhost.VHost, name string, operator bool) *vhost.Policy {
	for _, p := range v.Policies(operator) {
		if p.Name == name {
			return &p
		}
	}
	return nil
}

func onePolicy(operator bool) handler {
	return func(r *request) (reply, error) {
		p := findPolicy(r.vhost, r.arg("name"), operator)
		if p == nil {
			return reply{}, errNotFound
		}
		return ok(policyObject(r.vhost.Name(), p))
	}
}

func putPolicy(operator bool) handler {
	return func(r *request) (reply, error) {
		b, err := r.body()
		if err != nil {
			return reply{}, err
		}
		p, err := readPolicy(r.arg("name"), b)
		if err != nil {
			return reply{}, err
		}
		existed := findPolicy(r.vhost, p.Name, operator) != nil
		return put(!existed, r.vhost.SetPolicy(r.actor(), p, operator))
	}
}

// readPolicy reads a policy from a request's or a definition's body.
func readPolicy(name string, b body) (vhost.Policy, error) {
	p := vhost.Policy{Name: name}
	if err := checkUTF8("policy", name); err != nil {
		return p, err
	}
	if err := b.need("pattern", "definition"); err != nil {
		return p, err
	}
	var isText bool
	if p.Pattern, isText = b["pattern"].(string); !isText {
		return p, badRequest("Validation failed\n\npattern should be a binary but was %s\n", jsonTerm(b["pattern"]))
	}
	var err error
	if p.ApplyTo, err = b.text("apply-to"); err != nil {
		return p, err
	}
	if v, there := b["apply-to"]; there && p.ApplyTo == "" {
		what := ""
		if v == nil {
			what = "null"
		}
		return p, badRequest("Validation failed\n\napply-to '%s' unrecognised; should be one of: 'queues', 'classic_queues',  "+
			"'quorum_queues', 'streams', 'exchanges', or 'all'\n", what)
	}
	if v, there := b["priority"]; there {
		if _, isNumber := v.(json.Number); !isNumber {
			return p, badRequest("Validation failed\n\npriority should be a number, actually was %s\n", jsonTerm(v))
		}
	}
	priority, _, err := b.integer("priority")
	if err != nil {
		return p, err
	}
	p.Priority = int(priority)
	definition, isObject := b["definition"].(map[string]any)
	if !isObject {
		return p, badRequest("definition must be an object")
	}
	p.Definition, err = plainDefinition(definition)
	return p, err
}

// jsonTerm prints a JSON value as the Erlang term that RabbitMQ 4.0 shows in the
// reasons of refusals.
func jsonTerm(v any) string {
	switch v := v.(type) {
	case string:
		return frames.BinaryTerm(v)
	case json.Number:
		if f, err := v.Float64(); err == nil && isFloat(v) {
			return frames.FloatTerm(f)
		}
		return v.String()
	case []any:
		return frames.ListTerm(len(v), func(i int) string { return jsonTerm(v[i]) })
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		members := frames.ListTerm(len(names), func(i int) string {
			return frames.BinaryTerm(names[i]) + " => " + jsonTerm(v[names[i]])
		})
		return "#{" + members[1:len(members)-1] + "}"
	}
	return string(appendJSON(nil, v)) // null, true, false
}

// plainDefinition is a definition as encoding/json decodes it by itself, which
// is what the store gives back, too.
func plainDefinition(m map[string]any) (queue.Definition, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	var d queue.Definition
	return d, json.Unmarshal(raw, &d)
}

func deletePolicy(operator bool) handler {
	return func(r *request) (reply, error) {
		return done(orNotFound(r.vhost.ClearPolicy(r.actor(), r.arg("name"), operator)))
	}
}
