package auth

import (
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/leveretmq/leveret/frames"
	"github.com/leveretmq/leveret/pattern"
)

// SASL mechanisms.
const (
	Plain     = "PLAIN"
	AMQPlain  = "AMQPLAIN"
	Anonymous = "ANONYMOUS"
	External  = "EXTERNAL"
)

// Config is how users log in and which one there is at the first start. The
// zero value is what RabbitMQ 4.0 does, but for anonymous logins, which are off.
type Config struct {
	// The user made when there is none: guest with password guest, tag
	// administrator and all permissions (".*") in the virtual host "/",
	// where a field is zero. User and VHost of DefaultPermissions are not used.
	DefaultUser        string
	DefaultPass        string
	DefaultTags        []string // nil is administrator
	DefaultVHost       string
	DefaultPermissions Permissions
	// NoDefaultUser leaves an empty store empty: definitions will be imported.
	NoDefaultUser bool

	// LoopbackUsers may log in from this host only; nil is guest, an empty
	// list nobody.
	LoopbackUsers []string
	// Mechanisms are offered in this order; nil is AMQPLAIN PLAIN.
	Mechanisms []string
	// AnonymousUser is who ANONYMOUS logs in as; "" refuses the mechanism.
	AnonymousUser string
	// AnonymousPass is that user's password, which must be right; "" is not looked
	// at.
	AnonymousPass string
	// CertName is the part of the client certificate that EXTERNAL takes as
	// the user name. The zero value is the distinguished name.
	CertName CertName
	// AltKind and AltIndex say which alternative name, if it is that; "" is the
	// DNS names. The first has the index 0.
	AltKind  AltKind
	AltIndex int

	// Algorithm hashes new passwords; "" is SHA256. MD5 is refused.
	Algorithm Algorithm
	// MinPasswordLength is the fewest bytes a new password may have; 0 is no limit.
	MinPasswordLength int
	// PasswordPattern is a regular expression that a new password must match
	// somewhere; "" is none.
	PasswordPattern string

	// Log takes changes of users and permissions; nil is no log.
	Log *zap.Logger
}

// A CertName is a part of a client certificate.
type CertName byte

// The parts that can name a user (RabbitMQ 4.0: ssl_cert_login_from).
const (
	DistinguishedName CertName = iota
	CommonName
	AlternativeName
)

func (c Config) withDefaults() Config {
	c.DefaultUser = or(c.DefaultUser, "guest")
	c.DefaultPass = or(c.DefaultPass, "guest")
	c.DefaultVHost = or(c.DefaultVHost, "/")
	c.DefaultPermissions.Configure = or(c.DefaultPermissions.Configure, ".*")
	c.DefaultPermissions.Write = or(c.DefaultPermissions.Write, ".*")
	c.DefaultPermissions.Read = or(c.DefaultPermissions.Read, ".*")
	c.Algorithm = or(c.Algorithm, SHA256)
	if c.DefaultTags == nil {
		c.DefaultTags = []string{"administrator"}
	}
	if c.LoopbackUsers == nil {
		c.LoopbackUsers = []string{"guest"}
	}
	if c.Mechanisms == nil {
		c.Mechanisms = []string{AMQPlain, Plain}
	}
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	return c
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// check refuses what could never work and compiles the password rule.
func (c Config) check() (passwordRule, error) {
	known := []string{Plain, AMQPlain, Anonymous, External}
	for _, m := range c.Mechanisms {
		if !slices.Contains(known, m) {
			return passwordRule{}, fmt.Errorf("unknown authentication mechanism %q: use some of %q", m, known)
		}
	}
	if c.Algorithm != SHA256 && c.Algorithm != SHA512 {
		return passwordRule{}, fmt.Errorf("new passwords cannot be hashed with %q: use %s or %s", c.Algorithm, SHA256, SHA512)
	}
	rule := passwordRule{minLength: c.MinPasswordLength}
	if c.PasswordPattern == "" {
		return rule, nil
	}
	re, err := pattern.Compile(c.PasswordPattern)
	if err != nil {
		return passwordRule{}, fmt.Errorf("the pattern for new passwords: %w", err)
	}
	rule.pattern = re
	return rule, nil
}

// A passwordRule is what a new password must be like. It is immutable.
type passwordRule struct {
	minLength int
	pattern   *pattern.Pattern // nil if there is none
}

func (r passwordRule) check(password string) error {
	if len(password) < r.minLength {
		return frames.Errorf(frames.PreconditionFailed, "minimum required password length: %d", r.minLength)
	}
	if r.pattern != nil && !r.pattern.MatchString(password) {
		return frames.Errorf(frames.PreconditionFailed, "provided password does not match the validator regular expression")
	}
	return nil
}
