package broker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/leveretmq/leveret/config"
)

// start starts a broker in memory.
func start(t *testing.T, change func(*config.Config)) *Broker {
	t.Helper()
	cfg := testConfig(t)
	cfg.InMemory = true
	change(&cfg)
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b
}

// dial connects to the first listener.
func dial(t *testing.T, b *Broker, userinfo, vhost string) (*amqp091.Connection, error) {
	t.Helper()
	conn, err := amqp091.DialConfig("amqp://"+userinfo+"@"+b.listeners[0].Addr().String(), amqp091.Config{Vhost: vhost})
	if err == nil {
		t.Cleanup(func() { conn.Close() })
	}
	return conn, err
}

func TestNetwork(t *testing.T) {
	for _, tt := range []struct {
		address string
		all     []string
		want    string
	}{
		{":5672", nil, "tcp"},
		{"localhost:5672", nil, "tcp"},
		{"0.0.0.0:5672", nil, "tcp4"},
		{"192.0.2.1:5672", nil, "tcp"},
		{"[::1]:5672", []string{"[::1]:5672", "127.0.0.1:5672"}, "tcp"},
		{"[::]:5672", []string{"[::]:5672"}, "tcp"},
		{"[::]:5672", []string{"[::]:5672", "0.0.0.0:5672"}, "tcp6"},
		{"[::]:5672", []string{"[::]:5672", "0.0.0.0:5673"}, "tcp"},
	} {
		if got := network(tt.address, tt.all); got != tt.want {
			t.Errorf("network(%s, %v) = %s, want %s", tt.address, tt.all, got, tt.want)
		}
	}
}

func TestSeveralListeners(t *testing.T) {
	core, logged := observer.New(zapcore.InfoLevel)
	cfg := testConfig(t)
	cfg.InMemory = true
	cfg.Listen = "127.0.0.1:0,127.0.0.1:0"
	cfg.TLSListen = "127.0.0.1:0"
	cfg.TLS = newAuthority(t, "root", nil).files(t.TempDir())
	b := New(cfg, zap.New(core))
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	defer stop(t, b)
	for i, kind := range []string{"TCP", "TCP", "TLS (SSL)"} {
		want := "started " + kind + " listener on " + b.listeners[i].Addr().String()
		if logged.FilterMessage(want).Len() != 1 {
			t.Errorf("the log lacks %q", want)
		}
	}
	for _, l := range b.listeners[:2] {
		conn, err := amqp091.Dial("amqp://guest:guest@" + l.Addr().String())
		if err != nil {
			t.Errorf("connect to %s: %v", l.Addr(), err)
			continue
		}
		conn.Close()
	}
}

// A second listener that cannot be opened gives the first one back.
func TestListenerThatIsTakenFreesTheOthers(t *testing.T) {
	b := start(t, func(*config.Config) {})
	cfg := testConfig(t)
	cfg.InMemory = true
	cfg.Listen = "127.0.0.1:0," + b.listeners[0].Addr().String()
	failing := New(cfg, nil)
	_, err := failing.Start()
	if err == nil || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("error %v, want port in use", err)
	}
	if len(failing.listeners) != 0 {
		t.Errorf("%d listeners are left open", len(failing.listeners))
	}
}

func TestFirstStartSettings(t *testing.T) {
	b := start(t, func(c *config.Config) {
		c.DefaultUser, c.DefaultPass, c.DefaultVHost = "root", "pw", "main"
		c.DefaultPermissions = config.Permissions{Configure: "^a", Write: ".*", Read: ".*"}
	})
	conn, err := dial(t, b, "root:pw", "main")
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("b", false, true, true, false, nil); err == nil || !strings.Contains(err.Error(), "ACCESS_REFUSED") {
		t.Errorf("declare b without the permission: error %v, want ACCESS_REFUSED", err)
	}
	if _, err := dial(t, b, "root:pw", "/"); err == nil {
		t.Error("there is a vhost / besides the default one")
	}
	if _, err := dial(t, b, "guest:guest", "main"); err == nil {
		t.Error("there is a user guest besides the default one")
	}
}

func TestLimitsAreOffered(t *testing.T) {
	for _, tt := range []struct {
		limits                config.Limits
		heartbeat             time.Duration
		frameSize, channelMax int
	}{
		{config.Limits{Heartbeat: 7 * time.Second, FrameMax: 8192, ChannelMax: 5, MaxMessageSize: 1 << 20, HandshakeTimeout: time.Minute}, 7 * time.Second, 8192, 5},
		{config.Limits{MaxMessageSize: 1 << 20, HandshakeTimeout: time.Minute}, 90 * time.Second, 1 << 20, 65535},
	} {
		b := start(t, func(c *config.Config) { c.Limits = tt.limits })
		// The client takes the lesser of its own and the broker's.
		conn, err := amqp091.DialConfig("amqp://guest:guest@"+b.listeners[0].Addr().String(),
			amqp091.Config{Heartbeat: 90 * time.Second, FrameSize: 1 << 20, ChannelMax: 65535})
		if err != nil {
			t.Fatal(err)
		}
		got := conn.Config
		conn.Close()
		if got.Heartbeat != tt.heartbeat || got.FrameSize != tt.frameSize || int(got.ChannelMax) != tt.channelMax {
			t.Errorf("negotiated heartbeat %s, frame %d, channels %d; want %s, %d, %d",
				got.Heartbeat, got.FrameSize, got.ChannelMax, tt.heartbeat, tt.frameSize, tt.channelMax)
		}
	}
}

// Every file of a folder has definitions, whatever its name (RabbitMQ 4.0), but for
// those that are hidden; a name is no pattern.
func TestDefinitionsAtTheStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[x")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"1-users":      `{"vhosts":[{"name":"v"}],"users":[{"name":"u","password":"p","tags":""}],"permissions":[{"user":"u","vhost":"v","configure":".*","write":".*","read":".*"}]}`,
		"2-queue.JSON": `{"queues":[{"name":"q","vhost":"v","durable":true,"auto_delete":false,"arguments":{}}]}`,
		"..data":       "not definitions",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := start(t, func(c *config.Config) { c.LoadDefinitions = dir }) // without an HTTP API
	conn, err := dial(t, b, "u:p", "v")
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclarePassive("q", true, false, false, false, nil); err != nil {
		t.Errorf("the queue of the second file: %v", err)
	}
	if _, err := dial(t, b, "guest:guest", "v"); err == nil {
		t.Error("there is a default user besides those of the definitions")
	}
}

func TestWrongDefinitionsFailTheStart(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{bad: bad, bad + ".none": "--load-definitions", t.TempDir(): "has no file"} {
		cfg := testConfig(t)
		cfg.InMemory, cfg.LoadDefinitions = true, path
		if _, err := New(cfg, nil).Start(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("definitions %s: error %v, want %q in it", path, err, want)
		}
	}
}

func TestNotesAreLogged(t *testing.T) {
	core, logged := observer.New(zapcore.InfoLevel)
	cfg := testConfig(t)
	cfg.InMemory, cfg.Notes = true, []string{"r.conf:1: x is accepted and has no effect"}
	b := New(cfg, zap.New(core))
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	stop(t, b)
	if logged.FilterMessage(cfg.Notes[0]).Len() != 1 {
		t.Error("the note is not in the log")
	}
}
