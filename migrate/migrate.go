// Package migrate moves what a running broker has to another one: definitions
// through the HTTP API, messages through AMQP. It sees both from outside, as any
// client does, so that the source may be RabbitMQ.
package migrate

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// An Endpoint is one of the two brokers. All fields are immutable.
type Endpoint struct {
	// AMQP is the URI of the broker, amqp:// or amqps://; its vhost is not
	// looked at.
	AMQP string
	// API is the broker's HTTP API.
	API *API
}

// Options say what to move and how. The zero value moves everything.
type Options struct {
	VHosts []string // only these; none is all
	Only   []string // patterns of the names of queues to move; none is all
	Skip   []string // patterns of the names of queues to leave out

	NoDefinitions bool
	NoMessages    bool
	DryRun        bool // only look, and say what would be done

	Parallel int // queues at a time; 0 is 4
	Prefetch int // most messages of a queue under way; 0 is by their size

	// Watch is told what happens, by several goroutines; nil is nobody.
	Watch func(Event)
}

// An Event is something that happened. Exactly one group of fields is set.
type Event struct {
	Text string // something to tell people

	Messages int64 // the ready messages of all queues to be moved
	Queues   int   // how many queues those are

	Moved int // so many more messages are at the target

	Queue *Queue // this one is done
}

// A Report is what became of a migration.
type Report struct {
	DryRun      bool      `json:"dry_run"`
	Interrupted bool      `json:"interrupted"`
	Definitions []Section `json:"definitions"`
	Refused     []Refusal `json:"refused"`
	Queues      []Queue   `json:"queues"`
	Moved       int64     `json:"moved"` // messages
}

// Complete says whether all that was asked for is at the target.
func (r *Report) Complete() bool {
	return !r.Interrupted && len(r.Refused) == 0 && !slices.ContainsFunc(r.Queues, func(q Queue) bool { return !q.State.fine() })
}

// A migration is one run.
type migration struct {
	from, to Endpoint
	opts     Options
	report   *Report
}

// Run moves what is at from to to. It returns when everything is done or ctx has
// ended; then what was under way is finished, and the rest is as it was. An
// error is one that concerns everything, as a broker that cannot be reached; the
// report, which is never nil, has all others.
func Run(ctx context.Context, from, to Endpoint, opts Options) (*Report, error) {
	if opts.Parallel <= 0 {
		opts.Parallel = 4
	}
	if opts.Watch == nil {
		opts.Watch = func(Event) {}
	}
	m := &migration{from: from, to: to, opts: opts, report: &Report{
		DryRun: opts.DryRun, Definitions: []Section{}, Refused: []Refusal{}, Queues: []Queue{}}}
	err := m.run(ctx)
	if ctx.Err() != nil {
		m.report.Interrupted, err = true, nil
	}
	return m.report, err
}

func (m *migration) run(ctx context.Context) error {
	if err := checkPatterns(slices.Concat(m.opts.Only, m.opts.Skip)); err != nil {
		return err
	}
	if err := m.checkVHosts(ctx); err != nil {
		return err
	}
	var later []item
	if !m.opts.NoDefinitions {
		var err error
		if later, err = m.moveDefinitions(ctx); err != nil {
			return err
		}
	}
	if !m.opts.NoMessages {
		if err := m.moveMessages(ctx); err != nil {
			return err
		}
	}
	if len(later) > 0 && !m.opts.DryRun {
		return m.importSection(context.WithoutCancel(ctx), "users", later)
	}
	return nil
}

// checkVHosts refuses vhosts that the source has not: nothing would be moved, and
// that look like success.
func (m *migration) checkVHosts(ctx context.Context) error {
	for _, name := range m.opts.VHosts {
		err := m.from.API.do(ctx, http.MethodGet, apiPath("vhosts", name), nil, nil)
		if hasStatus(err, http.StatusNotFound) {
			return fmt.Errorf("the source has no virtual host '%s'", name)
		}
		if err != nil {
			return fmt.Errorf("look up virtual host '%s' at the source: %w", name, advised(err, sourceOption))
		}
	}
	return nil
}

func (m *migration) say(format string, args ...any) {
	m.opts.Watch(Event{Text: fmt.Sprintf(format, args...)})
}

// chosenVHost says whether a vhost is one of those asked for.
func (m *migration) chosenVHost(name string) bool {
	return len(m.opts.VHosts) == 0 || slices.Contains(m.opts.VHosts, name)
}

// chosen says whether a queue is one of those asked for.
func (m *migration) chosen(vhost, name string) bool {
	matches := func(pattern string) bool { return matchName(pattern, name) }
	return m.chosenVHost(vhost) && (len(m.opts.Only) == 0 || slices.ContainsFunc(m.opts.Only, matches)) &&
		!slices.ContainsFunc(m.opts.Skip, matches)
}

func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if p == "" {
			return fmt.Errorf("an empty pattern matches no queue; give a name, in which * stands for anything")
		}
	}
	return nil
}

// matchName says whether a name fits a pattern, in which * stands for any
// characters and ? for one.
func matchName(pattern, name string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			rest := strings.TrimLeft(pattern, "*")
			for i := range len(name) + 1 {
				if matchName(rest, name[i:]) {
					return true
				}
			}
			return false
		case '?':
			if name == "" {
				return false
			}
		default:
			if name == "" || name[0] != pattern[0] {
				return false
			}
		}
		pattern, name = pattern[1:], name[1:]
	}
	return name == ""
}

// user is the name that an AMQP URI logs in by.
func (e Endpoint) user() string {
	uri, err := amqp.ParseURI(e.AMQP)
	if err != nil {
		return ""
	}
	return uri.Username
}

// dial connects to a vhost of the endpoint. The connection has the mark among its
// properties.
func (e Endpoint) dial(vhost, mark string) (*amqp.Connection, error) {
	uri, err := amqp.ParseURI(e.AMQP)
	if err != nil {
		return nil, fmt.Errorf("the URI of the broker is wrong: %w; it looks like amqp://user:password@host:5672", err)
	}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("leveret migrate")
	properties["leveret_migration"] = mark
	conn, err := amqp.DialConfig(e.AMQP, amqp.Config{Vhost: vhost, Heartbeat: 30 * time.Second, Properties: properties})
	if err != nil {
		return nil, fmt.Errorf("connect to vhost '%s' at %s:%d as %s: %w", vhost, uri.Host, uri.Port, uri.Username, err)
	}
	return conn, nil
}
