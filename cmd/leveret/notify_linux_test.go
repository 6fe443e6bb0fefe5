package main

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// supervisor is the socket on which systemd takes states.
func supervisor(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return l
}

func nextState(t *testing.T, l *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 1024)
	n, err := l.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestSystemdIsToldTheState(t *testing.T) {
	l := supervisor(t)
	t.Setenv("WATCHDOG_USEC", "20000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	stopping := notifyStarted(zap.NewNop(), func() error { return nil })
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := nextState(t, l); got != want {
			t.Errorf("state %q, want %q", got, want)
		}
	}
	stopping()
	got := nextState(t, l)
	for got == "WATCHDOG=1" {
		got = nextState(t, l)
	}
	if got != "STOPPING=1" {
		t.Errorf("state %q, want STOPPING=1", got)
	}
}

// A broker that is stuck is not said to be alive; it is again once it moves.
func TestTheWatchdogIsNotToldOfAStuckBroker(t *testing.T) {
	l := supervisor(t)
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	looks := 0
	moves := make(chan struct{})
	stopping := notifyStarted(zap.NewNop(), func() error {
		if looks++; looks != 4 {
			return errors.New("stuck")
		}
		close(moves)
		return nil
	})
	if got := nextState(t, l); got != "READY=1" {
		t.Errorf("state %q, want READY=1", got)
	}
	if got := nextState(t, l); got != "WATCHDOG=1" {
		t.Errorf("state %q, want WATCHDOG=1", got)
	}
	select {
	case <-moves:
	default:
		t.Error("systemd was told of a broker that was stuck")
	}
	stopping()
}

func TestSystemdIsToldOfReloads(t *testing.T) {
	l := supervisor(t)
	done := notifyReloading(zap.NewNop())
	if got := nextState(t, l); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("state %q", got)
	}
	done()
	if got := nextState(t, l); got != "READY=1" {
		t.Errorf("state %q, want READY=1", got)
	}
}
