package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// An adminList is a kind of thing that rabbitmqadmin lists.
type adminList struct {
	path    string
	inVHost bool   // a vhost can be named
	columns string // unless others are named; "" is all
	json    string // the column whose objects are one cell
}

func adminLists() map[string]adminList {
	return map[string]adminList{
		"users":             {"users", false, "", ""},
		"vhosts":            {"vhosts", false, "name messages", ""},
		"connections":       {"connections", false, "name user channels", ""},
		"channels":          {"channels", false, "name user", ""},
		"consumers":         {"consumers", true, "", ""},
		"exchanges":         {"exchanges", true, "name type", ""},
		"queues":            {"queues", true, "name messages", ""},
		"bindings":          {"bindings", true, "source destination routing_key", ""},
		"permissions":       {"permissions", false, "", ""},
		"topic_permissions": {"topic-permissions", false, "", ""},
		"nodes":             {"nodes", false, "name type mem_used", ""},
		"parameters":        {"parameters", false, "", "value"},
		"policies":          {"policies", true, "", "definition"},
		"operator_policies": {"operator-policies", true, "", "definition"},
		"vhost_limits":      {"vhost-limits", true, "", "value"},
		"user_limits":       {"user-limits", false, "", "value"},
		"feature_flags":     {"feature-flags", false, "name state", ""},
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
	columns := a.columns(l.columns, args[1:])
	var answer []byte
	if err := a.api.get(ctx, path+a.query(columns), &answer); err != nil {
		return err
	}
	return a.printAnswer(answer, columns, l.json)
}

func (a *admin) show(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] != "overview" {
		return exitf(exitUsage, "show what? It can be overview only")
	}
	columns := a.columns("rabbitmq_version cluster_name queue_totals.messages object_totals.queues", args[1:])
	var answer []byte
	if err := a.api.get(ctx, apiPath("overview")+a.query(columns), &answer); err != nil {
		return err
	}
	return a.printAnswer(slices.Concat([]byte("["), answer, []byte("]")), columns, "")
}

// columns are those that are named, else those by default: the formats of JSON and
// --depth have all, which is none here (RabbitMQ 4.0).
func (a *admin) columns(byDefault string, named []string) []string {
	switch {
	case len(named) > 0:
		return strings.Split(strings.Join(named, ","), ",")
	case a.o.depth > 0 || strings.HasSuffix(a.o.format, "_json"):
		return nil
	}
	return strings.Fields(byDefault)
}

// query asks the API for these columns, in the order of the options.
func (a *admin) query(columns []string) string {
	var items []string
	if len(columns) > 0 {
		escaped := make([]string, len(columns))
		for i, name := range columns {
			escaped[i] = url.QueryEscape(name)
		}
		items = append(items, "columns="+strings.Join(escaped, ","))
	}
	if a.o.sort != "" {
		items = append(items, "sort="+url.QueryEscape(a.o.sort))
	}
	if a.o.reverse {
		items = append(items, "sort_reverse=true")
	}
	return strings.TrimSuffix("?"+strings.Join(items, "&"), "?")
}

// promoted orders columns by name, but for those that people look for first
// (RabbitMQ 4.0).
func promoted(a, b string) int {
	first := []string{"vhost", "name", "type", "source", "destination", "destination_type", "routing_key"}
	rank := func(s string) int {
		if i := slices.Index(first, s); i >= 0 {
			return i
		}
		return len(first)
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
}
