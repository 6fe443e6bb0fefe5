package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strconv"
)

// publish takes any bytes as a payload: the argument, or what comes in by standard
// input, whatever the encoding says (RabbitMQ 4.0).
func (a *admin) publish(ctx context.Context, args []string) error {
	given, err := parseArguments(args)
	if err != nil {
		return err
	}
	if err := given.only("routing_key", "payload properties exchange payload_encoding"); err != nil {
		return err
	}
	properties, err := parsed("argument properties", given.or("properties", "{}"))
	if err != nil {
		return err
	}
	var m outgoing
	payload, there := given["payload"]
	encoding := given.or("payload_encoding", "string")
	switch {
	case !there:
		raw, err := a.readAll("-")
		if err != nil {
			return err
		}
		m.setPayload(raw)
	case encoding == "string":
		m.setPayload([]byte(payload))
	default:
		m.Payload, m.Encoding = payload, encoding
	}
	body := map[string]any{"routing_key": given["routing_key"], "payload": m.Payload, "payload_encoding": m.Encoding, "properties": properties}
	var answer struct{ Routed bool }
	exchange := given.or("exchange", "amq.default")
	err = a.api.post(ctx, apiPath("exchanges", a.vhost(), or(exchange == "", "amq.default", exchange), "publish"), body, &answer)
	if err != nil {
		return err
	}
	a.say("%s", or(answer.Routed, "Message published", "Message published but NOT routed"))
	return nil
}

func (a *admin) getMessages(ctx context.Context, args []string) error {
	given, err := parseArguments(args)
	if err != nil {
		return err
	}
	if err := given.only("queue", "count ackmode requeue payload_file encoding"); err != nil {
		return err
	}
	mode := given.or("ackmode", "ack_requeue_true")
	if given["requeue"] == "false" {
		mode = "ack_requeue_false"
	}
	body := map[string]any{"count": given.or("count", "1"), "ackmode": mode, "encoding": given.or("encoding", "auto")}
	get := func() (answer []byte, err error) {
		err = a.api.post(ctx, apiPath("queues", a.vhost(), given["queue"], "get"), body, &answer)
		return answer, err
	}
	if file := given["payload_file"]; file != "" {
		return a.getInto(file, body["count"] == "1", get)
	}
	answer, err := get()
	if err != nil {
		return err
	}
	if count, err := strconv.Atoi(given.or("count", "1")); err == nil && mode != "ack_requeue_true" && mode != "reject_requeue_true" {
		return a.getRest(answer, count, body, get)
	}
	return a.printAnswer(answer, nil, "")
}

// getRest gets what is missing from so many messages: a request gives no more than so
// many bytes of them. They have left the queue, so all that came are printed, also if
// a request fails.
func (a *admin) getRest(all []byte, count int, body map[string]any, get func() ([]byte, error)) error {
	var list []json.RawMessage
	err := json.Unmarshal(all, &list)
	for done := len(list); err == nil && len(list) > 0 && done < count; done += len(list) {
		body["count"] = count - done
		var more []byte
		if more, err = get(); err == nil {
			err = json.Unmarshal(more, &list)
		}
		if err == nil && len(list) > 0 { // two lists in brackets become one
			all = append(append(bytes.TrimSuffix(bytes.TrimSpace(all), []byte("]")), ','), bytes.TrimPrefix(bytes.TrimSpace(more), []byte("["))...)
		}
	}
	return errors.Join(a.printAnswer(all, nil, ""), err)
}

// getInto gets one message and writes its payload to a file. The file is opened
// before the message is taken, and keeps what is in it until there is one.
func (a *admin) getInto(file string, one bool, get func() ([]byte, error)) error {
	if !one {
		return exitf(exitUsage, "payload_file is for one message: it goes without a count")
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return exitf(exitFailure, "cannot write the payload: %v", err)
	}
	_ = f.Close() // nothing was written
	answer, err := get()
	if err != nil {
		return err
	}
	var list []object
	if err := json.Unmarshal(answer, &list); err != nil {
		return exitf(exitFailure, "the answer is not a list of messages: %v", err)
	}
	if len(list) == 0 {
		return exitf(exitFailure, "there is no message to write to %q", file)
	}
	payload, err := messageLine(list[0], false)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, payload, 0o666); err != nil {
		return exitf(exitFailure, "cannot write the payload: %v", err)
	}
	return a.printAnswer(answer, []string{"routing_key", "exchange", "message_count", "payload_bytes", "redelivered"}, "")
}
