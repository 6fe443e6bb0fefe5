// Package cases_test turns what people reported of AMQP brokers and their
// clients into small tests, each with the neighbours of the fault. A comment
// names the public report. By default the broker runs in this process. With
// AMQP_URL set the same tests run against the broker there, which must have
// RabbitMQ's HTTP API on its port + 10000 (or MANAGEMENT_URL):
//
//	AMQP_URL=amqp://guest:guest@127.0.0.1:5672/ go test -tags foreign ./interop_test/cases
//
// The tag leaves out the files whose names begin with own_: tests that start
// the leveret program, and those where Leveret deliberately differs from
// RabbitMQ 4.0. All others pass on RabbitMQ 4.0.5; a new one must pass there
// first.
package cases_test

import (
	"fmt"
	"os"
	"testing"
)

// brokerURL is the broker under test, and administration how to set it up.
// TestMain sets them before the tests run.
var (
	brokerURL      string
	administration admin
)

// An admin makes what AMQP has no methods for.
type admin interface {
	putVHost(name, defaultQueueType string) error
	deleteVHost(name string) error
	limitVHost(name, limit string, n int) error
	putUser(name, password string, tags ...string) error
	deleteUser(name string) error
	limitUser(name, limit string, n int) error
	permit(user, vhost, configure, write, read string) error
	permitTopic(user, vhost, exchange, write, read string) error
	putPolicy(vhost, name string, p policy) error
	deletePolicy(vhost, name string, operator bool) error
}

// A policy as a test states it.
type policy struct {
	pattern, applyTo string
	priority         int
	definition       map[string]any
	operator         bool
}

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests against AMQP_URL, or a broker of its own.
func run(m *testing.M) (int, error) {
	if brokerURL = os.Getenv("AMQP_URL"); brokerURL == "" {
		return runOwn(m)
	}
	var err error
	if administration, err = newHTTPAdmin(brokerURL, os.Getenv("MANAGEMENT_URL")); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
