package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// dlqCommands are those of `dlq`, which RabbitMQ has not.
func dlqCommands() []command {
	return []command{
		{use: "list", short: "List the queues that dead letters go to, and where they come from", args: cobra.NoArgs, run: listDLQs,
			flags: func(f *pflag.FlagSet) {
				f.Bool("scan", false, "look at the first message of all other queues, too, for one that was dead-lettered")
			}},
		{use: "show QUEUE", short: "Show dead letters with why, when and where they died", args: cobra.ExactArgs(1), run: showDLQ,
			flags: func(f *pflag.FlagSet) {
				deathFlags(f)
				f.IntP("count", "c", 50, "show at most so many")
				f.Int("offset", 0, "skip so many first")
			}},
		{use: "redrive QUEUE", short: "Move dead letters back to the queues that they come from", args: cobra.ExactArgs(1), run: redriveDLQ,
			flags: func(f *pflag.FlagSet) {
				deathFlags(f)
				offsetFlag(f)
				f.IntP("count", "c", 0, "at most so many; 0 is all")
			}},
	}
}

// deathFlags choose dead letters.
func deathFlags(f *pflag.FlagSet) {
	filterFlags(f)
	f.String("from", "", "only messages that died in this `queue`")
	f.String("reason", "", "only messages that died of this `reason`: rejected, expired, maxlen or delivery_limit")
}

// chosenDeaths is chosen with what deathFlags say.
func (s *session) chosenDeaths() (map[string]any, error) {
	body, err := s.chosen()
	if err != nil {
		return nil, err
	}
	filter := body["filter"].(map[string]any) // chosen makes it
	headers, _ := filter["headers"].(map[string]any)
	if headers == nil {
		headers = map[string]any{}
	}
	for flag, header := range map[string]string{"from": "x-last-death-queue", "reason": "x-last-death-reason"} {
		if s.flags.Changed(flag) {
			headers[header] = s.flag(flag)
		}
	}
	if len(headers) > 0 {
		filter["headers"] = headers
	}
	return body, nil
}

// A queueInfo is what the API says of a queue, as far as dead letters care.
type queueInfo struct {
	VHost     string `json:"vhost"`
	Name      string `json:"name"`
	Messages  int    `json:"messages"`
	Ready     int    `json:"messages_ready"`
	Type      string `json:"type"`
	Arguments object `json:"arguments"`
	Policy    object `json:"effective_policy_definition"`
}

// deadLetters says where the dead letters of a queue go: to an exchange, with
// the key of each if there is no other. Arguments come before policies.
func (q *queueInfo) deadLetters() (exchange, key string, hasKey, there bool) {
	value := func(name string) (string, bool) {
		raw := q.Arguments["x-"+name]
		if raw == nil {
			raw = q.Policy[name]
		}
		return cellText(raw), raw != nil
	}
	exchange, there = value("dead-letter-exchange")
	key, hasKey = value("dead-letter-routing-key")
	return exchange, key, hasKey, there
}

// An inVHostName is a name in a vhost.
type inVHostName struct{ vhost, name string }

// dlqs are the queues with dead letters, each with the queues that those come
// from.
type dlqs map[inVHostName]map[string]bool

func (d dlqs) add(vhost, name, source string) {
	k := inVHostName{vhost, name}
	if d[k] == nil {
		d[k] = map[string]bool{}
	}
	d[k][source] = true
}

func listDLQs(ctx context.Context, s *session, _ []string) error {
	queues, err := s.allQueues(ctx)
	if err != nil {
		return err
	}
	found, err := s.findDLQs(ctx, queues)
	if err != nil {
		return err
	}
	t := &table{columns: []string{"vhost", "queue", "messages", "oldest", "sources"}}
	for _, q := range queues {
		sources, isDLQ := found[inVHostName{q.VHost, q.Name}]
		if !isDLQ {
			continue
		}
		oldest, err := s.oldest(ctx, &q)
		if err != nil {
			return err
		}
		t.rows = append(t.rows, []json.RawMessage{quoted(q.VHost), quoted(q.Name), json.RawMessage(strconv.Itoa(q.Messages)), oldest, list(slices.Sorted(maps.Keys(sources)))})
	}
	s.say("Listing queues with dead letters ...")
	return s.print(t)
}

// list is a JSON array of texts.
func list(texts []string) json.RawMessage {
	raw, _ := json.Marshal(texts) // texts have a JSON form always
	return raw
}

// allQueues are the queues of the vhost that is named, or else of all, sorted.
func (s *session) allQueues(ctx context.Context) ([]queueInfo, error) {
	path := apiPath("queues")
	if s.flags.Changed("vhost") {
		path = apiPath("queues", s.opts.vhost)
	}
	var queues []queueInfo
	if err := s.api.get(ctx, path, &queues); err != nil {
		return nil, orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost)
	}
	slices.SortFunc(queues, func(a, b queueInfo) int { return cmp.Or(cmp.Compare(a.VHost, b.VHost), cmp.Compare(a.Name, b.Name)) })
	return queues, nil
}

// findDLQs follows the dead-letter exchanges of the queues.
func (s *session) findDLQs(ctx context.Context, queues []queueInfo) (dlqs, error) {
	found, routes := dlqs{}, &routing{s: s, exchanges: map[inVHostName]string{}, bindings: map[inVHostName][]bound{}}
	for _, q := range queues {
		exchange, key, hasKey, there := q.deadLetters()
		if !there {
			continue
		}
		targets, err := routes.targets(ctx, q.VHost, exchange, key, hasKey)
		if err != nil {
			return nil, err
		}
		for _, name := range targets {
			found.add(q.VHost, name, q.Name)
		}
	}
	if s.on("scan") {
		return found, s.scanForDeaths(ctx, queues, found)
	}
	return found, nil
}

// scanForDeaths adds the queues whose first message was dead-lettered.
func (s *session) scanForDeaths(ctx context.Context, queues []queueInfo, found dlqs) error {
	for _, q := range queues {
		if _, known := found[inVHostName{q.VHost, q.Name}]; known || q.Ready == 0 || q.Type == "stream" {
			continue
		}
		m, err := s.first(ctx, &q)
		if err != nil {
			return err
		}
		if from := m.text("properties.headers.x-last-death-queue"); from != "" {
			found.add(q.VHost, q.Name, from)
		}
	}
	return nil
}

// first is the first message of a queue; nil if there is none.
func (s *session) first(ctx context.Context, q *queueInfo) (object, error) {
	var p peeked
	err := s.api.post(ctx, apiPath("queues", q.VHost, q.Name, "peek"), map[string]any{"count": 1, "truncate": 0}, &p)
	if err != nil || len(p.Messages) == 0 {
		return nil, orMissing(err, exitData, "no queue '%s' in vhost '%s'", q.Name, q.VHost)
	}
	return p.Messages[0], nil
}

// oldest is how long the first message of a queue is there, as JSON text.
func (s *session) oldest(ctx context.Context, q *queueInfo) (json.RawMessage, error) {
	if q.Ready == 0 || q.Type == "stream" {
		return nil, nil
	}
	m, err := s.first(ctx, q)
	if m == nil {
		return nil, err
	}
	return quoted((time.Duration(number(m["age_ms"])) * time.Millisecond).Round(time.Second).String()), nil
}

// A routing knows the exchanges and bindings that were asked for. It belongs to
// one goroutine.
type routing struct {
	s         *session
	exchanges map[inVHostName]string // types
	bindings  map[inVHostName][]bound
}

// A bound is one binding.
type bound struct {
	To   string `json:"destination"`
	Kind string `json:"destination_type"`
	Key  string `json:"routing_key"`
}

// targets are the queues that an exchange can route to: with any key, unless
// one is given.
func (r *routing) targets(ctx context.Context, vhost, exchange, key string, hasKey bool) ([]string, error) {
	if exchange == "" {
		if hasKey {
			return []string{key}, nil
		}
		return nil, nil // back to the queue that it was published to, by its key
	}
	found, err := map[string]bool{}, error(nil)
	err = r.follow(ctx, vhost, exchange, key, hasKey, found, map[string]bool{})
	return slices.Sorted(maps.Keys(found)), err
}

func (r *routing) follow(ctx context.Context, vhost, exchange, key string, hasKey bool, found, been map[string]bool) error {
	if been[exchange] {
		return nil
	}
	been[exchange] = true
	kind, list, err := r.exchange(ctx, inVHostName{vhost, exchange})
	if err != nil {
		return err
	}
	for _, b := range list {
		if hasKey && !mayRoute(kind, b.Key, key) {
			continue
		}
		if b.Kind == "queue" {
			found[b.To] = true
		} else if err := r.follow(ctx, vhost, b.To, key, hasKey, found, been); err != nil {
			return err
		}
	}
	return nil
}

// exchange is the type of an exchange and what is bound to it; one that does
// not exist has nothing.
func (r *routing) exchange(ctx context.Context, x inVHostName) (string, []bound, error) {
	if kind, known := r.exchanges[x]; known {
		return kind, r.bindings[x], nil
	}
	var o object
	err := r.s.api.get(ctx, apiPath("exchanges", x.vhost, x.name), &o)
	var list []bound
	if err == nil {
		err = r.s.api.get(ctx, apiPath("exchanges", x.vhost, x.name, "bindings", "source"), &list)
	}
	if isStatus(err, 404) {
		err = nil
	}
	r.exchanges[x], r.bindings[x] = o.text("type"), list
	return r.exchanges[x], list, err
}

// mayRoute says whether a binding may let a key through: of types other than
// these three every one may.
func mayRoute(kind, pattern, key string) bool {
	switch kind {
	case "direct":
		return pattern == key
	case "topic":
		return matchesTopic(strings.Split(pattern, "."), strings.Split(key, "."))
	}
	return true
}

// matchesTopic matches words: * is one, # any number (spec §3.1.3.3).
func matchesTopic(pattern, words []string) bool {
	if len(pattern) == 0 {
		return len(words) == 0
	}
	if pattern[0] == "#" {
		return matchesTopic(pattern[1:], words) || len(words) > 0 && matchesTopic(pattern, words[1:])
	}
	return len(words) > 0 && (pattern[0] == "*" || pattern[0] == words[0]) && matchesTopic(pattern[1:], words[1:])
}

// showDLQ shows the newest of each message's deaths.
func showDLQ(ctx context.Context, s *session, args []string) error {
	body, err := s.chosenDeaths()
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
	for _, m := range p.Messages {
		var deaths []object
		if json.Unmarshal(m.at("properties.headers.x-death"), &deaths) != nil || len(deaths) == 0 {
			continue // it was published here
		}
		d := deaths[0]
		m["reason"], m["from"], m["deaths"] = d["reason"], d["queue"], d["count"]
		m["died_at"] = quoted(time.Unix(int64(number(d["time"])), 0).UTC().Format(time.RFC3339))
		m["published_to"], m["routing_keys"] = d["exchange"], d["routing-keys"]
	}
	return s.print(tableOf(same("position reason from deaths died_at published_to routing_keys payload"), p.Messages))
}

func redriveDLQ(ctx context.Context, s *session, args []string) error {
	body, err := s.chosenDeaths()
	if err != nil {
		return err
	}
	return s.transfer(ctx, args[0], "redrive", body)
}
