package main

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// An object is one object of the API, its members still JSON.
type object map[string]json.RawMessage

// at is the value at a path of names with dots in between; nil if there is none.
func (o object) at(path string) json.RawMessage {
	name, rest, nested := strings.Cut(path, ".")
	if !nested {
		return o[name]
	}
	var in object
	if json.Unmarshal(o[name], &in) != nil {
		return nil // null, or left out
	}
	return in.at(rest)
}

// text is the value at a path without the quotes of a string.
func (o object) text(path string) string { return cellText(o.at(path)) }

// A column is a column of a listing and where the API has it; a path that
// begins with = is a value that is always the same.
type column struct{ name, path string }

// same are columns that the API has under the same name.
func same(names string) []column {
	var list []column
	for name := range strings.FieldsSeq(names) {
		list = append(list, column{name, name})
	}
	return list
}

// A listing is a command that prints objects of one kind, as much of each as
// the arguments name.
type listing struct {
	name, short string
	title       string // what is said first; %s is the vhost
	timeout     bool   // the timeout is said first of all
	path        func(vhost string) string
	columns     []column // all there are
	defaults    string   // those of a call without arguments
	flags       []string // options of RabbitMQ's command that change nothing here, but offline
}

func listCommands(all []listing) []command {
	var list []command
	for _, l := range all {
		list = append(list, command{
			use: l.name + " [COLUMN...]", short: l.short, args: cobra.ArbitraryArgs, run: l.run, values: strings.Fields(columnNames(l.columns)),
			flags: func(f *pflag.FlagSet) {
				for _, name := range l.flags {
					f.Bool(name, false, or(name == "offline", "only those of nodes that do not run: none", "taken and ignored: there is one node"))
				}
			},
		})
	}
	return list
}

func (l *listing) run(ctx context.Context, s *session, args []string) error {
	columns, err := l.chosen(args)
	if err != nil {
		return err
	}
	if l.timeout && s.opts.timeout > 0 {
		s.say("Timeout: %d.0 seconds ...", s.opts.timeout)
	}
	s.say("%s", strings.ReplaceAll(l.title, "%s", s.opts.vhost))
	var objects []object
	if s.flags.Lookup("offline") != nil && s.on("offline") && !s.on("online") { // `report` has no such flag
		return s.print(tableOf(columns, objects))
	}
	err = s.api.get(ctx, l.path(s.opts.vhost), &objects)
	if err != nil && !isStatus(err, http.StatusNotFound) { // a vhost that does not exist has nothing (RabbitMQ 4.0)
		return err
	}
	return s.print(tableOf(columns, objects))
}

// chosen are the columns that the arguments name.
func (l *listing) chosen(args []string) ([]column, error) {
	if len(args) == 0 {
		args = strings.Fields(l.defaults)
	}
	var columns []column
	for _, arg := range args {
		for name := range strings.FieldsFuncSeq(arg, func(r rune) bool { return r == ',' || r == ' ' }) {
			i := slices.IndexFunc(l.columns, func(c column) bool { return c.name == name })
			if i < 0 {
				return nil, exitf(exitUsage, "Info key(s) %s are not supported: %s has %s", name, l.name, columnNames(l.columns))
			}
			columns = append(columns, l.columns[i])
		}
	}
	return columns, nil
}

func columnNames(columns []column) string {
	var names []string
	for _, c := range columns {
		names = append(names, c.name)
	}
	return strings.Join(names, " ")
}

// tableOf takes the columns out of objects.
func tableOf(columns []column, objects []object) *table {
	t := &table{}
	for _, c := range columns {
		t.columns = append(t.columns, c.name)
	}
	for _, o := range objects {
		row := make([]json.RawMessage, len(columns))
		for i, c := range columns {
			if value, fixed := strings.CutPrefix(c.path, "="); fixed {
				row[i] = quoted(value)
			} else {
				row[i] = o.at(c.path)
			}
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// inVHost is the path of the things of one kind in a vhost.
func inVHost(kind string) func(string) string {
	return func(vhost string) string { return apiPath(kind, vhost) }
}

// everywhere is a path that has no vhost.
func everywhere(kind string) func(string) string {
	return func(string) string { return apiPath(kind) }
}

// topologyListings have RabbitMQ 4.0's columns.
func topologyListings() []listing {
	return []listing{
		{
			name: "list_queues", short: "List the queues of a virtual host", title: "Listing queues for vhost %s ...", timeout: true,
			path: inVHost("queues"), defaults: "name messages", flags: []string{"online", "offline", "local"},
			columns: slices.Concat(
				same("name vhost durable auto_delete arguments policy operator_policy effective_policy_definition exclusive"),
				[]column{{"pid", "name"}, {"owner_pid", "owner_pid_details.name"}, {"exclusive_consumer_pid", ""}},
				same("exclusive_consumer_tag single_active_consumer_tag messages_ready messages_unacknowledged messages messages_ready_ram"),
				same("messages_unacknowledged_ram messages_ram messages_persistent message_bytes message_bytes_ready"),
				same("message_bytes_unacknowledged message_bytes_ram message_bytes_persistent head_message_timestamp disk_reads disk_writes"),
				same("consumers consumer_utilisation consumer_capacity memory state type leader members online delivery_limit"),
			),
		},
		{
			name: "list_exchanges", short: "List the exchanges of a virtual host", title: "Listing exchanges for vhost %s ...",
			path: inVHost("exchanges"), defaults: "name type",
			columns: same("name vhost type durable auto_delete internal arguments policy"),
		},
		{
			name: "list_bindings", short: "List the bindings of a virtual host", title: "Listing bindings for vhost %s...",
			path: inVHost("bindings"), defaults: "source_name source_kind destination_name destination_kind routing_key arguments",
			columns: slices.Concat([]column{{"source_name", "source"}, {"source_kind", "=exchange"}, {"destination_name", "destination"},
				{"destination_kind", "destination_type"}}, same("routing_key arguments vhost")),
		},
		{
			name: "list_consumers", short: "List the consumers of a virtual host", title: "Listing consumers in vhost %s ...",
			path: inVHost("consumers"), defaults: "queue_name channel_pid consumer_tag ack_required prefetch_count active arguments",
			columns: slices.Concat([]column{{"queue_name", "queue.name"}, {"channel_pid", "channel_details.name"}},
				same("consumer_tag ack_required prefetch_count active activity_status arguments exclusive")),
		},
	}
}
