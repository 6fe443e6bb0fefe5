package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// transferCommands are those of `queue` that take messages elsewhere, which
// RabbitMQ has not.
func transferCommands() []command {
	return []command{
		{use: "copy QUEUE", short: "Publish copies of messages elsewhere", args: cobra.ExactArgs(1), run: copyMessages, flags: func(f *pflag.FlagSet) {
			targetFlags(f)
			offsetFlag(f)
		}},
		{use: "move QUEUE", short: "Move messages elsewhere", args: cobra.ExactArgs(1), run: moveMessages, flags: targetFlags},
		{use: "redrive QUEUE", short: "Move dead letters back to the queues that they come from", args: cobra.ExactArgs(1), run: redrive,
			flags: func(f *pflag.FlagSet) {
				filterFlags(f)
				offsetFlag(f)
				f.IntP("count", "c", 0, "at most so many; 0 is all")
			}},
	}
}

func offsetFlag(f *pflag.FlagSet) {
	f.Int("offset", 0, "of a stream: begin at this `offset`, to go on where another time has ended")
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
// them. A stream has the offset to go on from, of brokers from this version on.
type transferAnswer struct {
	Transferred int  `json:"transferred"`
	Skipped     int  `json:"skipped"`
	Unroutable  int  `json:"unroutable"`
	Refused     int  `json:"refused"`
	Left        int  `json:"left"`
	Kept        bool `json:"kept"`
	Next        *int `json:"next_offset,omitempty"`
}

// transfer asks again for what one request has left. It ends with the number that
// is wanted, or the messages that were there at first: they may come back to the
// queue. Messages that are kept would be transferred again: there one request has to
// do, but for streams.
func (s *session) transfer(ctx context.Context, queue, action string, body map[string]any) error {
	if action != "move" { // which streams refuse
		var q queueInfo
		if err := s.api.get(ctx, apiPath("queues", s.opts.vhost, queue), &q); err != nil {
			return s.missingQueue(err, queue)
		}
		if q.Type == "stream" {
			return s.transferStream(ctx, queue, action, body)
		}
	}
	total, ahead := transferAnswer{}, 0
	wanted, _ := s.flags.GetInt("count") // it is declared above; 0 is all
	for {
		var a transferAnswer
		if err := s.api.post(ctx, apiPath("queues", s.opts.vhost, queue, action), body, &a); err != nil {
			return s.missingEnd(err, queue)
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

// missingEnd is missingQueue for a request that names a target, too: of that the API
// says itself that it is missing.
func (s *session) missingEnd(err error, queue string) error {
	if e, ok := errors.AsType[*apiError](err); ok && e.kind == "not_found" && e.reason != "vhost_not_found" {
		return err
	}
	return s.missingQueue(err, queue)
}

// streamPart is how many messages of a stream one request is for: as many may be
// transferred twice if it is interrupted, and another goes on.
const streamPart = 1000

// transferStream transfers messages of a stream up to the number that is wanted, or
// the end that the stream had at first: they may come back to it.
func (s *session) transferStream(ctx context.Context, queue, action string, body map[string]any) error {
	wanted, _ := s.flags.GetInt("count") // they are declared above
	next, _ := s.flags.GetInt("offset")
	total := transferAnswer{Next: &next}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	for end, first := 0, true; ; first = false {
		part := streamPart
		if wanted > 0 {
			part = min(part, wanted-total.Transferred)
		}
		if !first {
			part = min(part, end-next)
		}
		body["count"], body["offset"] = part, next
		var a transferAnswer
		err := s.api.post(ctx, apiPath("queues", s.opts.vhost, queue, action), body, &a)
		if err != nil {
			return s.broken(ctx, err, queue, &total)
		}
		total.add(&a)
		if a.Next == nil {
			return s.transferred(queue, action, &total, wanted)
		}
		if first {
			end = *a.Next + a.Left
		}
		stuck := *a.Next == next
		next = *a.Next
		if stuck || next >= end || wanted > 0 && total.Transferred >= wanted {
			return s.transferred(queue, action, &total, wanted)
		}
	}
}

// add adds what became of the messages of a further request.
func (t *transferAnswer) add(a *transferAnswer) {
	t.Transferred += a.Transferred
	t.Skipped += a.Skipped
	t.Unroutable += a.Unroutable
	t.Refused += a.Refused
	t.Left, t.Kept = a.Left, a.Kept
	if a.Next == nil {
		t.Next = nil
	}
}

// broken is the error of a request for a part of a stream. What the broker has
// refused at once has transferred nothing.
func (s *session) broken(ctx context.Context, err error, queue string, total *transferAnswer) error {
	if _, refused := errors.AsType[*apiError](err); refused && total.Transferred == 0 {
		return s.missingEnd(err, queue)
	}
	code := exitSoftware
	if e, ok := errors.AsType[*exitError](explained(err)); ok {
		code = e.code
	}
	if ctx.Err() != nil {
		code, err = exitInterrupted, errors.New("interrupted")
	}
	return exitf(code, "%v; %d messages were transferred before, to go on give --offset %d: up to %d of those behind it may be transferred twice",
		err, total.Transferred, *total.Next, streamPart)
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
		switch {
		case a.Left > 0 && a.Next != nil:
			s.printf("%d messages behind them were not looked at: to go on give --offset %d\n", a.Left, *a.Next)
		case a.Left > 0 && (wanted == 0 || a.Transferred < wanted):
			s.printf("%d messages behind them were not looked at: the broker looks at a part of a long queue at a time\n", a.Left)
		}
	}
	if n := a.Unroutable + a.Refused; n > 0 {
		return exitf(exitData, "%d messages stay in queue '%s': no queue took %d of them, and %d were refused, by a limit for instance",
			n, queue, a.Unroutable, a.Refused)
	}
	return nil
}
