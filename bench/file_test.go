package bench

import (
	"strings"
	"testing"
	"time"
)

func TestScenarioFileErrors(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"", "f.yaml: no scenario in it; `leveret bench show fire-1K` prints one to start from"},
		{"- a\n", "f.yaml:1: a scenario is lines of `key: value`"},
		{"size: 1K\nprefech: 5\n", `f.yaml:2: unknown key "prefech"; did you mean "prefetch"?`},
		{"ack_every: 5\n", `f.yaml:1: unknown key "ack_every"; did you mean "ack-every"?`},
		{"zzzz: 5\n", "f.yaml:1: unknown key \"zzzz\"; the keys are the flags of `leveret bench --help`"},
		{"size: 1K\n\nsize: 2K\n", "f.yaml:3: size is set twice, first in line 1"},
		{"durable: perhaps\n", `f.yaml:1: durable: "perhaps" is not true or false`},
		{"name: a b\n", `f.yaml:1: name "a b": a name has 1 to 60 letters, digits, '-', '_' and '.'`},
		{"confirm: -1\n", "f.yaml:1: confirm: -1 is negative"},
		{"duration: 30\n", `f.yaml:1: duration: "30" is not a duration; write 500us, 10ms, 30s or 5m`},
		{"publishers: [1, 2]\n", "f.yaml:1: publishers: line 1 is not a single value"},
		{"queue-args: {a: {b: c}}\n", "f.yaml:1: queue-args: line 1 is not a single value"},
		{"routing-key: ['a,b']\n", `f.yaml:1: routing-key: "a,b" has a comma in it, which separates values`},
		{"kind: flo\n", `f.yaml:1: kind "flo" does not exist; it is one of flow, backlog, connections, connchurn, channelchurn, queuechurn`},
		{"size: 1\n---\nqueue-type: stream\nauto-ack: true\n", "f.yaml:3: auto-ack does not go with queue-type stream: streams need acks and a prefetch"},
		{"rate: 5\ntotal-rate: 5\n", "f.yaml:1: rate and total-rate exclude each other: the one is of each publisher, the other of all"},
		{"queues: 2\nqueue: q\n", `f.yaml:1: queue "q" has no %d for the numbers of 2 queues`},
		{"keys: 100k\nsize: 1M\n", "f.yaml:1: 100000 prepared messages of up to 1048576 bytes are too much memory; use fewer keys or sizes"},
		{"a: [\n", "f.yaml: line 1: did not find expected node content"},
	} {
		_, err := ParseScenarios("f.yaml", []byte(tt.file))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.file, err, tt.want)
		}
	}
}

func TestScenarioFile(t *testing.T) {
	all, err := ParseScenarios("dir/load.yaml", []byte(strings.Join([]string{
		"description: one", "size: [100, '1K:3']", "queue-args: {x-max-length: 10, x-overflow: drop-head}", "rate: 1000:30s,5000:10s",
		"durable: true", "---", "name: two", "queue: perf-%d", "from: 1", "to: 10",
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != "load" || all[1].Name != "two" {
		t.Fatalf("got %+v", all)
	}
	one, two := all[0], all[1]
	if one.Description != "one" || one.Size.String() != "100,1024:3" || formatArguments(one.QueueArgs) != "x-max-length=10,x-overflow=drop-head" ||
		one.Rate.String() != "1000:30s,5000:10s" || !one.Durable || one.Duration != 10*time.Second {
		t.Errorf("one is %+v", one)
	}
	if two.Queues != 10 || two.queueName(0) != "perf-1" || two.queueName(9) != "perf-10" {
		t.Errorf("two is %+v", two)
	}
}

func TestStandardScenarios(t *testing.T) {
	files, err := shipped.ReadDir("scenarios")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(StandardNames()) {
		t.Errorf("%d files, %d names", len(files), len(StandardNames()))
	}
	for _, name := range StandardNames() {
		sc, err := Standard(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if sc.Name != name || sc.Description == "" {
			t.Errorf("%s has the name %q and the description %q", name, sc.Name, sc.Description)
		}
	}
	if _, err := Standard("fire1K"); err == nil || err.Error() != `no scenario "fire1K"; did you mean "fire-1K"?` {
		t.Errorf("got %v", err)
	}
}

func TestTopicScenarioMatchesOneQueueEach(t *testing.T) {
	sc, err := Standard("topic-1000")
	if err != nil {
		t.Fatal(err)
	}
	f := newFan(sc, sc.bindings())
	perQueue := map[int]int{}
	for i := range 1000 {
		if n := f.of(i, sc.routingKey(i)); n != 1 {
			t.Fatalf("message %d with key %s has %d deliveries", i, sc.routingKey(i), n)
		}
	}
	for _, b := range sc.bindings() {
		perQueue[b.queue]++
	}
	if len(perQueue) != 10 || perQueue[3] != 100 {
		t.Errorf("bindings of queues %v", perQueue)
	}
}

func TestMatchTopic(t *testing.T) {
	for _, tt := range []struct {
		pattern, key string
		want         bool
	}{
		{"a.b", "a.b", true}, {"a.*", "a.b", true}, {"a.*", "a.b.c", false}, {"a.#", "a", true}, {"a.#", "a.b.c", true},
		{"#", "", true}, {"*", "", true}, {"#.c", "a.b.c", true}, {"#.c", "a.b", false}, {"a.#.c", "a.c", true},
	} {
		if got := matchTopic(strings.Split(tt.pattern, "."), strings.Split(tt.key, ".")); got != tt.want {
			t.Errorf("matchTopic(%q, %q) = %v, want %v", tt.pattern, tt.key, got, tt.want)
		}
	}
}
