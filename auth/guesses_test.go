package auth

import (
	"errors"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGuessersAreStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuthority(t, Config{})
		elsewhere := netip.MustParseAddr("192.0.2.77")
		login := func(user, password string, peer netip.Addr) error {
			_, err := a.Login(t.Context(), Credentials{Mechanism: Plain, Response: []byte("\x00" + user + "\x00" + password), Peer: peer})
			return err
		}
		for i := range maxFailures {
			if err := login("joe", "guess"+strconv.Itoa(i), there); !errors.Is(err, ErrRefused) || errors.Is(err, ErrThrottled) {
				t.Fatalf("guess %d: %v, want a plain refusal", i, err)
			}
		}
		err := login("joe", "secret", there)
		if !errors.Is(err, ErrThrottled) || !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "too many") {
			t.Errorf("the right password after %d guesses: %v, want ErrThrottled", maxFailures, err)
		}
		// The front doors share what they know.
		if _, err := a.Authenticate("joe", "secret", Credentials{Peer: there}); !errors.Is(err, ErrThrottled) {
			t.Errorf("through another front door: %v, want ErrThrottled", err)
		}
		if err := login("joe", "secret", elsewhere); err != nil {
			t.Errorf("the same user from elsewhere: %v", err)
		}
		putUser(t, a, "ann", Secret{Password: "secret"})
		if err := login("ann", "secret", there); err != nil {
			t.Errorf("another user from the same address: %v", err)
		}
		time.Sleep(failureWindow)
		if err := login("joe", "secret", there); err != nil {
			t.Errorf("after a while: %v", err)
		}
	})
}

func TestSuccessForgetsFailures(t *testing.T) {
	var g guesses
	who := newGuesser("joe", netip.MustParseAddr("192.0.2.1"))
	for range maxFailures - 1 {
		g.fail(who)
	}
	g.succeed(who)
	g.fail(who)
	if g.blocked(who) {
		t.Error("blocked after one failure since the last success")
	}
}

func TestGuessersThatAreRememberedAreBounded(t *testing.T) {
	var g guesses
	worst := newGuesser("joe", netip.MustParseAddr("192.0.2.1"))
	for range maxFailures {
		g.fail(worst)
	}
	for i := range 3 * maxGuessers {
		g.fail(newGuesser(strconv.Itoa(i), worst.peer))
	}
	if len(g.failed) > maxGuessers {
		t.Errorf("%d are remembered, want %d at most", len(g.failed), maxGuessers)
	}
	if !g.blocked(worst) {
		t.Error("who tries many names is let off for the first")
	}
}

// Names of any length cost the same.
func TestLongNamesAreNotKept(t *testing.T) {
	var g guesses
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 1000 {
		g.fail(newGuesser(strconv.Itoa(i)+strings.Repeat("n", 100_000), netip.MustParseAddr("192.0.2.1")))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(g.failed) != 1000 {
		t.Errorf("%d are remembered, want 1000", len(g.failed))
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("1000 names of 100 KB: the heap has grown by %d bytes", grown)
	}
}
