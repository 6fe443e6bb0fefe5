package broker

import (
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"github.com/leveretmq/leveret/config"
)

// logLines consumes the log lines of a level; # is all.
func logLines(t *testing.T, ch *amqp091.Channel, level string) <-chan amqp091.Delivery {
	t.Helper()
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(q.Name, level, "amq.rabbitmq.log", false, nil); err != nil {
		t.Fatal(err)
	}
	lines, err := ch.Consume(q.Name, "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// nextLine waits for a log line.
func nextLine(t *testing.T, lines <-chan amqp091.Delivery) amqp091.Delivery {
	t.Helper()
	select {
	case d := <-lines:
		return d
	case <-time.After(time.Minute):
		t.Fatal("no log line arrived within a minute")
		return amqp091.Delivery{}
	}
}

func TestLogLinesArePublished(t *testing.T) {
	b := New(testConfig(t), nil)
	addr, err := b.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	conn, err := amqp091.Dial("amqp://guest:guest@" + addr.String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	lines := logLines(t, ch, "warning")
	other, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.QueueDeclarePassive("no such queue", false, false, false, false, nil); err == nil {
		t.Fatal("a passive declare of a missing queue succeeded")
	}
	d := nextLine(t, lines)
	if d.RoutingKey != "warning" || d.ContentType != "text/plain" || !strings.Contains(string(d.Body), "no queue 'no such queue'") {
		t.Errorf("got key %q, type %q, body %q; want the warning of the closed channel", d.RoutingKey, d.ContentType, d.Body)
	}
}

// A level that is set while the broker runs counts for the exchange, too.
func TestLogExchangeFollowsSetLogLevel(t *testing.T) {
	cfg := testConfig(t)
	cfg.InMemory, cfg.LogLevels = true, map[string]config.LogLevel{"user": config.Error}
	b := New(cfg, nil)
	b.LogLevel = func(_, _ string) error { return nil }
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	ch := channel(t, b)
	lines := logLines(t, ch, "#")
	user := b.log.Named("user")
	setLevel := func(category, level string) {
		if err := b.SetLogLevel(category, level); err != nil {
			t.Fatal(err)
		}
	}
	user.Warn("user: unheard, as configured")
	setLevel("default", "error")
	b.log.Warn("unheard")
	b.log.Error("first")
	setLevel("user", "debug")
	user.Debug("second")
	setLevel("", "critical")
	user.Error("unheard")
	setLevel("", "debug")
	b.log.Debug("last")
	for _, want := range []string{"first", "second", "log level changed", "last"} {
		if d := nextLine(t, lines); !strings.Contains(string(d.Body), want) {
			t.Errorf("line %q, want %q", d.Body, want)
		}
	}
}

// The lines look as log.exchange.formatter says (RabbitMQ 4.0).
func TestLogExchangeHasALookOfItsOwn(t *testing.T) {
	cfg := testConfig(t)
	cfg.InMemory, cfg.LogExchangeFormat, cfg.LogExchangeLevelName = true, config.JSON, "uc3"
	cfg.LogExchangeStyle = config.LogStyle{
		Fields:    []config.LogField{{Name: "msg", As: "text"}, {Name: "level", As: "level"}, {Name: "verbosity", As: "n"}, {Name: "*"}},
		Verbosity: map[string]int{"warning": 4},
	}
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	ch := channel(t, b)
	lines := logLines(t, ch, "warning")
	b.log.Warn("one thing", zap.String("left", "out"))
	d := nextLine(t, lines)
	if got, want := strings.TrimSpace(string(d.Body)), `{"level":"WRN","text":"one thing","n":4}`; got != want {
		t.Errorf("line %s, want %s", got, want)
	}
	if d.ContentType != "application/json" {
		t.Errorf("content type %q, want application/json", d.ContentType)
	}
}
