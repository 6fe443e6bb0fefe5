package management

import (
	"bytes"
	"strings"
	"time"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// A messageFilter chooses messages. What is not set matches all.
type messageFilter struct {
	exchange, key *string
	headers       map[string]any    // headers that must be there; nil values match any
	properties    map[string]string // properties by name, as text
	text          []byte            // somewhere in the body

	reason, deadQueue *string       // of the newest dead-lettering
	minAge, maxAge    time.Duration // since the message came into its queue; maxAge 0 is any
}

// readFilter reads the member filter of a body: exchange, routing_key, headers,
// properties, text; of dead letters reason and dead_queue; min_age_ms and max_age_ms.
func readFilter(b body) (*messageFilter, error) {
	f := &messageFilter{}
	v, there := b["filter"]
	if !there || v == nil {
		return f, nil
	}
	m, isObject := v.(map[string]any)
	if !isObject {
		return nil, badRequest("filter must be an object")
	}
	in := body(m)
	if err := in.only("exchange", "routing_key", "headers", "properties", "text", "reason", "dead_queue", "min_age_ms", "max_age_ms"); err != nil {
		return nil, err
	}
	for name, to := range map[string]**string{"exchange": &f.exchange, "routing_key": &f.key, "reason": &f.reason, "dead_queue": &f.deadQueue} {
		if in[name] != nil {
			s, err := in.text(name)
			if err != nil {
				return nil, err
			}
			*to = &s
		}
	}
	for name, to := range map[string]*time.Duration{"min_age_ms": &f.minAge, "max_age_ms": &f.maxAge} {
		n, _, err := in.integer(name)
		if err != nil || n < 0 {
			return nil, badRequest("%s must be a number of milliseconds", name)
		}
		*to = time.Duration(n) * time.Millisecond
	}
	text, err := in.text("text")
	if err != nil {
		return nil, err
	}
	f.text = []byte(text)
	if f.headers, err = in.members("headers"); err != nil {
		return nil, err
	}
	properties, err := in.members("properties")
	if err != nil {
		return nil, err
	}
	f.properties = make(map[string]string, len(properties))
	for name, v := range properties {
		f.properties[name] = jsonText(v)
	}
	return f, nil
}

// members is a member that is an object; nil if it is absent.
func (b body) members(name string) (map[string]any, error) {
	switch v := b[name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return v, nil
	}
	return nil, badRequest("%s must be an object", name)
}

// jsonText is a value as text, without the quotes of a string.
func jsonText(v any) string {
	if s, isText := v.(string); isText {
		return s
	}
	return string(appendJSON(nil, v))
}

func (f *messageFilter) matches(m *message.Message) bool {
	switch {
	case f.exchange != nil && *f.exchange != m.Exchange,
		f.key != nil && *f.key != m.RoutingKey,
		len(f.text) > 0 && !bytes.Contains(m.Body, f.text):
		return false
	case !f.matchesAge(m), !f.matchesDeath(m):
		return false
	case len(f.headers) == 0 && len(f.properties) == 0:
		return true
	}
	o, _ := propertiesObject(m.Header).(object) // none at all if it is no object
	for name, want := range f.properties {
		if got, there := o.get(name); !there || jsonText(got) != want {
			return false
		}
	}
	headers, _ := o.get("headers")
	t, _ := headers.(frames.Table)
	return f.matchesHeaders(t)
}

func (f *messageFilter) matchesAge(m *message.Message) bool {
	if f.minAge == 0 && f.maxAge == 0 {
		return true
	}
	age := m.Age(time.Now())
	return age >= f.minAge && (f.maxAge == 0 || age <= f.maxAge)
}

// matchesDeath looks at the newest dead-lettering.
func (f *messageFilter) matchesDeath(m *message.Message) bool {
	if f.reason == nil && f.deadQueue == nil {
		return true
	}
	death := newestDeath(m)
	is := func(name string, want *string) bool {
		v, _ := death.Lookup(name)
		got, isText := v.(string)
		return want == nil || isText && got == *want
	}
	return is("reason", f.reason) && is("queue", f.deadQueue)
}

func (f *messageFilter) matchesHeaders(t frames.Table) bool {
	for name, want := range f.headers {
		got, there := t.Lookup(name)
		if !there || want != nil && !strings.EqualFold(jsonText(got), jsonText(want)) {
			return false
		}
	}
	return true
}
