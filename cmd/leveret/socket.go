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
	flags := map[string]string{}
	if dataDir != "" {
		flags["data-dir"] = dataDir
	}
	cfg, _ := config.Load(flags, env) // the directory is found first; the rest may be wrong
	if cfg.DataDir == "" {
		return ""
	}
	path, err := filepath.Abs(filepath.Join(cfg.DataDir, broker.AdminSocket))
	if err != nil {
		return ""
	}
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

// overSocket sends all requests over a socket, whatever their host.
func overSocket(path string) http.RoundTripper {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
}
