package vhost

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/queue"
)

// wantError fails unless err is the Error with this code and text, or nil for
// the code 0.
func wantError(t testing.TB, err error, code frames.Code, text string) {
	t.Helper()
	if code == 0 {
		if err != nil {
			t.Errorf("got error %v, want none", err)
		}
		return
	}
	e, ok := errors.AsType[*frames.Error](err)
	if !ok {
		t.Errorf("got error %v, want %d %q", err, code, text)
		return
	}
	if e.Code != code || e.Text != text {
		t.Errorf("got %d %q\nwant %d %q", e.Code, e.Text, code, text)
	}
}

func args(pairs ...any) frames.Table {
	var t frames.Table
	for i := 0; i < len(pairs); i += 2 {
		t = append(t, frames.Field{Name: pairs[i].(string), Value: pairs[i+1]})
	}
	return t
}

func TestDeclareExchange(t *testing.T) {
	v := newVHost(t)
	declareExchange(t, v, ExchangeDeclare{Name: "d", Type: "direct", Durable: true})
	declareExchange(t, v, ExchangeDeclare{Name: "ae", Type: "direct", Arguments: args("alternate-exchange", "later")})
	for _, tt := range []struct {
		name    string
		declare ExchangeDeclare
		code    frames.Code
		text    string
	}{
		{"new", ExchangeDeclare{Name: "n1", Type: "fanout"}, 0, ""},
		{"same again", ExchangeDeclare{Name: "d", Type: "direct", Durable: true}, 0, ""},
		{"other arguments do not count", ExchangeDeclare{Name: "d", Type: "direct", Durable: true, Arguments: args("x", int32(1))}, 0, ""},
		{"unknown type", ExchangeDeclare{Name: "n2", Type: "nosuch"}, 406, "unknown exchange type 'nosuch'"},
		{"unknown type of one that exists", ExchangeDeclare{Name: "d", Type: "nosuch"}, 406, "unknown exchange type 'nosuch'"},
		{"unknown type comes before the default exchange", ExchangeDeclare{Type: "nosuch"}, 406, "unknown exchange type 'nosuch'"},
		{"default exchange", ExchangeDeclare{Type: "direct"}, 403, "operation not permitted on the default exchange"},
		{"default exchange passive", ExchangeDeclare{Type: "direct", Passive: true}, 403, "operation not permitted on the default exchange"},
		{"reserved", ExchangeDeclare{Name: "amq.foo", Type: "direct"}, 403, "exchange name 'amq.foo' contains reserved prefix 'amq.*'"},
		{"predeclared, equivalent", ExchangeDeclare{Name: "amq.topic", Type: "topic", Durable: true}, 0, ""},
		{"predeclared, internal", ExchangeDeclare{Name: "amq.rabbitmq.trace", Type: "topic", Durable: true, Internal: true}, 0, ""},
		{"predeclared, not internal", ExchangeDeclare{Name: "amq.rabbitmq.trace", Type: "topic", Durable: true}, 406,
			"inequivalent arg 'internal' for exchange 'amq.rabbitmq.trace' in vhost '/': received 'false' but current is 'true'"},
		{"type differs", ExchangeDeclare{Name: "d", Type: "fanout", Durable: true}, 406,
			"inequivalent arg 'type' for exchange 'd' in vhost '/': received 'fanout' but current is 'direct'"},
		{"durable differs", ExchangeDeclare{Name: "d", Type: "direct"}, 406,
			"inequivalent arg 'durable' for exchange 'd' in vhost '/': received 'false' but current is 'true'"},
		{"alternate differs", ExchangeDeclare{Name: "ae", Type: "direct"}, 406,
			"inequivalent arg 'alternate-exchange' for exchange 'ae' in vhost '/': received none but current is the value 'later' of type 'longstr'"},
		{"alternate of a wrong type", ExchangeDeclare{Name: "n3", Type: "direct", Arguments: args("alternate-exchange", int32(1))}, 406,
			"invalid type 'signedint' for arg 'alternate-exchange' in exchange 'n3' in vhost '/'"},
		{"passive", ExchangeDeclare{Name: "d", Passive: true}, 0, ""},
		{"passive with an unknown type", ExchangeDeclare{Name: "d", Type: "nosuch", Passive: true}, 0, ""},
		{"passive missing", ExchangeDeclare{Name: "none", Type: "direct", Passive: true}, 404, "no exchange 'none' in vhost '/'"},
		{"passive missing, reserved", ExchangeDeclare{Name: "amq.none", Passive: true}, 404, "no exchange 'amq.none' in vhost '/'"},
		{"line breaks are not part of a name", ExchangeDeclare{Name: "d\r\n", Type: "direct", Durable: true}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantError(t, v.DeclareExchange(System, tt.declare), tt.code, tt.text)
		})
	}
}

func TestDeleteExchange(t *testing.T) {
	v := newVHost(t)
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct"})
	declareExchange(t, v, ExchangeDeclare{Name: "to", Type: "direct"})
	if err := v.BindExchange(System, "to", "x", "k", nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		ifUnused bool
		code     frames.Code
		text     string
	}{
		{"none", false, 0, ""},
		{"", false, 403, "operation not permitted on the default exchange"},
		{"amq.direct", false, 403, "deletion of system exchange 'amq.direct' in vhost '/' not allowed"},
		{"amq.none", false, 403, "deletion of system exchange 'amq.none' in vhost '/' not allowed"},
		{"x", true, 406, "exchange 'x' in vhost '/' in use"},
		{"to", true, 0, ""}, // a binding to it is no use
		{"x", true, 0, ""},  // its only binding went with "to"
	} {
		wantError(t, v.DeleteExchange(System, tt.name, tt.ifUnused), tt.code, tt.text)
	}
	if _, err := v.Exchange("x"); err == nil {
		t.Error("exchange x is still there")
	}
}

func TestDeclareQueue(t *testing.T) {
	v := newVHost(t)
	mine, other := &fakeActor{owner: "mine"}, &fakeActor{owner: "other"}
	declareQueue(t, v, QueueDeclare{Name: "d", Durable: true, Arguments: args("x-max-length", int32(5))})
	declareQueue(t, v, QueueDeclare{Name: "plain"})
	if _, err := v.DeclareQueue(mine, QueueDeclare{Name: "ex", Durable: true, Exclusive: true}); err != nil {
		t.Fatal(err)
	}
	const locked = "cannot obtain exclusive access to locked queue '%' in vhost '/'. It could be originally declared on another " +
		"connection or the exclusive property value does not match that of the original declaration."
	for _, tt := range []struct {
		name    string
		by      Actor
		declare QueueDeclare
		code    frames.Code
		text    string
	}{
		{"same again", other, QueueDeclare{Name: "d", Durable: true, Arguments: args("x-max-length", int64(5))}, 0, ""},
		{"type given", other, QueueDeclare{Name: "plain", Arguments: args("x-queue-type", "classic")}, 0, ""},
		{"type differs", other, QueueDeclare{Name: "d", Durable: true, Arguments: args("x-max-length", int32(5), "x-queue-type", "quorum")}, 406,
			"inequivalent arg 'x-queue-type' for queue 'd' in vhost '/': received 'quorum' but current is 'classic'"},
		{"durable differs", other, QueueDeclare{Name: "d"}, 406,
			"inequivalent arg 'durable' for queue 'd' in vhost '/': received 'false' but current is 'true'"},
		{"auto_delete differs", other, QueueDeclare{Name: "plain", AutoDelete: true}, 406,
			"inequivalent arg 'auto_delete' for queue 'plain' in vhost '/': received 'true' but current is 'false'"},
		{"argument differs", other, QueueDeclare{Name: "d", Durable: true, Arguments: args("x-max-length", int32(6))}, 406,
			"inequivalent arg 'x-max-length' for queue 'd' in vhost '/': received '6' but current is '5'"},
		{"argument missing", other, QueueDeclare{Name: "d", Durable: true}, 406,
			"inequivalent arg 'x-max-length' for queue 'd' in vhost '/': received none but current is the value '5' of type 'signedint'"},
		{"reserved", other, QueueDeclare{Name: "amq.x"}, 403, "queue name 'amq.x' contains reserved prefix 'amq.*'"},
		{"passive", other, QueueDeclare{Name: "d", Passive: true}, 0, ""},
		{"passive missing", other, QueueDeclare{Name: "none", Passive: true}, 404, "no queue 'none' in vhost '/'"},
		{"exclusive of another", other, QueueDeclare{Name: "ex", Exclusive: true}, 405, strings.Replace(locked, "%", "ex", 1)},
		{"exclusive of another, durable hides nothing", other, QueueDeclare{Name: "ex", Durable: true}, 405, strings.Replace(locked, "%", "ex", 1)},
		{"exclusive of another, passive", other, QueueDeclare{Name: "ex", Passive: true}, 405, strings.Replace(locked, "%", "ex", 1)},
		{"own exclusive as not exclusive", mine, QueueDeclare{Name: "ex"}, 405, strings.Replace(locked, "%", "ex", 1)},
		{"plain one as exclusive", mine, QueueDeclare{Name: "plain", Exclusive: true}, 405, strings.Replace(locked, "%", "plain", 1)},
		{"own exclusive, durable is ignored", mine, QueueDeclare{Name: "ex", Exclusive: true}, 0, ""},
		{"own exclusive, passive", mine, QueueDeclare{Name: "ex", Passive: true}, 0, ""},
		{"invalid argument", other, QueueDeclare{Name: "n1", Arguments: args("x-expires", int32(0))}, 406,
			"invalid arg 'x-expires' for queue 'n1' in vhost '/': {value_zero,0}"},
		{"dead letter exchange of a wrong type", other, QueueDeclare{Name: "n2", Arguments: args("x-dead-letter-exchange", int32(1))}, 406,
			"invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'n2' in vhost '/'"},
		{"type that is not built in", other, QueueDeclare{Name: "n3", Durable: true, Arguments: args("x-queue-type", "stream")}, 406,
			"invalid arg 'x-queue-type' for queue 'n3' in vhost '/': \"unsupported queue type 'stream'\""},
		{"server-named quorum queue", other, QueueDeclare{Durable: true, Arguments: args("x-queue-type", "quorum")}, 406,
			"Cannot declare a server-named queue for type rabbit_quorum_queue"},
		{"line breaks are not part of a name", other, QueueDeclare{Name: "pl\nain\r"}, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := v.DeclareQueue(tt.by, tt.declare)
			wantError(t, err, tt.code, tt.text)
		})
	}
}

func TestServerNamedQueue(t *testing.T) {
	v := newVHost(t)
	a, b := declareQueue(t, v, QueueDeclare{}), declareQueue(t, v, QueueDeclare{})
	if name := a.Name(); !strings.HasPrefix(name, "amq.gen-") || len(name) != len("amq.gen-")+22 {
		t.Errorf("server-named queue is called %q", name)
	}
	if a.Name() == b.Name() {
		t.Errorf("two queues are called %q", a.Name())
	}
	_, err := v.DeclareQueue(System, QueueDeclare{Name: a.Name(), Passive: true})
	wantError(t, err, 0, "")
}

func TestDefaultQueueType(t *testing.T) {
	s := open(t, newFakeStore())
	if err := s.Create("quorum", Options{DefaultQueueType: "quorum"}); err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("quorum")
	for _, tt := range []struct {
		name    string
		declare QueueDeclare
		want    string
	}{
		{"durable", QueueDeclare{Durable: true}, "quorum"},
		{"transient", QueueDeclare{}, "classic"},
		{"exclusive", QueueDeclare{Durable: true, Exclusive: true}, "classic"},
		{"auto-delete", QueueDeclare{Durable: true, AutoDelete: true}, "classic"},
		{"undefined", QueueDeclare{Durable: true, Arguments: args("x-queue-type", "undefined")}, "quorum"},
		{"explicit", QueueDeclare{Durable: true, Arguments: args("x-queue-type", "classic")}, "classic"},
	} {
		tt.declare.Name = tt.name
		q := declareQueue(t, v, tt.declare)
		if got, _ := q.spec.Arguments.Table.Lookup("x-queue-type"); got != tt.want || q.Type() != tt.want {
			t.Errorf("%s: queue is of type %s with argument %v, want %s", tt.name, q.Type(), got, tt.want)
		}
	}
	_, err := v.DeclareQueue(System, QueueDeclare{Durable: true})
	wantError(t, err, 406, "Cannot declare a server-named queue for type rabbit_quorum_queue")
	_, err = v.DeclareQueue(System, QueueDeclare{Name: "durable", Durable: true, Arguments: args("x-queue-type", "classic")})
	wantError(t, err, 406, "inequivalent arg 'x-queue-type' for queue 'durable' in vhost 'quorum': received 'classic' but current is 'quorum'")
	wantError(t, s.Create("bad", Options{DefaultQueueType: "bogus"}), 406,
		"unsupported default queue type 'bogus'; it is one of classic, quorum and stream")
}

func TestExclusiveQueueIsLockedForOthers(t *testing.T) {
	v := newVHost(t)
	mine, other := &fakeActor{owner: "mine"}, &fakeActor{owner: "other"}
	if _, err := v.DeclareQueue(mine, QueueDeclare{Name: "ex", Exclusive: true}); err != nil {
		t.Fatal(err)
	}
	text := v.errLocked("ex").(*frames.Error).Text
	_, err := v.Queue(other, "ex")
	wantError(t, err, 405, text)
	_, err = v.DeleteQueue(other, "ex", queue.Condition{})
	wantError(t, err, 405, text)
	_, err = v.PurgeQueue(other, "ex")
	wantError(t, err, 405, text)
	wantError(t, v.BindQueue(other, "ex", "amq.direct", "k", nil), 405, text)
	wantError(t, v.UnbindQueue(other, "ex", "amq.direct", "k", nil), 0, "")
	if err := v.BindQueue(mine, "ex", "amq.direct", "k", nil); err != nil {
		t.Fatal(err)
	}
	wantError(t, v.UnbindQueue(other, "ex", "amq.direct", "k", nil), 405, text)
	if !publish(t, v, "", "ex", "m") {
		t.Error("others cannot publish to an exclusive queue")
	}
	v.ReleaseOwner("other")
	if _, err := v.Queue(mine, "ex"); err != nil {
		t.Errorf("queue went with another connection: %v", err)
	}
	v.ReleaseOwner("mine")
	_, err = v.Queue(mine, "ex")
	wantError(t, err, 404, "no queue 'ex' in vhost '/'")
	_, err = v.DeclareQueue(other, QueueDeclare{Name: "ex", Exclusive: true})
	wantError(t, err, 0, "")
}

func TestChecksAskInOrder(t *testing.T) {
	v := newVHost(t)
	declareQueue(t, v, QueueDeclare{Name: "q"})
	declareExchange(t, v, ExchangeDeclare{Name: "top", Type: "topic"})
	for _, tt := range []struct {
		name string
		do   func(by Actor) error
		want []string
	}{
		{"exchange.declare", func(by Actor) error { return v.DeclareExchange(by, ExchangeDeclare{Name: "n1", Type: "direct"}) },
			[]string{"configure exchange n1"}},
		{"exchange.declare with alternate", func(by Actor) error {
			return v.DeclareExchange(by, ExchangeDeclare{Name: "n2", Type: "direct", Arguments: args("alternate-exchange", "ae")})
		}, []string{"configure exchange n2", "read exchange n2", "write exchange ae"}},
		{"exchange.declare with alternate again", func(by Actor) error {
			return v.DeclareExchange(by, ExchangeDeclare{Name: "n2", Type: "direct", Arguments: args("alternate-exchange", "ae")})
		}, []string{"configure exchange n2"}},
		{"exchange.delete", func(by Actor) error { return v.DeleteExchange(by, "n1", false) }, []string{"configure exchange n1"}},
		{"passive", func(by Actor) error {
			_, err := v.DeclareQueue(by, QueueDeclare{Name: "q", Passive: true})
			return err
		}, nil},
		{"queue.declare", func(by Actor) error {
			_, err := v.DeclareQueue(by, QueueDeclare{Name: "q2"})
			return err
		}, []string{"configure queue q2"}},
		{"queue.declare with dead letters", func(by Actor) error {
			_, err := v.DeclareQueue(by, QueueDeclare{Name: "q3", Arguments: args("x-dead-letter-exchange", "")})
			return err
		}, []string{"configure queue q3", "read queue q3", "write exchange "}},
		{"queue.delete", func(by Actor) error {
			_, err := v.DeleteQueue(by, "q3", queue.Condition{})
			return err
		}, []string{"configure queue q3"}},
		{"queue.purge", func(by Actor) error {
			_, err := v.PurgeQueue(by, "q")
			return err
		}, []string{"read queue q"}},
		{"queue.bind", func(by Actor) error { return v.BindQueue(by, "q", "amq.direct", "k", nil) },
			[]string{"write queue q", "read exchange amq.direct"}},
		{"queue.bind to a topic", func(by Actor) error { return v.BindQueue(by, "q", "top", "a.#", nil) },
			[]string{"write queue q", "read exchange top", "read topic top a.#"}},
		{"queue.unbind from a topic", func(by Actor) error { return v.UnbindQueue(by, "q", "top", "a.#", nil) },
			[]string{"write queue q", "read exchange top", "read topic top a.#"}},
		{"exchange.bind", func(by Actor) error { return v.BindExchange(by, "n2", "top", "k", nil) },
			[]string{"write exchange n2", "read exchange top", "read topic top k"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			by := &fakeActor{}
			if err := tt.do(by); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(by.asked, tt.want) {
				t.Errorf("asked %q, want %q", by.asked, tt.want)
			}
			for _, what := range tt.want {
				by := &fakeActor{refuse: map[string]bool{what: true}}
				if tt.name == "queue.declare with dead letters" {
					v.DeleteQueue(System, "q3", queue.Condition{})
				} else if tt.name == "exchange.declare with alternate" {
					v.DeleteExchange(System, "n2", false)
				}
				if err := tt.do(by); err != errRefused(what) {
					t.Errorf("with %s refused the error is %v", what, err)
				}
			}
			if strings.Contains(tt.name, "alternate") {
				tt.do(System)
			}
		})
	}
}

func TestRefusedComesBeforeMissing(t *testing.T) {
	v := newVHost(t)
	by := &fakeActor{refuse: map[string]bool{"configure queue none": true, "read queue none": true, "configure exchange none": true}}
	_, err := v.DeleteQueue(by, "none", queue.Condition{})
	if err != errRefused("configure queue none") {
		t.Errorf("delete of a missing queue: %v", err)
	}
	if _, err = v.PurgeQueue(by, "none"); err != errRefused("read queue none") {
		t.Errorf("purge of a missing queue: %v", err)
	}
	if err = v.DeleteExchange(by, "none", false); err != errRefused("configure exchange none") {
		t.Errorf("delete of a missing exchange: %v", err)
	}
}

func TestQueueLimit(t *testing.T) {
	v := newVHost(t)
	if err := v.SetLimit(System, "max-queues", 1); err != nil {
		t.Fatal(err)
	}
	declareQueue(t, v, QueueDeclare{Name: "l1"})
	declareQueue(t, v, QueueDeclare{Name: "l1"})
	_, err := v.DeclareQueue(System, QueueDeclare{Name: "l2"})
	wantError(t, err, 406, "cannot declare queue 'l2': queue limit in vhost '/' (1) is reached")
	_, err = v.DeclareQueue(System, QueueDeclare{Name: "l2", Arguments: frames.Table{{Name: "x-message-ttl", Value: int32(-1)}}})
	wantError(t, err, 406, "invalid arg 'x-message-ttl' for queue 'l2' in vhost '/': {value_negative,-1}")
	if err := v.ClearLimit(System, "max-queues"); err != nil {
		t.Fatal(err)
	}
	declareQueue(t, v, QueueDeclare{Name: "l2"})
}

func TestConnectionLimit(t *testing.T) {
	v := newVHost(t)
	if err := v.SetLimit(System, "max-connections", 1); err != nil {
		t.Fatal(err)
	}
	wantError(t, v.ConnectionOpened("joe"), 0, "")
	wantError(t, v.ConnectionOpened("joe"), 530, "access to vhost '/' refused for user 'joe': connection limit (1) is reached")
	v.ConnectionClosed()
	wantError(t, v.ConnectionOpened("joe"), 0, "")
	if err := v.SetLimit(System, "max-connections", -1); err != nil {
		t.Fatal(err)
	}
	wantError(t, v.ConnectionOpened("joe"), 0, "")
	if got := v.connections.Load(); got != 2 {
		t.Errorf("%d connections are counted, want 2", got)
	}
}
