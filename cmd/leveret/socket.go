package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/leveretmq/leveret/broker"
	"github.com/leveretmq/leveret/config"
)

// socketPatience is how long to try the socket before the HTTP API's address: it
// takes a connection at once, or its machine is very busy.
const socketPatience = 5 * time.Second

// adminSocket is the socket of the broker with this data directory, "" if there
// is none that answers. Without a directory it is the one that a broker here
// would have.
func adminSocket(dataDir string, env func(string) (string, bool)) string {
	path := socketPath(dataDir, env)
	if info, err := os.Stat(path); err != nil || info.Mode().Type() != os.ModeSocket {
		return ""
	}
	c, err := net.DialTimeout("unix", path, socketPatience)
	if err != nil { // of a broker that was killed, or of another user's
		return ""
	}
	_ = c.Close() // nothing was sent
	return path
}

// socketPath is where the socket of the broker with this data directory is, "" if
// there is no such directory, as of a broker in memory.
func socketPath(dataDir string, env func(string) (string, bool)) string {
	flags := map[string]string{}
	if dataDir != "" {
		flags["data-dir"] = dataDir
	}
	cfg, _ := config.Load(flags, env) // the directory is found first; the rest may be wrong
	if cfg.DataDir == "" || cfg.InMemory && dataDir == "" {
		return ""
	}
	path, err := filepath.Abs(filepath.Join(cfg.DataDir, broker.AdminSocket))
	if err != nil {
		return ""
	}
	return path
}

// namedSocket is the path of the socket in a data directory that was named, by the
// option or by a variable; "" if none was, or if the path is too long for a broker
// with a socket there.
func namedSocket(dataDir string, env func(string) (string, bool)) string {
	named := dataDir != ""
	for _, name := range []string{"LEVERET_DATA_DIR", "RABBITMQ_MNESIA_DIR", "RABBITMQ_MNESIA_BASE"} {
		v, _ := env(name)
		named = named || v != ""
	}
	if !named {
		return ""
	}
	path := socketPath(dataDir, env)
	if len(path) > broker.MaxSocketPath {
		return ""
	}
	return path
}

// A refusal is the way to a broker that is not there: it answers each request with
// the reason.
type refusal struct{ reason error }

// RoundTrip implements http.RoundTripper.
func (r refusal) RoundTrip(*http.Request) (*http.Response, error) { return nil, r.reason }

// overSocket sends all requests over a socket, whatever their host.
func overSocket(path string) http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
}
