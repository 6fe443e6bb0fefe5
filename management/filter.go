package management

import (
	"bytes"
	"strings"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/message"
)

// A messageFilter chooses messages. What is not set matches all.
type messageFilter struct {
	exchange, key *string
	headers       map[string]any    // headers that must be there; nil values match any
	properties    map[string]string // properties by name, as text
	text          []byte            // somewhere in the body
}

// readFilter reads the member filter of a body: exchange, routing_key, headers,
// properties and text.
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
	for name, to := range map[string]**string{"exchange": &f.exchange, "routing_key": &f.key} {
		if in[name] != nil {
			s, err := in.text(name)
			if err != nil {
				return nil, err
			}
			*to = &s
		}
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

func (f *messageFilter) matchesHeaders(t frames.Table) bool {
	for name, want := range f.headers {
		got, there := t.Lookup(name)
		if !there || want != nil && !strings.EqualFold(jsonText(got), jsonText(want)) {
			return false
		}
	}
	return true
}
