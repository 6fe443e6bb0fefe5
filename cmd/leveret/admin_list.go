package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// An adminList is a kind of thing that rabbitmqadmin lists.
type adminList struct {
	path    string
	inVHost bool   // a vhost can be named
	columns string // unless others are named; "" is all
}

func adminLists() map[string]adminList {
	return map[string]adminList{
		"users":             {"users", false, ""},
		"vhosts":            {"vhosts", false, "name messages"},
		"connections":       {"connections", false, "name user channels"},
		"channels":          {"channels", false, "name user"},
		"consumers":         {"consumers", true, "queue.name consumer_tag ack_required prefetch_count"},
		"exchanges":         {"exchanges", true, "name type"},
		"queues":            {"queues", true, "name messages"},
		"bindings":          {"bindings", true, "source destination routing_key"},
		"permissions":       {"permissions", false, ""},
		"topic_permissions": {"topic-permissions", false, ""},
		"nodes":             {"nodes", false, "name type mem_used"},
		"parameters":        {"parameters", false, ""},
		"policies":          {"policies", true, ""},
		"operator_policies": {"operator-policies", true, ""},
		"vhost_limits":      {"vhost-limits", true, ""},
		"user_limits":       {"user-limits", false, ""},
		"feature_flags":     {"feature-flags", false, "name state"},
	}
}

// adminHelp lists the commands with their arguments.
func adminHelp() string {
	var b strings.Builder
	b.WriteString("Display:\n")
	for _, name := range slices.Sorted(maps.Keys(adminLists())) {
		fmt.Fprintf(&b, "  list %s [COLUMN...]\n", name)
	}
	b.WriteString("  show overview [COLUMN...]\n\nObjects:\n")
	kinds := adminKinds()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[name]
		fmt.Fprintf(&b, "  declare %s%s\n", name, argumentsHelp(k.declareMust, k.declareMay))
		fmt.Fprintf(&b, "  delete %s%s\n", name, argumentsHelp(k.deleteMust, k.deleteMay))
	}
	b.WriteString("  close connection name=...\n  purge queue name=...\n\nMessages:\n" +
		"  publish routing_key=... [payload=... properties=... exchange=... payload_encoding=...]\n" +
		"  get queue=... [count=... ackmode=... encoding=...]\n\nDefinitions:\n  export FILE\n  import FILE")
	return b.String()
}

func argumentsHelp(must, may string) string {
	var b strings.Builder
	for name := range strings.FieldsSeq(must) {
		b.WriteString(" " + name + "=...")
	}
	if may != "" {
		b.WriteString(" [" + strings.Join(strings.Fields(may), "=... ") + "=...]")
	}
	return b.String()
}

func (a *admin) list(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return exitf(exitUsage, "list what? `help subcommands` lists what there is")
	}
	l, known := adminLists()[args[0]]
	if !known {
		return exitf(exitUsage, "cannot list %s; `help subcommands` lists what there is", args[0])
	}
	path := apiPath(l.path)
	if l.inVHost && a.o.vhost != "" {
		path = apiPath(l.path, a.o.vhost)
	}
	if a.o.sort != "" {
		path += "?sort=" + a.o.sort + "&sort_reverse=" + fmt.Sprint(a.o.reverse)
	}
	var list []object
	if err := a.api.get(ctx, path, &list); err != nil {
		return err
	}
	columns := l.columns
	if a.o.depth > 0 {
		columns = ""
	}
	if len(args) > 1 {
		columns = strings.Join(args[1:], " ")
	}
	return a.printObjects(columns, list)
}

func (a *admin) show(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "overview" {
		return exitf(exitUsage, "show what? It can be overview only")
	}
	var o object
	if err := a.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	columns := "rabbitmq_version cluster_name queue_totals.messages object_totals.queues"
	if len(args) > 1 {
		columns = strings.Join(args[1:], " ")
	}
	return a.printObjects(columns, []object{o})
}

// printObjects prints the columns of objects; "" is all columns there are, down to
// the depth.
func (a *admin) printObjects(columns string, list []object) error {
	if columns == "" {
		names := map[string]bool{}
		for _, o := range list {
			addColumns(names, "", o, a.o.depth)
		}
		columns = strings.Join(slices.SortedFunc(maps.Keys(names), nameFirst), " ")
	}
	t := tableOf(same(columns), list)
	switch a.o.format {
	case "raw_json", "pretty_json":
		return a.printJSON(t)
	case "pretty_table":
		return a.printGrid(t)
	case "tsv":
		return t.write(a.out, look{formatter: "table", headers: true})
	case "long":
		return a.printLong(t)
	case "kvp":
		return a.printPairs(t)
	case "bash":
		for _, row := range t.rows {
			a.printf("%s ", cellText(row[0]))
		}
		a.printf("\n")
		return nil
	}
	return exitf(exitUsage, "there is no format %q; take pretty_table, tsv, long, kvp, bash, raw_json or pretty_json", a.o.format)
}

// addColumns adds the names of an object's members, and of objects in it down to the
// depth: those further down are left out (RabbitMQ 4.0). A depth of 0 is the members as
// they are.
func addColumns(names map[string]bool, prefix string, o object, depth int) {
	for name, raw := range o {
		var inner object
		isObject := depth > 0 && json.Unmarshal(raw, &inner) == nil && inner != nil
		switch {
		case !isObject || name == "definition" || name == "value": // of policies and parameters
			names[prefix+name] = true
		case depth > 1:
			addColumns(names, prefix+name+".", inner, depth-1)
		}
	}
}

// nameFirst orders columns by name, but for those that people look for first.
func nameFirst(a, b string) int {
	rank := func(s string) int {
		if i := slices.Index([]string{"name", "vhost", "user"}, s); i >= 0 {
			return i
		}
		return 3
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}

func (a *admin) printJSON(t *table) error {
	list := []json.RawMessage{}
	for _, row := range t.rows {
		list = append(list, jsonRow(t.columns, row))
	}
	if a.o.format == "pretty_json" {
		return a.document(list)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return err
	}
	a.printf("%s\n", raw)
	return nil
}

// printGrid draws a table as rabbitmqadmin does.
func (a *admin) printGrid(t *table) error {
	if len(t.rows) == 0 {
		a.printf("No items\n")
		return nil
	}
	grid := t.text()
	widths := widthsOf(grid)
	var b bytes.Buffer
	rule := func() {
		for _, w := range widths {
			b.WriteString("+" + strings.Repeat("-", w+2))
		}
		b.WriteString("+\n")
	}
	rule()
	for n, line := range grid {
		for i, cell := range line {
			space := widths[i] - utf8.RuneCountInString(cell)
			left := 0
			if n == 0 {
				left = space / 2
			}
			b.WriteString("| " + strings.Repeat(" ", left) + cell + strings.Repeat(" ", space-left) + " ")
		}
		b.WriteString("|\n")
		if n == 0 {
			rule()
		}
	}
	rule()
	_, err := a.out.Write(b.Bytes())
	return err
}

// printLong prints one value a line.
func (a *admin) printLong(t *table) error {
	width := 0
	for _, name := range t.columns {
		width = max(width, len(name))
	}
	line := strings.Repeat("-", 80)
	a.printf("\n")
	for _, row := range t.rows {
		a.printf("%s\n\n", line)
		for i, cell := range row {
			a.printf("%*s: %s\n", width, t.columns[i], cellText(cell))
		}
		a.printf("\n")
	}
	a.printf("%s\n\n", line)
	return nil
}

// printPairs prints name="value" pairs.
func (a *admin) printPairs(t *table) error {
	for _, row := range t.rows {
		var pairs []string
		for i, cell := range row {
			pairs = append(pairs, fmt.Sprintf("%s=%q", t.columns[i], cellText(cell)))
		}
		a.printf("%s\n", strings.Join(pairs, " "))
	}
	return nil
}
