package auth

import (
	"errors"
	"net/netip"
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
	who := guesser{"joe", netip.MustParseAddr("192.0.2.1")}
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
	worst := guesser{"joe", netip.MustParseAddr("192.0.2.1")}
	for range maxFailures {
		g.fail(worst)
	}
	for i := range 3 * maxGuessers {
		g.fail(guesser{strconv.Itoa(i), worst.peer})
	}
	if len(g.failed) > maxGuessers {
		t.Errorf("%d are remembered, want %d at most", len(g.failed), maxGuessers)
	}
	if !g.blocked(worst) {
		t.Error("who tries many names is let off for the first")
	}
}
