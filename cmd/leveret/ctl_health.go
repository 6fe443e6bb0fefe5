package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
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
		{use: "node_health_check", short: "As check_running, for old scripts", args: cobra.NoArgs, run: checkRunning},
		{use: "check_local_alarms", short: "Check that no memory or disk alarm is up", args: cobra.NoArgs, run: checkAlarms},
		{use: "check_alarms", short: "As check_local_alarms", args: cobra.NoArgs, run: checkAlarms},
		{use: "alarms", short: "List the alarms that are up", args: cobra.NoArgs, run: alarms},
		{use: "check_port_connectivity", short: "Check that the broker's ports take connections", args: cobra.NoArgs, run: checkPorts,
			flags: func(f *pflag.FlagSet) { f.String("address", "", "the `address` to connect to") }},
		{use: "check_port_listener PORT", short: "Check that the broker listens on a port", args: cobra.ExactArgs(1), run: checkOne("port-listener")},
		{use: "check_protocol_listener PROTOCOL", short: "Check that the broker listens for a protocol: amqp, http", args: cobra.ExactArgs(1), run: checkOne("protocol-listener")},
		{use: "check_virtual_hosts", short: "Check that all virtual hosts run", args: cobra.NoArgs, run: checkOne("virtual-hosts")},
		{use: "check_certificate_expiration", short: "Check that no certificate ends soon", args: cobra.NoArgs, run: checkCertificates,
			flags: func(f *pflag.FlagSet) {
				f.String("within", "1", "how `many` units ahead")
				f.String("unit", "months", "days, weeks, months or years")
			}},
		{use: "check_if_node_is_quorum_critical", short: "Check that quorum queues survive the end of this node", args: cobra.NoArgs, run: checkOne("node-is-quorum-critical")},
		{use: "await_startup", short: "Wait until the broker serves clients", args: cobra.NoArgs, run: awaitStartup},
		{use: "await_online_nodes COUNT", short: "As await_startup", args: cobra.ExactArgs(1), run: awaitStartup},
		{use: "wait [PIDFILE]", short: "As await_startup", args: cobra.MaximumNArgs(1), run: awaitStartup},
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
	return s.result("Ping succeeded")
}

// checkRunning asks for the state of the store, too, if the login may. Health
// checks often have none: then an answer has to do.
func checkRunning(ctx context.Context, s *session, _ []string) error {
	s.say("Checking if the broker at %s is running ...", s.api.shown)
	if err := s.alive(ctx); err != nil {
		return err
	}
	err := s.api.get(ctx, apiPath("health", "checks", "is-in-service"), nil)
	if err != nil && !isStatus(err, http.StatusUnauthorized) {
		return err
	}
	return s.result("The broker at %s is fully booted and running", s.api.shown)
}

func isRunning(ctx context.Context, s *session, _ []string) error {
	if s.alive(ctx) != nil {
		return s.result("false")
	}
	return s.result("true")
}

// isBooting is always false: the HTTP API is served only once all is ready.
func isBooting(_ context.Context, s *session, _ []string) error { return s.result("false") }

// checkOne makes one of the API's health checks.
func checkOne(name string) func(context.Context, *session, []string) error {
	return func(ctx context.Context, s *session, args []string) error {
		s.say("Checking %s of the broker at %s ...", strings.Join(append([]string{name}, args...), " "), s.api.shown)
		err := s.api.get(ctx, apiPath(append([]string{"health", "checks", name}, args...)...), nil)
		if err != nil {
			return s.failedCheck(err)
		}
		return s.result("Check %s passed", name)
	}
}

// failedCheck adds what the check has found to its reason.
func (s *session) failedCheck(err error) error {
	e, ok := errors.AsType[*apiError](err)
	if ok && e.status == http.StatusServiceUnavailable {
		return exitf(exitUnavailable, "%s", e.reason)
	}
	return err
}

func checkAlarms(ctx context.Context, s *session, _ []string) error {
	s.say("Asking the broker at %s to report its alarms ...", s.api.shown)
	err := s.api.get(ctx, apiPath("health", "checks", "local-alarms"), nil)
	if isStatus(err, http.StatusServiceUnavailable) {
		return exitf(exitUnavailable, "%v; publishers are blocked until there is room again: see `alarms` and `status`", err)
	}
	if err != nil {
		return err
	}
	return s.result("The broker at %s reported no local alarms", s.api.shown)
}

func alarms(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
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
	var overview struct {
		Listeners []struct {
			Protocol string
			Address  string `json:"ip_address"`
			Port     json.Number
		}
	}
	if err := s.api.get(ctx, apiPath("overview"), &overview); err != nil {
		return err
	}
	s.say("Testing TCP connections to all active listeners of the broker at %s ...", s.api.shown)
	for _, l := range overview.Listeners {
		address := net.JoinHostPort(s.hostOf(l.Address), l.Port.String())
		if err := connects(ctx, address); err != nil {
			return exitf(exitUnavailable, "the listener for %s at %s takes no connection: %v", l.Protocol, address, err)
		}
	}
	return s.result("Successfully connected to all of the %d listeners of the broker at %s", len(overview.Listeners), s.api.shown)
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
	s.say("Checking if any certificate expires within %s %s ...", within, unit)
	if err := s.api.get(ctx, apiPath("health", "checks", "certificate-expiration", within, unit), nil); err != nil {
		return err
	}
	return s.result("No certificate expires within %s %s", within, unit)
}

// startupPoll is how long to wait between two questions of await_startup.
const startupPoll = 100 * time.Millisecond

// awaitStartup asks until there is an answer: a broker that is not there yet
// cannot announce itself.
func awaitStartup(ctx context.Context, s *session, _ []string) error {
	s.say("Waiting for the broker at %s ...", s.api.shown)
	if s.opts.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(s.opts.timeout)*time.Second)
		defer cancel()
	}
	for s.alive(ctx) != nil {
		if pause(ctx, startupPoll) != nil {
			return exitf(exitTimeout, "no broker answers at %s after %d s; look into its log, or give it longer with --timeout", s.api.shown, s.opts.timeout)
		}
	}
	return nil
}
