package auth

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/leveretmq/leveret/frames"
)

// A Permission is one of the three things a user may do to a resource.
type Permission byte

// The permissions.
const (
	Configure Permission = iota
	Write
	Read
)

// String is the permission's name in error texts.
func (p Permission) String() string { return [...]string{"configure", "write", "read"}[p] }

// A Kind is a kind of resource.
type Kind byte

// The kinds of resources that have permissions.
const (
	Exchange Kind = iota
	Queue
)

// String is the kind's name in error texts.
func (k Kind) String() string { return [...]string{"exchange", "queue"}[k] }

// A Resource is an exchange or a queue of the virtual host in question. The
// default exchange may be given as "" or as amq.default.
type Resource struct {
	Kind Kind
	Name string
}

// checked is the name that permissions are tested against.
func (r Resource) checked() string {
	if r.Kind == Exchange && r.Name == "" {
		return "amq.default"
	}
	return r.Name
}

// Grants is what one user may do in one virtual host. It is a handle: a change
// of permissions shows in the next check through it. Checks take no lock.
type Grants struct {
	user, vhost string // immutable

	cur atomic.Pointer[rules] // never nil
}

type grantKey struct{ user, vhost string }

// rules is the state of a Grants at one time. It is immutable.
type rules struct {
	generation uint64
	granted    bool // there are permissions, if only empty ones
	row        Permissions
	patterns   [3]expression         // by Permission
	topics     map[string]topicRules // by exchange; nil if there are none
}

type topicRules struct {
	row      TopicPermissions
	patterns [3]expression // by Permission; Configure matches nothing
}

// Generation rises with every change of these grants, after it is in force: the
// result of a check may be kept while the number read before it stays the same.
func (g *Grants) Generation() uint64 { return g.cur.Load().generation }

// Granted says whether the user has access to the virtual host.
func (g *Grants) Granted() bool { return g.cur.Load().granted }

// Check refuses with a 403 what the user may not do to the resource.
func (g *Grants) Check(r Resource, p Permission) error {
	now := g.cur.Load()
	if now.patterns[p].match(r.checked()) {
		return nil
	}
	return frames.Errorf(frames.AccessRefused, "%s access to %s '%s' in vhost '%s' refused for user '%s'",
		p, r.Kind, r.checked(), g.vhost, g.user)
}

// CheckTopic refuses with a 403 a routing key (Write) or a binding key (Read)
// of a topic exchange that the user may not use. Where the user has no topic
// permissions for the exchange every key is allowed (RabbitMQ 4.0).
func (g *Grants) CheckTopic(exchange string, p Permission, key string) error {
	topic, ok := g.cur.Load().topics[exchange]
	if !ok || topic.patterns[p].match(key) {
		return nil
	}
	return frames.Errorf(frames.AccessRefused, "%s access to topic '%s' in exchange '%s' in vhost '%s' refused for user '%s'",
		p, key, exchange, g.vhost, g.user)
}

// with returns the rules with these permissions.
func (s *rules) with(row Permissions) (*rules, error) {
	next := &rules{granted: true, row: row, topics: s.topics}
	for p, expr := range []string{row.Configure, row.Write, row.Read} {
		var err error
		if next.patterns[p], err = compile(expr); err != nil {
			return nil, err
		}
	}
	return next, nil
}

// without returns the rules without permissions; topic permissions stay.
func (s *rules) without() *rules { return &rules{topics: s.topics} }

// withTopic returns the rules with these topic permissions.
func (s *rules) withTopic(row TopicPermissions) (*rules, error) {
	topic := topicRules{row: row}
	var err error
	if topic.patterns[Write], err = compileTopic(row.Write, row); err != nil {
		return nil, err
	}
	if topic.patterns[Read], err = compileTopic(row.Read, row); err != nil {
		return nil, err
	}
	next := *s
	next.topics = maps.Clone(s.topics)
	if next.topics == nil {
		next.topics = make(map[string]topicRules)
	}
	next.topics[row.Exchange] = topic
	return &next, nil
}

// withoutTopic returns the rules without topic permissions for the exchange.
func (s *rules) withoutTopic(exchange string) *rules {
	next := *s
	next.topics = maps.Clone(s.topics)
	delete(next.topics, exchange)
	return &next
}

// compileTopic compiles a topic permission with its variables replaced. The
// values are taken literally: RabbitMQ 4.0 pastes them in as they are, so that
// a user called ".*" could use every key.
func compileTopic(expr string, row TopicPermissions) (expression, error) {
	if _, err := compile(expr); err != nil {
		return expression{}, err
	}
	return compile(strings.NewReplacer("{username}", quote(row.User), "{vhost}", quote(row.VHost)).Replace(expr))
}

// quote makes an expression that matches the text, also where (?x) has blanks and
// comments ignored.
func quote(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c == '#' || unicode.IsSpace(c) {
			fmt.Fprintf(&b, `[%c]`, c)
		} else {
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return b.String()
}
