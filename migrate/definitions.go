package migrate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A Section is one kind of definitions.
type Section struct {
	Name    string `json:"name"`
	Source  int    `json:"source"`  // how many the source has, of those asked for
	Refused int    `json:"refused"` // how many of them the target does not have
}

// A Refusal is a definition that the target does not have, or has otherwise.
type Refusal struct {
	Section string `json:"section"`
	Item    string `json:"item"`
	Reason  string `json:"reason"`
}

// An item is one definition as the HTTP API has it.
type item map[string]any

func (i item) text(key string) string {
	s, _ := i[key].(string)
	return s
}

// sections is the order of an import: what a section refers to comes before it.
func sections() []string {
	return []string{"vhosts", "users", "permissions", "topic_permissions", "global_parameters", "parameters", "policies",
		"exchanges", "queues", "bindings"}
}

type definitions map[string]json.RawMessage

func (d definitions) section(name string) ([]item, error) {
	var list []item
	if raw, there := d[name]; there {
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber() // 3.0 and 3 are different arguments, and integers have 64 bits
		if err := dec.Decode(&list); err != nil {
			return nil, fmt.Errorf("the section %s of the definitions is no list of objects: %w", name, err)
		}
	}
	return list, nil
}

// moveDefinitions imports what the source has into the target, and compares. The
// users that the target is used by are not imported but returned: to be, when
// everything else is done, as their passwords may differ.
func (m *migration) moveDefinitions(ctx context.Context) (later []item, err error) {
	var source definitions
	if err := m.from.API.do(ctx, http.MethodGet, "/definitions", nil, &source); err != nil {
		return nil, fmt.Errorf("read the definitions of the source: %w", advised(err, sourceOption))
	}
	wanted := map[string][]item{}
	for _, name := range sections() {
		all, err := source.section(name)
		if err != nil {
			return nil, err
		}
		list := slices.DeleteFunc(all, func(i item) bool { return !m.wants(name, i) })
		wanted[name] = list
		m.report.Definitions = append(m.report.Definitions, Section{Name: name, Source: len(list)})
	}
	if m.opts.DryRun {
		return nil, nil
	}
	for _, name := range sections() {
		list := wanted[name]
		if name == "users" {
			list, later = m.ownLogins(list)
		}
		if err := m.importSection(ctx, name, list); err != nil {
			return nil, err
		}
	}
	return later, m.compare(ctx, wanted)
}

// wants says whether a definition is to be moved.
func (m *migration) wants(section string, i item) bool {
	vhost := i.text("vhost")
	switch section {
	case "users":
		return true
	case "global_parameters":
		return i.text("name") != "internal_cluster_id" // says which cluster it is
	case "vhosts":
		return m.chosenVHost(i.text("name"))
	case "queues":
		return m.chosen(vhost, i.text("name"))
	case "bindings":
		return m.chosenVHost(vhost) && (i.text("destination_type") != "queue" || m.chosen(vhost, i.text("destination")))
	}
	return m.chosenVHost(vhost)
}

// ownLogins parts the users that the target is used by from the others.
func (m *migration) ownLogins(users []item) (others, own []item) {
	for _, u := range users {
		if name := u.text("name"); name == m.to.user() || name == m.to.API.User {
			own = append(own, u)
		} else {
			others = append(others, u)
		}
	}
	return others, own
}

// importSection imports definitions of one kind. What the target refuses is
// found by halves, as an import ends with the first error.
func (m *migration) importSection(ctx context.Context, name string, list []item) error {
	if len(list) == 0 {
		return nil
	}
	err := m.to.API.do(ctx, http.MethodPost, "/definitions", map[string][]item{name: list}, nil)
	switch {
	case err == nil:
		return nil
	case !hasStatus(err, http.StatusBadRequest):
		return fmt.Errorf("import definitions into the target: %w", advised(err, targetOption))
	case len(list) == 1:
		m.refuse(name, list[0], strings.TrimSuffix(err.Error(), " (HTTP 400)"))
		return nil
	}
	half := len(list) / 2
	if err := m.importSection(ctx, name, list[:half]); err != nil {
		return err
	}
	return m.importSection(ctx, name, list[half:])
}

func (m *migration) refuse(section string, i item, reason string) {
	r := Refusal{Section: section, Item: describe(section, i), Reason: reason}
	if slices.ContainsFunc(m.report.Refused, func(o Refusal) bool { return o.Section == r.Section && o.Item == r.Item }) {
		return
	}
	m.report.Refused = append(m.report.Refused, r)
	for n := range m.report.Definitions {
		if d := &m.report.Definitions[n]; d.Name == section {
			d.Refused++
		}
	}
	m.say("refused: %s %s: %s", strings.TrimSuffix(section, "s"), r.Item, reason)
}

// compare looks whether the target has everything now, and exchanges and queues
// as the source has them: those that were there before stay as they are.
func (m *migration) compare(ctx context.Context, wanted map[string][]item) error {
	var target definitions
	if err := m.to.API.do(ctx, http.MethodGet, "/definitions", nil, &target); err != nil {
		return fmt.Errorf("read the definitions of the target: %w", err)
	}
	for _, name := range sections() {
		list, err := target.section(name)
		if err != nil {
			return err
		}
		there := map[string]item{}
		for _, i := range list {
			there[describe(name, i)] = i
		}
		for _, i := range wanted[name] {
			at, has := there[describe(name, i)]
			if !has {
				m.refuse(name, i, "the target does not have it after the import")
			} else if what := difference(name, i, at); what != "" {
				m.refuse(name, i, "the target has another one of this name: "+what)
			}
		}
	}
	return nil
}

// difference says in what two exchanges or queues of one name differ, "" if in
// nothing that clients would notice.
func difference(section string, a, b item) string {
	keys := map[string][]string{"exchanges": {"type", "durable", "auto_delete", "internal"}, "queues": {"durable", "auto_delete"}}[section]
	for _, key := range keys {
		if got, want := canonical(b[key]), canonical(a[key]); got != want {
			return fmt.Sprintf("%s is %s, at the source %s", key, got, want)
		}
	}
	if keys == nil {
		return ""
	}
	if got, want := canonical(arguments(b)), canonical(arguments(a)); got != want {
		return fmt.Sprintf("its arguments are %s, at the source %s", got, want)
	}
	return ""
}

// arguments are those of a queue or exchange. That a queue is a classic one need
// not be said.
func arguments(i item) map[string]any {
	args, _ := i["arguments"].(map[string]any)
	args = maps.Clone(args)
	maps.DeleteFunc(args, func(key string, v any) bool {
		return key == "x-queue-type" && v == "classic" || key == "x-queue-mode" || key == "x-queue-version"
	})
	return args
}

// canonical is a value as JSON, with the keys of objects in order and each number in
// one form; nothing is as an empty object.
func canonical(v any) string {
	if args, isTable := v.(map[string]any); isTable && len(args) == 0 {
		return "{}"
	}
	raw, err := json.Marshal(sameNumbers(v))
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// sameNumbers is a value in which equal doubles are written alike: brokers write
// 1.0e3, 1e+03 or 1000.0.
func sameNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil || !strings.ContainsAny(v.String(), ".eE") {
			return v
		}
		return json.Number(strconv.FormatFloat(f, 'e', -1, 64))
	case map[string]any:
		same := make(map[string]any, len(v))
		for key, value := range v {
			same[key] = sameNumbers(value)
		}
		return same
	case []any:
		same := make([]any, len(v))
		for i := range v {
			same[i] = sameNumbers(v[i])
		}
		return same
	}
	return v
}

// describe is the name of a definition, in full: what makes it another one.
func describe(section string, i item) string {
	in := " in vhost '" + i.text("vhost") + "'"
	switch section {
	case "vhosts", "users", "global_parameters":
		return "'" + i.text("name") + "'"
	case "permissions":
		return "of '" + i.text("user") + "'" + in
	case "topic_permissions":
		return "of '" + i.text("user") + "' for exchange '" + i.text("exchange") + "'" + in
	case "parameters":
		return i.text("component") + " '" + i.text("name") + "'" + in
	case "bindings":
		args, _ := i["arguments"].(map[string]any)
		return fmt.Sprintf("'%s' to %s '%s' by '%s' %s%s", i.text("source"), i.text("destination_type"), i.text("destination"),
			i.text("routing_key"), canonical(args), in)
	}
	return "'" + i.text("name") + "'" + in
}
