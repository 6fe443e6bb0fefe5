package main

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/spf13/pflag"
)

// transferFlags are those of queue peek, copy, move and redrive.
func transferFlags(f *pflag.FlagSet) {
	f.IntP("count", "c", 0, "at most so many messages (default: 50 of peek, else all)")
	f.Int("offset", 0, "peek: skip so many first")
	f.String("to-queue", "", "copy, move: the target `queue`")
	f.String("to-exchange", "", "copy, move: the target `exchange`")
	f.String("to-key", "", "copy, move: the routing `key` there (default: the message's own)")
	f.String("to-vhost", "", "copy, move: the target's virtual `host` (default: the queue's)")
	f.String("exchange", "", "only messages that were published to this `exchange`")
	f.StringP("key", "k", "", "only messages with this routing `key`")
	f.StringArrayP("header", "H", nil, "only messages with this header, as `name=value`")
	f.String("text", "", "only messages whose body has this `text` in it")
}

// queueCommand runs queue peek, copy, move and redrive, which RabbitMQ has not.
func queueCommand(ctx context.Context, s *session, args []string) error {
	if len(args) != 2 {
		return exitf(exitUsage, "want one action and one queue, as in `queue peek orders`")
	}
	action, queue := args[0], args[1]
	body, err := s.transferBody()
	if err != nil {
		return err
	}
	switch action {
	case "peek":
		return s.peek(ctx, queue, body)
	case "copy", "move":
		if err := s.addTarget(body); err != nil {
			return err
		}
		return s.transfer(ctx, queue, action, body)
	case "redrive":
		return s.transfer(ctx, queue, action, body)
	}
	return exitf(exitUsage, "there is no action %q of queues; take peek, copy, move or redrive", action)
}

// transferBody is what all actions have: how many, and which.
func (s *session) transferBody() (map[string]any, error) {
	body := map[string]any{}
	for _, name := range []string{"count", "offset"} {
		if s.flags.Changed(name) {
			n, _ := strconv.Atoi(s.flag(name)) // pflag has checked it
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

func (s *session) peek(ctx context.Context, queue string, body map[string]any) error {
	var answer struct{ Messages []object }
	if err := s.api.post(ctx, apiPath("queues", s.opts.vhost, queue, "peek"), body, &answer); err != nil {
		return s.missingQueue(err, queue)
	}
	if s.opts.formatter == "json" {
		return s.printMessages(answer.Messages)
	}
	return s.print(tableOf(same("position age_ms redelivered exchange routing_key payload_bytes payload"), answer.Messages))
}

// transferLimit is how many messages one request looks at; more take more.
const transferLimit = 10_000

// transfer asks again until all is done. A copy, whose messages stay, and what
// was skipped would be seen again: then one request has to do.
func (s *session) transfer(ctx context.Context, queue, action string, body map[string]any) error {
	sum := map[string]int64{}
	for {
		var answer map[string]json.Number
		if err := s.api.post(ctx, apiPath("queues", s.opts.vhost, queue, action), body, &answer); err != nil {
			return s.missingQueue(err, queue)
		}
		for name, v := range answer {
			n, _ := v.Int64() // counts are whole numbers
			sum[name] += n
		}
		done, _ := answer["transferred"].Int64()
		if action == "copy" || s.flags.Changed("count") || done < transferLimit {
			return s.transferred(queue, action, sum)
		}
	}
}

func (s *session) transferred(queue, action string, sum map[string]int64) error {
	if s.opts.formatter == "json" {
		delete(sum, "left") // of the last request only
		return s.document(sum)
	}
	past := map[string]string{"copy": "Copied", "move": "Moved", "redrive": "Sent back"}
	s.printf("%s %d messages of queue '%s'\n", past[action], sum["transferred"], queue)
	if n := sum["unroutable"] + sum["refused"]; n > 0 {
		return exitf(exitData, "%d messages stay in queue '%s': no queue took %d of them, and %d were refused, by a limit for instance",
			n, queue, sum["unroutable"], sum["refused"])
	}
	return nil
}
