package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// definitionsCommands are those of `definitions`.
func definitionsCommands() []command {
	return []command{
		{use: "diff FROM [TO]", short: "Compare two files, or brokers at http:// URLs; a single one is compared with the broker. Exit code 1 if they differ",
			args: cobra.RangeArgs(1, 2), run: diffDefinitions},
		{use: "export [FILE]", short: "Write users, virtual hosts, queues and the rest to a file or standard output", args: cobra.MaximumNArgs(1), run: exportDefinitionsOr},
		{use: "import [FILE]", short: "Read definitions from a file or standard input; what is there already stays", args: cobra.MaximumNArgs(1), run: importDefinitions},
	}
}

func exportDefinitionsOr(ctx context.Context, s *session, args []string) error {
	if len(args) == 0 {
		args = []string{"-"}
	}
	return exportDefinitions(ctx, s, args)
}

// A section is a list in definitions, and the members by which its items are
// told apart.
type section struct {
	name string
	keys []string
}

func sections() []section {
	return []section{
		{"vhosts", []string{"name"}},
		{"users", []string{"name"}},
		{"permissions", []string{"vhost", "user"}},
		{"topic_permissions", []string{"vhost", "user", "exchange"}},
		{"global_parameters", []string{"name"}},
		{"parameters", []string{"vhost", "component", "name"}},
		{"policies", []string{"vhost", "name"}},
		{"exchanges", []string{"vhost", "name"}},
		{"queues", []string{"vhost", "name"}},
		{"bindings", []string{"vhost", "source", "destination_type", "destination", "routing_key", "arguments"}},
	}
}

// A difference is what has to happen to one item of the first definitions so
// that it is as in the second. From and To are values of Member, for a change.
type difference struct {
	Section string          `json:"section"`
	Item    string          `json:"item"`
	Action  string          `json:"action"` // add, remove or change
	Member  string          `json:"member,omitempty"`
	From    json.RawMessage `json:"from,omitempty"`
	To      json.RawMessage `json:"to,omitempty"`
}

func diffDefinitions(ctx context.Context, s *session, args []string) error {
	from, to := "", args[0]
	if len(args) == 2 {
		from, to = args[0], args[1]
	}
	a, err := s.definitionsOf(ctx, from)
	if err != nil {
		return err
	}
	b, err := s.definitionsOf(ctx, to)
	if err != nil {
		return err
	}
	differences, err := compareDefinitions(a, b)
	if err != nil {
		return err
	}
	if s.opts.formatter != "table" {
		err = s.print(differenceTable(differences))
	} else {
		s.printDifferences(differences)
	}
	if err == nil && len(differences) > 0 {
		return exitf(exitFailure, "the definitions differ; + is only in the second, - only in the first")
	}
	return err
}

// definitionsOf reads a file, standard input for -, or what a broker exports: at
// a URL, or the one that is asked for "".
func (s *session) definitionsOf(ctx context.Context, from string) (object, error) {
	var raw []byte
	var err error
	switch {
	case from == "":
		err = s.api.get(ctx, s.definitionsPath(), &raw)
	case strings.HasPrefix(from, "http://"), strings.HasPrefix(from, "https://"):
		raw, err = s.definitionsAt(ctx, from)
	default:
		raw, err = s.readAll(from)
	}
	if err != nil {
		return nil, err
	}
	var defs object
	if err := json.Unmarshal(raw, &defs); err != nil {
		return nil, exitf(exitData, "%s has no definitions, which are a JSON object: %v", or(from == "-", "standard input", or(from == "", "the broker", from)), err)
	}
	return defs, nil
}

// definitionsAt asks another broker; its login may be in the URL.
func (s *session) definitionsAt(ctx context.Context, address string) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, exitf(exitUsage, "%q is no URL: %v", address, err)
	}
	o := *s.opts
	if u.User != nil {
		o.user = u.User.Username()
		o.password, _ = u.User.Password()
		u.User = nil
	}
	o.url = u.String()
	var raw []byte
	return raw, newAPI(&o, s.env).get(ctx, s.definitionsPath(), &raw)
}

// compareDefinitions lists what differs, in the order of sections and by name.
// Which version and product wrote them is of no matter.
func compareDefinitions(a, b object) ([]difference, error) {
	var found []difference
	for _, sec := range sections() {
		left, err := sec.items(a)
		if err != nil {
			return nil, err
		}
		right, err := sec.items(b)
		if err != nil {
			return nil, err
		}
		names := maps.Clone(left)
		maps.Copy(names, right)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			x, inLeft := left[name]
			y, inRight := right[name]
			switch {
			case !inLeft:
				found = append(found, difference{Section: sec.name, Item: name, Action: "add"})
			case !inRight:
				found = append(found, difference{Section: sec.name, Item: name, Action: "remove"})
			default:
				found = append(found, changes(sec.name, name, "", x, y)...)
			}
		}
	}
	return found, nil
}

// items are the items of a section by their keys.
func (sec *section) items(defs object) (map[string]object, error) {
	var list []object
	if raw := defs[sec.name]; raw != nil {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, exitf(exitData, "%s of the definitions are no list of objects: %v", sec.name, err)
		}
	}
	items := make(map[string]object, len(list))
	for _, o := range list {
		items[sec.label(o)] = o
	}
	return items, nil
}

// label names an item for people: the values of its keys, the vhost first.
func (sec *section) label(o object) string {
	var parts []string
	for _, key := range sec.keys {
		text := o.text(key)
		if key == "arguments" {
			text = string(canonical(o[key]))
			if text == "{}" || text == "[]" || text == "null" {
				continue
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// changes lists the members of two objects that differ; those of objects in
// them one by one, as in arguments.x-max-length. A member that is empty is as
// one that is not there.
func changes(section, item, prefix string, a, b object) []difference {
	var found []difference
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, y := canonical(a[name]), canonical(b[name])
		if bytes.Equal(x, y) {
			continue
		}
		var ox, oy object
		if isObject(x) && isObject(y) && json.Unmarshal(x, &ox) == nil && json.Unmarshal(y, &oy) == nil {
			found = append(found, changes(section, item, prefix+name+".", ox, oy)...)
			continue
		}
		found = append(found, difference{Section: section, Item: item, Action: "change", Member: prefix + name, From: x, To: y})
	}
	return found
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// canonical is a value with its members sorted; an empty one is null.
func canonical(raw json.RawMessage) json.RawMessage {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if raw == nil || dec.Decode(&v) != nil {
		return json.RawMessage("null")
	}
	sorted, _ := json.Marshal(v) // it was JSON
	switch string(sorted) {
	case "{}", "[]", `""`:
		return json.RawMessage("null")
	}
	return sorted
}

func differenceTable(list []difference) *table {
	t := &table{columns: []string{"section", "item", "action", "member", "from", "to"}}
	for _, d := range list {
		member := quoted(d.Member)
		if d.Member == "" {
			member = nil
		}
		t.rows = append(t.rows, []json.RawMessage{quoted(d.Section), quoted(d.Item), quoted(d.Action), member, d.From, d.To})
	}
	return t
}

// printDifferences prints one paragraph for each section.
func (s *session) printDifferences(list []difference) {
	paint := func(f func(string) string, text string) string {
		if coloured(s.out) {
			return f(text)
		}
		return text
	}
	last := difference{}
	for _, d := range list {
		if d.Section != last.Section {
			s.printf("%s\n", d.Section)
		}
		switch d.Action {
		case "add":
			s.printf("%s\n", paint(green, "  + "+d.Item))
		case "remove":
			s.printf("%s\n", paint(red, "  - "+d.Item))
		default:
			if d.Section != last.Section || d.Item != last.Item {
				s.printf("  ~ %s\n", d.Item)
			}
			s.printf("      %s: %s → %s\n", d.Member, paint(red, shownValue(d.From)), paint(green, shownValue(d.To)))
		}
		last = d
	}
}

func shownValue(raw json.RawMessage) string {
	return cmp.Or(fmt.Sprintf("%.200s", raw), "null")
}

func green(s string) string { return "\x1b[32m" + s + "\x1b[0m" }
