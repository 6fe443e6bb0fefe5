package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// transferCommands are those of `queue` that take messages elsewhere, which
// RabbitMQ has not.
func transferCommands() []command {
	return []command{
		{use: "copy QUEUE", short: "Publish copies of messages elsewhere", args: cobra.ExactArgs(1), run: copyMessages, flags: targetFlags},
		{use: "move QUEUE", short: "Move messages elsewhere", args: cobra.ExactArgs(1), run: moveMessages, flags: targetFlags},
		{use: "redrive QUEUE", short: "Move dead letters back to the queues that they come from", args: cobra.ExactArgs(1), run: redrive,
			flags: func(f *pflag.FlagSet) {
				filterFlags(f)
				f.IntP("count", "c", 0, "at most so many; 0 is all")
			}},
	}
}

// filterFlags choose messages.
func filterFlags(f *pflag.FlagSet) {
	f.String("exchange", "", "only messages that were published to this `exchange`")
	f.StringP("key", "k", "", "only messages with this routing `key`")
	f.StringArrayP("header", "H", nil, "only messages with this header, as `name=value`")
	f.String("text", "", "only messages whose body has this `text` in it")
}

func targetFlags(f *pflag.FlagSet) {
	filterFlags(f)
	f.IntP("count", "c", 0, "at most so many; 0 is all")
	f.String("to-queue", "", "the target `queue`")
	f.String("to-exchange", "", "the target `exchange`")
	f.String("to-key", "", "the routing `key` there (default: the message's own)")
	f.String("to-vhost", "", "the target's virtual `host` (default: the queue's)")
}

// chosen is the body of a request that says which messages, and how many.
func (s *session) chosen() (map[string]any, error) {
	body := map[string]any{}
	for _, name := range []string{"count", "offset"} { // what is not given the API knows
		if n, _ := s.flags.GetInt(name); n > 0 { // not all commands have both
			body[name] = n
		}
	}
	filter := map[string]any{}
	for name, flag := range map[string]string{"exchange": "exchange", "routing_key": "key", "text": "text"} {
		if s.flags.Changed(flag) {
			filter[name] = s.flag(flag)
		}
	}
	list, _ := s.flags.GetStringArray("header") // it is declared above
	headers, err := pairs("header", list)
	if len(headers) > 0 {
		filter["headers"] = headers
	}
	body["filter"] = filter
	return body, err
}

func (s *session) addTarget(body map[string]any) error {
	to := map[string]string{}
	for name, flag := range map[string]string{"queue": "to-queue", "exchange": "to-exchange", "routing_key": "to-key", "vhost": "to-vhost"} {
		if s.flags.Changed(flag) {
			to[name] = s.flag(flag)
		}
	}
	if (to["queue"] == "") == (to["exchange"] == "") {
		return exitf(exitUsage, "where to? Give --to-queue, or --to-exchange with a --to-key if it shall have another")
	}
	body["to"] = to
	return nil
}

func copyMessages(ctx context.Context, s *session, args []string) error {
	return s.toTarget(ctx, args[0], "copy")
}

func moveMessages(ctx context.Context, s *session, args []string) error {
	return s.toTarget(ctx, args[0], "move")
}

func (s *session) toTarget(ctx context.Context, queue, action string) error {
	body, err := s.chosen()
	if err != nil {
		return err
	}
	if err := s.addTarget(body); err != nil {
		return err
	}
	return s.transfer(ctx, queue, action, body)
}

func redrive(ctx context.Context, s *session, args []string) error {
	body, err := s.chosen()
	if err != nil {
		return err
	}
	return s.transfer(ctx, args[0], "redrive", body)
}

// A transferAnswer is what became of messages. Left are those behind the last
// one that was looked at: a request looks at no more than so many messages and
// bytes. Kept are those that are in the queue still, as copies and as a stream has
// them.
type transferAnswer struct {
	Transferred int  `json:"transferred"`
	Skipped     int  `json:"skipped"`
	Unroutable  int  `json:"unroutable"`
	Refused     int  `json:"refused"`
	Left        int  `json:"left"`
	Kept        bool `json:"kept"`
}

// transfer asks again for what one request has left. It ends with the number that
// is wanted, or the messages that were there at first: they may come back to the
// queue. Messages that are kept would be transferred again: there one request has to
// do.
func (s *session) transfer(ctx context.Context, queue, action string, body map[string]any) error {
	total, ahead := transferAnswer{}, 0
	wanted, _ := s.flags.GetInt("count") // it is declared above; 0 is all
	for {
		var a transferAnswer
		if err := s.api.post(ctx, apiPath("queues", s.opts.vhost, queue, action), body, &a); err != nil {
			return s.missingQueue(err, queue)
		}
		if total.Transferred == 0 {
			ahead = a.Left
		} else {
			ahead -= a.Transferred
		}
		a.Transferred += total.Transferred
		done := a.Transferred == total.Transferred || ahead <= 0 || a.Left == 0
		total = a
		next := ahead
		if wanted > 0 {
			next = min(next, wanted-total.Transferred)
		}
		if a.Kept || done || next <= 0 {
			return s.transferred(queue, action, &total, wanted)
		}
		body["count"] = next
	}
}

// transferred tells what became of the messages. What had no place to go to is
// an error: it is still there.
func (s *session) transferred(queue, action string, a *transferAnswer, wanted int) error {
	if s.opts.formatter == "json" {
		if err := s.document(a); err != nil {
			return err
		}
	} else {
		past := map[string]string{"copy": "Copied", "move": "Moved", "redrive": "Sent back"}
		s.printf("%s %d messages of queue '%s'\n", past[action], a.Transferred, queue)
		if a.Left > 0 && (wanted == 0 || a.Transferred < wanted) {
			s.printf("%d messages behind them were not looked at: the broker looks at a part of a long queue at a time\n", a.Left)
		}
	}
	if n := a.Unroutable + a.Refused; n > 0 {
		return exitf(exitData, "%d messages stay in queue '%s': no queue took %d of them, and %d were refused, by a limit for instance",
			n, queue, a.Unroutable, a.Refused)
	}
	return nil
}
