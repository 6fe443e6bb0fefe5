package vhost

import (
	"slices"
	"testing"

	"github.com/leveretmq/leveret/message"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/queue"
)

func (q *fakeQueue) lastPolicy() queue.Policy {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.policies) == 0 {
		return queue.Policy{}
	}
	return q.policies[len(q.policies)-1]
}

func setPolicy(t testing.TB, v *VHost, p Policy, operator bool) {
	t.Helper()
	if err := v.SetPolicy(System, p, operator); err != nil {
		t.Fatal(err)
	}
}

func TestPolicyValidation(t *testing.T) {
	v := newVHost(t)
	valid := queue.Definition{"max-length": 1}
	for _, tt := range []struct {
		policy   Policy
		operator bool
		text     string
	}{
		{Policy{Pattern: `(?<!a)b\1`, Definition: valid}, false, `pattern should be regular expression but is invalid: {"reference to non-existent subpattern",9}`},
		{Policy{Pattern: "(", Definition: valid}, false, `pattern should be regular expression but is invalid: {"missing )",1}`},
		{Policy{ApplyTo: "zork", Definition: valid}, false,
			"apply-to 'zork' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'"},
		{Policy{Pattern: "(", ApplyTo: "zork", Definition: queue.Definition{"max-length": -1}}, false, "-1 is not a valid maximum length\n" +
			"apply-to 'zork' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'\n" +
			`pattern should be regular expression but is invalid: {"missing )",1}`},
		{Policy{}, false, "no policy provided"},
		{Policy{Definition: queue.Definition{"foo": 1}}, false, "[{<<\"foo\">>,1}] are not recognised policy settings"},
		{Policy{Definition: queue.Definition{"max-length": -1}}, false, "-1 is not a valid maximum length"},
		{Policy{Definition: queue.Definition{"message-ttl": "a"}}, false, `<<"a">> is not a valid message TTL`},
		{Policy{Definition: queue.Definition{"dead-letter-exchange": "x"}}, true,
			`[{<<"dead-letter-exchange">>,<<"x">>}] are not recognised policy settings`},
	} {
		wantError(t, v.SetPolicy(System, tt.policy, tt.operator), 406, "Validation failed\n\n"+tt.text)
	}
	wantError(t, v.ClearPolicy(System, "none", false), 404, "no policy 'none' in vhost '/'")
	wantError(t, v.ClearPolicy(System, "none", true), 404, "no operator policy 'none' in vhost '/'")
}

func TestFederationIsNotedOnce(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	s, err := Open(Config{Store: newFakeStore(), Log: zap.New(core), Factories: map[string]queue.Factory{queue.Classic: fakeFactory}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := s.Get("/")
	setPolicy(t, v, Policy{Name: "a", Definition: queue.Definition{"max-length": 1}}, false)
	if logs.Len() != 0 {
		t.Errorf("logged %v of a policy without federation", logs.All())
	}
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	for _, key := range []string{"federation-upstream-set", "federation-upstream", "federation-upstream-pattern"} {
		setPolicy(t, v, Policy{Name: key, Priority: 1, Definition: queue.Definition{key: "all", "max-length": 2}}, false)
	}
	if got := logs.Len(); got != 1 {
		t.Errorf("%d lines, want one", got)
	}
	if p := q.lastPolicy(); p.MaxLength != 2 || p.Definition["federation-upstream"] != "all" {
		t.Errorf("queue has policy %+v, want one with a federation key and max-length 2", p)
	}
}

func TestPolicyOfAQueue(t *testing.T) {
	v := newVHost(t)
	old := declareQueue(t, v, QueueDeclare{Name: "q.old"})
	other := declareQueue(t, v, QueueDeclare{Name: "other"})
	setPolicy(t, v, Policy{Name: "low", Pattern: "^q\\.", Priority: 1, Definition: queue.Definition{"max-length": 10}}, false)
	if p := old.lastPolicy(); p.Name != "low" || p.MaxLength != 10 {
		t.Errorf("existing queue has policy %+v", p)
	}
	setPolicy(t, v, Policy{Name: "high", Pattern: "q", Priority: 2, Definition: queue.Definition{"message-ttl": 7}}, false)
	if p := old.lastPolicy(); p.Name != "high" || p.MaxLength != queue.None || p.MessageTTL != 7 {
		t.Errorf("a policy of higher priority gives %+v; definitions must not be joined", p)
	}
	setPolicy(t, v, Policy{Name: "op", Pattern: ".*", Definition: queue.Definition{"message-ttl": 5}}, true)
	if p := old.lastPolicy(); p.Name != "high" || p.Operator != "op" || p.MessageTTL != 5 {
		t.Errorf("with an operator policy: %+v", p)
	}
	if p := declareQueue(t, v, QueueDeclare{Name: "q.new"}).lastPolicy(); p.Name != "high" || p.Operator != "op" {
		t.Errorf("new queue has policy %+v", p)
	}
	if err := v.ClearPolicy(System, "high", false); err != nil {
		t.Fatal(err)
	}
	if p := old.lastPolicy(); p.Name != "low" {
		t.Errorf("after the higher one was cleared: %+v", p)
	}
	if p := other.lastPolicy(); p.Name != "" || p.Operator != "op" {
		t.Errorf("a queue that only the operator policy fits has %+v", p)
	}
	n := len(old.policies)
	setPolicy(t, v, Policy{Name: "elsewhere", Pattern: "^zzz", Definition: queue.Definition{"max-length": 1}}, false)
	if len(old.policies) != n {
		t.Error("a policy that does not apply was given to the queue")
	}
	info, _ := v.QueueInfo("q.old")
	if info.Policy != "low" || info.Operator != "op" || len(info.Effective) != 2 {
		t.Errorf("QueueInfo says %q, %q, %v", info.Policy, info.Operator, info.Effective)
	}
	var names []string
	for _, p := range v.Policies(false) {
		names = append(names, p.Name)
	}
	if want := []string{"elsewhere", "low"}; !slices.Equal(names, want) {
		t.Errorf("policies are %q, want %q", names, want)
	}
}

func TestPolicyAppliesTo(t *testing.T) {
	classic := &queueEntry{spec: queue.Spec{Name: "q", Arguments: &queue.Arguments{Type: "classic"}}}
	quorum := &queueEntry{spec: queue.Spec{Name: "q", Arguments: &queue.Arguments{Type: "quorum"}}}
	stream := &queueEntry{spec: queue.Spec{Name: "q", Arguments: &queue.Arguments{Type: "stream"}}}
	length := queue.Definition{"max-length-bytes": 1}
	for _, tt := range []struct {
		applyTo                 string
		definition              queue.Definition
		classic, quorum, stream bool
	}{
		{"all", length, true, true, true},
		{"queues", length, true, true, true},
		{"exchanges", length, false, false, false},
		{"classic_queues", length, true, false, false},
		{"quorum_queues", length, false, true, false},
		{"streams", length, false, false, true},
		{"queues", queue.Definition{"max-length": 1, "max-in-memory-length": 1}, false, true, false}, // one key that is not supported
	} {
		p := Policy{ApplyTo: tt.applyTo, Definition: tt.definition}
		if err := p.validate(false); err != nil {
			t.Fatal(err)
		}
		if a, b, c := p.fitsQueue(classic), p.fitsQueue(quorum), p.fitsQueue(stream); a != tt.classic || b != tt.quorum || c != tt.stream {
			t.Errorf("%s %v: fits classic %v, quorum %v, stream %v", tt.applyTo, tt.definition, a, b, c)
		}
	}
}

func TestAlternateExchangeByPolicy(t *testing.T) {
	v := newVHost(t)
	declareExchange(t, v, ExchangeDeclare{Name: "x", Type: "direct"})
	declareExchange(t, v, ExchangeDeclare{Name: "x.arg", Type: "direct", Arguments: args("alternate-exchange", "none")})
	q := declareQueue(t, v, QueueDeclare{Name: "q"})
	bindQueue(t, v, "q", "amq.fanout", "")
	p := v.NewPublisher()
	routed := func(x string) bool {
		return p.Add(route(t, p, x, "k"), &message.Message{Envelope: &message.Envelope{Exchange: x, RoutingKey: "k"}}, nil, 0)
	}
	if routed("x") {
		t.Fatal("routed without a policy")
	}
	setPolicy(t, v, Policy{Name: "ae", Pattern: "^x", Definition: queue.Definition{"alternate-exchange": "amq.fanout"}}, false)
	if !routed("x") {
		t.Error("not routed with the policy")
	}
	if routed("x.arg") {
		t.Error("the argument does not win")
	}
	declareExchange(t, v, ExchangeDeclare{Name: "x.new", Type: "direct"})
	if !routed("x.new") {
		t.Error("the policy does not apply to a new exchange")
	}
	if info, _ := v.ExchangeInfo("x"); info.Policy != "ae" {
		t.Errorf("ExchangeInfo says policy %q", info.Policy)
	}
	if err := v.ClearPolicy(System, "ae", false); err != nil {
		t.Fatal(err)
	}
	if routed("x") {
		t.Error("routed after the policy was cleared")
	}
	p.Flush()
	if got := len(q.messages()); got != 2 {
		t.Errorf("the queue has %d messages, want 2", got)
	}
}

// A queue over its new limit publishes its dead letters while the policy is set.
func TestPolicyMayCauseDeadLetters(t *testing.T) {
	var v *VHost
	s, err := Open(Config{Store: newFakeStore(), Factories: map[string]queue.Factory{
		queue.Classic: func(env queue.Env, spec queue.Spec) (queue.Queue, error) {
			return &trimmingQueue{fakeQueue{name: spec.Name, spec: spec, env: env}}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	v, _ = s.Get("/")
	for _, name := range []string{"work", "dead"} {
		if _, err := v.DeclareQueue(System, QueueDeclare{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, v, "", "work", "m")
	setPolicy(t, v, Policy{Name: "p", Pattern: "^work$", Definition: queue.Definition{"max-length": 0}}, false)
	dead, _ := v.Queue(System, "dead")
	if got := dead.(*trimmingQueue).bodies(); !slices.Equal(got, []string{"m"}) {
		t.Errorf("dead letters are %q", got)
	}
}

// trimmingQueue drops everything when it gets a policy.
type trimmingQueue struct{ fakeQueue }

func (q *trimmingQueue) SetPolicy(queue.Policy) {
	q.die(queue.Target{Key: "dead", HasKey: true}, queue.ReasonMaxlen)
}
