package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// startupPoll is how long to wait between two questions of await_startup.
const startupPoll = 100 * time.Millisecond

// limited ends with the timeout of the command.
func (s *session) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.opts.timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Duration(s.opts.timeout)*time.Second)
}

// awaitStartup waits until there is an answer.
func awaitStartup(ctx context.Context, s *session, _ []string) error {
	s.say("Waiting for the broker at %s ...", s.api.shown)
	ctx, cancel := s.limited(ctx)
	defer cancel()
	return s.awaitBroker(ctx, func() error { return nil })
}

// awaitBroker asks until there is an answer, or it is pointless: a broker that is
// not there yet cannot announce itself.
func (s *session) awaitBroker(ctx context.Context, pointless func() error) error {
	now := *s
	for now.alive(ctx) != nil {
		if err := pointless(); err != nil {
			return err
		}
		if pause(ctx, startupPoll) != nil {
			return exitf(exitTimeout, "no broker answers at %s after %d s; look into its log, or give it longer with --timeout", s.api.shown, s.opts.timeout)
		}
		now.api = newAPI(s.opts, s.env) // its socket may be there by now
	}
	return nil
}

// awaitNodes waits for the one node that there is.
func awaitNodes(ctx context.Context, s *session, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 {
		return exitf(exitData, "%q is no number of nodes", args[0])
	}
	s.say("Will wait for at least %d nodes to join the cluster of %s. Timeout: %d seconds.", n, s.api.shown, s.opts.timeout)
	ctx, cancel := s.limited(ctx)
	defer cancel()
	if err := s.awaitBroker(ctx, func() error { return nil }); err != nil {
		return err
	}
	if n > 1 { // RabbitMQ 4.0: exit code
		return exitf(exitSoftware, "Not enough nodes joined %s's cluster: this broker is a single node", s.api.shown)
	}
	return nil
}

// wait waits for the process of a broker, and for the broker. It fails when the
// process is gone.
func wait(ctx context.Context, s *session, args []string) error {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	pid := s.flag("pid")
	switch {
	case pid == "" && len(args) == 0:
		return exitf(exitUsage, "No pid or pidfile specified")
	case pid != "" && len(args) > 0:
		return exitf(exitUsage, "Cannot specify both pid and pidfile")
	case pid == "":
		s.say("Waiting for pid file '%s' to appear", args[0])
		var err error
		if pid, err = s.pidFile(ctx, args[0]); err != nil {
			return err
		}
		s.say("pid is %s", pid)
	}
	number, err := strconv.Atoi(pid)
	if err != nil || number <= 0 {
		return exitf(exitData, "%q is no number of a process", pid)
	}
	s.say("Waiting for the broker at %s while OS process '%d' is running", s.api.shown, number)
	runs := func() error {
		if !processRuns(number) {
			return exitf(exitUnavailable, "process %d is not running", number)
		}
		return nil
	}
	if err := runs(); err != nil { // whoever answers is another broker
		return err
	}
	return s.awaitBroker(ctx, runs)
}

// pidFile is what a file says once it is there: whoever writes it does not
// announce it to others.
func (s *session) pidFile(ctx context.Context, name string) (string, error) {
	for {
		raw, err := os.ReadFile(name)
		if pid := strings.TrimSpace(string(raw)); err == nil && pid != "" {
			return pid, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", exitf(exitData, "cannot read %s: %v", name, err)
		}
		if pause(ctx, startupPoll) != nil {
			return "", exitf(exitTimeout, "there is no file %s after %d s", name, s.opts.timeout)
		}
	}
}
