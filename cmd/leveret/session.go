package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leveretmq/leveret/config"
)

// options are those that all commands of the client have.
type options struct {
	url, user, password string
	dataDir             string
	vhost               string
	node                string // the one that is meant; "" is whichever answers
	formatter           string
	quiet, silent, json bool
	noHeaders           bool
	timeout             int // in seconds; 0 is none

	shared *pflag.FlagSet // flags of all these, made once for all commands
}

// add gives a command the flags of the options, but for those that it has for itself.
func (o *options) add(to *pflag.FlagSet) {
	if o.shared == nil {
		o.shared = o.flags()
	}
	o.shared.VisitAll(func(one *pflag.Flag) {
		if to.Lookup(one.Name) == nil && (one.Shorthand == "" || to.ShorthandLookup(one.Shorthand) == nil) {
			to.AddFlag(one)
		}
	})
}

// flags makes flags of the options, with what completes their values.
func (o *options) flags() *pflag.FlagSet {
	holder := &cobra.Command{} // completions are found by the flag, whatever has it
	f := holder.Flags()
	f.SortFlags = false
	f.StringVarP(&o.vhost, "vhost", "p", "/", "virtual `host`")
	f.StringVar(&o.formatter, "formatter", "table", "`format` of the output: table, json, pretty_table, csv or erlang")
	f.BoolVar(&o.json, "json", false, "short for --formatter json")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "say nothing but the result")
	f.BoolVarP(&o.silent, "silent", "s", false, "as --quiet, and no table headers")
	f.BoolVar(&o.noHeaders, "no-table-headers", false, "no table headers")
	f.IntVarP(&o.timeout, "timeout", "t", 60, "how many `seconds` to wait for the broker; 0 is forever")
	f.StringVar(&o.url, "url", "", "`address` of the HTTP API (default: the socket in the data folder, then http://127.0.0.1:15672) [LEVERET_URL]")
	f.StringVar(&o.dataDir, "data-dir", "", "`folder` of the broker's data, with the socket that needs no login [LEVERET_DATA_DIR]")
	f.StringVar(&o.user, "user", "", "`name` to log in with (default: none over the socket, else guest) [LEVERET_USER]")
	f.StringVar(&o.password, "password", "", "`password` to log in with (default guest); the variable keeps it out of sight [LEVERET_PASSWORD]")
	f.StringVarP(&o.node, "node", "n", "", "`name` of the node that is meant: the command fails if the broker has another; see --url for where it is")
	f.BoolP("longnames", "l", false, "ignored")
	f.Bool("script-mode", false, "ignored")
	for _, name := range []string{"longnames", "script-mode"} {
		f.Lookup(name).Hidden = true
	}
	completeFlags(holder, o)
	return f
}

// A session is one run of one command. It belongs to its goroutine; all fields
// are immutable.
type session struct {
	api   *api
	opts  *options
	flags *pflag.FlagSet
	cmd   *cobra.Command
	env   func(string) (string, bool)
	in    io.Reader
	out   io.Writer
}

// open makes the session of a command that is about to run.
func open(cmd *cobra.Command, o *options) (*session, error) {
	if o.json {
		o.formatter = "json"
	}
	if !slices.Contains(formatters, o.formatter) {
		return nil, exitf(exitUsage, "there is no formatter %q; take one of %s", o.formatter, strings.Join(formatters, ", "))
	}
	s := &session{
		api: newAPI(o, os.LookupEnv), opts: o, flags: cmd.Flags(), cmd: cmd, env: os.LookupEnv,
		in: cmd.InOrStdin(), out: cmd.OutOrStdout(),
	}
	s.nameService()
	if isTerminalWriter(cmd.ErrOrStderr()) && !o.quiet && !o.silent {
		s.api.announce(cmd.ErrOrStderr())
	}
	return s, nil
}

// newAPI finds where the broker is and who asks. A broker on this machine is
// asked over the socket in its data directory, or in that of the package's service,
// if no other is named; there is no login then unless one is given. In the container
// of a broker the variables that set it up are enough. If they or an option name a
// data directory, and no address, no broker but the one there is asked.
func newAPI(o *options, lookup func(string) (string, bool)) *api {
	env := func(name string) string {
		v, _ := lookup(name)
		return v
	}
	client := &http.Client{Timeout: time.Duration(o.timeout) * time.Second}
	url := cmp.Or(o.url, env("LEVERET_URL"))
	user, password := cmp.Or(o.user, env("LEVERET_USER")), cmp.Or(o.password, env("LEVERET_PASSWORD"))
	if url == "" {
		path, packaged := adminSocket(o.dataDir, lookup), service(nil)
		if path == "" && o.dataDir == "" {
			path, packaged = serviceSocket("/", lookup)
		}
		if path != "" {
			client.Transport = overSocket(path)
			return &api{base: "http://127.0.0.1", shown: path, user: user, password: cmp.Or(password, "guest"), http: client, local: true, service: packaged}
		}
	}
	listen := env("LEVERET_MANAGEMENT_LISTEN")
	if listen == "off" {
		listen = ""
	}
	base := baseURL(cmp.Or(url, listen, config.DefaultManagementListen))
	shown, guessed := base, url == "" && listen == ""
	if path := namedSocket(o.dataDir, lookup); path != "" && guessed { // the usual address is another broker's
		shown, guessed = path, false
		client.Transport = refusal{exitf(exitUnavailable, "no broker that this user may administer answers at %s; start it, or name the address of its HTTP API with --url (LEVERET_URL)", path)}
	}
	return &api{
		base: base, shown: shown, guessed: guessed,
		user:     cmp.Or(user, env("LEVERET_DEFAULT_USER"), env("RABBITMQ_DEFAULT_USER"), "guest"),
		password: cmp.Or(password, env("LEVERET_DEFAULT_PASS"), env("RABBITMQ_DEFAULT_PASS"), "guest"),
		http:     client,
	}
}

// announce has a line written about the address before something is changed there, if
// it is a guess: the broker that the user means may be another, whose socket does not
// answer. It is for people, at a terminal: scripts may take what is on standard error
// for an error.
func (a *api) announce(w io.Writer) {
	if a.guessed {
		a.changing = sync.OnceFunc(func() {
			_, _ = fmt.Fprintf(w, "No broker's socket answers here: asking %s (--url or LEVERET_URL names another)\n", a.shown) // there is nobody else to tell
		})
	}
}

// baseURL completes an address: one to listen on is one to connect to, too.
func baseURL(s string) string {
	if !strings.Contains(s, "://") {
		if host, port, err := net.SplitHostPort(s); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
			s = net.JoinHostPort("127.0.0.1", port)
		}
		s = "http://" + s
	}
	return strings.TrimSuffix(strings.TrimSuffix(s, "/"), "/api")
}

// say prints a line about what the command does, for people.
func (s *session) say(format string, args ...any) {
	if !s.opts.quiet && !s.opts.silent && !machineReadable(s.opts.formatter) {
		s.printf(format+"\n", args...)
	}
}

// warn prints a line about what the command could not do, besides the result.
func (s *session) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(s.cmd.ErrOrStderr(), format+"\n", args...) // there is nobody else to tell
}

// printf prints what the command is for. That nobody reads it any more is no
// error: `leveret list_queues | head` is common.
func (s *session) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format, args...)
}

// result prints the one line that a command is for: as a JSON object of
// "result", if that is the format, as RabbitMQ's tools do.
func (s *session) result(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if s.opts.formatter == "json" {
		s.printf("%s\n", jsonRow([]string{"result"}, []json.RawMessage{quoted(text)}))
		return nil
	}
	s.printf("%s\n", text)
	return nil
}

func (s *session) print(t *table) error {
	return t.write(s.out, look{
		formatter: s.opts.formatter,
		headers:   !s.opts.noHeaders && !s.opts.silent,
		colours:   coloured(s.out),
	})
}

// document prints a value that has no form as a table.
func (s *session) document(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if s.opts.formatter != "json" { // else it is one line (RabbitMQ 4.0)
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return err
	}
	s.printf("%s", b.Bytes())
	return nil
}

// coloured says whether people with a terminal read what is written.
func coloured(w io.Writer) bool {
	f, isFile := w.(*os.File)
	return isFile && isTerminal(f) && os.Getenv("NO_COLOR") == ""
}

// flag is the text of one of the command's own flags.
func (s *session) flag(name string) string { return s.flags.Lookup(name).Value.String() }

// on says whether a flag without a value is given.
func (s *session) on(name string) bool { return s.flag(name) == "true" }

// secret is a password: an argument if there is one, else the first line of
// the standard input.
func (s *session) secret(args []string, i int) (string, error) {
	if i < len(args) {
		return args[i], nil
	}
	line, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return "", exitf(exitData, "the password is empty; give it as an argument or as a line on standard input")
	}
	return line, nil
}

// parsed reads an argument that has to be JSON (RabbitMQ 4.0: exit code).
func parsed(what, text string) (json.RawMessage, error) {
	if !json.Valid([]byte(text)) {
		return nil, exitf(exitUnavailable, "Could not parse JSON document: the %s is not JSON: %s; quote it for the shell as in '{\"max-length\": 1000}'", what, text)
	}
	return json.RawMessage(text), nil
}
