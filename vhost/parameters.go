package vhost

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/persistence"
)

// Policies, limits and what plug-ins of RabbitMQ keep are parameters: JSON
// values by component and name, in a vhost or, global ones, in none.

// A Parameter is one parameter of a vhost that is neither policy nor limit.
type Parameter struct {
	Component, Name string
	Value           json.RawMessage
}

// globalComponent stands for the component of global parameters on disk.
const globalComponent = "global"

type storedParameter struct {
	versioned
	Component string          `json:"component"`
	VHost     string          `json:"vhost,omitempty"`
	VHostID   uint64          `json:"vhost_id,omitempty"` // 0: of no vhost
	Name      string          `json:"name"`
	Value     json.RawMessage `json:"value"`
}

// invalidf makes the error for a policy, limit or parameter that is not valid.
func invalidf(format string, args ...any) error {
	return frames.Errorf(frames.PreconditionFailed, "Validation failed\n\n%s", fmt.Sprintf(format, args...))
}

func (v *VHost) parameterKey(component, name string) string {
	return definitionKey(component, v.name, name)
}

func (c *change) putParameter(component, name string, value []byte) {
	c.put(persistence.Parameters, c.v.parameterKey(component, name),
		encode(&storedParameter{versioned{definitionVersion}, component, c.v.name, c.v.id, name, value}))
}

func (c *change) deleteParameter(component, name string) {
	c.delete(persistence.Parameters, c.v.parameterKey(component, name))
}

// SetParameter keeps a parameter of any other component than those that the
// broker knows. The value must be JSON.
func (v *VHost) SetParameter(by Actor, p Parameter) error {
	switch p.Component {
	case policyComponent, operatorComponent, limitsComponent:
		return invalidf("component '%s' has a way of its own to be set", p.Component)
	}
	if !json.Valid(p.Value) {
		return invalidf("the value of parameter '%s' is not JSON", p.Name)
	}
	if err := checkStored("a parameter", len(encode(p.Value))); err != nil {
		return err
	}
	if err := checkKey("a parameter", v.parameterKey(p.Component, p.Name)); err != nil {
		return err
	}
	c, err := v.changeLive()
	if err != nil {
		return err
	}
	v.parameters[parameterID{p.Component, p.Name}] = p.Value
	c.putParameter(p.Component, p.Name, p.Value)
	c.parameterEvent("parameter.set", p.Component, p.Name, by.User())
	c.unlock()
	return c.finish(by)
}

// ClearParameter removes a parameter: 404 if there is none.
func (v *VHost) ClearParameter(by Actor, component, name string) error {
	c, err := v.changeLive()
	if err != nil {
		return err
	}
	id := parameterID{component, name}
	if _, ok := v.parameters[id]; !ok {
		c.unlock()
		return frames.Errorf(frames.NotFound, "no parameter '%s' of component '%s' in vhost '%s'", name, component, v.name)
	}
	delete(v.parameters, id)
	c.deleteParameter(component, name)
	c.parameterEvent("parameter.cleared", component, name, by.User())
	c.unlock()
	return c.finish(by)
}

// parameterID tells parameters of a vhost apart.
type parameterID struct{ component, name string }

// Parameters lists the parameters that are neither policies nor limits.
func (v *VHost) Parameters() []Parameter {
	v.mu.RLock()
	defer v.mu.RUnlock()
	list := make([]Parameter, 0, len(v.parameters))
	for id, value := range v.parameters {
		list = append(list, Parameter{id.component, id.name, value})
	}
	return list
}

// SetGlobal keeps a global parameter, which must be JSON.
func (s *Set) SetGlobal(name string, value json.RawMessage) error {
	if !json.Valid(value) {
		return invalidf("the value of global parameter '%s' is not JSON", name)
	}
	if err := checkStored("a global parameter", len(encode(value))); err != nil {
		return err
	}
	key := definitionKey(globalComponent, "", name)
	if err := checkKey("a global parameter", key); err != nil {
		return err
	}
	s.mu.Lock()
	s.global[name] = value
	p := s.definitions.set(persistence.Parameters, key,
		encode(&storedParameter{versioned{definitionVersion}, globalComponent, "", 0, name, value}))
	s.mu.Unlock()
	return s.definitions.wait(p)
}

// ClearGlobal removes a global parameter: 404 if there is none.
func (s *Set) ClearGlobal(name string) error {
	s.mu.Lock()
	if _, ok := s.global[name]; !ok {
		s.mu.Unlock()
		return frames.Errorf(frames.NotFound, "no global parameter '%s'", name)
	}
	delete(s.global, name)
	p := s.definitions.set(persistence.Parameters, definitionKey(globalComponent, "", name), nil)
	s.mu.Unlock()
	return s.definitions.wait(p)
}

// Globals returns the global parameters by name.
func (s *Set) Globals() map[string]json.RawMessage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.global)
}

func (s *Set) recoverParameter(value []byte) error {
	var d storedParameter
	if err := decode(value, &d); err != nil {
		return err
	}
	if d.VHostID == 0 {
		s.global[d.Name] = d.Value
		return nil
	}
	v, err := s.incarnation(d.VHost, d.VHostID)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch d.Component {
	case limitsComponent:
		limits, err := decodeLimits(d.Value)
		if err != nil {
			return unreadable(err)
		}
		v.limits = limits
		return nil
	case policyComponent, operatorComponent:
		p, err := decodePolicy(d.Name, d.Value)
		if err != nil {
			return unreadable(err)
		}
		s.noteFederation(v, d.Name, p.Definition)
		v.policies.of(d.Component == operatorComponent)[d.Name] = p
		return nil
	}
	v.parameters[parameterID{d.Component, d.Name}] = slices.Clone(d.Value)
	return nil
}

// clearParametersLocked removes the parameters of a deleted vhost.
func (v *VHost) clearParametersLocked(c *change) {
	for id := range v.parameters {
		c.deleteParameter(id.component, id.name)
	}
	for name := range v.policies.user {
		c.deleteParameter(policyComponent, name)
	}
	for name := range v.policies.operator {
		c.deleteParameter(operatorComponent, name)
	}
	if v.limits != noLimits {
		c.deleteParameter(limitsComponent, limitsName)
	}
}
