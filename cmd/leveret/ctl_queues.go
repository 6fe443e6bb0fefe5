package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func queueCommands() []command {
	return []command{
		{use: "purge_queue QUEUE", short: "Drop the ready messages of a queue", args: cobra.ExactArgs(1), run: purgeQueue},
		{use: "delete_queue QUEUE", short: "Delete a queue with its messages", args: cobra.ExactArgs(1), run: deleteQueue,
			flags: func(f *pflag.FlagSet) {
				f.BoolP("if-empty", "e", false, "only if it has no messages")
				f.BoolP("if-unused", "u", false, "only if it has no consumers")
			}},
		{use: "list_unresponsive_queues", short: "List the queues that do not answer: none", args: cobra.ArbitraryArgs, run: listUnresponsiveQueues,
			flags: func(f *pflag.FlagSet) {
				f.Bool("local", false, "taken and ignored: there is one node")
				f.Int("queue-timeout", 0, "taken and ignored: queues always answer")
			}},
		{use: "quorum_status QUEUE", short: "Show the members of a quorum queue", args: cobra.ExactArgs(1), run: quorumStatus},
	}
}

func (s *session) missingQueue(err error, name string) error {
	return orMissing(err, exitData, "no queue '%s' in vhost '%s'", name, s.opts.vhost)
}

func purgeQueue(ctx context.Context, s *session, args []string) error {
	s.say("Purging queue '%s' in vhost '%s' ...", args[0], s.opts.vhost)
	err := s.api.delete(ctx, apiPath("queues", s.opts.vhost, args[0], "contents"))
	return s.missingQueue(err, args[0])
}

// deleteQueue says how many messages were ready just before.
func deleteQueue(ctx context.Context, s *session, args []string) error {
	path := apiPath("queues", s.opts.vhost, args[0])
	s.say("Deleting queue '%s' on vhost '%s'%s ...", args[0], s.opts.vhost, s.deletable())
	var q object
	if err := s.api.get(ctx, path, &q); err != nil {
		if isStatus(err, http.StatusNotFound) { // RabbitMQ 4.0: exit code
			return &exitError{code: exitUsage, text: "Queue not found: " + args[0], bare: true}
		}
		return err
	}
	query := url.Values{}
	for _, name := range []string{"if-empty", "if-unused"} {
		if s.on(name) {
			query.Set(name, "true")
		}
	}
	err := s.api.delete(ctx, path+"?"+query.Encode())
	if e, ok := errors.AsType[*apiError](err); ok && e.status == http.StatusBadRequest {
		return exitf(exitUnavailable, "%s", e.reason) // RabbitMQ 4.0: exit code
	}
	if err != nil {
		return s.missingQueue(err, args[0])
	}
	return s.result("Queue was successfully deleted with %s ready messages", q.text("messages_ready"))
}

// deletable says under which conditions a queue is to be deleted.
func (s *session) deletable() string {
	var conditions []string
	for _, name := range []string{"empty", "unused"} {
		if s.on("if-" + name) {
			conditions = append(conditions, "if queue is "+name)
		}
	}
	return strings.TrimRight(" "+strings.Join(conditions, " and "), " ")
}

func listUnresponsiveQueues(_ context.Context, s *session, _ []string) error {
	s.say("Listing unresponsive queues for vhost %s ...", s.opts.vhost)
	return s.print(&table{columns: []string{"name"}})
}

func quorumStatus(ctx context.Context, s *session, args []string) error {
	var q object
	if err := s.api.get(ctx, apiPath("queues", s.opts.vhost, args[0]), &q); err != nil {
		return s.missingQueue(err, args[0])
	}
	if kind := q.text("type"); kind != "quorum" { // RabbitMQ 4.0: exit code
		return exitf(exitUnavailable, "Cannot get quorum status of a %s queue", kind)
	}
	s.say("Status of quorum queue %s on node %s ...", args[0], q.text("node"))
	row := object{"node_name": q["leader"], "raft_state": quoted("leader"), "membership": quoted("voter")}
	return s.print(tableOf([]column{{"Node Name", "node_name"}, {"Raft State", "raft_state"}, {"Membership", "membership"}}, []object{row}))
}
