package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// adminOptions are those of rabbitmqadmin of RabbitMQ 4.0 and before, the one
// with name=value arguments.
type adminOptions struct {
	host, port, prefix, user, password, vhost, format, sort string
	url, baseURI, config, node, declareVHost                string
	caFile, certFile, keyFile                               string
	quiet, tls, reverse, insecure, anyHost                  bool
	version, completion                                     bool
	timeout                                                 int // in seconds
	depth                                                   int // 0 is the columns by default
}

// adminVersion is that of RabbitMQ whose rabbitmqadmin this stands for, as of the
// script that the broker serves.
const adminVersion = "4.0.5"

// adminCommand is rabbitmqadmin, under this name.
func adminCommand(name string) *cobra.Command {
	o := &adminOptions{}
	cmd := &cobra.Command{
		Use:   name + " [OPTION...] COMMAND [TYPE] [NAME=VALUE...]",
		Short: "Commands of rabbitmqadmin: list, show, declare, delete, close, purge, publish, get, export, import",
		Long:  "The commands of rabbitmqadmin.\n\n" + adminHelp(),
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return adminError(o.run(cmd, args))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "`address` of the HTTP API, in place of --host and --port [LEVERET_URL]")
	f.StringVarP(&o.host, "host", "H", "", "`host` of the HTTP API (default 127.0.0.1)")
	f.StringVarP(&o.port, "port", "P", "", "`port` of the HTTP API (default 15672)")
	f.StringVar(&o.prefix, "path-prefix", "", "`path` before /api")
	f.StringVarP(&o.user, "username", "u", "", "`name` to log in with (default guest)")
	f.StringVarP(&o.password, "password", "p", "", "`password` to log in with (default guest)")
	f.StringVarP(&o.baseURI, "base-uri", "U", "", "`address` and login, in place of --host, --port, --username and --password, as in https://user:password@host:15671")
	f.StringVarP(&o.config, "config", "c", "", "configuration `file` (default ~/"+adminConfigFile+", unless LEVERET_URL is set)")
	f.StringVarP(&o.node, "node", "N", "", "`section` of the configuration file (default default)")
	f.StringVarP(&o.vhost, "vhost", "V", "", "virtual `host` (default / ; all of them to list)")
	f.StringVarP(&o.declareVHost, "declare-vhost", "y", "/", "virtual `host` of what needs one, if --vhost is not given")
	f.IntVarP(&o.timeout, "request-timeout", "t", 120, "how many `seconds` to wait for an answer")
	f.IntVarP(&o.depth, "depth", "d", 0, "list all columns, and members of members down to this `depth`")
	f.StringVarP(&o.format, "format", "f", "pretty_table", "`format`: pretty_table, tsv, long, kvp, bash, raw_json or pretty_json")
	f.StringVarP(&o.sort, "sort", "S", "", "`column` to sort by")
	f.BoolVarP(&o.reverse, "sort-reverse", "R", false, "the largest first")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say nothing but the result")
	f.BoolVarP(&o.tls, "ssl", "s", false, "use HTTPS")
	f.BoolVarP(&o.insecure, "ssl-insecure", "k", false, "take any certificate of the broker")
	f.BoolVar(&o.anyHost, "ssl-disable-hostname-verification", false, "take a certificate of another host")
	f.StringVar(&o.caFile, "ssl-ca-cert-file", "", "`file` of who the broker's certificate must be from, in PEM format")
	f.StringVar(&o.certFile, "ssl-cert-file", "", "`file` of the client's certificate, in PEM format")
	f.StringVar(&o.keyFile, "ssl-key-file", "", "`file` of the client's key, in PEM format")
	f.BoolVar(&o.version, "version", false, "print the version of RabbitMQ that this stands for")
	f.BoolVar(&o.completion, "bash-completion", false, "print a script that completes commands in bash")
	return quiet(cmd)
}

// adminError gives what the API refuses the exit code of rabbitmqadmin, which
// has no other but that of usage.
func adminError(err error) error {
	if err = explained(err); err == nil {
		return nil
	}
	if e, ok := errors.AsType[*exitError](err); ok && e.code != exitUsage {
		return &exitError{code: exitFailure, text: e.text}
	}
	return err
}

// An admin is one run of rabbitmqadmin.
type admin struct {
	*session
	o *adminOptions
}

func (o *adminOptions) run(cmd *cobra.Command, args []string) error {
	switch {
	case o.version:
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "rabbitmqadmin %s\n", adminVersion)
		return err
	case o.completion:
		_, err := fmt.Fprint(cmd.OutOrStdout(), bashCompletion(cmd.Flags()))
		return err
	}
	if err := o.configure(cmd.Flags(), os.LookupEnv); err != nil {
		return err
	}
	s, err := open(cmd, &options{url: o.base(), user: o.user, password: o.password, formatter: "table", timeout: o.timeout, quiet: o.quiet})
	if err != nil {
		return err
	}
	if t, err := o.transport(); err != nil {
		return err
	} else if t != nil && s.api.http.Transport == nil { // else it is a socket
		s.api.http.Transport = t
	}
	a := &admin{s, o}
	if len(args) == 0 {
		return exitf(exitUsage, "what to do? One of list, show, declare, delete, close, purge, publish, get, export, import, help")
	}
	ctx, rest := cmd.Context(), args[1:]
	switch args[0] {
	case "list":
		return a.list(ctx, rest)
	case "show":
		return a.show(ctx, rest)
	case "declare", "delete", "close", "purge":
		return a.act(ctx, args[0], rest)
	case "publish":
		return a.publish(ctx, rest)
	case "get":
		return a.getMessages(ctx, rest)
	case "export":
		return a.export(ctx, rest)
	case "import":
		return a.importFile(ctx, rest)
	case "health_check":
		return a.healthCheck(ctx, rest)
	case "help":
		a.printf("%s\n", adminHelp())
		return nil
	}
	return exitf(exitUsage, "there is no command %q; `help subcommands` lists what there is", args[0])
}

// base is the URL that the options make; "" if there are none.
func (o *adminOptions) base() string {
	if o.url != "" || o.host == "" && o.port == "" && !o.tls && o.prefix == "" {
		return o.url
	}
	host, port := or(o.host == "", "127.0.0.1", o.host), or(o.port == "", or(o.tls, "15671", "15672"), o.port)
	return or(o.tls, "https://", "http://") + net.JoinHostPort(host, port) + strings.TrimSuffix("/"+strings.Trim(o.prefix, "/"), "/")
}

// arguments are name=value pairs.
type arguments map[string]string

func parseArguments(args []string) (arguments, error) {
	a := arguments{}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, exitf(exitUsage, "the argument %q has no value; write name=value", arg)
		}
		a[name] = value
	}
	return a, nil
}

// only says which arguments are missing, or are too many.
func (a arguments) only(must, may string) error {
	for name := range strings.FieldsSeq(must) {
		value, there := a[name]
		switch {
		case !there:
			return exitf(exitUsage, "mandatory argument %q is missing", name)
		case value == "" && slices.Contains([]string{"name", "queue", "user", "vhost", "component", "destination"}, name):
			return exitf(exitUsage, "argument %q must not be empty", name) // in a path of the API it would mean all
		}
	}
	if t, there := a["destination_type"]; there && !slices.Contains([]string{"queue", "exchange", "q", "e"}, t) { // its first letter is in the path
		return exitf(exitUsage, "argument \"destination_type\" is queue or exchange, not %q", t)
	}
	known := strings.Fields(must + " " + may)
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if !slices.Contains(known, name) {
			return exitf(exitUsage, "argument %q is not one of: %s", name, strings.Join(known, " "))
		}
	}
	return nil
}

// body makes a request's body: values of the named arguments are JSON, the
// others text.
func (a arguments) body(jsonNames string) (map[string]any, error) {
	m := map[string]any{}
	isJSON := strings.Fields(jsonNames)
	for name, value := range a {
		m[name] = value
		if slices.Contains(isJSON, name) {
			raw, err := parsed("argument "+name, value)
			if err != nil {
				return nil, err
			}
			m[name] = raw
		}
	}
	return m, nil
}

func (a arguments) or(name, fallback string) string {
	if v, there := a[name]; there {
		return v
	}
	return fallback
}

// vhost is the virtual host of a command that needs one.
func (a *admin) vhost() string { return cmp.Or(a.o.vhost, a.o.declareVHost, "/") }

// An adminKind is a type of thing that can be declared or deleted.
type adminKind struct {
	declareMust, declareMay string
	json                    string // arguments that are JSON
	deleteMust, deleteMay   string
	path                    func(vhost string, a arguments) string
}

// named is the path of a thing with a name in a vhost.
func named(kind string) func(string, arguments) string {
	return func(vhost string, a arguments) string { return apiPath(kind, vhost, a["name"]) }
}

func adminKinds() map[string]adminKind {
	return map[string]adminKind{
		"exchange": {"name type", "auto_delete durable internal arguments", "arguments", "name", "", named("exchanges")},
		"queue":    {"name", "auto_delete durable arguments node queue_type", "arguments", "name", "", named("queues")},
		"binding": {"source destination", "destination_type routing_key arguments", "arguments", "source destination_type destination", "properties_key",
			func(vhost string, a arguments) string {
				return apiPath("bindings", vhost, "e", or(a["source"] == "", "amq.default", a["source"]), a.or("destination_type", "queue")[:1], a["destination"])
			}},
		"vhost": {"name", "tracing description tags default_queue_type", "tracing", "name", "",
			func(_ string, a arguments) string { return apiPath("vhosts", a["name"]) }},
		"user": {"name tags", "password password_hash hashing_algorithm", "", "name", "",
			func(_ string, a arguments) string { return apiPath("users", a["name"]) }},
		"permission": {"user configure write read", "vhost", "", "user", "vhost",
			func(vhost string, a arguments) string { return apiPath("permissions", a.or("vhost", vhost), a["user"]) }},
		"parameter": {"component name value", "", "value", "component name", "",
			func(vhost string, a arguments) string { return apiPath("parameters", a["component"], vhost, a["name"]) }},
		"policy":          {"name pattern definition", "priority apply-to", "definition priority", "name", "", named("policies")},
		"operator_policy": {"name pattern definition", "priority apply-to", "definition priority", "name", "", named("operator-policies")},
		"vhost_limit": {"vhost name value", "", "value", "vhost name", "",
			func(_ string, a arguments) string { return apiPath("vhost-limits", a["vhost"], a["name"]) }},
		"user_limit": {"user name value", "", "value", "user name", "",
			func(_ string, a arguments) string { return apiPath("user-limits", a["user"], a["name"]) }},
	}
}

// act declares, deletes, closes or purges one thing.
func (a *admin) act(ctx context.Context, verb string, args []string) error {
	if len(args) == 0 {
		return exitf(exitUsage, "%s what? `help subcommands` lists what there is", verb)
	}
	given, err := parseArguments(args[1:])
	if err != nil {
		return err
	}
	switch what := args[0]; {
	case verb == "close" && what == "connection":
		return a.done(given.only("name", ""), "connection closed", func() error { return a.api.delete(ctx, apiPath("connections", given["name"])) })
	case verb == "purge" && what == "queue":
		return a.done(given.only("name", ""), "queue purged", func() error {
			return a.api.delete(ctx, apiPath("queues", a.vhost(), given["name"], "contents"))
		})
	case verb == "declare" || verb == "delete":
		k, known := adminKinds()[what]
		if known && verb == "declare" {
			return a.done(given.only(k.declareMust, k.declareMay), what+" declared", func() error { return a.declare(ctx, what, k, given) })
		}
		if known {
			return a.done(given.only(k.deleteMust, k.deleteMay), what+" deleted", func() error { return a.remove(ctx, what, k, given) })
		}
	}
	return exitf(exitUsage, "cannot %s %s; `help subcommands` lists what there is", verb, args[0])
}

// done acts if the arguments are right, and says so.
func (a *admin) done(err error, text string, act func() error) error {
	if err != nil {
		return err
	}
	if err := act(); err != nil {
		return err
	}
	a.say("%s", text)
	return nil
}

func (a *admin) declare(ctx context.Context, what string, k adminKind, given arguments) error {
	body, err := given.body(k.json)
	if err != nil {
		return err
	}
	path := k.path(a.vhost(), given)
	switch what {
	case "binding":
		delete(body, "source")
		delete(body, "destination")
		delete(body, "destination_type")
		return a.api.post(ctx, path, body, nil)
	case "queue", "exchange":
		completeDeclaration(body)
	}
	return a.api.put(ctx, path, body)
}

// completeDeclaration makes things durable unless told otherwise, and a type of
// queue an argument of it.
func completeDeclaration(body map[string]any) {
	for name, value := range map[string]any{"durable": "true", "auto_delete": "false"} {
		if _, there := body[name]; !there {
			body[name] = value
		}
	}
	t, typed := body["queue_type"]
	if !typed {
		return
	}
	delete(body, "queue_type")
	arguments := map[string]any{}
	if raw, there := body["arguments"].(json.RawMessage); there && json.Unmarshal(raw, &arguments) != nil {
		return // the broker says that arguments have to be an object
	}
	arguments["x-queue-type"] = t
	body["arguments"] = arguments
}

func (a *admin) remove(ctx context.Context, what string, k adminKind, given arguments) error {
	path := k.path(a.vhost(), given)
	if what == "binding" {
		path += apiPath(given.or("properties_key", "~"))
	}
	err := a.api.delete(ctx, path)
	if isStatus(err, http.StatusNotFound) {
		return exitf(exitFailure, "Not found: /api%s", path)
	}
	return err
}

// healthCheck makes a check under the name that rabbitmqadmin of RabbitMQ 4.1
// has for it.
func (a *admin) healthCheck(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return exitf(exitUsage, "which check? local_alarms, cluster_wide_alarms, node_is_quorum_critical, port_listener --port N or protocol_listener --protocol P")
	}
	given, err := parseArguments(args[1:])
	if err != nil {
		return err
	}
	var path []string
	switch args[0] {
	case "local_alarms":
		path = []string{"local-alarms"}
	case "cluster_wide_alarms":
		path = []string{"alarms"}
	case "node_is_quorum_critical":
		path = []string{"node-is-quorum-critical"}
	case "port_listener":
		path = []string{"port-listener", given["port"]}
	case "protocol_listener":
		path = []string{"protocol-listener", given["protocol"]}
	default:
		return exitf(exitUsage, "there is no check %q", args[0])
	}
	if err := a.api.get(ctx, apiPath(append([]string{"health", "checks"}, path...)...), nil); err != nil {
		return err
	}
	a.say("health check passed")
	return nil
}

func (a *admin) definitionsPath() string {
	if a.o.vhost != "" {
		return apiPath("definitions", a.o.vhost)
	}
	return apiPath("definitions")
}

func (a *admin) export(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return exitf(exitUsage, "export wants the name of one file")
	}
	var raw []byte
	if err := a.api.get(ctx, a.definitionsPath(), &raw); err != nil {
		return err
	}
	if err := writeJSON(args[0], raw); err != nil {
		return err
	}
	a.say("Exported definitions for %s to %q", a.api.shown, args[0])
	return nil
}

func (a *admin) importFile(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return exitf(exitUsage, "import wants the name of one file")
	}
	raw, err := a.readAll(args[0])
	if err != nil {
		return err
	}
	if err := a.api.post(ctx, a.definitionsPath(), raw, nil); err != nil {
		return err
	}
	a.say("Uploaded definitions from %q to %s.", args[0], a.api.shown)
	return nil
}
