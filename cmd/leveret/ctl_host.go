package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// hostCommands look at the machine, or answer as a single node of RabbitMQ does.
func hostCommands() []command {
	return []command{
		{use: "resolve_hostname NAME", short: "Look up the addresses of a host, from this machine", args: cobra.ExactArgs(1), run: resolveHostname,
			flags: func(f *pflag.FlagSet) {
				f.String("address-family", "IPv4", "ipv4 or ipv6")
				f.Bool("offline", false, "taken and ignored: it is always this machine that looks")
			}},
		{use: "list_network_interfaces", short: "List the network interfaces of this machine", args: cobra.NoArgs, run: networkInterfaces,
			flags: func(f *pflag.FlagSet) {
				f.Bool("offline", false, "taken and ignored: it is always this machine that looks")
			}},
		{use: "erlang_version", short: "Print the version of Erlang that clients are told", args: cobra.NoArgs, run: erlangVersion,
			flags: func(f *pflag.FlagSet) {
				f.Bool("details", false, "taken and ignored")
				f.Bool("offline", false, "taken and ignored")
			}},
		{use: "discover_peers", short: "List the nodes to join: this one", args: cobra.NoArgs, run: discoverPeers},
		{use: "grow NODE all|even", short: "Add members of quorum queues: nothing to do on one node", args: cobra.ExactArgs(2), run: grow},
		{use: "reclaim_quorum_memory QUEUE", short: "Free memory of a quorum queue: nothing to do", args: cobra.ExactArgs(1), run: reclaim},
		{use: "post_upgrade", short: "What is to be done after an upgrade: nothing on one node", args: cobra.NoArgs, run: postUpgrade},
		{use: "list_policies_with_classic_queue_mirroring", short: "List the policies that ask for mirrored queues: none", args: cobra.NoArgs, run: mirroringPolicies("policies")},
		{use: "list_operator_policies_with_classic_queue_mirroring", short: "List the operator policies that ask for mirrored queues: none", args: cobra.NoArgs, run: mirroringPolicies("operator policies")},
		{use: "remove_classic_queue_mirroring_from_policies", short: "Take mirroring out of policies: there is none", args: cobra.NoArgs, run: removeMirroring},
	}
}

func resolveHostname(ctx context.Context, s *session, args []string) error {
	family := s.flag("address-family")
	network := map[string]string{"ipv4": "ip4", "ipv6": "ip6"}[strings.ToLower(family)]
	if network == "" {
		return exitf(exitData, "unsupported address family %s: use ipv4 or ipv6", family)
	}
	s.say("Asking this machine to resolve hostname %s to %s addresses...", args[0], family)
	found, err := net.DefaultResolver.LookupIP(ctx, network, args[0])
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound || err == nil && len(found) == 0 {
		return exitf(exitData, "Hostname does not resolve (resolution failed with an nxdomain)")
	}
	if err != nil {
		return exitf(exitData, "Hostname does not resolve: %v", err)
	}
	for _, ip := range found {
		s.printf("%s\n", ip)
	}
	return nil
}

func networkInterfaces(_ context.Context, s *session, _ []string) error {
	s.say("Asking this machine to report its network interfaces ...")
	all, err := net.Interfaces()
	if err != nil {
		return exitf(exitSoftware, "list the network interfaces: %v", err)
	}
	for _, i := range all {
		s.printf("Interface %s\n\n", i.Name)
		if len(i.HardwareAddr) > 0 {
			s.printf("hwaddr: %s\n", i.HardwareAddr)
		}
		addresses, err := i.Addrs()
		if err != nil {
			return exitf(exitSoftware, "list the addresses of %s: %v", i.Name, err)
		}
		for _, a := range addresses {
			s.printf("addr: %s\n", a)
		}
		s.printf("flags: %s\n\n", strings.ReplaceAll(i.Flags.String(), "|", ", "))
	}
	return nil
}

func erlangVersion(ctx context.Context, s *session, _ []string) error {
	var o overview
	if err := s.api.get(ctx, apiPath("overview"), &o); err != nil {
		return err
	}
	s.say("Asking node %s for its Erlang/OTP version...", o.Node)
	return s.result("Erlang/OTP %s", o.Erlang)
}

func discoverPeers(ctx context.Context, s *session, _ []string) error {
	s.say("Discovering peers nodes ...")
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	return s.result("[%s]", n.text("name"))
}

func grow(ctx context.Context, s *session, args []string) error {
	if args[1] != "all" && args[1] != "even" {
		return exitf(exitUsage, "strategy '%s' is not recognised.", args[1])
	}
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	if args[0] != n.text("name") {
		// RabbitMQ 4.0: exit code
		return &exitError{code: exitUsage, text: fmt.Sprintf("node %s is not a member of the cluster, whose one node is %s", args[0], n.text("name")), bare: true}
	}
	s.say("Growing %s quorum queues on %s...", args[1], args[0])
	return s.print(&table{columns: []string{"vhost", "name", "size", "result"}})
}

// reclaim looks whether there is such a queue; its log is on disk already.
func reclaim(ctx context.Context, s *session, args []string) error {
	s.say("Will flush Raft WAL of quorum queue %s ...", args[0])
	var q object
	err := s.api.get(ctx, apiPath("queues", s.opts.vhost, args[0]), &q)
	if err == nil && q.text("type") == "classic" {
		return exitf(exitUnavailable, "This operation is not applicable to classic queues")
	}
	return orMissing(err, exitUnavailable, "Target queue was not found in virtual host '%s'", s.opts.vhost)
}

func postUpgrade(ctx context.Context, s *session, _ []string) error {
	s.say("Executing post upgrade tasks...")
	return s.api.post(ctx, apiPath("rebalance", "queues"), nil, nil)
}

// mirroringPolicies lists none: the broker refuses policies with ha-mode.
func mirroringPolicies(what string) func(context.Context, *session, []string) error {
	return func(ctx context.Context, s *session, _ []string) error {
		if err := s.alive(ctx); err != nil {
			return err
		}
		s.say("Listing %s with classic queue mirroring ...", what)
		return s.print(&table{columns: []string{"vhost", "name", "pattern", "apply-to", "definition", "priority"}})
	}
}

func removeMirroring(ctx context.Context, s *session, _ []string) error {
	if err := s.alive(ctx); err != nil {
		return err
	}
	s.say("Will remove all classic queue mirroring keys from policies ...")
	return s.result("No policies have such keys")
}
