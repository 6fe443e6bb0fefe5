package management

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/vhost"
)

// Components of parameters that have an API of their own besides.
const (
	limitsComponent   = "vhost-limits"
	operatorComponent = "operator_policy"
	policyComponent   = "policy"
)

// pluginComponents are kept for plug-ins that have something of the kind.
var pluginComponents = []string{shovelComponent, upstreamComponent, "federation-upstream-set"}

// parametersOf lists a vhost's parameters in order of component and name; as in
// RabbitMQ 4.0 limits and operator policies are among them, policies are not.
func parametersOf(v *vhost.VHost) []vhost.Parameter {
	list := v.Parameters()
	if m := v.Limits().Map(); len(m) > 0 {
		list = append(list, vhost.Parameter{Component: limitsComponent, Name: "limits", Value: appendJSON(nil, m)})
	}
	for _, p := range v.Policies(true) {
		value := policyObject("", &p)[1:] // without the name
		list = append(list, vhost.Parameter{Component: operatorComponent, Name: p.Name, Value: appendJSON(nil, value)})
	}
	slices.SortFunc(list, func(a, b vhost.Parameter) int {
		return cmp.Or(cmp.Compare(a.Component, b.Component), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func parameterObject(vhost string, p vhost.Parameter) object {
	o := object{{"value", p.Value}}
	if vhost != "" {
		o.add("vhost", vhost)
	}
	return append(o, member{"component", p.Component}, member{"name", p.Name})
}

// parameters lists those of all components or of one, in all vhosts or in one.
func parameters(r *request) (reply, error) {
	list := []object{}
	for _, v := range r.vhosts() {
		for _, p := range parametersOf(v) {
			if component := r.arg("component"); component == "" || component == p.Component {
				list = append(list, parameterObject(v.Name(), p))
			}
		}
	}
	return plain(list)
}

func (r *request) parameter() (vhost.Parameter, bool) {
	for _, p := range parametersOf(r.vhost) {
		if p.Component == r.arg("component") && p.Name == r.arg("name") {
			return p, true
		}
	}
	return vhost.Parameter{}, false
}

func oneParameter(r *request) (reply, error) {
	p, exists := r.parameter()
	if !exists {
		return reply{}, errNotFound
	}
	return ok(parameterObject(r.vhost.Name(), p))
}

// putParameter needs no more than the tag policymaker for limits and operator policies,
// too, which have an API of administrators besides (RabbitMQ 4.0).
func putParameter(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("value"); err != nil {
		return reply{}, err
	}
	if r.arg("component") == policyComponent {
		return reply{}, badRequest("policies may not be set using this method")
	}
	_, existed := r.parameter()
	return put(!existed, setParameter(r.vhost, r.actor(), r.arg("component"), r.arg("name"), b["value"]))
}

// setParameter sets a parameter of any component from its decoded value.
func setParameter(v *vhost.VHost, by vhost.Actor, component, name string, value any) error {
	switch component {
	case limitsComponent:
		if name != "limits" {
			return badRequest("the parameter of component vhost-limits must have the name 'limits', not '%s'", name)
		}
		return setLimits(v, by, value)
	case operatorComponent, policyComponent:
		b, isObject := value.(map[string]any)
		if !isObject {
			return badRequest("value must be an object")
		}
		p, err := readPolicy(name, b)
		if err != nil {
			return err
		}
		return v.SetPolicy(by, p, component == operatorComponent)
	}
	if !anyOf(pluginComponents, component) {
		return badRequest("Validation failed\n\ncomponent %s not found\n", component)
	}
	if err := checkUTF8("parameter", name); err != nil {
		return err
	}
	if err := checkPlugin(component, name, value); err != nil {
		return err
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return v.SetParameter(by, vhost.Parameter{Component: component, Name: name, Value: raw})
}

// setLimits replaces all limits of a vhost. An empty list is no limits: RabbitMQ 4.0
// exports them like that once they were cleared.
func setLimits(v *vhost.VHost, by vhost.Actor, value any) error {
	m, isObject := value.(map[string]any)
	if list, isList := value.([]any); !isObject && (!isList || len(list) > 0) {
		return badRequest("value must be an object")
	}
	b := body(m)
	if err := checkLimits(b); err != nil {
		return err // with the limits as they were
	}
	for name := range v.Limits().Map() {
		if _, stays := b[name]; !stays {
			if err := v.ClearLimit(by, name); err != nil {
				return err
			}
		}
	}
	for name := range b {
		n, _, err := b.integer(name)
		if err != nil {
			return err
		}
		if err := v.SetLimit(by, name, n); err != nil {
			return err
		}
	}
	return nil
}

// checkLimits refuses limits of a vhost that there are none of, or no numbers, in
// RabbitMQ's words.
func checkLimits(b body) error {
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if err := checkLimit(name, b[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkLimit(name string, value any) error {
	if !isVHostLimit(name) {
		return badRequest("Validation failed\n\nUnrecognised terms [{%s,%s}] in limits\n", frames.BinaryTerm(name), jsonTerm(value))
	}
	if reason := wrongLimit(name, value); reason != "" {
		return badRequest("Validation failed\n\n%s\n", reason)
	}
	return nil
}

// wrongLimit says why a value is no limit; "" if it is one. A float is none, be it a
// whole number (RabbitMQ 4.0, which has integers of any size).
func wrongLimit(name string, value any) string {
	n, isNumber := value.(json.Number)
	if !isNumber || isFloat(n) {
		return fmt.Sprintf("%s should be a number, actually was %s", name, jsonTerm(value))
	}
	if _, err := n.Int64(); err != nil {
		return fmt.Sprintf("%s should be from %d to %d, actually was %s", name, math.MinInt64, math.MaxInt64, n)
	}
	return ""
}

// isFloat says whether a number is written as a float.
func isFloat(n json.Number) bool { return strings.ContainsAny(n.String(), ".eE") }

func isVHostLimit(name string) bool { return name == "max-connections" || name == "max-queues" }

func deleteParameter(r *request) (reply, error) {
	component, name := r.arg("component"), r.arg("name")
	if _, exists := r.parameter(); !exists {
		return reply{}, errNotFound
	}
	switch component {
	case limitsComponent:
		return done(r.vhost.ClearLimit(r.actor(), ""))
	case operatorComponent:
		return done(r.vhost.ClearPolicy(r.actor(), name, true))
	}
	return done(orNotFound(r.vhost.ClearParameter(r.actor(), component, name)))
}

// ClusterID is the global parameter with an id of the cluster that stays when the cluster
// gets another name (RabbitMQ 4.0).
const ClusterID = "internal_cluster_id"

// globals are the global parameters with those that are always there (RabbitMQ 4.0).
func (s *Server) globals() []object {
	all := s.cfg.VHosts.Globals()
	add := func(name string, v any) {
		if _, there := all[name]; !there {
			all[name] = appendJSON(nil, v)
		}
	}
	add("cluster_name", s.cfg.ClusterName)
	if tags := s.cfg.Options.ClusterTags; len(tags) > 0 {
		add("cluster_tags", tagsObject(tags))
	} else {
		add("cluster_tags", []any{})
	}
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	list := make([]object, len(names))
	for i, name := range names {
		list[i] = object{{"name", name}, {"value", all[name]}}
	}
	return list
}

func globalParameters(r *request) (reply, error) { return plain(r.s.globals()) }

func oneGlobalParameter(r *request) (reply, error) {
	for _, o := range r.s.globals() {
		if o[0].value == r.arg("name") {
			return ok(o)
		}
	}
	return reply{}, errNotFound
}

func putGlobalParameter(r *request) (reply, error) {
	b, err := r.body()
	if err != nil {
		return reply{}, err
	}
	if err := b.need("value"); err != nil {
		return reply{}, err
	}
	raw, err := json.Marshal(b["value"])
	if err != nil {
		return reply{}, err
	}
	name := r.arg("name")
	if err := checkUTF8("parameter", name); err != nil {
		return reply{}, err
	}
	_, existed := r.s.cfg.VHosts.Globals()[name]
	return put(!existed, r.s.cfg.VHosts.SetGlobal(name, raw))
}

func deleteGlobalParameter(r *request) (reply, error) {
	return done(orNotFound(r.s.cfg.VHosts.ClearGlobal(r.arg("name"))))
}
