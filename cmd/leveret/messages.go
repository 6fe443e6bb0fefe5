package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func messageCommands() []command {
	return []command{
		{use: "publish [PAYLOAD]", short: "Publish a message; without an argument it is standard input", args: cobra.MaximumNArgs(1), run: publish, flags: publishFlags},
		{use: "get QUEUE", short: "Show messages of a queue; they stay there, marked as redelivered, without --ack", args: cobra.ExactArgs(1), run: getMessages,
			flags: func(f *pflag.FlagSet) {
				f.IntP("count", "c", 1, "get at most so many")
				f.Bool("ack", false, "take them out of the queue")
				f.Bool("reject", false, "take them out of the queue and dead-letter them")
			}},
		{use: "consume QUEUE", short: "Take messages out of a queue and print them until interrupted", args: cobra.ExactArgs(1), run: consume,
			flags: func(f *pflag.FlagSet) {
				f.IntP("count", "c", 0, "end after so many; 0 is never")
				f.Bool("until-empty", false, "end when the queue is empty")
				f.String("uri", "", "consume over AMQP, at a `URI` as amqp://user:password@host/vhost, in place of the HTTP API")
			}},
		{use: "queue", short: "Look into a queue, or move messages elsewhere: peek, grep, tail, unacked, copy, move, redrive, purge",
			sub: slices.Concat(inspectCommands(), transferCommands())},
		{use: "dlq", short: "Find dead letters, and send them back: list, show, redrive", sub: dlqCommands()},
	}
}

func publishFlags(f *pflag.FlagSet) {
	f.StringP("exchange", "e", "", "`name` of the exchange (default: the one that routes to the queue named by --key)")
	f.StringP("key", "k", "", "routing `key`; with the default exchange the name of a queue")
	f.StringArrayP("header", "H", nil, "header as `name=value`; a value that is JSON is not text")
	f.StringArray("property", nil, "property as `name=value`, as in content_type=text/plain or priority=5")
	f.Bool("transient", false, "do not keep the message on disk")
	f.IntP("count", "c", 1, "publish it so many times")
	f.Bool("lines", false, "each line of standard input is a message")
	f.Bool("jsonl", false, "each line is a message as get --json prints it")
}

// An outgoing is a message as the API takes it.
type outgoing struct {
	Exchange   string         `json:"-"`
	RoutingKey string         `json:"routing_key"`
	Payload    string         `json:"payload"`
	Encoding   string         `json:"payload_encoding"`
	Properties map[string]any `json:"properties"`
}

// setPayload takes any bytes.
func (m *outgoing) setPayload(b []byte) {
	m.Payload, m.Encoding = string(b), "string"
	if !utf8.Valid(b) {
		m.Payload, m.Encoding = base64.StdEncoding.EncodeToString(b), "base64"
	}
}

func publish(ctx context.Context, s *session, args []string) error {
	m, err := s.outgoing()
	if err != nil {
		return err
	}
	if s.on("lines") || s.on("jsonl") {
		if err := s.onlyLines(args); err != nil {
			return err
		}
		return s.publishLines(ctx, m)
	}
	if len(args) > 0 {
		m.setPayload([]byte(args[0]))
	} else {
		b, err := io.ReadAll(s.in)
		if err != nil {
			return err
		}
		m.setPayload(b)
	}
	count, _ := s.flags.GetInt("count") // it is declared above
	for range count {
		if err := s.publishOne(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// onlyLines refuses what would be without effect where each line is a message.
func (s *session) onlyLines(args []string) error {
	jsonl := s.on("jsonl")
	how := or(jsonl, "--jsonl", "--lines")
	switch {
	case len(args) > 0:
		return exitf(exitUsage, "%s reads the messages from standard input: leave the argument %q out", how, args[0])
	case jsonl && s.on("lines"):
		return exitf(exitUsage, "lines are text or JSON: give --lines or --jsonl, not both")
	case s.flags.Changed("count"):
		return exitf(exitUsage, "%s publishes each line once: it goes without --count", how)
	}
	for _, name := range []string{"header", "property", "transient"} {
		if jsonl && s.flags.Changed(name) {
			return exitf(exitUsage, "with --jsonl each line says what properties its message has: it goes without --%s", name)
		}
	}
	return nil
}

// messageProperties are the properties of a message but for its headers. The API passes
// over others, like RabbitMQ's.
var messageProperties = []string{"content_type", "content_encoding", "delivery_mode", "priority", "correlation_id", "reply_to",
	"expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id"}

// outgoing is what the flags say of a message.
func (s *session) outgoing() (outgoing, error) {
	m := outgoing{Exchange: s.flag("exchange"), RoutingKey: s.flag("key"), Properties: map[string]any{"delivery_mode": 2}}
	if s.on("transient") {
		m.Properties["delivery_mode"] = 1
	}
	properties, _ := s.flags.GetStringArray("property") // both are declared above
	headers, _ := s.flags.GetStringArray("header")
	for _, p := range properties {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return m, exitf(exitUsage, "the property %q has no value; write name=value", p)
		}
		if !slices.Contains(messageProperties, name) {
			return m, exitf(exitUsage, "there is no property %q; there are %s, and --header is for headers", name, strings.Join(messageProperties, ", "))
		}
		m.Properties[name] = value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && (name == "priority" || name == "delivery_mode" || name == "timestamp") {
			m.Properties[name] = n
		}
	}
	h, err := pairs("header", headers)
	if len(h) > 0 {
		m.Properties["headers"] = h
	}
	return m, err
}

// pairs reads name=value pairs; a value that is JSON is a value of its type.
func pairs(what string, list []string) (map[string]any, error) {
	m := map[string]any{}
	for _, p := range list {
		name, value, ok := strings.Cut(p, "=")
		if !ok {
			return nil, exitf(exitUsage, "the %s %q has no value; write name=value", what, p)
		}
		m[name] = value
		if json.Valid([]byte(value)) {
			m[name] = json.RawMessage(value)
		}
	}
	return m, nil
}

// publishOne publishes and fails if no queue has taken the message.
func (s *session) publishOne(ctx context.Context, m outgoing) error {
	exchange := m.Exchange
	if exchange == "" {
		exchange = "amq.default"
	}
	var answer struct{ Routed bool }
	err := s.api.post(ctx, apiPath("exchanges", s.opts.vhost, exchange, "publish"), m, &answer)
	if err != nil {
		return orMissing(err, exitData, "no exchange '%s' in vhost '%s'", m.Exchange, s.opts.vhost)
	}
	if !answer.Routed {
		return exitf(exitData, "the message was not routed: no queue is bound to exchange '%s' for the key '%s' in vhost '%s'",
			m.Exchange, m.RoutingKey, s.opts.vhost)
	}
	return nil
}

// publishLines publishes each line; with --jsonl a line says where to, unless
// the flags do.
func (s *session) publishLines(ctx context.Context, template outgoing) error {
	in, published := bufio.NewReader(s.in), 0
	for {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if text := bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			m := template
			m.setPayload(text)
			if s.on("jsonl") {
				if m, err = s.fromJSON(template, text); err != nil {
					return exitf(exitData, "line %d: %v", published+1, err)
				}
			}
			if err := s.publishOne(ctx, m); err != nil {
				return exitf(codeOf(err), "line %d, after %d published: %v", published+1, published, explained(err))
			}
			published++
		}
		if err != nil || len(line) == 0 {
			break
		}
	}
	s.say("Published %d messages", published)
	return nil
}

func codeOf(err error) int {
	e, _ := errors.AsType[*exitError](explained(err)) // explained makes nothing else
	return e.code
}

// fromJSON reads a message as get --json prints it.
func (s *session) fromJSON(template outgoing, line []byte) (outgoing, error) {
	var from struct {
		Exchange   string          `json:"exchange"`
		RoutingKey string          `json:"routing_key"`
		Payload    string          `json:"payload"`
		Encoding   string          `json:"payload_encoding"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(line, &from); err != nil {
		return template, exitf(exitData, "no message as JSON: %v", err)
	}
	m := template
	m.Payload, m.Encoding = from.Payload, or(from.Encoding == "", "string", from.Encoding)
	if !s.flags.Changed("exchange") && !s.flags.Changed("key") {
		m.Exchange, m.RoutingKey = from.Exchange, from.RoutingKey
	}
	var properties map[string]json.RawMessage                                       // numbers keep all their digits
	if json.Unmarshal(from.Properties, &properties) == nil && len(properties) > 0 { // no properties are an empty array
		m.Properties = make(map[string]any, len(properties))
		for name, value := range properties {
			m.Properties[name] = value
		}
	}
	return m, nil
}

func getMessages(ctx context.Context, s *session, args []string) error {
	mode := "ack_requeue_true"
	switch {
	case s.on("reject"):
		mode = "reject_requeue_false"
	case s.on("ack"):
		mode = "ack_requeue_false"
	}
	count, _ := strconv.Atoi(s.flag("count")) // pflag has checked it
	if !s.asTable() {
		return s.takeAll(ctx, args[0], count, mode, s.printMessages)
	}
	var rows []object
	err := s.takeAll(ctx, args[0], count, mode, func(list []object) error {
		rows = append(rows, list...)
		return nil
	})
	if len(rows) > 0 || err == nil { // after an error, too: they may be gone from the queue
		err = errors.Join(err, s.printMessages(rows))
	}
	return err
}

// takeAll gets up to count messages and hands on those of each request, which gives no
// more than so many bytes. Messages that stay in the queue would be given again: then
// one request has to do, and what is not there is said.
func (s *session) takeAll(ctx context.Context, queue string, count int, mode string, do func([]object) error) error {
	for done := 0; ; {
		list, err := s.take(ctx, queue, count-done, mode)
		if err == nil {
			err = do(list)
		}
		done += len(list)
		if err != nil || len(list) == 0 || done >= count {
			return err
		}
		left, err := strconv.Atoi(list[len(list)-1].text("message_count"))
		if err != nil || left == 0 {
			return err
		}
		if mode == "ack_requeue_true" {
			s.warn("these are %d of %d messages: the broker gives a part of a long queue at a time; --ack takes all out, and queue peek looks further", done, min(count, done+left))
			return nil
		}
	}
}

// take gets messages by the API.
func (s *session) take(ctx context.Context, queue string, count int, mode string) ([]object, error) {
	var list []object
	err := s.api.post(ctx, apiPath("queues", s.opts.vhost, queue, "get"),
		map[string]any{"count": count, "ackmode": mode, "encoding": "auto"}, &list)
	return list, s.missingQueue(err, queue)
}

// printMessages prints payloads as they are, one after the other with a line
// end, or whole messages as JSON lines, which publish --jsonl reads.
func (s *session) printMessages(list []object) error {
	if s.asTable() {
		return s.print(tableOf(same("exchange routing_key redelivered payload_bytes payload"), list))
	}
	for _, m := range list {
		line, err := messageLine(m, s.opts.formatter == "json")
		if err != nil {
			return err
		}
		if _, err := s.out.Write(append(line, '\n')); err != nil {
			return err // messages may be gone from the queue: this must not go unnoticed
		}
	}
	return nil
}

// asTable says that messages are the rows of a table.
func (s *session) asTable() bool {
	return s.opts.formatter == "csv" || s.opts.formatter == "pretty_table"
}

func messageLine(m object, asJSON bool) ([]byte, error) {
	if asJSON {
		return json.Marshal(m)
	}
	payload := m.text("payload")
	if m.text("payload_encoding") == "base64" {
		return base64.StdEncoding.DecodeString(payload)
	}
	return []byte(payload), nil
}

const (
	// consumeBatch is how many messages one request of consume takes: so many
	// are lost at most if it is killed before it has printed them.
	consumeBatch = 100
	// consumePoll is how long consume waits at an empty queue. The API cannot
	// wait for messages.
	consumePoll = 200 * time.Millisecond
)

// consume ends at a signal with what it has taken printed.
func consume(ctx context.Context, s *session, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	limit, _ := strconv.Atoi(s.flag("count")) // pflag has checked it
	if uri := s.flag("uri"); uri != "" {
		if s.on("until-empty") {
			return exitf(exitUsage, "--until-empty goes without --uri: over AMQP nothing says that a queue is empty")
		}
		return s.consumeAMQP(ctx, uri, args[0], limit)
	}
	for done := 0; ctx.Err() == nil && (limit == 0 || done < limit); {
		batch := consumeBatch
		if limit > 0 {
			batch = min(batch, limit-done)
		}
		list, err := s.take(context.WithoutCancel(ctx), args[0], batch, "ack_requeue_false")
		if err != nil {
			return err
		}
		if err := s.printMessages(list); err != nil {
			return err
		}
		done += len(list)
		if len(list) > 0 {
			continue
		}
		if s.on("until-empty") || pause(ctx, consumePoll) != nil {
			return nil
		}
	}
	return nil
}
