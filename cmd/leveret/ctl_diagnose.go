package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leveretmq/leveret/config"
)

// diagnoseCommands are further ones of RabbitMQ's tools that look, or change
// many things at once.
func diagnoseCommands() []command {
	return []command{
		{use: "set_permissions_globally USER CONFIGURE WRITE READ", short: "Set the permissions of a user in all virtual hosts", args: cobra.ExactArgs(4), run: setPermissionsGlobally},
		{use: "set_vhost_tags VHOST [TAG...]", short: "Replace a virtual host's tags", args: cobra.MinimumNArgs(1), run: setVHostTags},
		{use: "restart_vhost", short: "Start a virtual host that has failed", args: cobra.NoArgs, run: restartVHost},
		{use: "reconcile_vhosts", short: "As check_virtual_hosts: virtual hosts start with the broker", args: cobra.NoArgs, run: checkVHosts},
		{use: "list_policies_that_match NAME", short: "List the policies that match a queue or exchange, the one in force first", args: cobra.ExactArgs(1), run: policiesThatMatch,
			flags: func(f *pflag.FlagSet) { f.String("object-type", "queue", "what the name is of: queue or exchange") }},
		{use: "list_node_auth_attempt_stats", short: "List how many logins there were", args: cobra.NoArgs, run: authAttempts,
			flags: func(f *pflag.FlagSet) { f.Bool("by-source", false, "not there: the log has the addresses") }},
		{use: "reset_node_auth_attempt_metrics", short: "Count logins from 0 again", args: cobra.NoArgs, run: resetAuthAttempts},
		{use: "check_if_any_deprecated_features_are_used", short: "Check that no feature is in use that RabbitMQ advises against", args: cobra.NoArgs, run: checkDeprecated},
		{use: "check_if_cluster_has_classic_queue_mirroring_policy", short: "Check that no policy asks for mirrored queues, which there are not", args: cobra.NoArgs, run: checkMirroring},
		{use: "check_if_new_quorum_queue_replicas_have_finished_initial_sync", short: "Check that virtual hosts run: on one node there are no replicas", args: cobra.NoArgs, run: checkVHosts},
		{use: "rebalance all|quorum|stream", short: "Spread the leaders of queues over the nodes: nothing to do on one", args: cobra.ExactArgs(1), run: rebalance, values: []string{"all", "quorum", "stream"},
			flags: func(f *pflag.FlagSet) {
				f.String("vhost-pattern", ".*", "taken and ignored: there is one node")
				f.String("queue-pattern", ".*", "taken and ignored: there is one node")
			}},
		{use: "log_tail", short: "Print the last lines of the log file, if it is on this machine", args: cobra.NoArgs, run: logTail,
			flags: func(f *pflag.FlagSet) { f.IntP("number", "N", 50, "how many `lines`") }},
		{use: "tls_versions", short: "List the versions of TLS that this program speaks", args: cobra.NoArgs, run: tlsVersions},
		{use: "cipher_suites", short: "List the cipher suites that this program takes by default", args: cobra.NoArgs, run: cipherSuites,
			flags: func(f *pflag.FlagSet) {
				f.String("format", "openssl", "`names` of OpenSSL or of the standards: openssl or iana")
				f.Bool("all", false, "those that are weak, too")
			}},
		{use: "autocomplete [WORD]", short: "Print the commands that begin with a word", args: cobra.MaximumNArgs(1), run: autocomplete},
	}
}

func setPermissionsGlobally(ctx context.Context, s *session, args []string) error {
	s.say("Setting permissions for user %q in all virtual hosts ...", args[0])
	var vhosts []object
	if err := s.api.get(ctx, apiPath("vhosts"), &vhosts); err != nil {
		return err
	}
	if _, err := s.user(ctx, args[0]); err != nil {
		return err
	}
	for _, v := range vhosts {
		err := s.api.put(ctx, apiPath("permissions", v.text("name"), args[0]), map[string]string{"configure": args[1], "write": args[2], "read": args[3]})
		if err != nil {
			return unavailable(err)
		}
	}
	return nil
}

func setVHostTags(ctx context.Context, s *session, args []string) error {
	s.say("Setting tags for virtual host %q to [%s] ...", args[0], strings.Join(args[1:], ", "))
	return s.change(ctx, args[0], map[string]any{"tags": strings.Join(args[1:], ",")})
}

func restartVHost(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	s.say("Trying to restart vhost '%s' on node '%s' ...", s.opts.vhost, n.text("name"))
	err = s.api.post(ctx, apiPath("vhosts", s.opts.vhost, "start", n.text("name")), nil, nil)
	return orMissing(err, exitSoftware, "Failed to start vhost '%s' on node '%s': it does not exist", s.opts.vhost, n.text("name"))
}

func policiesThatMatch(ctx context.Context, s *session, args []string) error {
	kind, name := s.flag("object-type"), args[0]
	if kind != "queue" && kind != "exchange" {
		return exitf(exitUsage, "--object-type is queue or exchange, not %q", kind)
	}
	var matching []object
	if err := s.api.get(ctx, apiPath(kind+"s", s.opts.vhost, name, "policies"), &matching); err != nil {
		return orMissing(err, exitData, "Object (queue, stream, exchange, etc) was not found")
	}
	s.say("Listing policies that match %s '%s' in vhost '%s' ...", kind, name, s.opts.vhost)
	return s.print(tableOf(same("name pattern apply-to definition priority"), matching))
}

func authAttempts(ctx context.Context, s *session, _ []string) error {
	if s.on("by-source") {
		return exitf(exitUnavailable, "logins are counted by protocol only; the log has the failed ones with their addresses")
	}
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	var rows []object
	if err := s.api.get(ctx, apiPath("auth", "attempts", n.text("name")), &rows); err != nil {
		return err
	}
	s.say("Listing authentication attempts for node %q ...", n.text("name"))
	return s.print(tableOf(same("protocol auth_attempts auth_attempts_failed auth_attempts_succeeded"), rows))
}

func resetAuthAttempts(ctx context.Context, s *session, _ []string) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	s.say("Resetting auth attempt metrics on node %s ...", n.text("name"))
	return s.api.delete(ctx, apiPath("auth", "attempts", n.text("name")))
}

func checkDeprecated(ctx context.Context, s *session, _ []string) error {
	s.say("Checking if any deprecated features are used ...")
	var used []object
	if err := s.api.get(ctx, apiPath("deprecated-features", "used"), &used); err != nil {
		return err
	}
	if len(used) > 0 {
		var names []string
		for _, f := range used {
			names = append(names, f.text("name"))
		}
		return exitf(exitUnavailable, "Cluster reported the following deprecated features in use: %s", strings.Join(names, ", "))
	}
	return s.result("Cluster reported no deprecated features in use")
}

func checkMirroring(ctx context.Context, s *session, _ []string) error {
	s.say("Checking if cluster has any classic queue mirroring policy ...")
	for _, path := range []string{"policies", "operator-policies"} {
		var all []object
		if err := s.api.get(ctx, apiPath(path), &all); err != nil {
			return err
		}
		for _, p := range all {
			if p.at("definition.ha-mode") != nil {
				return exitf(exitUnavailable, "policy '%s' in vhost '%s' asks for mirrored queues; take ha-mode out of it, and use quorum queues", p.text("name"), p.text("vhost"))
			}
		}
	}
	return s.result("Cluster reported no policies that enable classic queue mirroring")
}

func rebalance(ctx context.Context, s *session, args []string) error {
	if !slices.Contains([]string{"all", "quorum", "stream"}, args[0]) {
		return exitf(exitUnavailable, "type %s is not supported. Try one of all, quorum, stream.", args[0])
	}
	s.say("Re-balancing leaders of %s queues...", args[0])
	return s.api.post(ctx, apiPath("rebalance", "queues"), nil, nil)
}

// logFile is the file that the broker logs to, "" if there is none.
func (s *session) logFile(ctx context.Context) (string, error) {
	n, err := s.node(ctx)
	if err != nil {
		return "", err
	}
	var files []string
	if err := json.Unmarshal(n.object["log_files"], &files); err != nil || len(files) == 0 || strings.HasPrefix(files[0], "<") {
		return "", nil
	}
	return files[0], nil
}

func logLocation(ctx context.Context, s *session, _ []string) error {
	file, err := s.logFile(ctx)
	if err != nil {
		return err
	}
	node, _ := s.where(ctx)
	s.say("Log file location(s) on node %s ...", node)
	return s.result("%s", cmp.Or(file, "<stdout>"))
}

func logTail(ctx context.Context, s *session, _ []string) error {
	file, err := s.logFile(ctx)
	if err != nil {
		return err
	}
	if file == "" {
		return exitf(exitUnavailable, "the broker logs to its standard output: look there, as with `journalctl -u` or `docker logs`, or set --log-file")
	}
	count, _ := s.flags.GetInt("number") // it is declared above
	lines, err := lastLines(file, count)
	if err != nil {
		return exitf(exitUnavailable, "cannot read the broker's log here: %v; log_tail reads the file of a broker on this machine", err)
	}
	s.say("Last %d log lines ...", count)
	s.printf("%s", lines)
	return nil
}

// lastLines are the last whole lines of a file.
func lastLines(file string, count int) ([]byte, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	lines = lines[:len(lines)-1] // what follows the last line end is no line yet
	return bytes.Join(lines[max(0, len(lines)-max(0, count)):], nil), nil
}

func tlsVersions(_ context.Context, s *session, _ []string) error {
	s.say("Listing all TLS versions supported by the runtime ...")
	s.printf("tlsv1.3\ntlsv1.2\ntlsv1.1\ntlsv1\n")
	return nil
}

func cipherSuites(_ context.Context, s *session, _ []string) error {
	format := s.flag("format")
	if format != "openssl" && format != "iana" {
		return exitf(exitData, "format %q is not supported: use openssl or iana", format)
	}
	s.say("Listing available cipher suites in %s format", or(format == "iana", "IANA", "OpenSSL"))
	suites := tls.CipherSuites()
	if s.on("all") {
		suites = append(suites, tls.InsecureCipherSuites()...)
	}
	for _, c := range suites {
		s.printf("%s\n", or(format == "iana", c.Name, config.OpenSSLName(c.Name)))
	}
	return nil
}

func autocomplete(_ context.Context, s *session, args []string) error {
	word := ""
	if len(args) > 0 {
		word = args[0]
	}
	for _, c := range s.cmd.Root().Commands() {
		if !c.Hidden && strings.HasPrefix(c.Name(), word) {
			s.printf("%s\n", c.Name())
		}
	}
	return nil
}
