package main

import (
	"context"
	"strings"
)

// checkNode refuses to act on a broker that is not the node that --node names. A
// broker that does not tell its name, as it does not run or refuses the login, is
// left to the command (RabbitMQ 4.0: another node than the named one is never
// asked).
func (s *session) checkNode(ctx context.Context) error {
	if s.opts.node == "" {
		return nil
	}
	var o overview
	if s.api.get(ctx, apiPath("overview"), &o) != nil || o.Node == "" || sameNode(s.opts.node, o.Node) {
		return nil
	}
	return exitf(exitUnavailable, "unable to perform an operation on node '%s'. The broker at %s is '%s': name that one or leave --node out, or name where the other one is with --data-dir or --url",
		s.opts.node, s.api.shown, o.Node)
}

// sameNode says whether name means the node called node. A name without a host is
// of this machine, as all are that have no network's name; hosts are compared up to
// their first dot, as RabbitMQ has long and short names. A broker that was given no
// name answers to RabbitMQ's, too: scripts have rabbit@HOST.
func sameNode(name, node string) bool {
	wantName, wantHost, _ := strings.Cut(name, "@")
	isName, isHost, _ := strings.Cut(node, "@")
	wantHost, _, _ = strings.Cut(wantHost, ".")
	isHost, _, _ = strings.Cut(isHost, ".")
	if wantName != isName && (wantName != "rabbit" || isName != "leveret") {
		return false
	}
	return wantHost == "" || strings.EqualFold(wantHost, isHost)
}
