package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// nodeCommands change settings of the broker while it runs, or follow it.
func nodeCommands() []command {
	return []command{
		{use: "set_log_level LEVEL", short: "Change what is logged until the broker stops: debug, info, warning, error, critical or none", args: cobra.ExactArgs(1), run: setLogLevel,
			values: []string{"debug", "info", "warning", "error", "critical", "none"},
			flags:  func(f *pflag.FlagSet) { f.String("category", "", "only of this `category`, as in connection or queue") }},
		{use: "set_vm_memory_high_watermark FRACTION|absolute [SIZE]", short: "Change the memory limit until the broker stops, as in 0.5 or absolute 2GB", args: cobra.RangeArgs(1, 2), run: setMemoryLimit},
		{use: "set_disk_free_limit SIZE|mem_relative [FRACTION]", short: "Change the limit of free disk space until the broker stops, as in 2GB or mem_relative 1.5", args: cobra.RangeArgs(1, 2), run: setDiskLimit},
		{use: "suspend_listeners", short: "Accept no more clients; connections stay", args: cobra.NoArgs, run: suspendListeners},
		{use: "resume_listeners", short: "Accept clients again", args: cobra.NoArgs, run: resumeListeners},
		{use: "consume_event_stream", short: "Print what happens in the broker as JSON, one event a line, until interrupted", args: cobra.NoArgs, run: eventStream,
			flags: func(f *pflag.FlagSet) {
				f.IntP("duration", "d", 0, "end after so many `seconds`; 0 is never")
				f.String("pattern", "", "only events whose name matches, as in queue.*")
			}},
		{use: "report", short: "Print status and all listings, for support", args: cobra.NoArgs, run: reportAll},
	}
}

// setting changes something of the node.
func (s *session) setting(ctx context.Context, name string, body map[string]any) error {
	n, err := s.node(ctx)
	if err != nil {
		return err
	}
	return s.api.put(ctx, apiPath("nodes", n.text("name"), name), body)
}

// setLogLevel has RabbitMQ 4.0's exit code for a level that there is not.
func setLogLevel(ctx context.Context, s *session, args []string) error {
	s.say("Setting log level to %q ...", args[0])
	return orInvalid(s.setting(ctx, "log-level", map[string]any{"level": args[0], "category": s.flag("category")}))
}

func setMemoryLimit(ctx context.Context, s *session, args []string) error {
	body, text, err := limitArgument(args, "absolute")
	if err != nil {
		return err
	}
	s.say("Setting memory threshold to %s ...", text)
	return s.setting(ctx, "memory-limit", body)
}

func setDiskLimit(ctx context.Context, s *session, args []string) error {
	body, text, err := limitArgument(args, "mem_relative")
	if err != nil {
		return err
	}
	s.say("Setting disk free limit to %s ...", text)
	return s.setting(ctx, "disk-free-limit", body)
}

// limitArgument reads a limit: a size, or a fraction of the memory. The word
// says that the other one of them follows than stands alone. Of disk space 0 is no
// limit; of memory a fraction of 0 stops publishers, and a size of 0 is none
// (RabbitMQ 4.0).
func limitArgument(args []string, word string) (body map[string]any, text string, err error) {
	value, isFraction := args[0], word == "absolute"
	switch {
	case args[0] == word && len(args) < 2:
		return nil, "", exitf(exitUsage, "not enough arguments: a value has to follow %s", word)
	case args[0] == word:
		value, isFraction = args[1], !isFraction
	case len(args) > 1:
		return nil, "", exitf(exitUsage, "too many arguments: only %s is followed by a value", word)
	}
	if !isFraction {
		n, ok := parseSize(value)
		if !ok || n == 0 && word == "absolute" {
			return nil, "", exitf(exitData, "%q is no size; write bytes, or as in 512MiB or 2GB", value)
		}
		return map[string]any{"bytes": n}, value + " bytes", nil
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f >= 0) || f > 1 && word == "absolute" {
		return nil, "", exitf(exitData, "%q is no fraction: the threshold should be a fraction between 0.0 and 1.0", value)
	}
	return map[string]any{"fraction": f}, value + " times the total RAM", nil
}

// parseSize reads a size in bytes with RabbitMQ's units: kB, MB, GB, TB are
// powers of 1000, KiB to TiB and the letters alone of 1024.
func parseSize(text string) (int64, bool) {
	digits := strings.TrimRight(text, "kKmMgGtTiIbB")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	factor := int64(1)
	if unit := strings.ToLower(text[len(digits):]); unit != "" && unit != "b" {
		power := strings.IndexByte("kmgt", unit[0]) + 1
		base := int64(1024)
		switch unit[1:] {
		case "b":
			base = 1000
		case "", "i", "ib":
		default:
			return 0, false
		}
		if power == 0 {
			return 0, false
		}
		for range power {
			factor *= base
		}
	}
	if n > (1<<62)/factor {
		return 0, false
	}
	return n * factor, true
}

func suspendListeners(ctx context.Context, s *session, _ []string) error {
	s.say("Will suspend client connection listeners. The node will no longer accept client connections!")
	return s.setting(ctx, "listeners", map[string]any{"accept": false})
}

func resumeListeners(ctx context.Context, s *session, _ []string) error {
	s.say("Will resume client connection listeners. The node will now accept client connections")
	return s.setting(ctx, "listeners", map[string]any{"accept": true})
}

// eventStream prints events as they come. It ends at a signal, after the
// duration, or with the broker, which is an error.
func eventStream(ctx context.Context, s *session, _ []string) error {
	pattern := s.flag("pattern")
	if _, err := path.Match(pattern, ""); err != nil {
		return exitf(exitUsage, "the pattern is wrong: %v; write as in queue.*", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if seconds, _ := s.flags.GetInt("duration"); seconds > 0 { // it is declared above
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
		defer cancel()
	}
	r, err := s.api.request(ctx, http.MethodGet, apiPath("events"), nil)
	if err != nil {
		return err
	}
	client := *s.api.http
	client.Timeout = 0 // a stream has no end
	resp, err := client.Do(r)
	if err != nil {
		return s.ended(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(resp.Body) // what could be read says more than nothing
		return failure(resp, raw)
	}
	return s.ended(ctx, s.printEvents(resp.Body, pattern))
}

// ended tells the end that was asked for from that of the broker.
func (s *session) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return s.api.unreachable(err)
}

// printEvents reads server-sent events, which name themselves first.
func (s *session) printEvents(in io.Reader, pattern string) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	name := ""
	for lines.Scan() {
		line := lines.Bytes()
		if rest, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
			name = string(rest)
			continue
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if matches, _ := path.Match(pattern, name); !ok || pattern != "" && !matches { // it was checked
			continue
		}
		event := object{}
		if err := json.Unmarshal(data, &event); err != nil {
			return err
		}
		event["event"] = quoted(name)
		raw, _ := json.Marshal(event) // its members are JSON
		if _, err := s.out.Write(append(raw, '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// reportAll runs the commands that show something, of each virtual host if they
// are about one. What one of them cannot tell does not keep the others.
func reportAll(ctx context.Context, s *session, _ []string) error {
	for _, show := range []func(context.Context, *session, []string) error{status, clusterStatus, environment, memoryBreakdown, listUsers} {
		if err := s.part(ctx, show); err != nil {
			return err
		}
	}
	general := connectionListings()
	for i := range general {
		if err := s.part(ctx, general[i].run); err != nil {
			return err
		}
	}
	var vhosts []object
	if err := s.api.get(ctx, apiPath("vhosts"), &vhosts); err != nil {
		return err
	}
	for _, v := range vhosts {
		in := *s
		o := *s.opts
		o.vhost = v.text("name")
		in.opts = &o
		permissions := listing{
			name: "list_permissions", title: "Listing permissions for vhost %s ...", defaults: "user configure write read",
			path: func(vhost string) string { return apiPath("vhosts", vhost, "permissions") }, columns: same("user configure write read"),
		}
		for _, l := range append(topologyListings(), permissions) {
			if err := in.part(ctx, l.run); err != nil {
				return err
			}
		}
	}
	return nil
}

// part runs one part of a report. Its error is a line of it, unless there is no
// broker.
func (s *session) part(ctx context.Context, show func(context.Context, *session, []string) error) error {
	err := show(ctx, s, nil)
	if e, ok := errors.AsType[*exitError](err); ok && e.code == exitUnavailable {
		return err
	}
	if err != nil {
		s.printf("%v\n", explained(err))
	}
	s.printf("\n")
	return nil
}
