package broker

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"go.uber.org/zap"
)

// profileHeaderTimeout is how long a client may take to ask for a profile.
const profileHeaderTimeout = 10 * time.Second

// openProfiles listens where profiles are asked for; nil without an address.
func openProfiles(address string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen(network(address, nil), address)
	if err != nil {
		return nil, fmt.Errorf("cannot serve profiles on %s: %w; choose another address with --pprof-listen (LEVERET_PPROF_LISTEN)", address, err)
	}
	return l, nil
}

// serveProfiles answers requests for profiles until ctx ends, which cuts off
// what is still being measured. It closes l.
func serveProfiles(ctx context.Context, l net.Listener, log *zap.Logger) {
	log.Info("profiles on http://" + l.Addr().String() + "/debug/pprof/")
	s := &http.Server{Handler: profiles(), ReadHeaderTimeout: profileHeaderTimeout}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); err != nil && ctx.Err() == nil {
		log.Error("the profiles have stopped: restart the broker to have them again", zap.Error(err))
	}
}

// profiles are the pages of the Go runtime's profiler, where its tools look for
// them.
func profiles() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /debug/pprof/", pprof.Index)
	m.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	m.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	m.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	m.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return m
}
