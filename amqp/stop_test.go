package amqp

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A client that does not answer connection.close leaves most of the ten seconds
// that container runtimes give to the last commit.
func TestStopDoesNotWaitLongForSilentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, zap.NewNop())
		c := tuned(t, s, 0)
		go func() { _, _ = io.Copy(io.Discard, c.sock) }() // it reads, and says nothing; ends with the socket
		start := time.Now()
		s.Shutdown(context.Background())
		if d := time.Since(start); d > 2*stopDelay {
			t.Errorf("the stop took %v, want at most %v", d, 2*stopDelay)
		}
	})
}

// A stop is one line of the log, not one for each client.
func TestStopWarnsOfNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logged := observer.New(zap.WarnLevel)
		s := newTestServer(t, zap.New(core))
		c := tuned(t, s, 0)
		go func() { _, _ = io.Copy(io.Discard, c.sock) }() // ends with the socket
		s.Shutdown(context.Background())
		for _, e := range logged.All() {
			if e.Message == "closing connection" {
				t.Errorf("the log warns: %s %v", e.Message, e.ContextMap())
			}
		}
	})
}
