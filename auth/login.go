package auth

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/leveretmq/leveret/frames"
)

// How a login fails, for errors.Is. The first two are protocol errors, which
// RabbitMQ 4.0 answers with silence and a closed socket. ErrRefused comes with
// a *frames.Error, the 403 for clients that asked for one; its own text is for
// the log.
var (
	ErrMechanism = errors.New("authentication mechanism not offered")
	ErrMalformed = errors.New("malformed authentication response")
	ErrRefused   = errors.New("login refused")
	// ErrThrottled comes with ErrRefused: too many logins of this user from
	// this address have failed lately, and the password was not looked at.
	ErrThrottled = errors.New("too many failed logins")
)

// Credentials are what a client logs in with.
type Credentials struct {
	Mechanism string
	Response  []byte     // of connection.start-ok
	Peer      netip.Addr // the zero Addr if there is no address
	// Loopback says that the peer is on this host although Peer does not show
	// it: a Unix socket, say.
	Loopback bool
	// Remote says that the peer is not on this host although Peer shows one that
	// is: a proxy on another host named it.
	Remote bool
	// Certificate is the TLS peer's, verified; nil without one. It has the name
	// for EXTERNAL.
	Certificate *x509.Certificate
}

// Mechanisms lists the mechanisms for connection.start, separated by blanks,
// for a connection whose peer showed no certificate.
func (a *Authority) Mechanisms() string { return a.offer(false) }

// CertMechanisms is Mechanisms for a connection whose peer showed a verified
// certificate: EXTERNAL is offered too if it is configured.
func (a *Authority) CertMechanisms() string { return a.offer(true) }

func (a *Authority) offer(cert bool) string {
	var list []string
	for _, m := range a.cfg.Mechanisms {
		if a.offered(m) && (cert || m != External) {
			list = append(list, m)
		}
	}
	return strings.Join(list, " ")
}

func (a *Authority) offered(mechanism string) bool {
	return slices.Contains(a.cfg.Mechanisms, mechanism) &&
		(mechanism != Anonymous || a.cfg.AnonymousUser != "")
}

// Login says who the client is, or why not: see ErrMechanism, ErrMalformed and
// ErrRefused.
func (a *Authority) Login(_ context.Context, c Credentials) (User, error) {
	u, err := a.sasl(c)
	a.attempts.sasl.count(err)
	return u, err
}

func (a *Authority) sasl(c Credentials) (User, error) {
	if !a.offered(c.Mechanism) {
		return User{}, fmt.Errorf("%w: %q", ErrMechanism, c.Mechanism)
	}
	switch c.Mechanism {
	case Anonymous:
		if a.cfg.AnonymousPass != "" {
			return a.password(a.cfg.AnonymousUser, a.cfg.AnonymousPass, c)
		}
		return a.trust(a.cfg.AnonymousUser, c)
	case External:
		return a.trust(a.cfg.certName(c.Certificate), c)
	}
	name, password, err := parseResponse(c)
	if err != nil {
		return User{}, err
	}
	return a.password(name, password, c)
}

// Authenticate checks a name and password that came some other way than SASL,
// say in an HTTP header. Of c it uses where the client is, and the mechanism
// for the text of the refusal; "" is PLAIN.
func (a *Authority) Authenticate(name, password string, c Credentials) (User, error) {
	u, err := a.password(name, password, c)
	a.attempts.http.count(err)
	return u, err
}

func (a *Authority) password(name, password string, c Credentials) (User, error) {
	c.Mechanism = or(c.Mechanism, Plain)
	who := newGuesser(name, c.Peer)
	if a.guesses.blocked(who) {
		return User{}, fmt.Errorf("%w: %w", ErrThrottled, refuse(c, "user '%s' - too many failed logins from this address, try again in a minute", name))
	}
	u := a.lookup(name)
	if !a.proves(u, password) {
		a.guesses.fail(who)
		return User{}, refuse(c, "user '%s' - invalid credentials", name)
	}
	a.guesses.succeed(who)
	return a.admit(u, c)
}

// proves says whether it is the user's password. For a user that does not exist
// it takes as long.
func (a *Authority) proves(u *account, password string) bool {
	if u == nil {
		a.decoy.matches(password)
		return false
	}
	return u.hash.matches(password)
}

// trust logs in a user that has proved itself without a password.
func (a *Authority) trust(name string, c Credentials) (User, error) {
	u := a.lookup(name)
	if u == nil {
		return User{}, refuse(c, "user '%s' does not exist", name)
	}
	return a.admit(u, c)
}

// admit is the last check of every login: where it comes from.
func (a *Authority) admit(u *account, c Credentials) (User, error) {
	local := !c.Remote && (c.Loopback || c.Peer.Unmap().IsLoopback())
	if !local && slices.Contains(a.cfg.LoopbackUsers, u.name) {
		return User{}, refuse(c, "user '%s' can only connect via localhost", u.name)
	}
	return u.user(), nil
}

// parseResponse reads the name and password of a PLAIN or AMQPLAIN response.
func parseResponse(c Credentials) (name, password string, err error) {
	parse := parsePlain
	if c.Mechanism == AMQPlain {
		parse = parseAMQPlain
	}
	name, password, ok := parse(c.Response)
	if !ok {
		return "", "", fmt.Errorf("%w for mechanism %s", ErrMalformed, c.Mechanism)
	}
	return name, password, nil
}

// parsePlain reads NUL name NUL password. RabbitMQ 4.0 takes no authorization
// identity before the first NUL, and no third NUL.
func parsePlain(response []byte) (name, password string, ok bool) {
	rest, ok := bytes.CutPrefix(response, []byte{0})
	if !ok {
		return "", "", false
	}
	n, p, ok := bytes.Cut(rest, []byte{0})
	if !ok || bytes.IndexByte(p, 0) >= 0 {
		return "", "", false
	}
	return string(n), string(p), true
}

// parseAMQPlain reads the contents of a field table, without its length prefix,
// with the strings LOGIN and PASSWORD. A password of another type is none that could
// be right (RabbitMQ 4.0).
func parseAMQPlain(response []byte) (name, password string, ok bool) {
	if frames.CheckTable(response) != nil {
		return "", "", false
	}
	tag, n, _ := frames.FindField(response, "LOGIN")
	passTag, p, ok := frames.FindField(response, "PASSWORD")
	if !isString(tag) || !ok {
		return "", "", false
	}
	if !isString(passTag) {
		return string(n), "", true
	}
	return string(n), string(p), true
}

// isString says whether a field type is a long string or a byte array.
func isString(tag byte) bool { return tag == 'S' || tag == 'x' }

// A refusal is an ErrRefused: a text for the log, and a 403 for the client that
// tells nothing but the mechanism.
type refusal struct {
	mechanism, user, why string
	wire                 *frames.Error
}

// refuse makes one; why has a place for the name of the user.
func refuse(c Credentials, why, user string) error {
	return &refusal{
		mechanism: c.Mechanism,
		user:      user,
		why:       fmt.Sprintf(why, user),
		wire: frames.Unboundf(frames.AccessRefused,
			"Login was refused using authentication mechanism %s. For details see the broker logfile.", c.Mechanism),
	}
}

func (r *refusal) Error() string   { return r.mechanism + " login refused: " + r.why }
func (r *refusal) Unwrap() []error { return []error{ErrRefused, r.wire} }

// RefusedUser is who was refused by Login, and why; "" and the error's text if it is
// the error of something else.
func RefusedUser(err error) (name, why string) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.user, r.why
	}
	return "", err.Error()
}
