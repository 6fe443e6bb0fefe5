package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// scanLimit is how many messages one look into a queue sees.
const scanLimit = 10_000

// inspectCommands are those of `queue` that look and leave all as it is, but
// for purge.
func inspectCommands() []command {
	return []command{
		{use: "peek QUEUE", short: "Show messages without changing their order or their flags", args: cobra.ExactArgs(1), run: peek,
			flags: func(f *pflag.FlagSet) {
				filterFlags(f)
				f.IntP("count", "c", 50, "show at most so many")
				f.Int("offset", 0, "skip so many first")
			}},
		{use: "grep QUEUE REGEXP", short: "Show messages whose body matches; exit code 1 if none does", args: cobra.ExactArgs(2), run: grepQueue,
			flags: func(f *pflag.FlagSet) {
				filterFlags(f)
				f.IntP("count", "c", 0, "end after so many matches; 0 is never")
				f.BoolP("ignore-case", "i", false, "take capitals and small letters for the same")
				f.BoolP("invert", "v", false, "show what does not match")
				f.Bool("properties", false, "look into routing key and properties as well")
			}},
		{use: "tail QUEUE", short: "Show the last messages, and new ones as they come; they stay in the queue", args: cobra.ExactArgs(1), run: tailQueue,
			flags: func(f *pflag.FlagSet) {
				filterFlags(f)
				f.Int("last", 10, "show so many of those that are there first")
				f.IntP("count", "c", 0, "end after so many; 0 is never")
				f.Duration("interval", 500*time.Millisecond, "`time` between two looks")
			}},
		{use: "unacked QUEUE", short: "Show messages that are out with consumers: who has them, and for how long", args: cobra.ExactArgs(1), run: unacked,
			flags: func(f *pflag.FlagSet) { f.IntP("count", "c", 50, "show at most so many, up to 500") }},
		{use: "purge QUEUE", short: "Drop the ready messages of a queue and say how many", args: cobra.ExactArgs(1), run: purgeCounted},
	}
}

// A look into a queue.
type peeked struct {
	Messages []object `json:"messages"`
	Scanned  int      `json:"scanned"`
	Left     int      `json:"left"`
	Next     uint64   `json:"next"`
}

// peekInto asks for messages; see chosen for the body.
func (s *session) peekInto(ctx context.Context, queue string, body map[string]any) (peeked, error) {
	var p peeked
	err := s.api.post(ctx, apiPath("queues", s.opts.vhost, queue, "peek"), body, &p)
	return p, s.missingQueue(err, queue)
}

func peek(ctx context.Context, s *session, args []string) error {
	body, err := s.chosen()
	if err != nil {
		return err
	}
	p, err := s.peekInto(ctx, args[0], body)
	if err != nil {
		return err
	}
	if s.opts.formatter == "json" {
		return s.printMessages(p.Messages)
	}
	return s.print(tableOf(same("position age_ms redelivered exchange routing_key payload_bytes payload"), p.Messages))
}

// grepQueue has grep's exit codes: 1 if nothing matches.
func grepQueue(ctx context.Context, s *session, args []string) error {
	pattern := args[1]
	if s.on("ignore-case") {
		pattern = "(?i)" + pattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return exitf(exitUsage, "the regular expression is wrong: %v", err)
	}
	body, err := s.chosen()
	if err != nil {
		return err
	}
	limit, _ := s.flags.GetInt("count") // it is declared above
	body["count"] = scanLimit
	p, err := s.peekInto(ctx, args[0], body)
	if err != nil {
		return err
	}
	found := slices.DeleteFunc(p.Messages, func(m object) bool { return s.matches(re, m) == s.on("invert") })
	if limit > 0 && len(found) > limit {
		found = found[:limit]
	}
	if err := s.printMessages(found); err != nil {
		return err
	}
	if p.Left > 0 && (limit == 0 || len(found) < limit) {
		s.warn("looked at the first %d messages of queue '%s'; %d behind them were not", p.Scanned, args[0], p.Left)
	}
	if len(found) == 0 {
		return exitf(exitFailure, "no message of queue '%s' matches", args[0])
	}
	return nil
}

func (s *session) matches(re *regexp.Regexp, m object) bool {
	payload, err := messageLine(m, false)
	if err == nil && re.Match(payload) {
		return true
	}
	return s.on("properties") && (re.MatchString(m.text("routing_key")) || re.Match(m["properties"]))
}

// tailQueue looks again and again, as nothing announces a message without
// taking it from a consumer. It ends at a signal.
func tailQueue(ctx context.Context, s *session, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	interval, _ := s.flags.GetDuration("interval") // both are declared above
	limit, _ := s.flags.GetInt("count")
	list, next, err := s.newest(ctx, args[0])
	for shown := 0; ; {
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if limit > 0 {
			list = list[:min(len(list), limit-shown)]
		}
		if err := s.printMessages(list); err != nil {
			return err
		}
		if shown += len(list); limit > 0 && shown >= limit || pause(ctx, interval) != nil {
			return nil
		}
		list, next, err = s.since(ctx, args[0], next)
	}
}

// newest are the messages that tail begins with, and where it goes on.
func (s *session) newest(ctx context.Context, queue string) (list []object, next uint64, err error) {
	last, _ := s.flags.GetInt("last")
	body, err := s.chosen()
	if err != nil {
		return nil, 0, err
	}
	body["count"] = scanLimit
	p, err := s.deepPeek(ctx, queue, body)
	return p.Messages[max(0, len(p.Messages)-max(0, last)):], p.Next, err
}

// since are the messages that have come after an earlier look.
func (s *session) since(ctx context.Context, queue string, from uint64) (list []object, next uint64, err error) {
	body, err := s.chosen()
	if err != nil {
		return nil, 0, err
	}
	body["count"], body["from"] = scanLimit, from
	p, err := s.deepPeek(ctx, queue, body)
	return p.Messages, p.Next, err
}

// deepPeek refuses a queue whose end one look does not reach.
func (s *session) deepPeek(ctx context.Context, queue string, body map[string]any) (peeked, error) {
	p, err := s.peekInto(ctx, queue, body)
	if err == nil && p.Left > 0 {
		return p, exitf(exitUnavailable, "queue '%s' has %d messages, and a look reaches the first %d; "+
			"follow a copy instead: bind another queue to the same exchange", queue, p.Left+p.Scanned, p.Scanned)
	}
	return p, err
}

// unacked shows who holds which messages, and for how long.
func unacked(ctx context.Context, s *session, args []string) error {
	count, _ := s.flags.GetInt("count") // it is declared above
	var page struct {
		Items []object `json:"items"`
		Total int      `json:"filtered_count"`
	}
	path := apiPath("queues", s.opts.vhost, args[0], "unacked") + "?page=1&page_size=" + strconv.Itoa(min(max(count, 1), 500))
	if err := s.api.get(ctx, path, &page); err != nil {
		return s.missingQueue(err, args[0])
	}
	if s.opts.formatter == "json" {
		return s.printMessages(page.Items)
	}
	s.say("Queue '%s' has %d messages out with consumers ...", args[0], page.Total)
	columns := slices.Concat([]column{{"channel", "channel_details.name"}, {"user", "channel_details.user"}},
		same("consumer_tag delivery_tag age_ms redelivered exchange routing_key payload_bytes payload"))
	return s.print(tableOf(columns, page.Items))
}

// number is an integer of the API; 0 if it is none.
func number(raw json.RawMessage) int {
	n, _ := strconv.Atoi(strings.TrimSpace(string(raw))) // null, or left out
	return n
}

func purgeCounted(ctx context.Context, s *session, args []string) error {
	path := apiPath("queues", s.opts.vhost, args[0])
	var q object
	if err := s.api.get(ctx, path, &q); err != nil {
		return s.missingQueue(err, args[0])
	}
	if err := s.api.delete(ctx, path+"/contents"); err != nil {
		return s.missingQueue(err, args[0])
	}
	return s.result("Purged %s messages of queue '%s'", q.text("messages_ready"), args[0])
}
