package auth

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/netip"
	"testing"

	"github.com/leveretmq/leveret/frames"
)

var (
	here  = netip.MustParseAddr("127.0.0.1")
	there = netip.MustParseAddr("192.0.2.7")
)

// amqplain is the response of a client: the table without its length.
func amqplain(t frames.Table) []byte { return frames.AppendTable(nil, t)[4:] }

func TestMechanisms(t *testing.T) {
	for _, tt := range []struct {
		cfg        Config
		want, cert string
	}{
		{Config{}, "AMQPLAIN PLAIN", "AMQPLAIN PLAIN"},
		{Config{Mechanisms: []string{Plain}}, "PLAIN", "PLAIN"},
		{Config{Mechanisms: []string{Anonymous, Plain}}, "PLAIN", "PLAIN"},
		{Config{Mechanisms: []string{Anonymous, Plain}, AnonymousUser: "guest"}, "ANONYMOUS PLAIN", "ANONYMOUS PLAIN"},
		{Config{AnonymousUser: "guest"}, "AMQPLAIN PLAIN", "AMQPLAIN PLAIN"},
		{Config{Mechanisms: []string{External, Plain}}, "PLAIN", "EXTERNAL PLAIN"},
		{Config{Mechanisms: []string{External}}, "", "EXTERNAL"},
	} {
		a := open(t, tt.cfg, newFakeStore())
		if got, cert := a.Mechanisms(), a.CertMechanisms(); got != tt.want || cert != tt.cert {
			t.Errorf("%v: %q and %q, want %q and %q", tt.cfg.Mechanisms, got, cert, tt.want, tt.cert)
		}
	}
}

func TestLogin(t *testing.T) {
	a := newAuthority(t, Config{
		Mechanisms:    []string{Plain, AMQPlain, Anonymous, External},
		AnonymousUser: "visitor",
		CertName:      CommonName,
	})
	putUser(t, a, "visitor", Secret{})
	putUser(t, a, "hashless", Secret{})
	putUser(t, a, "ü", Secret{Password: "pässwörd \t"})
	const long = 'S'
	plain := func(response string) Credentials {
		return Credentials{Mechanism: Plain, Response: []byte(response), Peer: there}
	}
	table := func(fields ...frames.Field) Credentials {
		return Credentials{Mechanism: AMQPlain, Response: amqplain(fields), Peer: there}
	}
	for _, tt := range []struct {
		name string
		c    Credentials
		user string
		err  error
	}{
		{"plain", plain("\x00joe\x00secret"), "joe", nil},
		{"plain, not ASCII", plain("\x00ü\x00pässwörd \t"), "ü", nil},
		{"plain, wrong password", plain("\x00joe\x00secret "), "", ErrRefused},
		{"plain, empty password", plain("\x00joe\x00"), "", ErrRefused},
		{"plain, no hash", plain("\x00hashless\x00x"), "", ErrRefused},
		{"plain, no hash, empty password", plain("\x00hashless\x00"), "", ErrRefused},
		{"plain, unknown user", plain("\x00nobody\x00secret"), "", ErrRefused},
		{"plain, empty user", plain("\x00\x00secret"), "", ErrRefused},
		{"plain, authorization identity", plain("joe\x00joe\x00secret"), "", ErrMalformed},
		{"plain, no first NUL", plain("joe\x00secret"), "", ErrMalformed},
		{"plain, no second NUL", plain("\x00joe"), "", ErrMalformed},
		{"plain, a third NUL", plain("\x00joe\x00secret\x00"), "", ErrMalformed},
		{"plain, empty", plain(""), "", ErrMalformed},

		{"amqplain", table(frames.Field{Name: "LOGIN", Value: "joe"}, frames.Field{Name: "PASSWORD", Value: "secret"}), "joe", nil},
		{"amqplain, other order and more", table(frames.Field{Name: "x", Value: int32(1)}, frames.Field{Name: "PASSWORD", Value: "secret"}, frames.Field{Name: "LOGIN", Value: "joe"}), "joe", nil},
		{"amqplain, first of two counts", table(frames.Field{Name: "LOGIN", Value: "joe"}, frames.Field{Name: "LOGIN", Value: "ann"}, frames.Field{Name: "PASSWORD", Value: "secret"}), "joe", nil},
		{"amqplain, wrong password", table(frames.Field{Name: "LOGIN", Value: "joe"}, frames.Field{Name: "PASSWORD", Value: "no"}), "", ErrRefused},
		{"amqplain, no password", table(frames.Field{Name: "LOGIN", Value: "joe"}), "", ErrMalformed},
		{"amqplain, no login", table(frames.Field{Name: "PASSWORD", Value: "secret"}), "", ErrMalformed},
		{"amqplain, lower case", table(frames.Field{Name: "login", Value: "joe"}, frames.Field{Name: "password", Value: "secret"}), "", ErrMalformed},
		{"amqplain, bytes", table(frames.Field{Name: "LOGIN", Value: []byte("joe")}, frames.Field{Name: "PASSWORD", Value: []byte("secret")}), "joe", nil},
		{"amqplain, wrong password in bytes", table(frames.Field{Name: "LOGIN", Value: "joe"}, frames.Field{Name: "PASSWORD", Value: []byte("no")}), "", ErrRefused},
		{"amqplain, password of another type", table(frames.Field{Name: "LOGIN", Value: "joe"}, frames.Field{Name: "PASSWORD", Value: frames.Table{{Name: "PASSWORD", Value: "secret"}}}), "", ErrRefused},
		{"amqplain, void password", table(frames.Field{Name: "LOGIN", Value: "joe"}, frames.Field{Name: "PASSWORD", Value: nil}), "", ErrRefused},
		{"amqplain, login of another type", table(frames.Field{Name: "LOGIN", Value: int32(1)}, frames.Field{Name: "PASSWORD", Value: "secret"}), "", ErrMalformed},
		{"amqplain, empty", Credentials{Mechanism: AMQPlain}, "", ErrMalformed},
		{"amqplain, with the length", Credentials{Mechanism: AMQPlain, Response: frames.AppendTable(nil, frames.Table{{Name: "LOGIN", Value: "joe"}, {Name: "PASSWORD", Value: "secret"}})}, "", ErrMalformed},
		{"amqplain, garbage", Credentials{Mechanism: AMQPlain, Response: []byte{5, 'L', 'O', 'G', 'I', 'N', long, 0, 0, 0, 9, 'j'}}, "", ErrMalformed},

		{"anonymous", Credentials{Mechanism: Anonymous, Response: []byte("whatever"), Peer: there}, "visitor", nil},
		{"external", Credentials{Mechanism: External, Certificate: testCert("hashless"), Peer: there}, "hashless", nil},
		{"external, unknown", Credentials{Mechanism: External, Certificate: testCert("nobody"), Peer: there}, "", ErrRefused},
		{"external, no certificate", Credentials{Mechanism: External, Peer: there}, "", ErrRefused},

		{"unknown mechanism", Credentials{Mechanism: "CRAM-MD5"}, "", ErrMechanism},
		{"lower case mechanism", Credentials{Mechanism: "plain"}, "", ErrMechanism},
		{"no mechanism", Credentials{}, "", ErrMechanism},
	} {
		u, err := a.Login(t.Context(), tt.c)
		if u.Name != tt.user || !errors.Is(err, tt.err) {
			t.Errorf("%s: user %q, error %v, want %q and %v", tt.name, u.Name, err, tt.user, tt.err)
		}
	}
}

func TestMechanismsThatAreOffAreNotTaken(t *testing.T) {
	a := newAuthority(t, Config{Mechanisms: []string{Plain, Anonymous}})
	for _, c := range []Credentials{
		{Mechanism: AMQPlain, Response: amqplain(frames.Table{{Name: "LOGIN", Value: "joe"}, {Name: "PASSWORD", Value: "secret"}})},
		{Mechanism: External, Certificate: testCert("joe")},
		{Mechanism: Anonymous}, // there is no anonymous user
	} {
		if u, err := a.Login(t.Context(), c); !errors.Is(err, ErrMechanism) {
			t.Errorf("%s: user %q, error %v, want ErrMechanism", c.Mechanism, u.Name, err)
		}
	}
}

func TestARefusalTellsTheClientNothing(t *testing.T) {
	a := newAuthority(t, Config{})
	_, err := a.Login(t.Context(), Credentials{Mechanism: Plain, Response: []byte("\x00joe\x00wrong"), Peer: there})
	wantReply(t, err, "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. For details see the broker logfile.")
	if e, ok := errors.AsType[*frames.Error](err); !ok || !e.Unbound || e.Code != frames.AccessRefused {
		t.Errorf("protocol error is %+v", e)
	}
	if got, want := err.Error(), "PLAIN login refused: user 'joe' - invalid credentials"; got != want {
		t.Errorf("for the log: %q, want %q", got, want)
	}
	for _, response := range []string{"\x00joe\x00secret\x00", "x"} {
		_, err := a.Login(t.Context(), Credentials{Mechanism: Plain, Response: []byte(response)})
		if _, ok := errors.AsType[*frames.Error](err); ok {
			t.Errorf("%q: a protocol error is answered with a close: %v", response, err)
		}
	}
}

func TestLoopbackUsers(t *testing.T) {
	guest := func(peer netip.Addr, loopback bool) Credentials {
		return Credentials{Mechanism: Plain, Response: []byte("\x00guest\x00guest"), Peer: peer, Loopback: loopback}
	}
	for _, tt := range []struct {
		users []string
		c     Credentials
		ok    bool
	}{
		{nil, guest(here, false), true},
		{nil, guest(netip.MustParseAddr("::1"), false), true},
		{nil, guest(netip.MustParseAddr("::ffff:127.0.0.1"), false), true},
		{nil, guest(netip.Addr{}, true), true}, // a Unix socket
		{nil, guest(netip.Addr{}, false), false},
		{nil, guest(there, false), false},
		{[]string{}, guest(there, false), true},
		{[]string{"joe"}, guest(there, false), true},
		{[]string{"joe", "guest"}, guest(there, false), false},
	} {
		a := open(t, Config{LoopbackUsers: tt.users}, newFakeStore())
		_, err := a.Login(t.Context(), tt.c)
		if tt.ok && err != nil || !tt.ok && !errors.Is(err, ErrRefused) {
			t.Errorf("loopback users %q, peer %v: %v, want ok %v", tt.users, tt.c.Peer, err, tt.ok)
		}
	}
	for _, c := range []Credentials{guest(here, true), guest(here, false)} {
		c.Remote = true
		if _, err := open(t, Config{}, newFakeStore()).Login(t.Context(), c); !errors.Is(err, ErrRefused) {
			t.Errorf("behind a proxy elsewhere: %v, want ErrRefused", err)
		}
	}
	a := open(t, Config{Mechanisms: []string{Anonymous, External}, AnonymousUser: "guest", CertName: CommonName}, newFakeStore())
	for _, c := range []Credentials{{Mechanism: Anonymous, Peer: there}, {Mechanism: External, Certificate: testCert("guest"), Peer: there}} {
		if _, err := a.Login(t.Context(), c); !errors.Is(err, ErrRefused) {
			t.Errorf("%s from afar: %v, want ErrRefused", c.Mechanism, err)
		}
	}
}

func TestHashesOfRabbitMQ(t *testing.T) {
	for _, tt := range []struct {
		alg            Algorithm
		hash, password string
		want           bool
	}{
		// The example of RabbitMQ's guide to passwords: salt 908dc60a.
		{SHA256, "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "test12", true},
		{"", "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "test12", true},
		{SHA256, "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "test13", false},
		{SHA512, "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", "test12", false},
		{SHA512, "AQIDBNsKKqE/zLqmj2um5nIC+jebR2ySQbuQzXrLMSmkg4mKDd/PAIfjnjdiMSRyz4CkQ6JvAlsEQlassV5DxRLXm0s=", "pässwörd", true},
		{MD5, "AQIDBDjGPQbv9MJE+LLBfuYlBiU=", "pässwörd", true},
		{MD5, "AQIDBDjGPQbv9MJE+LLBfuYlBiU=", "passwort", false},
		{SHA256, "", "", false},
		{SHA256, "AAAA", "x", false},     // three bytes: no salt
		{SHA256, "AAAAAA==", "x", false}, // a salt and nothing else
		{SHA256, "AAAAAAAA", "x", false}, // a sum that is cut short
	} {
		a := newAuthority(t, Config{})
		putUser(t, a, "joe", Secret{Hash: tt.hash, Algorithm: tt.alg})
		if _, err := a.Authenticate("joe", tt.password, Credentials{}); (err == nil) != tt.want {
			t.Errorf("%s %q %q: %v, want ok %v", tt.alg, tt.hash, tt.password, err, tt.want)
		}
		if u, _ := a.User("joe"); u.PasswordHash != tt.hash {
			t.Errorf("hash is kept as %q, want %q", u.PasswordHash, tt.hash)
		}
	}
}

func TestNewHashesAreSaltedAndVerify(t *testing.T) {
	for alg, size := range map[Algorithm]int{SHA256: 4 + 32, SHA512: 4 + 64} {
		a := newAuthority(t, Config{Algorithm: alg})
		first, second := a.HashPassword("pw"), a.HashPassword("pw")
		raw, err := base64.StdEncoding.DecodeString(first)
		if err != nil || len(raw) != size || first == second {
			t.Errorf("%s: %q, then %q", alg, first, second)
		}
		putUser(t, a, "joe", Secret{Hash: first, Algorithm: alg})
		if _, err := a.Authenticate("joe", "pw", Credentials{}); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
		if u, _ := a.User("guest"); u.Algorithm != alg {
			t.Errorf("a new password was hashed with %s, want %s", u.Algorithm, alg)
		}
	}
}

func TestUserWithoutPassword(t *testing.T) {
	a := newAuthority(t, Config{})
	putUser(t, a, "joe", Secret{})
	for _, password := range []string{"secret", ""} {
		if _, err := a.Authenticate("joe", password, Credentials{}); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v, want ErrRefused", password, err)
		}
	}
	if u, _ := a.User("joe"); u.PasswordHash != "" {
		t.Errorf("hash is %q", u.PasswordHash)
	}
	putUser(t, a, "joe", Secret{Password: "again"})
	if _, err := a.Authenticate("joe", "again", Credentials{}); err != nil {
		t.Error(err)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("\x00guest\x00guest"))
	f.Add([]byte("a\x00b\x00c"))
	f.Add([]byte("\x00\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, response []byte) {
		name, password, ok := parsePlain(response)
		if again := []byte("\x00" + name + "\x00" + password); ok && !bytes.Equal(again, response) {
			t.Errorf("%q became %q", response, again)
		}
		if !ok && len(response) > 0 && response[0] == 0 && bytes.Count(response, []byte{0}) == 2 {
			t.Errorf("%q was refused", response)
		}
	})
}

func FuzzAMQPlain(f *testing.F) {
	f.Add(amqplain(frames.Table{{Name: "LOGIN", Value: "guest"}, {Name: "PASSWORD", Value: "guest"}}))
	f.Add(amqplain(frames.Table{{Name: "PASSWORD", Value: []any{true}}, {Name: "LOGIN", Value: nil}}))
	f.Add([]byte{5, 'L', 'O', 'G', 'I', 'N', 'S', 0xff})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, response []byte) {
		name, password, ok := parseAMQPlain(response)
		// The slow way: decode everything, then look.
		table, err := frames.ParseTable(response)
		login, _ := table.Lookup("LOGIN")
		pass, has := table.Lookup("PASSWORD")
		wantName, isString := stringOf(login)
		wantPass, _ := stringOf(pass)
		if want := err == nil && isString && has; ok != want {
			t.Fatalf("%x: ok %v, want %v", response, ok, want)
		}
		if ok && (name != wantName || password != wantPass) {
			t.Errorf("%x: %q %q, want %q %q", response, name, password, wantName, wantPass)
		}
	})
}

// stringOf returns a string of either type.
func stringOf(v any) (s string, ok bool) {
	if b, ok := v.([]byte); ok {
		return string(b), true
	}
	s, ok = v.(string)
	return s, ok
}

// With a password configured for it, ANONYMOUS is a login with that (RabbitMQ 4.0:
// anonymous_login_pass).
func TestAnonymousPassword(t *testing.T) {
	for _, tt := range []struct {
		password string
		err      error
	}{{"right", nil}, {"wrong", ErrRefused}} {
		a := newAuthority(t, Config{Mechanisms: []string{Anonymous}, AnonymousUser: "visitor", AnonymousPass: tt.password})
		putUser(t, a, "visitor", Secret{Password: "right"})
		u, err := a.Login(t.Context(), Credentials{Mechanism: Anonymous, Peer: there})
		if !errors.Is(err, tt.err) || err == nil && u.Name != "visitor" {
			t.Errorf("with the password %s: %q, %v; want error %v", tt.password, u.Name, err, tt.err)
		}
	}
}
