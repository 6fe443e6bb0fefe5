package management

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/leveretmq/leveret/auth"
)

// LocalUser is the name of who calls over a listener of ServeLocal. It is no
// user of the broker's: it has no password and cannot log in elsewhere.
const LocalUser = "local"

// localKey marks the context of requests that came in by ServeLocal.
type localKey struct{}

// ServeLocal answers requests on l until Shutdown, until ctx ends, or until l
// fails; it closes l. Whoever connects there is an administrator without a
// login: l must accept nobody else. Who shows credentials all the same is that
// user.
func (s *Server) ServeLocal(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { s.local.Close() })
	defer stop()
	if err := s.local.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *Server) newLocalServer() *http.Server {
	return &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: debugLog(s.log), ConnState: s.fresh.changed,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context { return context.WithValue(ctx, localKey{}, true) },
	}
}

// onSocket says whether the request came in by ServeLocal.
func (r *request) onSocket() bool { return r.http.Context().Value(localKey{}) != nil }

// enterLocally makes the request one of the local administrator, if it is.
func (r *request) enterLocally() bool {
	if r.http.Header.Get("Authorization") != "" || !r.onSocket() {
		return false
	}
	r.local = true
	r.user = auth.User{Name: LocalUser, Tags: []string{auth.Administrator, auth.Impersonator}}
	return true
}

// account is the user of the broker's that asks; "" is the local
// administrator, who is none.
func (r *request) account() string {
	if r.local {
		return ""
	}
	return r.user.Name
}
