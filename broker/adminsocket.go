package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"go.uber.org/zap"
)

const (
	// AdminSocket is the name of the socket in the data directory over which
	// whoever owns the broker's process, and root, use the HTTP API as
	// administrators without a login.
	AdminSocket = "admin.sock"
	// MaxSocketPath is the longest path of the socket, in bytes: the least that a
	// system allows. A broker with a longer one has no socket.
	MaxSocketPath = 103
)

// openAdminSocket opens the socket in the data directory. The directory's lock
// is taken already: a socket that is there is of a broker that was killed.
func (b *Broker) openAdminSocket() error {
	if b.cfg.InMemory {
		return nil
	}
	path, err := filepath.Abs(filepath.Join(b.cfg.DataDir, AdminSocket))
	if err != nil {
		return err
	}
	if len(path) > MaxSocketPath {
		b.log.Warn("no administration without a password: the path of its socket is too long; name a data directory with a shorter path with --data-dir (LEVERET_DATA_DIR)",
			zap.String("path", path), zap.Int("longest", MaxSocketPath))
		return nil
	}
	if err := removeSocket(path); err != nil {
		return err
	}
	l, err := net.Listen("unix", path)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil { // some file systems have no sockets: the broker works without
		b.log.Warn("no administration without a password: its socket cannot be made; see that the broker may write to its data directory, on a volume with sockets", zap.Error(err))
		return nil
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // nobody was accepted yet
		return fmt.Errorf("protect the socket for administration: %w", err)
	}
	b.adminListener = &adminListener{Listener: l, user: peerUser, log: b.log}
	return nil
}

// removeSocket removes what a broker that was killed has left. Something else
// of this name is not ours to remove.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for the socket for administration: %w", err)
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s is not a socket, and the broker needs this name for one; move it away", path)
	}
	return os.Remove(path)
}

// serveAdmin answers on the socket until Stop.
func (b *Broker) serveAdmin(ctx context.Context) {
	l, api := b.adminListener, b.api
	if l == nil {
		return
	}
	b.running.Go(func() { // ends with ctx or the API's Shutdown
		if err := api.ServeLocal(ctx, l); err != nil && !b.stopping.Load() {
			b.log.Error("administration without a password has stopped: restart the broker to have it again", zap.String("socket", l.Addr().String()), zap.Error(err))
		}
	})
	b.log.Info("administration without a password on " + l.Addr().String())
}

// An adminListener lets in only who runs as the broker's user, or as root. The
// mode of the socket says so too, but it can be changed, and some systems do
// not look at it.
type adminListener struct {
	net.Listener
	user func(net.Conn) (uid int, err error) // at the other end; immutable
	log  *zap.Logger                         // immutable
}

// Accept implements net.Listener.
func (l *adminListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		uid, err := l.user(c)
		if err == nil && (uid == 0 || uid == os.Geteuid()) {
			return c, nil
		}
		l.log.Warn("refused on the socket for administration: only the broker's own user and root may use it",
			zap.Int("uid", uid), zap.Error(err))
		_ = c.Close() // it gets no answer
	}
}
