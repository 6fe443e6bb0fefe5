// Package interop_test checks what clients see, with amqp091-go and with raw
// frames. By default the broker runs in this process. With AMQP_URL set the
// same tests run against the broker there:
//
//	AMQP_URL=amqp://guest:guest@127.0.0.1:5672/ go test -tags foreign ./interop_test
//
// The tag leaves out the tests that start the leveret program and those where
// Leveret deliberately differs from RabbitMQ 4.0. All others pass on RabbitMQ
// 4.0.5; a new one must pass there first.
package interop_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// patience is how long a test waits for what must come: long, as the machine may
// be slow and busy.
const patience = time.Minute

// What TestMain sets before the tests run.
var (
	brokerURL string // the broker under test
	workDir   string // a folder that is removed after the tests
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests against AMQP_URL, or a broker of its own.
func run(m *testing.M) (code int, err error) {
	if workDir, err = os.MkdirTemp("", "leveret-interop-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(workDir)) }()
	if brokerURL = os.Getenv("AMQP_URL"); brokerURL != "" {
		return m.Run(), nil
	}
	return runOwn(m)
}

// brokerAddr is host:port of the broker under test.
func brokerAddr(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(brokerURL)
	if err != nil {
		t.Fatal(err)
	}
	if u.Port() == "" {
		return u.Host + ":5672"
	}
	return u.Host
}

// dial opens a connection that ends with the test.
func dial(t *testing.T, cfg amqp.Config) *amqp.Connection {
	t.Helper()
	conn, err := amqp.DialConfig(brokerURL, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // fails where the test has ended it
	return conn
}
