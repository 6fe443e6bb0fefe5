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
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func healthCommands() []command {
	return []command{
		{use: "ping", short: "Check that the broker answers; needs no login", args: cobra.NoArgs, run: ping},
		{use: "check_running", short: "Check that the broker serves clients", args: cobra.NoArgs, run: checkRunning},
		{use: "is_running", short: "Say whether the broker serves clients", args: cobra.NoArgs, run: isRunning},
		{use: "is_booting", short: "Say whether the broker is starting", args: cobra.NoArgs, run: isBooting},
		{use: "node_health_check", short: "Does nothing, for old scripts", args: cobra.NoArgs, run: noOp},
		{use: "check_if_node_is_mirror_sync_critical", short: "Does nothing, for old scripts", args: cobra.NoArgs, run: noOp},
		{use: "check_local_alarms", short: "Check that no memory or disk alarm is up", args: cobra.NoArgs, run: checkAlarms("any local resource alarms", "no local alarms")},
		{use: "check_alarms", short: "As check_local_alarms", args: cobra.NoArgs, run: checkAlarms("any local resource alarms", "no alarms, local or clusterwide")},
		{use: "alarms", short: "List the alarms that are up", args: cobra.NoArgs, run: alarms},
		{use: "check_port_connectivity", short: "Check that the broker's ports take connections", args: cobra.NoArgs, run: checkPorts,
			flags: func(f *pflag.FlagSet) { f.String("address", "", "the `address` to connect to") }},
		{use: "check_port_listener PORT", short: "Check that the broker listens on a port", args: cobra.ExactArgs(1), run: checkPort},
		{use: "check_protocol_listener PROTOCOL", short: "Check that the broker listens for a protocol: amqp, http", args: cobra.ExactArgs(1), run: checkProtocol},
		{use: "check_virtual_hosts", short: "Check that all virtual hosts run", args: cobra.NoArgs, run: checkVHosts},
		{use: "check_certificate_expiration", short: "Check that no certificate ends soon", args: cobra.NoArgs, run: checkCertificates,
			flags: func(f *pflag.FlagSet) {
				f.Int("within", 4, "`number` of units ahead")
				f.String("unit", "weeks", "days, weeks, months or years")
			}},
		{use: "check_if_node_is_quorum_critical", short: "Check that quorum queues survive the end of this node", args: cobra.NoArgs, run: checkQuorumCritical},
		{use: "await_startup", short: "Wait until the broker serves clients", args: cobra.NoArgs, run: awaitStartup},
		{use: "await_online_nodes COUNT", short: "As await_startup; there is one node", args: cobra.ExactArgs(1), run: awaitNodes},
		{use: "wait [PIDFILE]", short: "Wait for a file with the broker's process number, or its process, and for the broker", args: cobra.MaximumNArgs(1), run: wait,
			flags: func(f *pflag.FlagSet) { f.StringP("pid", "P", "", "`number` of the process") }},
		{use: "await_online_synchronized_mirror", short: "As await_startup, for the hooks of older charts", args: cobra.NoArgs, run: awaitStartup},
		{use: "await_online_quorum_plus_one", short: "As await_startup", args: cobra.NoArgs, run: awaitStartup},
	}
}

// alive asks what needs no login.
func (s *session) alive(ctx context.Context) error {
	return s.api.get(ctx, apiPath("version"), nil)
}

func ping(ctx context.Context, s *session, _ []string) error {
	s.say("Will ping the broker at %s. This only checks that it runs and answers.", s.api.shown)
	if err := s.alive(ctx); err != nil {
		return err
	}
	return s.passed("Ping succeeded")
}

// where is the node's name, or where the broker is if the login may not see that.
func (s *session) where(ctx context.Context) (name string, authorised bool) {
	var o overview
	err := s.api.get(ctx, apiPath("overview"), &o)
	return cmp.Or(o.Node, s.api.shown), !isStatus(err, http.StatusUnauthorized)
}

// checkRunning asks for the state of the store, too, if the login may. Health
// checks often have none: then an answer has to do.
func checkRunning(ctx context.Context, s *session, _ []string) error {
	if err := s.alive(ctx); err != nil {
		return err
	}
	node, authorised := s.where(ctx)
	s.say("Checking if RabbitMQ is running on node %s ...", node)
	if authorised {
		if err := s.api.get(ctx, apiPath("health", "checks", "is-in-service"), nil); err != nil {
			return err
		}
	}
	return s.passed("RabbitMQ on node %s is fully booted and running", node)
}

// noOp is a command that RabbitMQ 4.0 keeps for those who still call it.
func noOp(_ context.Context, s *session, _ []string) error {
	s.printf("This command is DEPRECATED and is a no-op: use check_running and check_local_alarms.\n")
	return nil
}

func isRunning(ctx context.Context, s *session, _ []string) error {
	if s.alive(ctx) != nil {
		return s.verdict(false, "RabbitMQ on node %s is not running or has not fully booted yet (check with is_booting)", s.api.shown)
	}
	node, _ := s.where(ctx)
	s.say("Asking node %s for its status ...", node)
	return s.verdict(true, "RabbitMQ on node %s is fully booted and running", node)
}

// isBooting is always false: the HTTP API is served only once all is ready.
func isBooting(ctx context.Context, s *session, _ []string) error {
	node := s.api.shown
	if s.alive(ctx) == nil {
		node, _ = s.where(ctx)
	}
	s.say("Asking node %s for its boot status ...", node)
	return s.verdict(false, "RabbitMQ on node %s is fully booted (check with is_running), stopped or has not started booting yet", node)
}

// verdict prints a sentence that says yes or no.
func (s *session) verdict(yes bool, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if s.opts.formatter == "json" {
		return s.document(map[string]any{"message": text, "result": yes})
	}
	return s.result("%s", text)
}

// passed prints what a check is for; as JSON it is a message (RabbitMQ 4.0).
func (s *session) passed(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if s.opts.formatter == "json" {
		return s.document(map[string]any{"message": text})
	}
	return s.result("%s", text)
}

// A question is one of the API's health checks, in the words of RabbitMQ 4.0's tools.
type question struct {
	path, asks, passed string
	about              map[string]any // further members of the answer as JSON
	// missing names the listener that is asked for, and kind the member of a
	// listener that tells which it is; "" is not about listeners.
	missing, kind string
}

// noListener says what there is in place of the listener that was asked for.
func (q question) noListener(ctx context.Context, s *session, node string) error {
	var o overview
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	var found []string
	for _, l := range o.Listeners {
		found = append(found, l.text(q.kind))
	}
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }) // ports are numbers
	return exitf(exitUnavailable, "No listener for %s is active on node %s. Found listeners %s: %s", q.missing, node,
		or(q.kind == "port", "that use the following ports", "for the following protocols"), strings.Join(slices.Compact(found), ", "))
}

func (q question) run(ctx context.Context, s *session, _ []string) error {
	node, _ := s.where(ctx)
	s.say("%s ...", strings.ReplaceAll(q.asks, "NODE", node))
	err := s.api.get(ctx, q.path, nil)
	if q.missing != "" && isStatus(err, http.StatusServiceUnavailable) {
		return q.noListener(ctx, s, node)
	}
	if err != nil {
		return s.failedCheck(err)
	}
	if s.opts.formatter == "json" {
		answer := map[string]any{"node": node, "result": "ok"}
		maps.Copy(answer, q.about)
		return s.document(answer)
	}
	return s.result("%s", strings.ReplaceAll(q.passed, "NODE", node))
}

func checkPort(ctx context.Context, s *session, args []string) error {
	if n, err := strconv.Atoi(args[0]); err != nil || n <= 0 || n > 65535 {
		return exitf(exitData, "Bad argument: Argument must be a positive integer")
	}
	return question{apiPath("health", "checks", "port-listener", args[0]), "Asking node NODE if there's an active listener on port " + args[0],
		"A listener for port " + args[0] + " is running on node NODE.", map[string]any{"port": args[0]}, "port " + args[0], "port"}.run(ctx, s, nil)
}

func checkProtocol(ctx context.Context, s *session, args []string) error {
	return question{apiPath("health", "checks", "protocol-listener", args[0]), "Asking node NODE if there's an active listener for protocol " + args[0],
		"A listener for protocol " + args[0] + " is running on node NODE.", map[string]any{"protocol": args[0]}, "protocol " + args[0], "protocol"}.run(ctx, s, nil)
}

func checkVHosts(ctx context.Context, s *session, _ []string) error {
	return question{apiPath("health", "checks", "virtual-hosts"), "Checking if all vhosts are running on node NODE",
		"Node NODE reported all vhosts as running", nil, "", ""}.run(ctx, s, nil)
}

func checkQuorumCritical(ctx context.Context, s *session, _ []string) error {
	return question{apiPath("health", "checks", "node-is-quorum-critical"), "Checking if node NODE is critical for quorum of any queues/streams",
		"Node NODE seems to be the only one in a single node cluster, the check does not apply", nil, "", ""}.run(ctx, s, nil)
}

// failedCheck adds what the check has found to its reason.
func (s *session) failedCheck(err error) error {
	e, ok := errors.AsType[*apiError](err)
	if ok && e.status == http.StatusServiceUnavailable {
		return exitf(exitUnavailable, "%s", e.reason)
	}
	return err
}

func checkAlarms(of, none string) func(context.Context, *session, []string) error {
	return func(ctx context.Context, s *session, _ []string) error {
		node, _ := s.where(ctx)
		s.say("Asking node %s to report %s ...", node, of)
		err := s.api.get(ctx, apiPath("health", "checks", "local-alarms"), nil)
		if isStatus(err, http.StatusServiceUnavailable) {
			return exitf(exitUnavailable, "%v; publishers are blocked until there is room again: see `alarms` and `status`", err)
		}
		if err != nil {
			return err
		}
		if s.opts.formatter == "json" {
			return s.document(map[string]any{"result": "ok"})
		}
		return s.result("Node %s reported %s", node, none)
	}
}

func alarms(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	if s.opts.formatter == "json" {
		return s.document(map[string]any{"alarms": n.alarms(), "node": n.text("name"), "result": "ok"})
	}
	s.say("Asking node %s to report any known resource alarms ...", n.text("name"))
	t := &table{columns: []string{"node", "resource"}}
	for _, resource := range n.alarms() {
		t.rows = append(t.rows, []json.RawMessage{n.object["name"], quoted(resource)})
	}
	if len(t.rows) == 0 {
		s.say("Node %s reported no alarms, local or clusterwide", n.text("name"))
	}
	return s.print(t)
}

// checkPorts connects to every port that the broker says it listens on, at the
// host of the HTTP API if it listens on all addresses.
func checkPorts(ctx context.Context, s *session, _ []string) error {
	var o overview
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	node := cmp.Or(o.Node, s.api.shown)
	s.say("Testing TCP connections to all active listeners on node %s ...", node)
	var ports []string
	for _, l := range o.Listeners {
		address := net.JoinHostPort(s.hostOf(l.text("ip_address")), l.text("port"))
		if err := connects(ctx, address); err != nil {
			return exitf(exitUnavailable, "the listener for %s at %s takes no connection: %v", l.text("protocol"), address, err)
		}
		ports = append(ports, l.text("port"))
	}
	return s.result("Successfully connected to ports %s on node %s", strings.Join(ports, ", "), node)
}

func (s *session) hostOf(listen string) string {
	if given := s.flag("address"); given != "" {
		return given
	}
	if ip := net.ParseIP(listen); ip != nil && !ip.IsUnspecified() {
		return listen
	}
	if u, err := url.Parse(s.api.base); err == nil && u.Hostname() != "" {
		return u.Hostname()
	}
	return "127.0.0.1"
}

func connects(ctx context.Context, address string) error {
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

func checkCertificates(ctx context.Context, s *session, _ []string) error {
	within, unit := s.flag("within"), s.flag("unit")
	if !slices.Contains([]string{"days", "weeks", "months", "years"}, unit) {
		return exitf(exitUsage, "unit '%s' is not supported. Please use one of: days, weeks, months, years", unit)
	}
	node, _ := s.where(ctx)
	s.say("Checking certificate expiration on node %s ...", node)
	if err := s.api.get(ctx, apiPath("health", "checks", "certificate-expiration", within, unit), nil); err != nil {
		return err
	}
	return s.result("No certificates are expiring within %s %s.", within, unit)
}
